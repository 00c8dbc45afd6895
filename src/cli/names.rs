//! Policies of a cluster as the command line names them: `vap/NAME`, a type and names behind it, or names alone.
//!
//! Source: cli-runtime `pkg/resource/builder.go`, `ResourceTypeOrNameArgs`.

/// The API group of policies.
const GROUP: &str = "admissionregistration.k8s.io";

/// The names of the resource, the first being the short one that kubectl's plugins are known by.
const RESOURCE: [&str; 4] = [
    "vap",
    "vaps",
    "validatingadmissionpolicy",
    "validatingadmissionpolicies",
];

/// Reports whether `text` names the resource: `vap`, `ValidatingAdmissionPolicy`,
/// `validatingadmissionpolicies.v1.admissionregistration.k8s.io` and the like.
#[must_use]
pub fn is_resource(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let (resource, behind) = match text.split_once('.') {
        Some((resource, behind)) => (resource, Some(behind)),
        None => (text.as_str(), None),
    };
    let is_group = |behind: &str| {
        let version = behind
            .strip_suffix(GROUP)
            .and_then(|it| it.strip_suffix('.'));
        behind == GROUP || version.is_some_and(|it| matches!(it, "v1" | "v1beta1" | "v1alpha1"))
    };
    RESOURCE.contains(&resource) && behind.is_none_or(is_group)
}

/// The name that `vap/NAME` and the like give.
#[must_use]
pub fn of_resource(text: &str) -> Option<&str> {
    let (resource, name) = text.split_once('/')?;
    is_resource(resource).then_some(name)
}

/// The names of policies that `arguments` give: without any, none is named.
///
/// # Errors
/// Where one names another resource, or none.
pub fn parse(arguments: &[String]) -> Result<Vec<String>, String> {
    let mut names: Vec<String> = Vec::new();
    let has_type = arguments.first().is_some_and(|first| is_resource(first));
    for argument in arguments.iter().skip(usize::from(has_type)) {
        let name = match argument.split_once('/') {
            None => argument.as_str(),
            Some((resource, _)) if has_type => {
                return Err(format!(
                    "`{argument}` behind a type: write names, or {resource}/NAME for each"
                ));
            }
            Some((resource, name)) if is_resource(resource) => name,
            Some((resource, _)) => {
                return Err(format!(
                    "`{resource}` is no ValidatingAdmissionPolicy; write vap/NAME, or the name alone"
                ));
            }
        };
        if name.is_empty() || name.contains('/') {
            return Err(format!("`{argument}` names no policy; write vap/NAME"));
        }
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(arguments: &[&str], expect: Result<&[&str], &str>) {
        let arguments: Vec<String> = arguments.iter().map(|it| (*it).to_owned()).collect();
        let found = parse(&arguments);
        match expect {
            Ok(names) => assert_eq!(found.unwrap(), names),
            Err(part) => assert!(found.as_ref().unwrap_err().contains(part), "{found:?}"),
        }
    }

    #[test]
    fn policies_are_named_as_kubectl_names_them() {
        check(&[], Ok(&[]));
        check(&["a", "b", "a"], Ok(&["a", "b"]));
        check(
            &["vap/a", "ValidatingAdmissionPolicy/b", "c"],
            Ok(&["a", "b", "c"]),
        );
        check(&["vap"], Ok(&[]));
        check(&["validatingadmissionpolicies", "a", "b"], Ok(&["a", "b"]));
        check(
            &["validatingadmissionpolicy.v1.admissionregistration.k8s.io/a"],
            Ok(&["a"]),
        );
        check(
            &[
                "validatingadmissionpolicies.admissionregistration.k8s.io",
                "vap",
            ],
            Ok(&["vap"]),
        );
        check(&["deployments/a"], Err("no ValidatingAdmissionPolicy"));
        check(&["vap/"], Err("names no policy"));
        check(&["vap", "vap/a"], Err("behind a type"));
        check(&["vap/a/b"], Err("names no policy"));
        check(&["vap.example.com/a"], Err("no ValidatingAdmissionPolicy"));
    }
}

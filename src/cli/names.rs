//! Policies of a cluster as the command line names them: `vap/NAME`, a type and names behind it, or names alone.
//!
//! Source: cli-runtime `pkg/resource/builder.go`, `ResourceTypeOrNameArgs`.

use crate::policy::subject::SubjectKind;

/// Reports whether `text` names the resource: `vap`, `ValidatingAdmissionPolicy`,
/// `validatingadmissionpolicies.v1.admissionregistration.k8s.io` and the like.
#[must_use]
pub fn is_resource(text: &str) -> bool {
    let row = SubjectKind::ValidatingAdmissionPolicy.row();
    let text = text.to_ascii_lowercase();
    let (resource, behind) = match text.split_once('.') {
        Some((resource, behind)) => (resource, Some(behind)),
        None => (text.as_str(), None),
    };
    let is_group = |behind: &str| {
        let version = behind
            .strip_suffix(row.group)
            .and_then(|it| it.strip_suffix('.'));
        behind == row.group || version.is_some_and(|it| matches!(it, "v1" | "v1beta1" | "v1alpha1"))
    };
    row.is_named(resource) && behind.is_none_or(is_group)
}

/// The name that `vap/NAME` and the like give.
#[must_use]
pub fn of_resource(text: &str) -> Option<&str> {
    let (resource, name) = text.split_once('/')?;
    is_resource(resource).then_some(name)
}

/// The names of objects of a kind that `arguments` give apart from those of
/// others, which are left in `arguments`; nothing where no object and not the type is named, no name where all are.
///
/// # Errors
/// If one names none.
pub fn take(arguments: &mut Vec<String>, kind: SubjectKind) -> Result<Option<Vec<String>>, String> {
    let is_type = |text: &str| {
        let text = text.to_ascii_lowercase();
        let resource = text.split('.').next().unwrap_or_default();
        kind.row().is_named(resource)
    };
    let has_type = arguments.first().is_some_and(|first| is_type(first));
    if has_type {
        arguments.remove(0);
        let names = std::mem::take(arguments);
        return match names
            .iter()
            .find(|name| name.is_empty() || name.contains('/'))
        {
            Some(wrong) => Err(format!("`{wrong}` behind a type: write names alone")),
            None => Ok(Some(names)),
        };
    }
    let mut found = Vec::new();
    let mut rest = Vec::new();
    for argument in arguments.drain(..) {
        match argument.split_once('/') {
            Some((resource, name)) if is_type(resource) => {
                if name.is_empty() || name.contains('/') {
                    return Err(format!("`{argument}` names nothing; write {resource}/NAME"));
                }
                found.push(name.to_owned());
            }
            _ => rest.push(argument),
        }
    }
    *arguments = rest;
    Ok((!found.is_empty()).then_some(found))
}

/// The names of policies that `arguments` give: without any, none is named.
///
/// # Errors
/// If one names another resource, or none.
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
    fn other_types_are_named_beside_policies() {
        let map = SubjectKind::MutatingAdmissionPolicy;
        let take = |arguments: &[&str]| {
            let mut arguments: Vec<String> = arguments.iter().map(|it| (*it).to_owned()).collect();
            let taken = take(&mut arguments, map);
            (taken, arguments.join(" "))
        };
        let names = |names: &[&str]| Ok(Some(names.iter().map(|it| (*it).to_owned()).collect()));
        assert_eq!(take(&[]), (Ok(None), String::new()));
        assert_eq!(take(&["a", "vap/b"]), (Ok(None), "a vap/b".to_owned()));
        assert_eq!(take(&["map/a", "b"]), (names(&["a"]), "b".to_owned()));
        let of_type = take(&["mutatingadmissionpolicies", "a", "b"]);
        assert_eq!(of_type, (names(&["a", "b"]), String::new()));
        assert_eq!(take(&["map"]), (names(&[]), String::new()));
        assert!(take(&["map/"]).0.is_err());
        assert!(take(&["map", "map/a"]).0.is_err());
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

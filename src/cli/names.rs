//! Parses names of policies in a cluster: `vap/NAME`, a type followed by names, or names alone.
//!
//! Source: cli-runtime `pkg/resource/builder.go`, `ResourceTypeOrNameArgs`.

use crate::policy::subject::SubjectKind;

/// Returns true if `text` names the resource of ValidatingAdmissionPolicies, such as `vap`, `ValidatingAdmissionPolicy`
/// or `validatingadmissionpolicies.v1.admissionregistration.k8s.io`.
#[must_use]
pub fn is_resource(text: &str) -> bool {
    let row = SubjectKind::ValidatingAdmissionPolicy.row();
    let text = text.to_ascii_lowercase();
    let (resource, suffix) = match text.split_once('.') {
        Some((resource, suffix)) => (resource, Some(suffix)),
        None => (text.as_str(), None),
    };
    let is_group = |suffix: &str| {
        let version = suffix
            .strip_suffix(row.group)
            .and_then(|it| it.strip_suffix('.'));
        suffix == row.group || version.is_some_and(|it| matches!(it, "v1" | "v1beta1" | "v1alpha1"))
    };
    row.is_named(resource) && suffix.is_none_or(is_group)
}

/// Returns `NAME` for `vap/NAME`. Other names of the resource are also accepted, such as
/// `validatingadmissionpolicy/NAME`.
#[must_use]
pub fn policy_name(text: &str) -> Option<&str> {
    let (resource, name) = text.split_once('/')?;
    is_resource(resource).then_some(name)
}

/// Removes the names of objects of `kind` from `arguments`, and returns them. For example, `map/a b` becomes `b`, and
/// the result is `a`.
///
/// Returns an empty list if only the type is given, as in `map`. Returns `None` if `arguments` contain no name and no
/// type for `kind`.
///
/// # Errors
/// Returns an error if a name is empty or malformed.
pub fn take_kind(
    arguments: &mut Vec<String>,
    kind: SubjectKind,
) -> Result<Option<Vec<String>>, String> {
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
            Some(wrong) => Err(format!(
                "`{wrong}` is not a name; write only names after a type"
            )),
            None => Ok(Some(names)),
        };
    }
    let mut names = Vec::new();
    let mut rest = Vec::new();
    for argument in arguments.drain(..) {
        match argument.split_once('/') {
            Some((resource, name)) if is_type(resource) => {
                if name.is_empty() || name.contains('/') {
                    return Err(format!(
                        "`{argument}` has no valid name; write {resource}/NAME"
                    ));
                }
                names.push(name.to_owned());
            }
            _ => rest.push(argument),
        }
    }
    *arguments = rest;
    Ok((!names.is_empty()).then_some(names))
}

/// Returns the names of policies in `arguments`, without duplicates.
///
/// # Errors
/// Returns an error if an argument refers to another resource, or if a name is empty or malformed.
pub fn parse(arguments: &[String]) -> Result<Vec<String>, String> {
    let mut names: Vec<String> = Vec::new();
    let has_type = arguments.first().is_some_and(|first| is_resource(first));
    for argument in arguments.iter().skip(usize::from(has_type)) {
        let name = match argument.split_once('/') {
            None => argument.as_str(),
            Some((resource, _)) if has_type => {
                return Err(format!(
                    "`{argument}` cannot follow a type: write only names after the type, or {resource}/NAME for each"
                ));
            }
            Some((resource, name)) if is_resource(resource) => name,
            Some((resource, _)) => {
                return Err(format!(
                    "`{resource}` is not a ValidatingAdmissionPolicy; write vap/NAME, or only the name"
                ));
            }
        };
        if name.is_empty() || name.contains('/') {
            return Err(format!("`{argument}` has no valid name; write vap/NAME"));
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
        let result = parse(&arguments);
        match expect {
            Ok(names) => assert_eq!(result.unwrap(), names),
            Err(part) => assert!(result.as_ref().unwrap_err().contains(part), "{result:?}"),
        }
    }

    #[test]
    fn names_of_kind_are_removed_from_arguments() {
        let map = SubjectKind::MutatingAdmissionPolicy;
        let take = |arguments: &[&str]| {
            let mut arguments: Vec<String> = arguments.iter().map(|it| (*it).to_owned()).collect();
            let taken = take_kind(&mut arguments, map);
            (taken, arguments.join(" "))
        };
        let names = |names: &[&str]| Ok(Some(names.iter().map(|it| (*it).to_owned()).collect()));
        assert_eq!(take(&[]), (Ok(None), String::new()));
        assert_eq!(take(&["a", "vap/b"]), (Ok(None), "a vap/b".to_owned()));
        assert_eq!(take(&["map/a", "b"]), (names(&["a"]), "b".to_owned()));
        let names_after_type = take(&["mutatingadmissionpolicies", "a", "b"]);
        assert_eq!(names_after_type, (names(&["a", "b"]), String::new()));
        assert_eq!(take(&["map"]), (names(&[]), String::new()));
        assert!(take(&["map/"]).0.is_err());
        assert!(take(&["map", "map/a"]).0.is_err());
    }

    #[test]
    fn names_are_accepted_in_all_forms_of_kubectl() {
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
        check(&["deployments/a"], Err("not a ValidatingAdmissionPolicy"));
        check(&["vap/"], Err("has no valid name"));
        check(&["vap", "vap/a"], Err("cannot follow a type"));
        check(&["vap/a/b"], Err("has no valid name"));
        check(
            &["vap.example.com/a"],
            Err("not a ValidatingAdmissionPolicy"),
        );
    }
}

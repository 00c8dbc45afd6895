//! Suggestions of the name that was probably meant where nothing has the name.

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use crate::cel::diagnostic::{Candidates, Hint};

/// The longest name for which a similar one is looked for, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// The most names that a name is compared with.
const MAX_NAMES: usize = 5_000;

/// For how many fields of a policy a similar one is looked for.
const MAX_FIELDS: u32 = 200;

/// How many more fields a similar one is looked for.
#[derive(Debug)]
pub(super) struct Suggestions(u32);

impl Default for Suggestions {
    fn default() -> Self {
        Self(MAX_FIELDS)
    }
}

impl Suggestions {
    /// The field that was probably meant by one that is not declared, while there is work left; and whether no other
    /// is as near.
    pub(super) fn field(
        &mut self,
        policy: &ValidatingAdmissionPolicy,
        hint: &Hint,
    ) -> Option<(String, bool)> {
        self.0 = self.0.checked_sub(1)?;
        let Hint::Field { name, candidates } = hint else {
            return None;
        };
        match candidates {
            Candidates::Declared(_) | Candidates::Keys(_) => {
                let names = candidates.names();
                nearest_of(name, names.into_iter())
                    .map(|(meant, is_only)| (meant.to_owned(), is_only))
            }
            // The variables of the policy.
            Candidates::Elsewhere => {
                let spec = policy.spec.as_ref()?;
                let variables = spec.variables.iter().flatten();
                let names = variables.map(|variable| variable.name.as_str());
                nearest_of(name, names).map(|(meant, is_only)| (meant.to_owned(), is_only))
            }
        }
    }
}

/// The variables of expressions.
const NAMES: [&str; 7] = [
    "object",
    "oldObject",
    "request",
    "params",
    "namespaceObject",
    "variables",
    "authorizer",
];

/// The only variable that can have been meant by a name that nothing declares.
pub(super) fn only_reference(name: &str) -> Option<&'static str> {
    if NAMES.contains(&name) {
        return None;
    }
    nearest_only(name, NAMES.into_iter())
}

/// The advice about a name that nothing declares.
pub(super) fn reference(name: &str, is_match_condition: bool) -> Option<String> {
    match name {
        "params" => Some("`params` needs a paramKind in the spec".to_owned()),
        "variables" if is_match_condition => {
            Some("matchConditions are evaluated before variables, and cannot read them".to_owned())
        }
        "variables" => Some("the spec declares no variables".to_owned()),
        "authorizer" => Some("a messageExpression cannot use `authorizer`".to_owned()),
        _ => nearest(name, NAMES.into_iter()).map(|meant| format!("did you mean `{meant}`?")),
    }
}

/// The one of `names` that was probably meant by `name`.
pub(in crate::cli) fn nearest<'a>(
    name: &str,
    names: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    nearest_of(name, names).map(|(meant, _)| meant)
}

/// The one of `names` that was probably meant by `name`, where no other is as near.
pub(in crate::cli) fn nearest_only<'a>(
    name: &str,
    names: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let (meant, is_only) = nearest_of(name, names)?;
    is_only.then_some(meant)
}

/// The first of the nearest of `names`, and whether it is the only one.
fn nearest_of<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<(&'a str, bool)> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        return None;
    }
    let lower = name.to_lowercase();
    let mut best: Option<(usize, &str, bool)> = None;
    let near = names
        .take(MAX_NAMES)
        .filter(|known| known.len().abs_diff(name.len()) <= name.len() / 3);
    for known in near {
        let distance = distance(&lower, &known.to_lowercase());
        match &mut best {
            Some((least, first, is_only)) if *least == distance => *is_only &= *first == known,
            Some((least, ..)) if *least < distance => {}
            _ => best = Some((distance, known, true)),
        }
    }
    let (distance, best, is_only) = best?;
    (distance <= name.len() / 3).then_some((best, is_only))
}

/// The edit distance of two names.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (n, left) in a.chars().enumerate() {
        let mut next = vec![n + 1];
        for (right, pair) in b.iter().zip(row.windows(2)) {
            let [diagonal, above] = pair else { continue };
            let before = next.last().copied().unwrap_or_default();
            let replaced = diagonal + usize::from(left != *right);
            next.push(replaced.min(above + 1).min(before + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_meant() {
        let names = ["validations", "variables", "matchConditions"];
        let meant = |name| nearest(name, names.into_iter());
        assert_eq!(meant("validation"), Some("validations"));
        assert_eq!(meant("matchconditions"), Some("matchConditions"));
        assert_eq!(meant("replicas"), None);
        assert_eq!(meant("x"), None);
        assert_eq!(distance("kitten", "sitting"), 3);
        let only = |name| nearest_only(name, ["spec.a", "spec.b", "other", "other"].into_iter());
        assert_eq!((only("spec.c"), only("othr")), (None, Some("other")));
    }
}

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
    /// The field that was probably meant by one that is not declared, while there is work left.
    pub(super) fn field(
        &mut self,
        policy: &ValidatingAdmissionPolicy,
        hint: &Hint,
    ) -> Option<String> {
        self.0 = self.0.checked_sub(1)?;
        let Hint::Field { name, candidates } = hint else {
            return None;
        };
        match candidates {
            Candidates::Declared(_) | Candidates::Keys(_) => {
                let names = candidates.names();
                nearest(name, names.into_iter()).map(str::to_owned)
            }
            // The variables of the policy.
            Candidates::Elsewhere => {
                let spec = policy.spec.as_ref()?;
                let variables = spec.variables.iter().flatten();
                let names = variables.map(|variable| variable.name.as_str());
                nearest(name, names).map(str::to_owned)
            }
        }
    }
}

/// The advice about a name that nothing declares.
pub(super) fn reference(name: &str, is_match_condition: bool) -> Option<String> {
    const NAMES: [&str; 7] = [
        "object",
        "oldObject",
        "request",
        "params",
        "namespaceObject",
        "variables",
        "authorizer",
    ];
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
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        return None;
    }
    let lower = name.to_lowercase();
    let (distance, best) = names
        .take(MAX_NAMES)
        .filter(|known| known.len().abs_diff(name.len()) <= name.len() / 3)
        .map(|known| (distance(&lower, &known.to_lowercase()), known))
        .min_by_key(|(distance, _)| *distance)?;
    (distance <= name.len() / 3).then_some(best)
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
    }
}

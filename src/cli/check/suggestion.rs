//! What was probably meant by a name that nothing has.

use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use super::issues;
use super::known::Known;
use crate::policy;
use crate::schema::resolver::{Resolution, SchemaResolver as _};
use crate::schema::{DeclKind, DeclType, GroupVersion, Gvk};

/// The longest name for which a similar one is looked for, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// The field that was probably meant by the selection at `at` in `text`, which is not declared.
///
/// It is told where plain selections lead from `object`, `oldObject` or `params` to it, as in
/// `object.spec.replica`; `kinds` are those that lack the field, `apps/v1 Deployment`.
pub(super) fn field(
    policy: &ValidatingAdmissionPolicy,
    known: &Known,
    kinds: &[String],
    text: &str,
    at: (usize, usize),
) -> Option<String> {
    let offset = issues::offset(text, at);
    let before: Vec<char> = text.chars().take(offset).collect();
    let is_part = |c: &&char| c.is_alphanumeric() || matches!(c, '_' | '.' | '?');
    let n_path = before.iter().rev().take_while(is_part).count();
    let path: String = before.iter().skip(before.len() - n_path).collect();
    let behind = text.chars().skip(offset + 1);
    let name: String = behind
        .skip_while(|c| *c == '?')
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect();
    let mut parts = path.split('.').map(|part| part.trim_matches('?'));
    let gvk = match parts.next()? {
        "object" | "oldObject" => {
            let (api_version, kind) = kinds.first()?.split_once(' ')?;
            let GroupVersion { group, version } = GroupVersion::parse(api_version)?;
            Gvk::new(group, version, kind)
        }
        "params" => policy::param_kind(policy)?,
        _ => return None,
    };
    let Resolution::Found(mut type_) = known.resolve(&gvk) else {
        return None;
    };
    for part in parts {
        type_ = below(&type_, part)?;
    }
    let names = type_.declared_fields().iter().map(|field| &*field.name);
    nearest(&name, names).map(str::to_owned)
}

fn below(type_: &DeclType, name: &str) -> Option<Arc<DeclType>> {
    match &type_.kind {
        DeclKind::Map(value) => Some(Arc::clone(value)),
        _ => Some(Arc::clone(&type_.declared_field(name)?.type_)),
    }
}

/// The one of `names` that was probably meant by `name`.
pub(super) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        return None;
    }
    let lower = name.to_lowercase();
    let (distance, best) = names
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

//! What was probably meant by a name that nothing has.

use std::collections::HashSet;
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use super::issues;
use super::known::Known;
use crate::policy;
use crate::schema::resolver::{Resolution, SchemaResolver as _};
use crate::schema::{DeclKind, DeclType, GroupVersion, Gvk};

/// The longest name for which a similar one is looked for, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// The most names that a name is compared with, or that are looked at in a type.
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
    /// As [`field`], while there is work left.
    pub(super) fn field(
        &mut self,
        policy: &ValidatingAdmissionPolicy,
        known: &Known,
        kinds: &[String],
        text: &str,
        at: (usize, usize),
    ) -> Option<String> {
        self.0 = self.0.checked_sub(1)?;
        field(policy, known, kinds, text, at)
    }
}

/// The field that was probably meant by the selection at `at` in `text`, which is not declared.
///
/// It is told where plain selections lead from `object`, `oldObject`, `params` or `variables` to it, as
/// in `object.spec.replica`, and else where only the case is wrong; `kinds` are those that lack the
/// field, `apps/v1 Deployment`.
fn field(
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
    let object_kind = || {
        let (api_version, kind) = kinds.first()?.split_once(' ')?;
        let GroupVersion { group, version } = GroupVersion::parse(api_version)?;
        Some(Gvk::new(group, version, kind))
    };
    let root = parts.next()?;
    if root == "variables" && parts.next().is_none() {
        let spec = policy.spec.as_ref()?;
        let variables = spec.variables.iter().flatten();
        let names = variables.map(|variable| variable.name.as_str());
        return nearest(&name, names).map(str::to_owned);
    }
    let gvk = match root {
        "params" => policy::param_kind(policy)?,
        _ => object_kind()?,
    };
    let Resolution::Found(root_type) = known.resolve(&gvk) else {
        return None;
    };
    if !matches!(root, "object" | "oldObject" | "params") {
        return anywhere(&name, &root_type);
    }
    let mut type_ = root_type;
    for part in parts {
        type_ = below(&type_, part)?;
    }
    let names = type_.declared_fields().iter().map(|field| &*field.name);
    nearest(&name, names).map(str::to_owned)
}

/// The field anywhere within a type that `name` is but for case: where nothing tells what is selected
/// from, only that is near enough.
fn anywhere(name: &str, type_: &Arc<DeclType>) -> Option<String> {
    let mut visited: HashSet<*const DeclType> = HashSet::new();
    let mut pending = vec![Arc::clone(type_)];
    while let Some(type_) = pending.pop() {
        if visited.len() >= MAX_NAMES {
            return None;
        }
        if !visited.insert(Arc::as_ptr(&type_)) {
            continue;
        }
        for field in type_.declared_fields() {
            if field.name.eq_ignore_ascii_case(name) && *field.name != *name {
                return Some(field.name.to_string());
            }
            pending.push(Arc::clone(&field.type_));
        }
        if let DeclKind::List(of) | DeclKind::Map(of) = &type_.kind {
            pending.push(Arc::clone(of));
        }
    }
    None
}

/// What to do about a name that nothing declares, as `message` says.
pub(super) fn reference(message: &str, is_match_condition: bool) -> Option<String> {
    const NAMES: [&str; 7] = [
        "object",
        "oldObject",
        "request",
        "params",
        "namespaceObject",
        "variables",
        "authorizer",
    ];
    let (_, rest) = message.split_once("undeclared reference to '")?;
    let (name, _) = rest.split_once('\'')?;
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

fn below(type_: &DeclType, name: &str) -> Option<Arc<DeclType>> {
    match &type_.kind {
        DeclKind::Map(value) => Some(Arc::clone(value)),
        _ => Some(Arc::clone(&type_.declared_field(name)?.type_)),
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

//! Proposes variables of CEL for those of other policy engines, such as `object` for `input.review.object` of Gatekeeper.

use super::proposal::{Context, Proposal};
use crate::cel::syntax::token::Kind;
use crate::cli::check::tokens::TokenText;

/// The fields of an `AdmissionReview`'s request that are also fields of `request`.
const REQUEST: [&str; 10] = [
    "dryRun",
    "kind",
    "name",
    "namespace",
    "operation",
    "options",
    "requestKind",
    "resource",
    "subResource",
    "userInfo",
];

/// The top-level fields of Kubernetes objects.
const OBJECT: [&str; 6] = ["apiVersion", "data", "kind", "metadata", "spec", "status"];

/// Hints about variables of policy engines and other languages.
const VARIABLES: [(&[&str], &str); 4] = [
    (
        &["input"],
        "write `object` for the object of the request, or `request` for its attributes",
    ),
    (
        &["element", "item", "each"],
        "name the item in a macro, as in `object.spec.containers.all(c, c.image ...)`",
    ),
    (
        &["data"],
        "expressions cannot read objects other than `object`, `oldObject`, `params` and `namespaceObject`",
    ),
    (
        &["local", "locals", "var", "let"],
        "write `variables` for the variables in `spec.variables`, or `params` for parameters",
    ),
];

/// Proposes `params` for `input.parameters` of Gatekeeper. `n` is the variable. In a Gatekeeper constraint, the
/// parameters are in the field `spec.parameters`.
fn parameters(context: Context<'_>, source: &TokenText<'_>, n: usize) -> Option<Proposal> {
    let (start, end) = match source.word(n)? {
        "input" if source.word(n + 2) == Some("parameters") => (n, n + 3),
        "parameters" if source.kind(n + 1) == Some(Kind::Dot) => (n, n + 1),
        _ => return None,
    };
    if context.policy.param_kind.is_none() {
        return Some(Proposal::hint(
            "write `params`, the param object of the binding; it requires a paramKind in the spec",
        ));
    }
    let field = source
        .word(end + 1)
        .filter(|_| source.kind(end) == Some(Kind::Dot))?;
    let bytes = source.bytes(&(start..end))?;
    let mut paths = ["params", "params.spec", "params.spec.parameters"].into_iter();
    let meant = paths.find(|path| (context.is_declared)(&format!("{path}.{field}")));
    Some(match meant {
        Some(meant) => Proposal::edit(bytes, meant.to_owned()),
        None => Proposal::hint(format!(
            "write `params` and the path in the param object, such as `params.spec.{field}`"
        )),
    })
}

/// Proposes the CEL variable for a variable of another policy engine, such as `object` for `self` of CRD rules. `n` is
/// the variable.
pub(super) fn variable(context: Context<'_>, source: &TokenText<'_>, n: usize) -> Option<Proposal> {
    if let Some(proposal) = parameters(context, source, n) {
        return Some(proposal);
    }
    let name = source.word(n)?;
    let is_selected = |n: usize| matches!(source.kind(n), Some(Kind::Dot | Kind::OpenBracket));
    // The parts of the path before the object or the request.
    let step = |at: usize, steps: &[&str]| {
        let is_step = source.kind(at) == Some(Kind::Dot)
            && source.word(at + 1).is_some_and(|it| steps.contains(&it));
        if is_step { at + 2 } else { at }
    };
    let (end, meant) = match name {
        "self" if is_selected(n + 1) => (n + 1, "object"),
        "oldSelf" if is_selected(n + 1) => (n + 1, "oldObject"),
        "review" | "input" | "admissionReview" | "AdmissionReview" => {
            let end = step(step(n + 1, &["review"]), &["request"]);
            let field = source
                .word(end + 1)
                .filter(|_| source.kind(end) == Some(Kind::Dot));
            match field {
                Some(field @ ("object" | "oldObject")) => (end + 2, field),
                Some(field) if REQUEST.contains(&field) && end > n + 1 => (end, "request"),
                Some(field) if OBJECT.contains(&field) && end == n + 1 => (end, "object"),
                _ => return other(source, n),
            }
        }
        _ => return other(source, n),
    };
    let bytes = source.bytes(&(n..end))?;
    let mut proposal = Proposal::edit(bytes, meant.to_owned());
    // The finding marks only the first name, so the help shows the whole path.
    if end > n + 1 {
        let path = source.source(&(n..end))?;
        proposal.help = format!("write `{meant}` for `{path}`");
    }
    Some(proposal)
}

fn other(source: &TokenText<'_>, n: usize) -> Option<Proposal> {
    let name = source.word(n)?;
    (source.kind(n + 1)? == Kind::Dot).then_some(())?;
    let mut rows = VARIABLES.iter();
    let (_, hint) = rows.find(|(names, _)| names.contains(&name))?;
    Some(Proposal::hint(*hint))
}

//! Hints about fields that only some of the matched kinds have.

use std::sync::Arc;

use super::known::Known;
use super::policy::PolicyAnalysis;
use super::tokens::TokenText;
use crate::cel::ast::{Ast, Expr, ExprId, Literal};
use crate::cel::source::{Location, SourceMap};
use crate::policy::expressions::PolicyExpression;
use crate::policy::{RequestPolicy, param_kind};
use crate::schema::Gvk;
use crate::schema::decl_type::{DeclField, DeclKind, DeclType};
use crate::schema::resolver::{Resolution, SchemaResolver};
use crate::status::message;

/// Maximum number of kinds that a hint lists.
const MAX_KINDS: usize = 3;

/// Returns a hint about the field that `expression` selects at `location` and that `kinds` do not have. `None` if no
/// other matched kind has the field.
pub(super) fn hint(
    (policy, analysis, known): (&RequestPolicy, &PolicyAnalysis, &Known),
    expression: &PolicyExpression,
    location: Location,
    kinds: &[String],
) -> Option<String> {
    let typed = &analysis.typed;
    let mut others = typed
        .checked
        .iter()
        .chain(&typed.by_wildcard.checked)
        .filter(|gvk| !kinds.contains(&message::kind(gvk)))
        .peekable();
    others.peek()?;
    let (root, path) = selected_path(expression, location)?;
    let is_object = matches!(root, "object" | "oldObject");
    let having: Vec<&Gvk> = others.filter(|gvk| has_field(known, gvk, &path)).collect();
    if !is_object || having.is_empty() {
        return None;
    }
    if let Some(hint) = version_hint(policy, kinds, &having) {
        return Some(hint);
    }
    let names = kinds.iter().filter_map(|kind| kind.split(' ').next_back());
    let names: Vec<&str> = names.collect();
    if is_guarded(expression, location, &names) {
        return None;
    }
    let remedy = match misspelled_kind(policy, expression, &names) {
        Some(name) => format!("the test misspells the kind as `{name}`"),
        None => {
            let lacking = typed.checked.iter().chain(&typed.by_wildcard.checked);
            let lacking = lacking.filter(|gvk| kinds.contains(&message::kind(gvk)));
            let equivalents: Vec<String> = lacking
                .take(MAX_KINDS)
                .filter_map(|gvk| equivalent(known, (gvk, having.first()?), (root, &path)))
                .collect();
            if equivalents.is_empty() {
                "test `object.kind` first".to_owned()
            } else {
                let fields = equivalents.join(" and ");
                format!("test `object.kind` first, and read {fields}")
            }
        }
    };
    Some(if names.len() <= MAX_KINDS {
        let (names, lack) = match names.split_last() {
            Some((last, before)) if !before.is_empty() => {
                (format!("{} and {last}", before.join(", ")), "lack")
            }
            _ => (names.concat(), "lacks"),
        };
        format!("the rules also match {names}, which {lack} the field: {remedy};")
    } else {
        let n = names.len();
        format!("the rules match {n} kinds without the field: {remedy};")
    })
}

/// Maximum number of fields in the path of an equivalent field.
const MAX_DEPTH: usize = 6;

/// Returns a hint with a field of the kind `lacking`. This field has the name and the nested fields of the field at
/// `path` of the kind `having`. `None` unless there is exactly one such field outside of the metadata and the status.
fn equivalent(
    known: &Known,
    (lacking, having): (&Gvk, &Gvk),
    (root, path): (&str, &[&str]),
) -> Option<String> {
    let name = path.last()?;
    let type_ = field_type(known, having, path)?;
    let fields = item_fields(&type_).filter(|fields| !fields.is_empty())?;
    let names = |fields: &[DeclField]| -> Vec<Arc<str>> {
        fields.iter().map(|field| Arc::clone(&field.name)).collect()
    };
    let wanted = names(fields);
    let mut equivalents = Vec::new();
    let mut open = vec![(root.to_owned(), field_type(known, lacking, &[])?, 0)];
    while let Some((parent, type_, depth)) = open.pop() {
        for field in type_.declared_fields() {
            if depth == 0 && matches!(&*field.name, "metadata" | "status") {
                continue;
            }
            let text = format!("{parent}.{}", field.name);
            let is_same = || item_fields(&field.type_).is_some_and(|it| names(it) == wanted);
            if *field.name == **name && is_same() {
                equivalents.push(text);
            } else if depth + 1 < MAX_DEPTH {
                open.push((text, Arc::clone(&field.type_), depth + 1));
            }
        }
    }
    let [only] = &*equivalents else { return None };
    Some(format!("`{only}` of a {}", lacking.kind))
}

/// Returns the fields of an object type, or of the items of a list.
fn item_fields(type_: &DeclType) -> Option<&[DeclField]> {
    match &type_.kind {
        DeclKind::Object(object) => Some(object.fields()),
        DeclKind::List(item) => Some(item.declared_fields()),
        _ => None,
    }
}

/// Returns a misspelled kind: a string that differs from one of `kinds` only in case. The expression, or a variable
/// that it reads, compares the kind with this string.
fn misspelled_kind(
    policy: &RequestPolicy,
    expression: &PolicyExpression,
    kinds: &[&str],
) -> Option<String> {
    let variables = policy.variables.iter();
    let read = variables.filter(|it| expression.text.contains(&format!("variables.{}", it.name)));
    let mut texts = std::iter::once(&*expression.text).chain(read.map(|it| it.expression.as_str()));
    let in_text = |text: &str| {
        let source = TokenText::new(text);
        (2..source.len()).find_map(|n| {
            let is_compared = source.word(n - 2) == Some("kind")
                && source
                    .kind(n - 1)
                    .is_some_and(|kind| kind.relation().is_some());
            let literal = source.word(n).filter(|_| is_compared)?;
            let name = literal.trim_matches(['\'', '"']);
            let is_misspelled = |kind: &&str| kind.eq_ignore_ascii_case(name) && **kind != *name;
            kinds.iter().any(is_misspelled).then(|| name.to_owned())
        })
    };
    texts.find_map(in_text)
}

/// Returns a hint about a field that only other versions of a kind have. The kinds in `kinds` lack the field, those in
/// `having` have it. `None` if these kinds differ in more than the version.
fn version_hint(policy: &RequestPolicy, kinds: &[String], having: &[&Gvk]) -> Option<String> {
    let kind_of = |gvk: &Gvk| Gvk::new(gvk.group.clone(), String::new(), gvk.kind.clone());
    let [first, ..] = having else { return None };
    let of_version = |api_version: &str| format!("{api_version} {}", first.kind);
    let is_same = |kind: &String| {
        let Some((api_version, _)) = kind.split_once(' ') else {
            return false;
        };
        let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
        group == first.group && *kind == of_version(api_version)
    };
    let is_one_kind = having.iter().all(|gvk| kind_of(gvk) == kind_of(first));
    if !is_one_kind || !kinds.iter().all(is_same) {
        return None;
    }
    let constraints = policy.match_constraints.as_ref();
    let is_exact = constraints.is_some_and(|it| it.match_policy.as_deref() == Some("Exact"));
    let versions: Vec<&str> = having.iter().map(|gvk| gvk.version.as_str()).collect();
    let list = versions.join(", ");
    let versions = versions.join("`, `");
    let kind = &first.kind;
    Some(if is_exact {
        format!("only {kind} in `{versions}` has the field: test `object.apiVersion` first;")
    } else {
        format!(
            "only {kind} in `{versions}` has the field: write `apiVersions: [{list}]`, so that requests for other versions \
             are converted;"
        )
    })
}

/// Returns true if a field of `params` is selected at `location` of `expression`.
pub(super) fn is_of_params(expression: &PolicyExpression, location: Location) -> bool {
    selected_path(expression, location).is_some_and(|(root, _)| root == "params")
}

/// Maximum nesting of an expression that is searched for tests of the kind.
const MAX_NESTING: usize = 150;

/// Returns true if the selection at `location` is evaluated only for the kinds with the names `kinds`, as in
/// `object.kind != 'Pod' || ...`.
fn is_guarded(expression: &PolicyExpression, location: Location, kinds: &[&str]) -> bool {
    let Some((ast, id)) = selection(expression, location) else {
        return false;
    };
    let mut node = ast.root();
    for _ in 0..MAX_NESTING {
        let mut children = Vec::new();
        ast.for_each_child(node, |child| children.push(child));
        let mut around = children.into_iter();
        let Some(next) = around.find(|child| ast.descendants(*child).contains(&id)) else {
            return false;
        };
        let any = |args: &[ExprId], value| {
            let mut others = args.iter().filter(|arg| **arg != next);
            others.any(|arg| requires_kind(ast, *arg, value, kinds))
        };
        let is_tested = match ast.global_call(node) {
            Some(("_&&_", args)) => any(args, true),
            Some(("_||_", args)) => any(args, false),
            Some(("_?_:_", [condition, truthy, falsy])) => {
                next == *truthy && requires_kind(ast, *condition, true, kinds)
                    || next == *falsy && requires_kind(ast, *condition, false, kinds)
            }
            _ => false,
        };
        if is_tested {
            return true;
        }
        node = next;
    }
    false
}

/// Returns true if `id` has the value `value` only for the kinds with the names `kinds`.
fn requires_kind(ast: &Ast, id: ExprId, value: bool, kinds: &[&str]) -> bool {
    let is_kind = |id: ExprId| {
        path_from(ast, ast.expr(id)).is_some_and(|(root, path)| match root {
            "object" | "oldObject" => path == ["kind"],
            "request" => path == ["kind", "kind"],
            _ => false,
        })
    };
    let is_name = |id: ExprId| match ast.expr(id) {
        Expr::Literal(Literal::String(name)) => kinds.contains(&&**name),
        _ => false,
    };
    let requires = |arg: &ExprId, value| requires_kind(ast, *arg, value, kinds);
    match (ast.global_call(id), value) {
        (Some(("_&&_", args)), true) | (Some(("_||_", args)), false) => {
            args.iter().any(|arg| requires(arg, value))
        }
        (Some(("_&&_", args)), false) | (Some(("_||_", args)), true) => {
            args.iter().all(|arg| requires(arg, value))
        }
        (Some(("!_", [arg])), _) => requires(arg, !value),
        (Some(("_==_", [a, b])), true) | (Some(("_!=_", [a, b])), false) => {
            is_kind(*a) && is_name(*b) || is_kind(*b) && is_name(*a)
        }
        _ => false,
    }
}

/// Returns the variable, and the fields that lead from it to the selection at `location`.
fn selected_path(expression: &PolicyExpression, location: Location) -> Option<(&str, Vec<&str>)> {
    let (ast, id) = selection(expression, location)?;
    path_from(ast, ast.expr(id))
}

fn selection(expression: &PolicyExpression, location: Location) -> Option<(&Ast, ExprId)> {
    let (ast, text) = (expression.parsed().ok()?, &expression.text);
    let byte = SourceMap::new(text).byte(location)?;
    let offset = text.get(..byte)?.chars().count();
    let mut selections = ast.iter().filter(|(id, expr)| {
        usize::try_from(ast.offset(*id)) == Ok(offset) && matches!(expr, Expr::Select { .. })
    });
    Some((ast, selections.next()?.0))
}

/// Returns the variable, and the fields that lead from it to the value of `expr`.
fn path_from<'a>(ast: &'a Ast, expr: &'a Expr) -> Option<(&'a str, Vec<&'a str>)> {
    let mut next = expr;
    let mut path = Vec::new();
    loop {
        match next {
            Expr::Select { operand, field, .. } => {
                path.push(&**field);
                next = ast.expr(*operand);
            }
            Expr::Ident(name) => {
                path.reverse();
                return Some((name, path));
            }
            _ => return None,
        }
    }
}

/// Returns true if `path`, such as `object.metadata.labels` or `params.spec.names`, is a list or a map in the schema of
/// each matched kind, or of the paramKind. `[]` denotes an item of a list, or a value of a map.
pub(super) fn is_collection(
    policy: &RequestPolicy,
    facts: (&PolicyAnalysis, &Known),
    path: &str,
) -> bool {
    let is_collection =
        |type_: &DeclType| matches!(type_.kind, DeclKind::List(_) | DeclKind::Map(_));
    all_types(policy, facts, path, is_collection)
}

/// Returns true if the schema of each matched kind, or of the paramKind, declares `path`.
pub(super) fn is_declared(
    policy: &RequestPolicy,
    facts: (&PolicyAnalysis, &Known),
    path: &str,
) -> bool {
    all_types(policy, facts, path, |_| true)
}

/// Returns true if `path` has a type in the schema of each matched kind, or of the paramKind, and `test` returns true for
/// all these types.
fn all_types(
    policy: &RequestPolicy,
    (analysis, known): (&PolicyAnalysis, &Known),
    path: &str,
    test: impl Fn(&DeclType) -> bool,
) -> bool {
    let mut fields = path.split('.');
    let kinds: Vec<Gvk> = match fields.next() {
        Some("object" | "oldObject") => {
            let resources = analysis.matches.resources.iter();
            resources.map(|resource| resource.gvk.clone()).collect()
        }
        Some("params") => param_kind(policy).into_iter().collect(),
        _ => Vec::new(),
    };
    let fields: Vec<&str> = fields.collect();
    !kinds.is_empty()
        && kinds
            .iter()
            .all(|gvk| field_type(known, gvk, &fields).is_some_and(|type_| test(&type_)))
}

/// Returns true if the schema of `gvk` declares the field at `path`.
fn has_field(known: &Known, gvk: &Gvk, path: &[&str]) -> bool {
    field_type(known, gvk, path).is_some()
}

/// Returns the type of the field at `path`. `None` if the schema of `gvk` does not declare it.
fn field_type(known: &Known, gvk: &Gvk, path: &[&str]) -> Option<Arc<DeclType>> {
    let Resolution::Found(root) = known.resolve(gvk) else {
        return None;
    };
    let mut type_ = root;
    for step in path {
        let name = step.trim_end_matches("[]");
        let field = type_.declared_field(name)?;
        type_ = Arc::clone(&field.type_);
        let n_items = step.len().saturating_sub(name.len()) / "[]".len();
        for _ in 0..n_items {
            let (DeclKind::List(item) | DeclKind::Map(item)) = &type_.kind else {
                return None;
            };
            type_ = Arc::clone(item);
        }
    }
    Some(type_)
}

#[cfg(test)]
mod tests {
    use crate::cli::check::{Options, run};

    /// Returns the help texts of the findings about a policy with the validation `expression`.
    fn helps(resources: &str, expression: &str) -> Vec<String> {
        let text = format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {{name: a}}\nspec:\n  \
             matchConstraints:\n    resourceRules:\n    - {resources}\n  validations:\n  - expression: |-\n      {expression}\n"
        );
        let options = Options {
            paths: vec!["-".into()],
            ..Options::default()
        };
        let report = run(&options, &mut text.as_bytes()).unwrap();
        let findings = report.findings.into_iter();
        findings.filter_map(|it| it.help).collect()
    }

    /// The expression tests the kind that lacks the field, so the hint names a field of this kind.
    #[test]
    fn hint_does_not_repeat_test_of_kind() {
        let resources = "{apiGroups: ['', storage.k8s.io], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [persistentvolumeclaims, storageclasses]}";
        let of_kind = "did you mean `object.reclaimPolicy`?";
        for (expression, expected) in [
            (
                "object.kind != 'StorageClass' || object.spec.reclaimPolicy == 'Retain'",
                of_kind,
            ),
            (
                "object.kind == 'StorageClass' && object.spec.reclaimPolicy == 'Retain'",
                of_kind,
            ),
            (
                "object.kind == 'StorageClass' ? object.spec.reclaimPolicy == 'Retain' : true",
                of_kind,
            ),
            (
                "!('StorageClass' == object.kind) || object.spec.reclaimPolicy == 'Retain'",
                of_kind,
            ),
            (
                "object.kind == 'StorageClass' && !has(object.parameters) || object.spec.volumeName == 'a'",
                "lacks the field: test `object.kind` first",
            ),
            (
                "object.metadata.name != 'a' || object.spec.volumeName == 'a'",
                "lacks the field: test `object.kind` first",
            ),
        ] {
            let help = helps(resources, expression);
            let has_help = help.iter().any(|it| it.contains(expected));
            assert!(has_help, "{expression}: {help:#?}");
        }
    }

    #[test]
    fn hint_shows_equivalent_field_of_other_kind() {
        let read =
            "`object.kind` first, and read `object.spec.jobTemplate.spec.template` of a CronJob;";
        for (resources, expression, expected) in [
            (
                "{apiGroups: [apps, batch], apiVersions: [v1], operations: [CREATE], resources: [deployments, cronjobs]}",
                "object.spec.template.spec.containers.size() > 0",
                read,
            ),
            (
                "{apiGroups: ['', apps], apiVersions: [v1], operations: [CREATE], resources: [pods, deployments]}",
                "object.spec.containers.size() > 0",
                "`object.kind` first, and read `object.spec.template.spec.containers` of a Deployment;",
            ),
            (
                "{apiGroups: ['', apps], apiVersions: [v1], operations: [CREATE], resources: [pods, deployments]}",
                "object.spec.replicas > 0",
                "`object.kind` first;",
            ),
        ] {
            let help = helps(resources, expression);
            assert!(help.iter().any(|it| it.contains(expected)), "{help:#?}");
        }
    }
}

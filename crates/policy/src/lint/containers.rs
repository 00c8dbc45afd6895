//! Finds policies that check the containers of Pods but not their init or ephemeral containers. Also finds image
//! prefixes that also match images of other registries.

use std::collections::BTreeSet;

use cel::ast::{Ast, Expr, ExprId, Literal};
use cel::source::SourceMap;

use super::Lint;
use crate::compile::CompiledPolicy;
use crate::expressions::{PolicyExpression, Role};
use crate::rule::Rule;

/// Security-relevant fields of a container. Init containers have the same fields, so a policy that restricts the fields
/// for regular containers should also restrict them for init containers.
///
/// Source: `k8s.io/api` `core/v1/types.go`, `Container`; `pod-security-admission` `policy/visitor.go`
/// (`visitContainers` visits init, regular and ephemeral containers).
const SECURITY_FIELDS: [&str; 6] = [
    "securityContext",
    "image",
    "privileged",
    "allowPrivilegeEscalation",
    "capabilities",
    "volumeMounts",
];

const POD_CONTAINERS: &str = "object.spec.containers";

/// Maximum length of a chain of variables through which an expression reads the containers.
const MAX_VARIABLES: usize = 5;

pub(super) fn find(policy: &CompiledPolicy) -> Vec<Lint> {
    let mut lints: Vec<Lint> = ignored_containers(policy).into_iter().collect();
    for expression in policy.expressions() {
        if let Ok(ast) = expression.parsed()
            && !expression.role.is_mutation()
        {
            image_prefixes(expression, ast, &mut lints);
        }
    }
    lints
}

/// The parts of containers that a policy reads.
#[derive(Debug)]
pub struct ContainerReads {
    /// The security-relevant fields, such as `privileged`.
    pub security_fields: BTreeSet<&'static str>,
    /// True if an expression reads `initContainers`.
    pub has_init_containers: bool,
}

impl ContainerReads {
    /// Returns the parts of containers that the expressions of `policy` read.
    #[must_use]
    pub fn new(policy: &CompiledPolicy) -> Self {
        let names = names(policy);
        let fields = SECURITY_FIELDS.into_iter();
        Self {
            security_fields: fields.filter(|field| names.contains(field)).collect(),
            has_init_containers: names.contains("initContainers"),
        }
    }
}

/// Returns the names of all selected fields, and all string literals, in the expressions that can be parsed.
fn names(policy: &CompiledPolicy) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for expression in policy.expressions() {
        for (_, expr) in expression.parsed().iter().flat_map(|ast| ast.iter()) {
            match expr {
                Expr::Select { field, .. } => drop(names.insert(&**field)),
                Expr::Literal(Literal::String(text)) => drop(names.insert(&**text)),
                _ => {}
            }
        }
    }
    names
}

/// Returns a lint if validations read security fields of `containers`, and no expression reads `initContainers`.
fn ignored_containers(policy: &CompiledPolicy) -> Option<Lint> {
    let mut expressions = policy.expressions().iter();
    if policy.is_mutating() || expressions.any(|expression| expression.parsed().is_err()) {
        return None;
    }
    let reads = ContainerReads::new(policy);
    if reads.has_init_containers || reads.security_fields.is_empty() {
        return None;
    }
    let decides = |expression: &&PolicyExpression| {
        matches!(expression.role, Role::Validation | Role::Variable)
    };
    policy
        .expressions()
        .iter()
        .filter(decides)
        .find_map(|expression| {
            let ast = expression.parsed().ok()?;
            let (at, paths) = ast
                .iter()
                .find_map(|(id, expr)| iterated(policy, ast, id, expr))?;
            let has_ephemeral = paths.contains(POD_CONTAINERS);
            let more = if has_ephemeral {
                "init containers or ephemeral containers"
            } else {
                "init containers"
            };
            Some(Lint {
                rule: Rule::IgnoredContainers,
                field_ref: expression.field_ref.clone(),
                location: Some(SourceMap::new(&expression.text).location(ast.offset(at))),
                message: format!("the policy checks `containers`, but not {more}"),
                fix: Some(fix(&paths).into()),
                is_harmless: false,
            })
        })
}

/// Returns the advice to also iterate over init and ephemeral containers. `paths` are the paths of the regular
/// containers.
fn fix(paths: &BTreeSet<String>) -> String {
    let lists = paths.iter().map(|path| {
        let spec = path.trim_end_matches(".containers");
        let ephemeral = if path == POD_CONTAINERS {
            format!(" + {spec}.?ephemeralContainers.orValue([])")
        } else {
            String::new()
        };
        format!("`({path} + {spec}.?initContainers.orValue([]){ephemeral})`")
    });
    let lists: Vec<String> = lists.collect();
    let rules = if paths.contains(POD_CONTAINERS) {
        ", and add `pods/ephemeralcontainers` with UPDATE to the rules"
    } else {
        ""
    };
    format!("iterate over {}{rules}", lists.join(" and "))
}

/// Returns the paths of the containers that the macro `expr`, such as `all()`, iterates over, and the node of the list.
/// `None` if the macro reads no security field.
fn iterated(
    policy: &CompiledPolicy,
    ast: &Ast,
    id: ExprId,
    expr: &Expr,
) -> Option<(ExprId, BTreeSet<String>)> {
    let Expr::Comprehension(fold) = expr else {
        return None;
    };
    let paths = containers(policy, (ast, fold.iter_range), MAX_VARIABLES);
    let nodes = ast.descendants(id);
    let reads_security = nodes.into_iter().any(|id| match ast.expr(id) {
        Expr::Select { field, .. } => SECURITY_FIELDS.contains(&&**field),
        Expr::Literal(Literal::String(text)) => SECURITY_FIELDS.contains(&&**text),
        _ => false,
    });
    // A comparison with the old object may concern only containers that both objects have, so it is not reported.
    let mut nodes = ast.descendants(id).into_iter();
    let reads_old =
        nodes.any(|id| matches!(ast.expr(id), Expr::Ident(name) if **name == *"oldObject"));
    (reads_security && !reads_old && !paths.is_empty()).then_some((fold.iter_range, paths))
}

/// Returns the paths of the containers of Pods that `id` denotes: a selection, a variable, or the alternatives of a
/// conditional. Empty for other lists.
fn containers(
    policy: &CompiledPolicy,
    (ast, id): (&Ast, ExprId),
    n_variables: usize,
) -> BTreeSet<String> {
    const PATHS: [&str; 3] = [
        POD_CONTAINERS,
        "object.spec.template.spec.containers",
        "object.spec.jobTemplate.spec.template.spec.containers",
    ];
    match ast.expr(id) {
        Expr::Call {
            function,
            target: None,
            args,
        } if &**function == "_?_:_" => {
            let alternatives = args.iter().skip(1);
            let paths = alternatives.map(|id| containers(policy, (ast, *id), n_variables));
            paths.flatten().collect()
        }
        Expr::Select { .. } => {
            let path = ast.qualified_name(id).unwrap_or_default();
            if PATHS.contains(&path.as_str()) {
                return BTreeSet::from([path]);
            }
            let of_variable = || {
                let name = path.strip_prefix("variables.")?;
                let mut variables = policy.expressions().iter().rev();
                let variable = variables.find(|expression| {
                    expression.role == Role::Variable && expression.name.as_deref() == Some(name)
                });
                let ast = variable?.parsed().ok()?;
                let n_left = n_variables.checked_sub(1)?;
                Some(containers(policy, (ast, ast.root()), n_left))
            };
            of_variable().unwrap_or_default()
        }
        _ => BTreeSet::new(),
    }
}

/// Adds a lint for each test like `image.startsWith('registry.example.com')`. The name of a different registry may
/// start with the same prefix.
fn image_prefixes(expression: &PolicyExpression, ast: &Ast, lints: &mut Vec<Lint>) {
    let negated: BTreeSet<usize> = ast
        .iter()
        .filter_map(|(id, _)| match ast.global_call(id)? {
            ("!_", [operand]) => Some(operand.index()),
            _ => None,
        })
        .collect();
    for (id, expr) in ast.iter() {
        let Expr::Call {
            function,
            target: Some(target),
            args,
        } = expr
        else {
            continue;
        };
        // A negated test denies more requests than intended, so it is not reported. But in a match condition, it
        // excludes more requests from the policy.
        let is_strict = negated.contains(&id.index()) && expression.role != Role::MatchCondition;
        if &**function != "startsWith" || is_strict {
            continue;
        }
        let is_image =
            matches!(ast.expr(*target), Expr::Select { field, .. } if &**field == "image");
        let prefix = match args.first().map(|arg| ast.expr(*arg)) {
            Some(Expr::Literal(Literal::String(text))) if is_image => &**text,
            _ => continue,
        };
        let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
        let is_registry = prefix.contains('.')
            && prefix.ends_with(|c: char| c.is_ascii_alphanumeric())
            && prefix.chars().all(is_host);
        if is_registry {
            lints.push(Lint {
                rule: Rule::ImagePrefix,
                field_ref: expression.field_ref.clone(),
                location: Some(SourceMap::new(&expression.text).location(ast.offset(id))),
                message: format!("images of `{prefix}.example.org` also start with `{prefix}`"),
                fix: Some(format!("write `{prefix}/`").into()),
                is_harmless: false,
            });
        }
    }
}

//! Tests properties of all expressions that the type checker accepts, and generates expressions for these tests.
//!
//! - Evaluating an expression twice gives the same value or error, and the same cost. This includes an evaluation with
//!   a new plan.
//! - Printing the tree of an expression gives an expression with the same result.
//! - The value has the checked type.
//! - If all types are known before the evaluation, no overload is missing.
//! - The cost is at most the maximum of the estimate.

#![allow(
    clippy::expect_used,
    clippy::format_push_string,
    clippy::indexing_slicing,
    dead_code,
    reason = "tests fail by panicking, and each test program uses a part of this module"
)]

pub(crate) mod choices;
mod exceptions;
pub(crate) mod generator;
mod texts;
pub(crate) mod unparse;

use std::sync::Arc;

use kubernetes::typed_values::{self, ValueSchema};
use serde_json::json;
use vap_status_controller::cel::ast::Expr;
use vap_status_controller::cel::ast_validators;
use vap_status_controller::cel::checker::{self, CheckedAst, Reference};
use vap_status_controller::cel::cost::{AstNode, SizeEstimate, SizeEstimator};
use vap_status_controller::cel::decls::Variable;
use vap_status_controller::cel::env::Env;
use vap_status_controller::cel::eval::{Bindings, Limits, Program};
use vap_status_controller::cel::syntax::parse;
use vap_status_controller::cel::types::{StructType, Type};
use vap_status_controller::cel::value::Value;
use vap_status_controller::library::authz::{
    AuthorizerAnswer, AuthorizerDecision, AuthorizerList, AuthorizerRule, AuthorizerValue, UserInfo,
};
use vap_status_controller::library::environment::base_env;
use vap_status_controller::library::estimate;
use vap_status_controller::library::runtime::KubernetesRuntime;
use vap_status_controller::schema::{DeclaredSizes, OpenApiDocument};
use vap_status_controller::version::KubernetesVersion;

use generator::Material;
use unparse::unparse;

/// The compared part of an evaluation: the value or the error, and the cost.
#[derive(Clone, Debug, PartialEq, Eq)]
struct EvaluationOutcome {
    result: Result<String, String>,
    cost: u64,
}

/// Outcome of testing an expression.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The type checker rejects the expression.
    Rejected(String),
    /// The expression cannot be planned.
    NotPlanned(String),
    /// The expression was evaluated for each input.
    Evaluated {
        /// The number of inputs for which the result is a value.
        n_values: usize,
        /// True if a type is known only at run time.
        is_dyn: bool,
        /// True if the cost estimate has a maximum.
        is_bounded: bool,
        /// The ids of the overloads that the expression calls.
        overloads: Vec<&'static str>,
    },
}

/// An environment with variables, and values of the variables.
#[derive(Debug)]
pub(crate) struct Fixture {
    env: Env,
    inputs: Vec<Bindings>,
    sizes: Sizes,
    /// The building blocks of generated expressions.
    pub(crate) material: Material,
    /// The cost limit of an evaluation.
    pub(crate) cost_limit: u64,
}

/// Estimates the sizes of `self` and its fields. The sizes of other variables are unknown.
#[derive(Debug)]
struct Sizes(DeclaredSizes);

impl SizeEstimator for Sizes {
    fn estimate_size(&self, node: &AstNode<'_>) -> Option<SizeEstimate> {
        let is_of_self = node
            .path()
            .steps()
            .first()
            .is_some_and(|step| step.as_str() == "self");
        // Upstream's maximum size of a number is zero, but the actual cost uses one.
        let has_size = matches!(
            node.type_(),
            Type::String | Type::Bytes | Type::List(_) | Type::Map(_)
        );
        if is_of_self && has_size {
            self.0.estimate_size(node)
        } else {
            None
        }
    }
}

/// Values of `self`. Its schema is in [`Fixture::new`].
const SELVES: [&str; 3] = [
    r#"{"name":"web","count":3,"ratio":0.5,"on":true,"tags":["a","bb","a"],"labels":{"app":"web"},
        "since":"2024-02-29T12:34:56.789Z","wait":"1h30m","raw":"aGVsbG8=","port":"http",
        "parts":[{"name":"a","count":1},{"name":"b","count":-2}],"spec":{"deep":{"text":"é😀"}}}"#,
    r#"{"name":"","count":-9223372036854775808,"ratio":-1e300,"on":false,"tags":[],"labels":{},
        "since":"0001-01-01T00:00:00Z","wait":"0s","raw":"","port":80,"parts":[],"spec":{"deep":{}}}"#,
    r#"{"name":"0123456789","count":9223372036854775807,"tags":["c","","b","a","x"],
        "labels":{"k8s.io/x":""},"parts":[{"name":"z"}],"spec":{}}"#,
];

impl Fixture {
    pub(crate) fn new() -> Self {
        let schema = json!({"type": "object", "properties": {
            "name": {"type": "string", "maxLength": 10},
            "count": {"type": "integer"},
            "ratio": {"type": "number"},
            "on": {"type": "boolean"},
            "tags": {"type": "array", "maxItems": 5, "items": {"type": "string", "maxLength": 5}},
            "labels": {"type": "object", "maxProperties": 3,
                "additionalProperties": {"type": "string", "maxLength": 7}},
            "since": {"type": "string", "format": "date-time"},
            "wait": {"type": "string", "format": "duration"},
            "raw": {"type": "string", "format": "byte", "maxLength": 8},
            "port": {"x-kubernetes-int-or-string": true},
            "parts": {"type": "array", "maxItems": 4, "items": {"type": "object", "properties": {
                "name": {"type": "string", "maxLength": 3}, "count": {"type": "integer"}}}},
            "spec": {"type": "object", "properties": {"deep": {"type": "object", "properties": {
                "text": {"type": "string"}}}}},
        }});
        let document = json!({"openapi": "3.0.0", "components": {"schemas": {"test": {
            "type": "object",
            "properties": {"self": schema},
            "x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "Test"}],
        }}}});
        let document = OpenApiDocument::parse(document.to_string().as_bytes()).expect("a document");
        let gvk = document.kinds().next().expect("a kind").clone();
        let root = document.decl_type(&gvk).expect("a type");
        let of_self = Arc::clone(&root.field("self").expect("a field").type_);
        let variables = [
            ("self", of_self.cel_type("Self")),
            ("object", Type::Dyn),
            ("i", Type::Int),
            ("text", Type::String),
            ("strings", Type::list(Type::String)),
            (
                "authorizer",
                Type::Struct(StructType::undeclared(
                    "kubernetes.authorization.Authorizer",
                )),
            ),
        ];
        let declared = variables.iter();
        let declared = declared.map(|(name, type_)| Variable::new(*name, type_.clone()));
        let env = base_env(KubernetesVersion::DEFAULT).extend(declared);
        let schema = ValueSchema::new(&schema, KubernetesVersion::DEFAULT.behavior());
        Self {
            material: Material::new(&env, &variables),
            env,
            inputs: SELVES.iter().map(|text| bindings(text, &schema)).collect(),
            sizes: Sizes(DeclaredSizes::for_rule(of_self)),
            cost_limit: 1_000_000,
        }
    }

    /// Tests all properties of an expression. The error describes the first violated property.
    pub(crate) fn check(&self, text: &str) -> Result<Outcome, String> {
        let checked = match self.checked(text) {
            Ok(checked) => checked,
            Err(why) => return Ok(Outcome::Rejected(why)),
        };
        self.check_unparsed(&checked)?;
        let program = match self.plan(&checked) {
            Ok(program) => program,
            Err(why) => {
                let again = self.plan(&checked).err();
                if again.as_ref() != Some(&why) {
                    return Err(format!("planning gives {why}, and then {again:?}"));
                }
                return Ok(Outcome::NotPlanned(why));
            }
        };
        let planned_again = self.plan(&checked)?;
        let is_dyn = checked.ast().iter().any(|(id, expr)| {
            !matches!(expr, Expr::Unspecified) && checked.known_type(id).is_some_and(mentions_dyn)
        });
        let may_cost_more = exceptions::may_cost_more(&checked);
        let may_lose_values = exceptions::may_lose_values(&checked);
        let estimate = estimate::estimate(&checked, &self.sizes);
        let mut n_values = 0;
        for input in &self.inputs {
            let evaluation = program.eval(input, Limits::from_cost(self.cost_limit));
            if let Ok(value) = &evaluation.result {
                n_values += 1;
                let type_ = checked.output_type();
                if !is_value_of(value, &type_) && !may_lose_values {
                    return Err(format!("the value {value:?} is not of type {type_}"));
                }
            }
            let first = outcome(&evaluation);
            if let (Err(message), false) = (&first.result, is_dyn || may_lose_values)
                && message.starts_with("no such overload")
            {
                return Err(message.clone());
            }
            let more = match first.result {
                Ok(_) => 0,
                Err(_) => exceptions::cost_of_errors(&checked),
            };
            if first.cost > estimate.max.saturating_add(more) && !may_cost_more {
                return Err(format!(
                    "the cost is {}, but the estimate is {estimate}",
                    first.cost
                ));
            }
            for (how, program) in [("again", &program), ("planned again", &planned_again)] {
                let other = outcome(&program.eval(input, Limits::from_cost(self.cost_limit)));
                if other != first {
                    return Err(format!("it gives {first:?}, and {how} {other:?}"));
                }
            }
        }
        Ok(Outcome::Evaluated {
            n_values,
            is_dyn,
            is_bounded: estimate.max < u64::MAX && !may_cost_more,
            overloads: overloads(&checked),
        })
    }

    fn checked(&self, text: &str) -> Result<CheckedAst, String> {
        let (ast, found) = parse(text);
        let ast = ast.ok_or_else(|| found.render(text))?;
        let (checked, mut found) = checker::check(&Arc::new(ast), text, &self.env);
        if found.is_empty() {
            ast_validators::validate(&checked, &self.env, text, &mut found);
        }
        if found.is_empty() {
            Ok(checked)
        } else {
            Err(found.render(text))
        }
    }

    fn plan(&self, checked: &CheckedAst) -> Result<Program, String> {
        Program::plan(checked, &self.env, &KubernetesRuntime).map_err(|error| error.to_string())
    }

    /// Tests that the printed expression has the same tree and the same result.
    fn check_unparsed(&self, checked: &CheckedAst) -> Result<(), String> {
        let text = unparse(checked.ast(), checked.ast().root());
        let again = match self.checked(&text) {
            Ok(again) => again,
            // The printed expression may exceed a limit, because escapes are longer than characters and parentheses add
            // nesting.
            Err(why) if why.contains("limit") || why.contains("recursion") => return Ok(()),
            Err(why) => return Err(format!("unparsed to {text}, which is rejected: {why}")),
        };
        let text_again = unparse(again.ast(), again.ast().root());
        if text_again != text {
            return Err(format!(
                "unparsed to {text}, which is then unparsed to {text_again}"
            ));
        }
        for input in &self.inputs {
            let outcome = |checked| {
                let program = self.plan(checked)?;
                Ok(outcome(
                    &program.eval(input, Limits::from_cost(self.cost_limit)),
                ))
            };
            let (first, second): (Result<_, String>, _) = (outcome(checked), outcome(&again));
            if first != second {
                return Err(format!(
                    "it gives {first:?}, and unparsed to {text} {second:?}"
                ));
            }
        }
        Ok(())
    }
}

fn bindings(of_self: &str, schema: &Arc<ValueSchema>) -> Bindings {
    let raw: Value = serde_json::from_str(of_self).expect("a value is JSON");
    let rule = AuthorizerRule {
        verb: Some("get".into()),
        answer: AuthorizerAnswer {
            decision: AuthorizerDecision::Allow,
            reason: "a rule".into(),
            error: None,
        },
        ..AuthorizerRule::default()
    };
    let user = UserInfo {
        name: "ann".into(),
        ..UserInfo::default()
    };
    let mut bindings = Bindings::default();
    bindings.bind("self", typed_values::typed(&raw, schema));
    bindings.bind("object", raw);
    bindings.bind("i", Value::Int(3));
    bindings.bind("text", Value::from("a-b/c d"));
    bindings.bind("strings", Value::list([Value::from("é"), Value::from("")]));
    let authorizer = AuthorizerValue::new(user, Arc::new(AuthorizerList(vec![rule])));
    bindings.bind("authorizer", Value::opaque(authorizer));
    bindings
}

fn outcome(evaluation: &vap_status_controller::cel::eval::Evaluation) -> EvaluationOutcome {
    let result = match &evaluation.result {
        Ok(value) => Ok(format!("{value:?}")),
        Err(error) => Err(error.message().to_owned()),
    };
    EvaluationOutcome {
        result,
        cost: evaluation.cost,
    }
}

fn overloads(checked: &CheckedAst) -> Vec<&'static str> {
    let ids = checked
        .ast()
        .iter()
        .filter_map(|(id, _)| checked.reference(id));
    let of_function = |reference: &Reference| match reference {
        Reference::Function { overloads, .. } => overloads.iter().map(|row| row.id).collect(),
        Reference::Ident(_) => Vec::new(),
    };
    ids.flat_map(of_function).collect()
}

fn mentions_dyn(type_: &Type) -> bool {
    match type_ {
        Type::Dyn | Type::Any | Type::Param(_) | Type::Error => true,
        Type::List(element) => mentions_dyn(element),
        Type::Map(entry) => mentions_dyn(&entry.0) || mentions_dyn(&entry.1),
        Type::Opaque(opaque) => opaque.params.iter().any(mentions_dyn),
        _ => false,
    }
}

/// Returns true if `value` and its elements have the type `type_`.
fn is_value_of(value: &Value, type_: &Type) -> bool {
    match (value, type_) {
        // An object with a schema has an unnamed type at run time, so any map is accepted.
        (_, Type::Dyn | Type::Any | Type::Param(_)) | (Value::Map(_), Type::Struct(_)) => true,
        (Value::Null, _) => matches!(
            type_,
            Type::Null
                | Type::Wrapper(_)
                | Type::Struct(_)
                | Type::Opaque(_)
                | Type::Duration
                | Type::Timestamp
        ),
        (Value::List(list), Type::List(element)) => {
            list.iter().all(|held| is_value_of(&held, element))
        }
        (Value::Map(map), Type::Map(entry)) => map.entries().is_ok_and(|entries| {
            let mut entries = entries.iter();
            entries.all(|(key, held)| is_value_of(key, &entry.0) && is_value_of(held, &entry.1))
        }),
        (Value::Optional(optional), _) => match (optional.get(), type_.optional_value()) {
            (Some(held), Some(of)) => is_value_of(held, of),
            (None, Some(_)) => true,
            (_, None) => false,
        },
        _ => value.is_of(type_),
    }
}

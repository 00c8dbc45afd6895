//! Reports the mistakes in a policy: expressions that do not compile, type errors for the kinds that the policy matches, and
//! requests for which an expression fails. Estimates the costs of the expressions.
#![allow(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;

use policy::analysis::{Profile, type_check};
use policy::compile::CompiledPolicy;
use policy::cost::{ExpressionCost, PolicyCosts};
use policy::k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use policy::kubernetes::schema::Builtin;
use policy::runtime_errors::{Context, ObjectCache, find_runtime_errors};
use policy::{KubernetesVersion, RequestPolicy};
use serde_json::json;

fn main() -> Result<(), Box<dyn Error>> {
    let policy: ValidatingAdmissionPolicy = serde_json::from_value(json!({
        "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["deployments", "daemonsets"],
            }]},
            "validations": [
                {"expression": "object.spec.replicas <= 5"},
                {"expression": "object.metadata.name.startWith('web-')"},
                {"expression": "object.metadata.labels['team'] != ''"},
            ],
        },
    }))?;
    let version = KubernetesVersion::DEFAULT;
    let compiled = CompiledPolicy::from_parts(RequestPolicy::from(&policy), None, version);
    for finding in compiled.findings() {
        println!("{}: {}", finding.field_ref, finding.cause.message());
    }

    // The schemas of the built-in kinds are part of the crate.
    let builtin = Builtin::load(version)?;
    let mapper = builtin.rest_mapper();
    let typed = type_check(&compiled, &mapper, builtin, Profile::Truthful);
    for expression in &typed.findings {
        for (gvk, severity, diagnostic) in expression.iter() {
            let (field, location) = (&expression.field_ref, diagnostic.location);
            let (line, column) = (location.line, location.column);
            println!("{field}:{line}:{column}: {severity:?}: {diagnostic} ({gvk})");
        }
    }

    let cache = ObjectCache::default();
    let context = Context::new(&mapper, builtin, &typed.findings, &cache);
    let (errors, _) = find_runtime_errors(&compiled, &context);
    for error in errors {
        println!("{}: {}", error.field_ref, error.message);
        println!("  for example: {}", error.witness.request);
    }

    let kinds: Vec<_> = typed.checked.iter().collect();
    for cost in PolicyCosts::new(&compiled, &kinds, builtin).expressions {
        // If there is no worst case, the expression compiles for none of the kinds.
        let Some(worst) = cost.worst else { continue };
        let (field, limit) = (cost.field_ref, ExpressionCost::LIMIT);
        match worst.max() {
            Some(max) => println!("{field}: at most {max} of {limit} cost units"),
            None => println!("{field}: no bound of the cost is known"),
        }
    }
    Ok(())
}

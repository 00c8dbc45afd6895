//! Reports the mistakes in a policy: expressions that do not compile, and type errors for the kinds that the policy matches.
#![allow(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;

use policy::analysis::{Profile, type_check};
use policy::compile::CompiledPolicy;
use policy::k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use policy::kubernetes::schema::{Builtin, RestMapper};
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
    let mapper = RestMapper::new(builtin.resources().to_vec());
    let typed = type_check(&compiled, &mapper, builtin, Profile::Truthful);
    for expression in &typed.findings {
        for (gvk, severity, diagnostic) in expression.iter() {
            let (field, location) = (&expression.field_ref, diagnostic.location);
            let (line, column) = (location.line, location.column);
            println!("{field}:{line}:{column}: {severity:?}: {diagnostic} ({gvk})");
        }
    }
    Ok(())
}

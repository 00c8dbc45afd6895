//! Compiles arbitrary input as a policy. The first line is the expression of a variable. The rest is a validation.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::json;
use vap_status_controller::policy::RequestPolicy;
use vap_status_controller::policy::compile::CompiledPolicy;

fuzz_target!(|text: &str| {
    let (variable, validation) = text.split_once('\n').unwrap_or(("object.spec", text));
    let policy = json!({
        "variables": [{"name": "v", "expression": variable}],
        "validations": [{"expression": validation, "messageExpression": validation}],
    });
    if let Ok(policy) = serde_json::from_value::<RequestPolicy>(policy) {
        let _ = CompiledPolicy::new(policy);
    }
});

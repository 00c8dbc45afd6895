//! Any text is compiled as a validation that reads a variable.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::json;
use vap_status_controller::policy::compile::CompiledPolicy;

fuzz_target!(|texts: (&str, &str)| {
    let policy = json!({"spec": {
        "variables": [{"name": "v", "expression": texts.0}],
        "validations": [{"expression": texts.1, "messageExpression": texts.1}],
    }});
    if let Ok(policy) = serde_json::from_value(policy) {
        CompiledPolicy::new(&policy);
    }
});

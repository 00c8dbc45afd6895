//! Parses arbitrary bytes as an OpenAPI document, and as a CustomResourceDefinition.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vap_status_controller::schema::crd::Crd;
use vap_status_controller::schema::offline::Offline;

fuzz_target!(|bytes: &[u8]| {
    let mut offline = Offline::default();
    let _ = offline.add_document(None, bytes);
    if let Ok(crd) = serde_json::from_slice(bytes) {
        if let Ok(crd) = Crd::from_value(&crd) {
            offline.add_crd(&crd);
        }
    }
    let _ = offline.finish();
});

#![allow(clippy::all, clippy::pedantic, clippy::restriction, missing_docs, reason="scratch")]
use std::io::BufRead;
use vap_status_controller::policy::{compile::CompiledPolicy, typecheck::{type_check, Profile}};
use vap_status_controller::schema::{GroupVersion, crd::Crd, offline::Offline};
fn walk(p: &std::path::Path, out: &mut Vec<std::path::PathBuf>) { let mut es: Vec<_> = std::fs::read_dir(p).unwrap().map(|e| e.unwrap().path()).collect(); es.sort(); for e in es { if e.is_dir() { walk(&e, out) } else { out.push(e) } } }
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let mut off = Offline::default();
    let t = std::time::Instant::now();
    for e in std::fs::read_dir(&args[1]).unwrap() { let p = e.unwrap().path(); let n = p.file_name().unwrap().to_str().unwrap().to_owned(); if n.ends_with("_openapi.json") { let b = std::fs::read(&p).unwrap(); off.add_document(GroupVersion::from_openapi_file_name(&n).as_ref(), &b).unwrap(); } }
    for l in std::fs::read_to_string(&args[2]).unwrap().lines() { match Crd::from_value(&serde_json::from_str(l).unwrap()) { Ok(c) => off.add_crd(&c), Err(e) => eprintln!("crd {e}") } }
    let (s, m) = off.finish();
    eprintln!("load {:?}", t.elapsed());
    let profile = if args.get(3).is_some_and(|a| a == "truthful") { Profile::Truthful } else { Profile::Upstream };
    let mut total = std::time::Duration::ZERO; let mut n = 0;
    for line in std::io::stdin().lock().lines() {
        let v: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        let p: Result<k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy, _> = { let mut p = v["p"].clone(); if let Some(o) = p.as_object_mut() { o.insert("apiVersion".into(), "admissionregistration.k8s.io/v1".into()); } serde_json::from_value(p) };
        let Ok(p) = p else { println!("null"); continue };
        let t = std::time::Instant::now();
        let c = CompiledPolicy::new(&p);
        let t1 = t.elapsed();
        let r = type_check(&c, &m, &s, profile);
        total += t.elapsed(); n += 1;
        let _ = t1;
        println!("{}", serde_json::json!({"types": r.checked.iter().map(|g| serde_json::json!({"group":g.group,"version":g.version,"kind":g.kind})).collect::<Vec<_>>(), "typed": r.params.as_ref().map(|p| p.1), "warnings": r.warnings.iter().map(|w| serde_json::json!([w.field_ref, w.warning])).collect::<Vec<_>>(), "compile": c.findings().iter().map(|f| format!("{}: {}", f.field_ref, f.message)).collect::<Vec<_>>()}));
    }
    eprintln!("{n} policies, {:?} per policy", total / n.max(1));
}

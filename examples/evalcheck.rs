#![allow(
    clippy::all,
    clippy::pedantic,
    clippy::restriction,
    missing_docs,
    reason = "scratch"
)]
use std::io::BufRead;
use std::sync::Arc;
use vap_status_controller::cel::{
    ast_validators, checker, decls::Variable, syntax, types::StructType, types::Type,
};
use vap_status_controller::library::environment::{KubernetesVersion, base_env};
fn main() {
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let Ok(v) = serde_json::from_str::<serde_json::Value>(&line) else {
            println!("\"skip\"");
            continue;
        };
        let expr = v["expr"].as_str().unwrap();
        let mut vars = vec![];
        if let Some(m) = v["vars"].as_object() {
            for k in m.keys() {
                vars.push(Variable::new(k.as_str(), Type::Dyn));
            }
        }
        if let Some(m) = v["declare"].as_array() {
            for k in m {
                vars.push(Variable::new(k.as_str().unwrap(), Type::Dyn));
            }
        }
        if v.get("authorizer").is_some_and(|a| !a.is_null()) {
            vars.push(Variable::new(
                "authorizer",
                Type::Struct(StructType::undeclared(
                    "kubernetes.authorization.Authorizer",
                )),
            ));
        }
        let env = base_env(KubernetesVersion::LATEST).extend(vars);
        let (ast, found) = syntax::parse(expr);
        let out = match ast {
            None => format!("E:{}", found.render(expr)),
            Some(ast) => {
                let (c, mut f) = checker::check(&Arc::new(ast), expr, &env);
                if f.is_empty() {
                    ast_validators::validate(&c, expr, &mut f);
                }
                if f.is_empty() {
                    format!("T:{}", c.output_type().declared_string())
                } else {
                    format!("E:{}", f.render(expr))
                }
            }
        };
        println!("{}", serde_json::Value::String(out));
    }
}

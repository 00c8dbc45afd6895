//! Reads the conformance tests: files, sections, tests and expected results.
//!
//! Source: cel-spec `proto/cel/expr/conformance/test/simple.proto`.

use anyhow::{Context as _, Result};
use vap_status_controller::cel::cost::Costs;
use vap_status_controller::cel::decls::{Overload, OverloadRow, Sig, Source};
use vap_status_controller::cel::types::Type;

use super::textproto::{self, Message};
use super::types::read_type;
use super::value::{Binding, Value};

/// The tests of one file.
#[derive(Clone, Debug)]
pub struct Suite {
    /// The name of the file without its extension.
    pub name: String,
    /// The tests, in order.
    pub tests: Vec<Test>,
}

/// A conformance test.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each flag is a separate field of the specification's message"
)]
pub struct Test {
    /// The path `<file>/<section>/<test>`. Several upstream tests may have the same path.
    pub path: String,
    /// The source of the expression.
    pub expr: String,
    /// The container, in which names are resolved.
    pub container: String,
    /// True if macros are not expanded.
    pub disable_macros: bool,
    /// True if the expression is not type-checked.
    pub disable_check: bool,
    /// True if the expression is not evaluated.
    pub check_only: bool,
    /// Declarations of the names in the expression.
    pub declarations: Vec<Declaration>,
    /// Values of the variables.
    pub bindings: Vec<(String, Binding)>,
    /// The expected result.
    pub expected: Expected,
    /// True if the test needs messages that the protobuf files of the tests define.
    pub needs_messages: bool,
}

/// A declaration of a test.
#[derive(Clone, Debug)]
pub enum Declaration {
    /// A variable and its type.
    Variable(String, Type),
    /// An overload of a function.
    Overload(Overload),
}

/// Expected results of a test.
#[derive(Clone, Debug, PartialEq)]
pub enum Expected {
    /// A value.
    Value(Value),
    /// The type of the expression. If the expression is evaluated, also its value.
    Typed(Type, Option<Value>),
    /// An evaluation error.
    Error,
    /// An unknown value.
    Unknown,
}

/// Strings that identify the messages of the conformance tests: the package, and a message. The qualified name of the
/// message is sometimes written with spaces.
const TEST_MESSAGES: [&str; 2] = ["cel.expr.conformance.", "TestAllTypes"];

impl Suite {
    /// Parses the content of a file.
    ///
    /// # Errors
    /// Returns an error with the name of the test if the file is malformed.
    pub fn read(text: &str) -> Result<Self> {
        let file = Message::parse(text)?;
        let name = file.text("name")?;
        let mut tests = Vec::new();
        for section in file.messages("section")? {
            for test in section.messages("test")? {
                let path = format!("{name}/{}/{}", section.text("name")?, test.text("name")?);
                tests.push(read_test(test, path.clone()).context(path)?);
            }
        }
        Ok(Self { name, tests })
    }
}

fn read_test(test: &Message, path: String) -> Result<Test> {
    let mut declarations = Vec::new();
    for declaration in test.messages("type_env")? {
        declarations.extend(read_declaration(declaration)?);
    }
    let mut bindings = Vec::new();
    for binding in test.messages("bindings")? {
        let value = binding
            .message("value")?
            .context("a binding has no value")?;
        bindings.push((binding.text("key")?, Binding::read(value)?));
    }
    Ok(Test {
        path,
        expr: test.text("expr")?,
        container: test.text("container")?,
        disable_macros: test.flag("disable_macros")?,
        disable_check: test.flag("disable_check")?,
        check_only: test.flag("check_only")?,
        declarations,
        bindings,
        expected: read_expected(test)?,
        needs_messages: names_test_messages(test),
    })
}

/// Returns true if a field of `message`, except for descriptions, contains the name of a message of the conformance
/// tests.
fn names_test_messages(message: &Message) -> bool {
    let names_one = |text: &str| TEST_MESSAGES.iter().any(|name| text.contains(name));
    message.fields().any(|(name, value)| match value {
        _ if name == "description" => false,
        _ if names_one(name) => true,
        textproto::Value::Message(inner) => names_test_messages(inner),
        textproto::Value::Bytes(bytes) => names_one(&String::from_utf8_lossy(bytes)),
        textproto::Value::Word(_) => false,
    })
}

/// Returns the declarations in a `Decl`: a variable, or the overloads of a function.
fn read_declaration(declaration: &Message) -> Result<Vec<Declaration>> {
    let name = declaration.text("name")?;
    if let Some(ident) = declaration.message("ident")? {
        let type_ = ident.message("type")?.context("a variable has no type")?;
        return Ok(vec![Declaration::Variable(name, read_type(type_)?)]);
    }
    let function = declaration.message("function")?;
    let function = function.context("a declaration is neither a variable nor a function")?;
    let overloads = function.messages("overloads")?.into_iter();
    overloads
        .map(|overload| Ok(Declaration::Overload(read_overload(&name, overload)?)))
        .collect()
}

/// Reads an overload of the function `name`.
///
/// Leaks the overload's signature, which must be static. This is acceptable because the tests declare few functions.
fn read_overload(name: &str, overload: &Message) -> Result<Overload> {
    let params = overload.messages("params")?;
    let result = overload.message("result_type")?;
    let result = result.context("an overload has no result type")?;
    let type_params = overload.all("type_params").map(textproto::Value::text);
    let mut type_params = type_params.collect::<Result<Vec<_>>>()?;
    for type_ in params.iter().chain([&result]) {
        collect_params(type_, &mut type_params)?;
    }
    let declare = if overload.flag("is_instance_function")? {
        OverloadRow::member
    } else {
        OverloadRow::global
    };
    let (name, id) = (name.to_owned().leak(), overload.text("overload_id")?.leak());
    let source = Source::new("a conformance test");
    let row = declare(name, id, &[], Sig::Dyn, Costs::ONE, source);
    Ok(Overload {
        row: Box::leak(Box::new(row)),
        args: params.into_iter().map(read_type).collect::<Result<_>>()?,
        result: read_type(result)?,
        type_params: type_params.into_iter().map(|name| &*name.leak()).collect(),
    })
}

/// Adds the type parameters in `type_` to `names`, because a declaration in a test does not list them.
///
/// Source: cel-go `common/decls/decls.go`, `collectTypeParams`.
fn collect_params(type_: &Message, names: &mut Vec<String>) -> Result<()> {
    for (field, value) in type_.fields() {
        match value {
            textproto::Value::Message(inner) => collect_params(inner, names)?,
            value if field == "type_param" => {
                let name = value.text()?;
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            textproto::Value::Bytes(_) | textproto::Value::Word(_) => {}
        }
    }
    Ok(())
}

fn read_expected(test: &Message) -> Result<Expected> {
    if let Some(value) = test.message("value")? {
        return Ok(Expected::Value(Value::read(value)?));
    }
    if let Some(typed) = test.message("typed_result")? {
        let type_ = typed.message("deduced_type")?.context("no deduced type")?;
        let value = typed.message("result")?.map(Value::read).transpose()?;
        return Ok(Expected::Typed(read_type(type_)?, value));
    }
    let is_set = |name| test.all(name).next().is_some();
    if is_set("eval_error") || is_set("any_eval_errors") {
        return Ok(Expected::Error);
    }
    if is_set("unknown") || is_set("any_unknowns") {
        return Ok(Expected::Unknown);
    }
    // A test without an expected result expects true, by the specification.
    Ok(Expected::Value(Value::Bool(true)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        name: "f" section { name: "s"
          test { name: "a" expr: "x + 1" check_only: true
            type_env { name: "x" ident { type { primitive: INT64 } } }
            typed_result { deduced_type { primitive: INT64 } } }
          test { name: "b" expr: "TestAllTypes{}" container: "cel.expr.conformance.proto3"
            eval_error { errors { message: "m" } } }
          test { name: "c" expr: "true" description: "cel.expr.conformance.proto3" } }"#;

    #[test]
    fn conformance_tests_have_path_and_expected_result() {
        let suite = Suite::read(TEXT).unwrap();
        let [a, b, c] = suite.tests.as_slice() else {
            panic!("{suite:?}")
        };
        assert_eq!(a.path, "f/s/a");
        assert!(a.check_only && !a.disable_check && !a.needs_messages);
        assert!(matches!(&*a.declarations, [Declaration::Variable(x, Type::Int)] if x == "x"));
        assert_eq!(a.expected, Expected::Typed(Type::Int, None));
        assert_eq!((&b.expected, b.needs_messages), (&Expected::Error, true));
        assert_eq!(c.expected, Expected::Value(Value::Bool(true)));
        assert!(!c.needs_messages);
    }
}

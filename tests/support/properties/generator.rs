//! Generates random expressions of given types. The expressions use all overloads of an environment, and operators,
//! macros, optionals, literals, variables and their fields.
//!
//! Most generated expressions pass the type checker. Their evaluation may fail, for example because of an invalid
//! string, a missing key or an overflow.

use std::collections::HashMap;

use vap_status_controller::cel::decls::{CallStyle, Overload};
use vap_status_controller::cel::env::Env;
use vap_status_controller::cel::types::{OPTIONAL_TYPE, Type, TypeParam};

use super::choices::Choices;
use super::texts;

/// Functions that an expression cannot call, and functions that upstream disables.
const NOT_CALLED: [&str; 4] = ["_in_", "in", "__not_strictly_false__", "_?._"];

const NAMES: [&str; 6] = ["x", "y", "k", "item", "this", "e"];

/// The building blocks of expressions.
#[derive(Debug)]
pub(crate) struct Material {
    pub(crate) overloads: Vec<Overload>,
    /// Expressions for variables and their fields, with their types.
    pub(crate) places: Vec<(String, Type)>,
}

impl Material {
    /// Collects the overloads of `env`, and the `variables` with their fields.
    pub(crate) fn new(env: &Env, variables: &[(&str, Type)]) -> Self {
        let functions = env.library().functions();
        let mut overloads: Vec<Overload> = functions
            .flat_map(|function| function.overloads.clone())
            .filter(|overload| {
                let function = overload.row.function;
                function == "@in" || !function.contains('@') && !NOT_CALLED.contains(&function)
            })
            .collect();
        overloads.sort_by_key(|overload| (overload.row.function, overload.row.id));
        let mut places = Vec::new();
        for (name, type_) in variables {
            add_places((*name).to_owned(), type_, 3, &mut places);
        }
        Self { overloads, places }
    }

    pub(crate) fn overload_ids(&self) -> impl Iterator<Item = &'static str> {
        self.overloads.iter().map(|overload| overload.row.id)
    }
}

/// Adds an expression of the type `type_`, and its fields up to `depth` levels.
fn add_places(text: String, type_: &Type, depth: u32, places: &mut Vec<(String, Type)>) {
    if let (Type::Struct(object), true) = (type_, depth > 0)
        && let Some(fields) = &object.fields
    {
        for field in fields.field_names() {
            if let Some(of_field) = fields.field_type(&object.name, field) {
                add_places(format!("{text}.{field}"), &of_field, depth - 1, places);
            }
        }
    }
    places.push((text, type_.clone()));
}

#[derive(Debug)]
pub(crate) struct Generator<'a> {
    material: &'a Material,
    choices: Choices<'a>,
    scope: Vec<(String, Type)>,
    /// True if the type of a value may be `dyn`.
    may_be_dyn: bool,
}

fn is_type(type_: &Type, name: &str) -> bool {
    type_.type_name() == name
}

impl<'a> Generator<'a> {
    pub(crate) fn new(material: &'a Material, choices: Choices<'a>, may_be_dyn: bool) -> Self {
        Self {
            material,
            choices,
            scope: Vec::new(),
            may_be_dyn,
        }
    }

    /// Returns an expression of a random type with at most `depth` nested calls.
    pub(crate) fn any(&mut self, depth: u32) -> String {
        let type_ = match self.choices.below(4) {
            0 => Type::Bool,
            1 => self.result_type(),
            _ => self.type_(2),
        };
        self.expr(&type_, depth)
    }

    fn result_type(&mut self) -> Type {
        let n = self.choices.below(self.material.overloads.len());
        let overload = self.material.overloads[n].clone();
        let bound = self.bind(&overload, HashMap::new());
        substitute(&overload.result, &bound)
    }

    fn scalar(&mut self) -> Type {
        match self.choices.below(9) {
            0 | 1 => Type::String,
            2 | 3 => Type::Int,
            4 => Type::Bool,
            5 => Type::Double,
            6 => Type::Uint,
            7 => Type::Bytes,
            _ if self.choices.chance(50) => Type::Duration,
            _ => Type::Timestamp,
        }
    }

    fn type_(&mut self, depth: u32) -> Type {
        if depth == 0 {
            return self.scalar();
        }
        match self.choices.below(12) {
            0 | 1 => Type::list(self.type_(depth - 1)),
            2 => Type::map(self.key_type(), self.type_(depth - 1)),
            3 => Type::optional(self.type_(depth - 1)),
            4 if self.may_be_dyn => Type::Dyn,
            _ => self.scalar(),
        }
    }

    fn key_type(&mut self) -> Type {
        [
            Type::String,
            Type::String,
            Type::Int,
            Type::Bool,
            Type::Uint,
        ][self.choices.below(5)]
        .clone()
    }

    /// Returns an expression of `type_` with at most `depth` nested calls.
    pub(crate) fn expr(&mut self, type_: &Type, depth: u32) -> String {
        if type_.is_dyn() {
            return self.dynamic(depth);
        }
        if self.choices.chance(if depth == 0 { 60 } else { 15 })
            && let Some(place) = self.place(type_)
        {
            return place;
        }
        if depth == 0 || self.choices.is_exhausted() {
            return self.literal(type_);
        }
        let depth = depth - 1;
        match self.choices.below(20) {
            0 => {
                let condition = self.expr(&Type::Bool, depth);
                let (yes, no) = (self.expr(type_, depth), self.expr(type_, depth));
                format!("({condition} ? {yes} : {no})")
            }
            1 => {
                let (first, second) = (self.expr(type_, depth), self.expr(type_, depth));
                format!("[{first}, {second}][{}]", self.choices.below(3))
            }
            2 => {
                let value = self.expr(type_, depth);
                let access = self
                    .choices
                    .pick(&[".a", "['a']", ".?a.value()", "[?'b'].value()"]);
                format!("{{'a': {value}}}{access}")
            }
            3 => {
                let optional = self.expr(&Type::optional(type_.clone()), depth);
                format!("({optional}).orValue({})", self.expr(type_, depth))
            }
            4..=7 => match self.by_macro(type_, depth) {
                Some(made) => made,
                None => self.by_overload(type_, depth),
            },
            _ => self.by_overload(type_, depth),
        }
    }

    fn dynamic(&mut self, depth: u32) -> String {
        if self.choices.chance(50)
            && let Some(place) = self.place(&Type::Dyn)
        {
            return place;
        }
        let of = self.type_(1);
        let of = if of.is_dyn() { Type::Int } else { of };
        format!("dyn({})", self.expr(&of, depth.saturating_sub(1)))
    }

    /// Returns a variable or a field with the type `type_`. Returns `None` if there is none.
    fn place(&mut self, type_: &Type) -> Option<String> {
        let mut in_scope = Vec::new();
        for (name, of) in &self.scope {
            add_places(name.clone(), of, 1, &mut in_scope);
        }
        let fitting = in_scope.iter().chain(&self.material.places);
        let fitting: Vec<&String> = fitting
            .filter(|(_, of)| of == type_)
            .map(|(text, _)| text)
            .collect();
        if fitting.is_empty() {
            return None;
        }
        Some(fitting[self.choices.below(fitting.len())].clone())
    }

    fn text(&mut self, of: &[&str]) -> String {
        let text = self.choices.pick(of);
        let mut literal = String::from("'");
        for c in text.chars() {
            match c {
                '\'' | '\\' => literal.extend(['\\', c]),
                c if c.is_control() => literal.push_str(&format!("\\x{:02x}", u32::from(c))),
                c => literal.push(c),
            }
        }
        literal + "'"
    }

    /// Returns the length of a generated list. It is rarely 0, because an empty list has the type `list(dyn)`.
    fn length(&mut self) -> usize {
        if self.choices.chance(10) {
            return 0;
        }
        1 + self.choices.below(3)
    }

    fn small(&mut self) -> String {
        self.choices.below(5).to_string()
    }

    /// Returns a short expression of `type_`. It is a literal if the type has literals.
    fn literal(&mut self, type_: &Type) -> String {
        match type_ {
            Type::Bool => self.choices.pick(&["true", "false"]).to_owned(),
            Type::Int => match self.choices.below(4) {
                0 => {
                    let ints = [
                        "9223372036854775807",
                        "-9223372036854775808",
                        "-1",
                        "0x1f",
                        "1000",
                    ];
                    self.choices.pick(&ints).to_owned()
                }
                _ => self.small(),
            },
            Type::Uint => self
                .choices
                .pick(&["0u", "1u", "7u", "18446744073709551615u"])
                .to_owned(),
            Type::Double => {
                let doubles = [
                    "0.0",
                    "1.5",
                    "-2.75",
                    "1e300",
                    "5e-324",
                    "(0.0 / 0.0)",
                    "-0.0",
                    "3.0",
                ];
                self.choices.pick(&doubles).to_owned()
            }
            Type::String => self.text(texts::ANY),
            Type::Bytes => self
                .choices
                .pick(&["b''", "b'abc'", "b'\\xff\\x00'", "b'é'"])
                .to_owned(),
            Type::Null => "null".to_owned(),
            Type::Duration => format!("duration({})", self.overload_call("string_to_duration")),
            Type::Timestamp => format!("timestamp({})", self.overload_call("string_to_timestamp")),
            Type::List(element) => {
                let n = self.length();
                let elements: Vec<String> = (0..n).map(|_| self.literal(element)).collect();
                format!("[{}]", elements.join(", "))
            }
            Type::Map(entry) => {
                let (key, value) = (self.literal(&entry.0), self.literal(&entry.1));
                format!("{{{key}: {value}}}")
            }
            Type::Type(_) => self
                .choices
                .pick(&["int", "string", "list", "type"])
                .to_owned(),
            Type::Dyn => format!("dyn({})", self.small()),
            _ => self.abstract_literal(type_),
        }
    }

    fn overload_call(&mut self, id: &str) -> String {
        self.text(texts::argument_texts(id, 0).unwrap_or(texts::ANY))
    }

    /// Returns a short expression that has the type `type_`. CEL has no literals of this type.
    fn abstract_literal(&mut self, type_: &Type) -> String {
        if let Some(value) = type_.optional_value() {
            let value = self.literal(value);
            return match self.choices.below(3) {
                0 => format!("optional.ofNonZeroValue({value})"),
                1 => format!("[{value}][?{}]", self.choices.below(2)),
                _ => format!("optional.of({value})"),
            };
        }
        for (name, function, id) in [
            ("kubernetes.Quantity", "quantity", "string_to_quantity"),
            ("kubernetes.Semver", "semver", "string_to_semver"),
            ("net.IP", "ip", "string_to_ip"),
            ("net.CIDR", "cidr", "string_to_cidr"),
            ("kubernetes.URL", "url", "string_to_url"),
        ] {
            if is_type(type_, name) {
                return format!("{function}({})", self.overload_call(id));
            }
        }
        let path = "authorizer.path('/healthz')";
        match type_.type_name().as_str() {
            "kubernetes.NamedFormat" => "format.dns1123Label()".to_owned(),
            "kubernetes.authorization.Authorizer" => "authorizer".to_owned(),
            "kubernetes.authorization.PathCheck" => path.to_owned(),
            "kubernetes.authorization.GroupCheck" => "authorizer.group('apps')".to_owned(),
            "kubernetes.authorization.ResourceCheck" => {
                "authorizer.group('').resource('pods')".to_owned()
            }
            "kubernetes.authorization.Decision" => format!("{path}.check('get')"),
            _ => match self.place(type_) {
                Some(place) => place,
                None => self.small(),
            },
        }
    }

    fn bind(
        &mut self,
        overload: &Overload,
        mut bound: HashMap<&'static str, Type>,
    ) -> HashMap<&'static str, Type> {
        for name in &overload.type_params {
            if !bound.contains_key(name) {
                let is_key = overload.args.iter().any(|arg| {
                    matches!(arg, Type::Map(entry) if matches!(entry.0, Type::Param(TypeParam::Declared(key)) if key == *name))
                });
                let type_ = if is_key {
                    self.key_type()
                } else {
                    self.type_(1)
                };
                bound.insert(name, type_);
            }
        }
        bound
    }

    fn by_overload(&mut self, type_: &Type, depth: u32) -> String {
        let fits = |overload: &&Overload| unify(&overload.result, type_, &mut HashMap::new());
        let fitting: Vec<&'a Overload> = self.material.overloads.iter().filter(fits).collect();
        if fitting.is_empty() || self.choices.chance(10) {
            return match type_ {
                Type::List(element) => {
                    let n = self.length();
                    let elements: Vec<String> =
                        (0..n).map(|_| self.element(element, depth)).collect();
                    format!("[{}]", elements.join(", "))
                }
                Type::Map(entry) => {
                    let key = self.expr(&entry.0, depth);
                    format!("{{{key}: {}}}", self.expr(&entry.1, depth))
                }
                _ => self.literal(type_),
            };
        }
        let overload = fitting[self.choices.below(fitting.len())];
        let mut bound = HashMap::new();
        unify(&overload.result, type_, &mut bound);
        self.call(overload, bound, depth)
    }

    /// Returns an element of a list literal, which is sometimes an optional element.
    fn element(&mut self, type_: &Type, depth: u32) -> String {
        if self.choices.chance(10) {
            return format!("?{}", self.expr(&Type::optional(type_.clone()), depth));
        }
        self.expr(type_, depth)
    }

    /// Returns a call of the `n`th overload.
    pub(crate) fn call_of(&mut self, n: usize, depth: u32) -> String {
        let overloads = &self.material.overloads;
        self.call(&overloads[n % overloads.len()], HashMap::new(), depth)
    }

    fn call(
        &mut self,
        overload: &Overload,
        bound: HashMap<&'static str, Type>,
        depth: u32,
    ) -> String {
        let bound = self.bind(overload, bound);
        let id = overload.row.id;
        let mut args = Vec::new();
        for (n, arg) in overload.args.iter().enumerate() {
            let type_ = substitute(arg, &bound);
            args.push(match texts::argument_texts(id, n) {
                Some(of) if self.choices.chance(85) => self.text(of),
                _ if matches!(type_, Type::Int | Type::Uint)
                    && texts::is_small(id, n)
                    && self.choices.chance(80) =>
                {
                    let suffix = if type_ == Type::Uint { "u" } else { "" };
                    self.small() + suffix
                }
                _ => self.argument(&type_, depth),
            });
        }
        write_call(overload, &args)
    }

    /// Returns an argument for a parameter of `type_`. For `dyn`, the argument has a random concrete type.
    fn argument(&mut self, type_: &Type, depth: u32) -> String {
        match type_ {
            Type::Dyn if !self.may_be_dyn || self.choices.chance(70) => {
                let of = self.scalar();
                self.expr(&of, depth)
            }
            Type::List(element) if element.is_dyn() => {
                let n = self.choices.below(3);
                let elements: Vec<String> =
                    (0..n).map(|_| self.argument(&Type::Dyn, depth)).collect();
                format!("[{}]", elements.join(", "))
            }
            _ => self.expr(type_, depth),
        }
    }

    /// Calls `body` with `variables` in scope.
    fn within(
        &mut self,
        variables: &[(&str, &Type)],
        body: impl FnOnce(&mut Self) -> String,
    ) -> String {
        let n = self.scope.len();
        let named = variables
            .iter()
            .map(|(name, type_)| ((*name).to_owned(), (*type_).clone()));
        self.scope.extend(named);
        let expression = body(self);
        self.scope.truncate(n);
        expression
    }

    fn name(&mut self) -> &'static str {
        let n = self.scope.len() + self.choices.below(2);
        NAMES[n % NAMES.len()]
    }

    /// Returns a list expression and its element type.
    fn range(&mut self, depth: u32) -> (String, Type) {
        let places = self.material.places.iter();
        let lists: Vec<&(String, Type)> = places
            .filter(|(_, of)| matches!(of, Type::List(_)))
            .collect();
        if !lists.is_empty() && self.choices.chance(40) {
            let (text, type_) = lists[self.choices.below(lists.len())];
            if let Type::List(element) = type_ {
                return (text.clone(), (**element).clone());
            }
        }
        let element = self.type_(1);
        let list = self.expr(&Type::list(element.clone()), depth);
        (list, element)
    }

    /// Returns a macro call whose result has the type `type_`. Returns `None` if no macro has such a result.
    fn by_macro(&mut self, type_: &Type, depth: u32) -> Option<String> {
        let name = self.name();
        match type_ {
            Type::Bool if self.choices.chance(20) => Some(self.presence()),
            Type::Bool if self.choices.chance(30) => {
                let (map, key, value) = self.entries(depth);
                let macro_name = self.choices.pick(&["all", "exists", "existsOne"]);
                let test = self.within(&[("i", &key), ("v", &value)], |this| {
                    this.expr(&Type::Bool, depth)
                });
                Some(format!("({map}).{macro_name}(i, v, {test})"))
            }
            Type::Bool => {
                let (list, element) = self.range(depth);
                let macro_name = self.choices.pick(&["all", "exists", "exists_one"]);
                let test = self.within(&[(name, &element)], |this| this.expr(&Type::Bool, depth));
                Some(format!("({list}).{macro_name}({name}, {test})"))
            }
            Type::List(wanted) => Some(self.list_macro(name, wanted, depth)),
            Type::Map(entry) => {
                let value = self.scalar();
                let key = entry.0.clone();
                let of_key = self.choices.chance(50) && matches!(key, Type::Int);
                let variables = [("i", &Type::Int), ("v", &value)];
                let list = format!("[{}, {}]", self.literal(&value), self.literal(&value));
                let body = self.within(&variables, |this| this.expr(&entry.1, depth));
                if of_key {
                    return Some(format!("{list}.transformMap(i, v, {body})"));
                }
                let expression = self.expr(&key, depth);
                let test = self.within(&variables, |this| this.expr(&Type::Bool, depth));
                Some(format!(
                    "{list}.transformMapEntry(i, v, {test}, {{{expression}: {body}}})"
                ))
            }
            _ => {
                let value = type_.optional_value()?;
                let of = self.scalar();
                let optional = self.expr(&Type::optional(of.clone()), depth);
                let flat = self.choices.chance(40);
                let body = self.within(&[(name, &of)], |this| {
                    this.expr(if flat { type_ } else { value }, depth)
                });
                let macro_name = if flat { "optFlatMap" } else { "optMap" };
                Some(format!("({optional}).{macro_name}({name}, {body})"))
            }
        }
    }

    fn list_macro(&mut self, name: &str, wanted: &Type, depth: u32) -> String {
        match self.choices.below(5) {
            0 => {
                let list = self.expr(&Type::list(wanted.clone()), depth);
                let test = self.within(&[(name, wanted)], |this| this.expr(&Type::Bool, depth));
                format!("({list}).filter({name}, {test})")
            }
            1 => {
                let list = self.expr(&Type::list(wanted.clone()), depth);
                let key = self.scalar();
                let key = self.within(&[(name, wanted)], |this| this.expr(&key, depth));
                format!("({list}).sortBy({name}, {key})")
            }
            2 => {
                let (map, key, value) = self.entries(depth);
                let body = self.within(&[("i", &key), ("v", &value)], |this| {
                    this.expr(wanted, depth)
                });
                format!("({map}).transformList(i, v, {body})")
            }
            n => {
                let (list, element) = self.range(depth);
                let test = self.within(&[(name, &element)], |this| this.expr(&Type::Bool, depth));
                let body = self.within(&[(name, &element)], |this| this.expr(wanted, depth));
                if n == 3 {
                    return format!("({list}).map({name}, {body})");
                }
                format!("({list}).map({name}, {test}, {body})")
            }
        }
    }

    /// Returns a map or list expression, and the types of a macro's two variables. A map has a single entry, because
    /// upstream iterates over maps in undefined order.
    fn entries(&mut self, depth: u32) -> (String, Type, Type) {
        if self.choices.chance(50) {
            let (list, element) = self.range(depth);
            return (list, Type::Int, element);
        }
        let (key, value) = (self.key_type(), self.scalar());
        let map = format!("{{{}: {}}}", self.literal(&key), self.expr(&value, depth));
        (map, key, value)
    }

    fn presence(&mut self) -> String {
        let selected = |(text, _): &&(String, Type)| text.contains('.');
        let fields: Vec<_> = self.material.places.iter().filter(selected).collect();
        if fields.is_empty() || self.choices.chance(30) {
            return "has({'a': 1}.b)".to_owned();
        }
        format!("has({})", fields[self.choices.below(fields.len())].0)
    }
}

/// Formats a call of `overload`: as an operator, as a member call, or as a function call.
pub(crate) fn write_call(overload: &Overload, args: &[String]) -> String {
    match (overload.row.function, args) {
        ("!_", [operand]) => format!("!({operand})"),
        ("-_", [operand]) => format!("-({operand})"),
        ("_?_:_", [condition, yes, no]) => format!("(({condition}) ? ({yes}) : ({no}))"),
        ("_[_]", [operand, index]) => format!("({operand})[{index}]"),
        ("_[?_]", [operand, index]) => format!("({operand})[?{index}]"),
        ("@in", [element, list]) => format!("({element} in {list})"),
        (function, [left, right]) if function.starts_with('_') => {
            format!("({left} {} {right})", function.trim_matches('_'))
        }
        (function, [target, rest @ ..]) if overload.row.style == CallStyle::Member => {
            format!("({target}).{function}({})", rest.join(", "))
        }
        (function, args) => format!("{function}({})", args.join(", ")),
    }
}

/// Returns true if `pattern` can be made equal to `wanted` by a substitution of type parameters. Adds the substitution
/// to `bound`.
fn unify(pattern: &Type, wanted: &Type, bound: &mut HashMap<&'static str, Type>) -> bool {
    match (pattern, wanted) {
        (Type::Param(TypeParam::Declared(name)), _) => match bound.get(name) {
            Some(known) => known == wanted,
            None => bound.insert(name, wanted.clone()).is_none(),
        },
        (Type::List(a), Type::List(b)) => unify(a, b, bound),
        (Type::Map(a), Type::Map(b)) => unify(&a.0, &b.0, bound) && unify(&a.1, &b.1, bound),
        (Type::Opaque(a), Type::Opaque(b)) if a.name == b.name && *a.name == *OPTIONAL_TYPE => {
            let mut pairs = a.params.iter().zip(&b.params);
            pairs.all(|(a, b)| unify(a, b, bound))
        }
        (Type::Type(_), Type::Type(_)) => true,
        _ => pattern == wanted,
    }
}

fn substitute(pattern: &Type, bound: &HashMap<&'static str, Type>) -> Type {
    match pattern {
        Type::Param(TypeParam::Declared(name)) => bound.get(name).cloned().unwrap_or(Type::Int),
        Type::List(element) => Type::list(substitute(element, bound)),
        Type::Map(entry) => Type::map(substitute(&entry.0, bound), substitute(&entry.1, bound)),
        Type::Opaque(opaque) => {
            let params = opaque.params.iter().map(|param| substitute(param, bound));
            Type::opaque(opaque.name.clone(), params.collect())
        }
        Type::Type(Some(of)) => Type::type_of(substitute(of, bound)),
        other => other.clone(),
    }
}

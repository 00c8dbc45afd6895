//! Proposals for calls and comparisons with arguments of the wrong types.

use std::ops::Range;

use super::proposal::{
    Proposal, is_decision, is_named, is_object_like, is_quantity, string_content,
};
use crate::cel::syntax::token::Kind;
use crate::cel::types::Type;
use crate::cli::check::tokens::{RELATION, TokenText, UNARY};

/// A call of a member function.
pub(super) struct MemberCall<'a, 's> {
    pub(super) source: &'a TokenText<'s>,
    pub(super) receiver: Range<usize>,
    pub(super) args: Range<usize>,
    /// All tokens of the call.
    pub(super) whole: Range<usize>,
}

impl<'a, 's> MemberCall<'a, 's> {
    /// Returns the call with the parenthesis or the name at `n`.
    pub(super) fn new(source: &'a TokenText<'s>, n: usize) -> Option<Self> {
        let open = if source.kind(n)? == Kind::OpenParen {
            n
        } else {
            n + 1
        };
        (source.kind(open)? == Kind::OpenParen).then_some(())?;
        let dot = open.checked_sub(2)?;
        (source.kind(dot)? == Kind::Dot).then_some(())?;
        let receiver = source.receiver(dot)?;
        let close = source.close(open)?;
        Some(Self {
            source,
            whole: receiver.start..close + 1,
            receiver,
            args: open + 1..close,
        })
    }

    pub(super) fn replace(&self, text: String, precedence: u8) -> Option<Proposal> {
        let text = self.source.in_place_of(&self.whole, text, precedence);
        Some(Proposal::edit(self.source.bytes(&self.whole)?, text))
    }

    /// Proposes `argument in receiver`.
    pub(super) fn as_in(&self) -> Option<Proposal> {
        let key = self.source.operand_text(&self.args, RELATION)?;
        let receiver = self.source.source(&self.receiver)?;
        self.replace(format!("{key} in {receiver}"), RELATION)
    }
}

/// Proposes a replacement for a call of a member function without a matching overload.
pub(super) fn call(call: &MemberCall<'_, '_>, function: &str, args: &[Type]) -> Option<Proposal> {
    let source = call.source;
    match (function, args) {
        (
            "startsWith" | "endsWith" | "contains" | "matches",
            [Type::String | Type::Dyn, Type::List(_)],
        ) => any_item(call, function),
        ("contains", [network, _]) if is_named(network, ".CIDR") => network_contains(call, args),
        ("sum" | "min" | "max", [_, _, _]) => aggregate(call, function),
        ("contains", [Type::List(item), Type::String]) if is_object_like(item) => {
            let (list, text) = (source.source(&call.receiver)?, source.source(&call.args)?);
            Some(Proposal::hint(format!(
                "the items of the list are not strings: compare a field, as in `{list}.exists(x, x.name == {text})`"
            )))
        }
        ("contains", [Type::List(_), _]) => call.as_in(),
        // The author may have intended to search the values of the map, so there is no edit.
        ("contains", [Type::Map(_), _]) => {
            let mut proposal = call.as_in()?;
            proposal.edit = None;
            proposal.help.push_str(" to search the keys of the map");
            Some(proposal)
        }
        ("isLessThan" | "isGreaterThan" | "compareTo" | "add" | "sub", [left, Type::String])
            if is_quantity(left) =>
        {
            let text = source.source(&call.args)?;
            let bytes = source.bytes(&call.args)?;
            Some(Proposal::edit(bytes, format!("quantity({text})")))
        }
        ("allowed", [check, Type::String]) if is_named(check, "Check") => {
            let (receiver, verb) = (source.source(&call.receiver)?, source.source(&call.args)?);
            call.replace(format!("{receiver}.check({verb}).allowed()"), 6)
        }
        ("format", [Type::String, values]) if !matches!(values, Type::List(_) | Type::Dyn) => {
            let text = source.source(&call.args)?;
            Some(Proposal::edit(
                source.bytes(&call.args)?,
                format!("[{text}]"),
            ))
        }
        (
            "getFullYear" | "getMonth" | "getDate" | "getDayOfMonth" | "getDayOfWeek"
            | "getDayOfYear",
            [Type::String],
        ) => {
            let receiver = source.source(&call.receiver)?;
            let bytes = source.bytes(&call.receiver)?;
            Some(Proposal::edit(bytes, format!("timestamp({receiver})")))
        }
        _ => None,
    }
}

/// Proposes `['a', 'b'].exists(p, x.startsWith(p))` for `x.startsWith(['a', 'b'])`.
fn any_item(call: &MemberCall<'_, '_>, function: &str) -> Option<Proposal> {
    let source = call.source;
    let text = source.source(&call.receiver)?;
    let list = source.receiver_text(&call.args)?;
    let is_free = |name: &&str| {
        let mut tokens = 0..source.len();
        !tokens.any(|n| source.word(n) == Some(name))
    };
    let variable = ["p", "s", "part", "item"].into_iter().find(is_free)?;
    let text = format!("{list}.exists({variable}, {text}.{function}({variable}))");
    call.replace(text, UNARY)
}

/// Proposes `containsIP()` or `containsCIDR()` for `contains()` of a network.
fn network_contains(call: &MemberCall<'_, '_>, args: &[Type]) -> Option<Proposal> {
    let source = call.source;
    let name = match args.last()? {
        Type::String => match string_content(source, &call.args) {
            Some(network) if network.contains('/') => "containsCIDR",
            Some(_) => "containsIP",
            None => {
                return Some(Proposal::hint(
                    "write `containsIP()` for an address, or `containsCIDR()` for a network",
                ));
            }
        },
        address if is_named(address, ".IP") => "containsIP",
        network if is_named(network, ".CIDR") => "containsCIDR",
        _ => return None,
    };
    let function = call.receiver.end + 1;
    let mut proposal = Proposal::edit(source.bytes(&(function..function + 1))?, name.to_owned());
    proposal.help = format!("write `{name}()`");
    Some(proposal)
}

/// Proposes `a.map(x, x.b).sum()` for `a.sum(x, x.b)`.
fn aggregate(call: &MemberCall<'_, '_>, function: &str) -> Option<Proposal> {
    let source = call.source;
    let list = source.source(&call.receiver)?;
    let comma = call.args.start + 1;
    let is_macro =
        source.kind(call.args.start)? == Kind::Ident && source.kind(comma)? == Kind::Comma;
    let args = source.source(&call.args).filter(|_| is_macro)?;
    call.replace(format!("{list}.map({args}).{function}()"), UNARY)
}

/// Proposes a function such as `asApproximateFloat()` for the conversion of a quantity to a number. `n` is the
/// parenthesis of the call.
pub(super) fn conversion(
    source: &TokenText<'_>,
    n: usize,
    function: &str,
    args: &[Type],
) -> Option<Proposal> {
    let ([quantity], name) = (args, n.checked_sub(1)?) else {
        return None;
    };
    if function == "duration" && matches!(quantity, Type::Int | Type::Uint) {
        return duration_of_number(source, n);
    }
    let close = source.close(n).filter(|_| is_quantity(quantity))?;
    let text = source.receiver_text(&(n + 1..close))?;
    match function {
        "double" => {
            let bytes = source.bytes(&(name..close + 1))?;
            Some(Proposal::edit(
                bytes,
                format!("{text}.asApproximateFloat()"),
            ))
        }
        "int" => Some(Proposal::hint(format!(
            "write `{text}.asInteger()`, which fails for a quantity such as `500m`, or \
             `{text}.asApproximateFloat()`"
        ))),
        _ => None,
    }
}

/// Proposes to convert a number of seconds to a string such as `5s`, because `duration()` accepts no numbers. `n` is
/// the parenthesis of the call.
fn duration_of_number(source: &TokenText<'_>, n: usize) -> Option<Proposal> {
    let number = n + 1..source.close(n)?;
    let text = source.source(&number)?;
    let last = number.end.checked_sub(1).and_then(|n| source.word(n))?;
    let new = format!("string({text}) + 's'");
    Some(if last.ends_with("Seconds") {
        Proposal::edit(source.bytes(&number)?, new)
    } else {
        Proposal::hint(format!(
            "duration() converts a string with a unit: write `duration({new})` for seconds"
        ))
    })
}

/// Proposes `check.allowed()` for `check == true`, and `!check.allowed()` for `check == false`.
pub(super) fn decision(
    source: &TokenText<'_>,
    n: usize,
    tokens: &Range<usize>,
    other: &Type,
) -> Option<Proposal> {
    let (left, right) = source.operands(n)?;
    let literal = if *tokens == left { &right } else { &left };
    let is_true = match source.kind(literal.start).filter(|_| literal.len() == 1)? {
        Kind::True => true,
        Kind::False => false,
        _ => return None,
    };
    let is_equal = source.kind(n)? == Kind::Equals;
    (*other == Type::Bool && source.is_chain(tokens)).then_some(())?;
    let sign = if is_true == is_equal { "" } else { "!" };
    let text = format!("{sign}{}.allowed()", source.source(tokens)?);
    Some(Proposal::edit(
        source.bytes(&(left.start..right.end))?,
        text,
    ))
}

/// Returns true for an object with a field `name` that is a string.
pub(super) fn has_name(type_: &Type) -> bool {
    let Type::Struct(object) = type_ else {
        return false;
    };
    let fields = object.fields.as_ref();
    let name = fields.and_then(|fields| fields.field_type(&object.name, "name"));
    !is_decision(type_) && name == Some(Type::String)
}

/// Returns a hint about a comparison of a list with the string `item`. `n` is the comparison operator.
pub(super) fn item_of_list(source: &TokenText<'_>, n: usize, item: &str, list: &str) -> Proposal {
    if source.kind(n) == Some(Kind::NotEquals) {
        return Proposal::hint(format!(
            "write `!({item} in {list})` if the list must not contain the item, or `{list} != [{item}]`"
        ));
    }
    Proposal::hint(format!(
        "write `{item} in {list}` if one item is enough, or `{list} == [{item}]`"
    ))
}

/// Proposes `x in ['a', 'b']` for `x in ['a'] || 'b'` and `x == 'a' || 'b'`. `n` is the string after the operator.
pub(super) fn alternatives(source: &TokenText<'_>, n: usize) -> Option<Proposal> {
    let is_text = |n: usize| source.kind(n) == Some(Kind::String);
    let is_next = |n: usize| source.kind(n) == Some(Kind::Or) && is_text(n + 1);
    let first_or = n.checked_sub(1)?;
    (is_text(n) && source.kind(first_or)? == Kind::Or).then_some(())?;
    let mut start = first_or;
    while let Some(before) = start.checked_sub(2).filter(|before| is_next(*before)) {
        start = before;
    }
    let mut end = start;
    let mut items = Vec::new();
    while is_next(end) {
        items.push(source.word(end + 1)?);
        end += 2;
    }
    let ends = !matches!(
        source.kind(end),
        Some(Kind::Dot | Kind::OpenBracket | Kind::Plus | Kind::Equals | Kind::NotEquals)
    );
    let last = start.checked_sub(1).filter(|_| ends)?;
    if source.kind(last)? == Kind::CloseBracket {
        let list = source.receiver(start)?;
        let is_in = source.kind(list.start.checked_sub(1)?)? == Kind::In;
        (is_in && source.kind(list.start)? == Kind::OpenBracket).then_some(())?;
        let first = source.source(&(list.start..last))?;
        let text = format!("{first}, {}]", items.join(", "));
        let bytes = source.bytes(&(list.start..end))?;
        return Some(Proposal::edit(bytes, text));
    }
    let operator = last.checked_sub(1)?;
    (is_text(last) && source.kind(operator)? == Kind::Equals).then_some(())?;
    let left = source.left(operator, RELATION)?;
    items.insert(0, source.word(last)?);
    let text = format!("{} in [{}]", source.source(&left)?, items.join(", "));
    Some(Proposal::edit(source.bytes(&(left.start..end))?, text))
}

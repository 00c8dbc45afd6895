//! The IP library: IP addresses.

use std::net::IpAddr;

use super::args::{Result, failed, opaque, text};
use super::costs::{CANONICAL, NOMINAL, PARSED};
use super::net::{self, is_ipv4_mapped, parse_address};
use crate::version::V1_30;
use Sig::{Bool, Int, String};
use cel::cost::Costs;
use cel::decls::{OverloadRow, Sig, Source};
use cel::go_text::quote;
use cel::types::Type;
use cel::value::{EvalBudget, EvalError, Hashed, Opaque, Value};

use super::types::IP;

const SOURCE: Source =
    Source::new("k8s.io/apiserver pkg/cel/library/ip.go, ipLibraryDecls").since(V1_30);

/// Functions on IPv4 and IPv6 addresses.
pub static ROWS: &[OverloadRow] = &[
    OverloadRow::global("ip", "string_to_ip", &[String], IP, PARSED, SOURCE).evaluated_by(ip),
    OverloadRow::member("family", "ip_family", &[IP], Int, NOMINAL, SOURCE).evaluated_by(family),
    OverloadRow::global(
        "ip.isCanonical",
        "ip_is_canonical",
        &[String],
        Bool,
        CANONICAL,
        SOURCE,
    )
    .evaluated_by(is_canonical),
    OverloadRow::member(
        "isUnspecified",
        "ip_is_unspecified",
        &[IP],
        Bool,
        NOMINAL,
        SOURCE,
    )
    .evaluated_by(is_unspecified),
    OverloadRow::member("isLoopback", "ip_is_loopback", &[IP], Bool, NOMINAL, SOURCE)
        .evaluated_by(is_loopback),
    OverloadRow::member(
        "isLinkLocalMulticast",
        "ip_is_link_local_multicast",
        &[IP],
        Bool,
        NOMINAL,
        SOURCE,
    )
    .evaluated_by(is_link_local_multicast),
    OverloadRow::member(
        "isLinkLocalUnicast",
        "ip_is_link_local_unicast",
        &[IP],
        Bool,
        NOMINAL,
        SOURCE,
    )
    .evaluated_by(is_link_local_unicast),
    OverloadRow::member(
        "isGlobalUnicast",
        "ip_is_global_unicast",
        &[IP],
        Bool,
        NOMINAL,
        SOURCE,
    )
    .evaluated_by(is_global_unicast),
    OverloadRow::global("isIP", "is_ip", &[String], Bool, PARSED, SOURCE).evaluated_by(is_ip),
    OverloadRow::global("string", "ip_to_string", &[IP], String, Costs::ONE, SOURCE)
        .evaluated_by(string),
];

/// The CEL value of an IP address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip(pub IpAddr);

impl Opaque for Ip {
    fn type_(&self) -> Type {
        IP.to_type()
    }

    fn equals(&self, other: &Value) -> std::result::Result<bool, EvalError> {
        match other.downcast::<Self>() {
            Some(other) => Ok(self == other),
            None => Err(EvalError::no_such_overload()),
        }
    }

    fn convert_to(&self, to: &Type) -> Result {
        match to {
            Type::String => Ok(self.0.to_string().into()),
            _ => Err(EvalError::conversion(&self.type_(), to)),
        }
    }

    /// Returns the number of bytes of the address. Upstream derives costs from this size.
    ///
    /// Source: k8s.io/apiserver `pkg/cel/ip.go`, `IP.Size`.
    fn size(&self) -> Option<usize> {
        Some(usize::from(net::width(self.0) / 8))
    }

    fn text(&self) -> Option<std::string::String> {
        Some(self.0.to_string())
    }

    fn hashed(&self) -> Hashed {
        Hashed::ByText(self.text().unwrap_or_default())
    }

    fn native_type(&self) -> &'static str {
        "netip.Addr"
    }

    fn go_type(&self) -> &'static str {
        "cel.IP"
    }
}

/// Parses an IP address. Rejects zones and IPv4-mapped IPv6 addresses.
///
/// Source: k8s.io/apiserver `pkg/cel/library/ip.go`, `parseIPAddr`.
fn parse(text: &str) -> std::result::Result<IpAddr, EvalError> {
    let address = parse_address(text.as_bytes()).map_err(|error| {
        let text = quote(text);
        failed(format!(
            "IP Address {text} parse error during conversion from string: {error}"
        ))
    })?;
    if address.has_zone {
        let text = quote(text);
        return Err(failed(format!(
            "IP address {text} with zone value is not allowed"
        )));
    }
    if is_ipv4_mapped(address.ip) {
        let text = quote(text);
        return Err(failed(format!(
            "IPv4-mapped IPv6 address {text} is not allowed"
        )));
    }
    Ok(address.ip)
}

/// Returns the address in `value`, which is a string or an IP address. As in upstream, every error is `no such
/// overload`.
///
/// Source: k8s.io/apiserver `pkg/cel/library/cidr.go`, `cidrContainsIPString`, `cidrContainsIP`.
pub(super) fn address_of(value: Option<&Value>) -> std::result::Result<IpAddr, EvalError> {
    match value {
        Some(Value::String(text)) => parse(text).ok(),
        Some(value) => value.downcast().map(|Ip(ip)| *ip),
        None => None,
    }
    .ok_or(EvalError::no_such_overload())
}

fn ip(_: &EvalBudget, args: &[Value]) -> Result {
    parse(text(args, 0)?).map(|ip| Value::opaque(Ip(ip)))
}

fn is_ip(_: &EvalBudget, args: &[Value]) -> Result {
    Ok(parse(text(args, 0)?).is_ok().into())
}

fn is_canonical(_: &EvalBudget, args: &[Value]) -> Result {
    let text = text(args, 0)?;
    Ok((parse(text)?.to_string() == text).into())
}

fn string(_: &EvalBudget, args: &[Value]) -> Result {
    opaque(args, 0).map(|Ip(ip)| ip.to_string().into())
}

fn family(_: &EvalBudget, args: &[Value]) -> Result {
    opaque(args, 0).map(|Ip(ip)| Value::Int(if ip.is_ipv4() { 4 } else { 6 }))
}

fn is_unspecified(_: &EvalBudget, args: &[Value]) -> Result {
    opaque(args, 0).map(|Ip(ip)| ip.is_unspecified().into())
}

fn is_loopback(_: &EvalBudget, args: &[Value]) -> Result {
    opaque(args, 0).map(|Ip(ip)| ip.is_loopback().into())
}

fn is_link_local_multicast(_: &EvalBudget, args: &[Value]) -> Result {
    opaque(args, 0).map(|Ip(ip)| net::is_link_local_multicast(*ip).into())
}

fn is_link_local_unicast(_: &EvalBudget, args: &[Value]) -> Result {
    opaque(args, 0).map(|Ip(ip)| net::is_link_local_unicast(*ip).into())
}

fn is_global_unicast(_: &EvalBudget, args: &[Value]) -> Result {
    opaque(args, 0).map(|Ip(ip)| net::is_global_unicast(*ip).into())
}

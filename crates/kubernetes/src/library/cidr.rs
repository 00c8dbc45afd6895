//! The CIDR library: networks in CIDR notation.

use super::args::{Result, failed, opaque, text};
use super::costs::{
    CIDR_IP, CONTAINS_CIDR, CONTAINS_CIDR_TEXT, CONTAINS_IP, CONTAINS_IP_TEXT, NOMINAL, PARSED,
};
use super::ip::{self as addresses, Ip};
use super::net::{Network, is_ipv4_mapped};
use crate::version::{CONTAINED_NETWORKS, V1_30};
use Sig::{Bool, Int, String};
use cel::cost::Costs;
use cel::decls::{OverloadRow, Sig, Source};
use cel::go_text::quote;
use cel::types::Type;
use cel::value::{EvalBudget, EvalError, Hashed, Opaque, Value};

use super::types::{CIDR, IP};

const SOURCE: Source =
    Source::new("k8s.io/apiserver pkg/cel/library/cidr.go, cidrLibraryDecls").since(V1_30);

const CONTAINS_TEXT: OverloadRow = OverloadRow::member(
    "containsCIDR",
    "cidr_contains_cidr_string",
    &[CIDR, String],
    Bool,
    CONTAINS_CIDR_TEXT,
    SOURCE,
)
.evaluated_by(contains_cidr);

const CONTAINS: OverloadRow = OverloadRow::member(
    "containsCIDR",
    "cidr_contains_cidr",
    &[CIDR, CIDR],
    Bool,
    CONTAINS_CIDR,
    SOURCE,
)
.evaluated_by(contains_cidr);

/// Functions on IPv4 and IPv6 networks.
pub static ROWS: &[OverloadRow] = &[
    OverloadRow::global("cidr", "string_to_cidr", &[String], CIDR, PARSED, SOURCE)
        .evaluated_by(cidr),
    OverloadRow::member(
        "containsIP",
        "cidr_contains_ip_string",
        &[CIDR, String],
        Bool,
        CONTAINS_IP_TEXT,
        SOURCE,
    )
    .evaluated_by(contains_ip),
    OverloadRow::member(
        "containsIP",
        "cidr_contains_ip_ip",
        &[CIDR, IP],
        Bool,
        CONTAINS_IP,
        SOURCE,
    )
    .evaluated_by(contains_ip),
    CONTAINS_TEXT
        .evaluated_by(contains_cidr_at_first_address)
        .before(CONTAINED_NETWORKS),
    CONTAINS_TEXT.since(CONTAINED_NETWORKS),
    CONTAINS
        .evaluated_by(contains_cidr_at_first_address)
        .before(CONTAINED_NETWORKS),
    CONTAINS.since(CONTAINED_NETWORKS),
    OverloadRow::member("ip", "cidr_ip", &[CIDR], IP, CIDR_IP, SOURCE).evaluated_by(ip),
    OverloadRow::member(
        "prefixLength",
        "cidr_prefix_length",
        &[CIDR],
        Int,
        NOMINAL,
        SOURCE,
    )
    .evaluated_by(prefix_length),
    OverloadRow::member("masked", "cidr_masked", &[CIDR], CIDR, NOMINAL, SOURCE)
        .evaluated_by(masked),
    OverloadRow::global("isCIDR", "is_cidr", &[String], Bool, PARSED, SOURCE).evaluated_by(is_cidr),
    OverloadRow::global(
        "string",
        "cidr_to_string",
        &[CIDR],
        String,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(string),
];

impl Opaque for Network {
    fn type_(&self) -> Type {
        CIDR.to_type()
    }

    fn equals(&self, other: &Value) -> std::result::Result<bool, EvalError> {
        match other.downcast::<Self>() {
            Some(other) => Ok(self == other),
            None => Err(EvalError::no_such_overload()),
        }
    }

    fn convert_to(&self, to: &Type) -> Result {
        match to {
            Type::String => Ok(self.to_string().into()),
            _ => Err(EvalError::conversion(&self.type_(), to)),
        }
    }

    /// Returns the length of the prefix in bytes, rounded up. Upstream derives costs from this size.
    ///
    /// Source: k8s.io/apiserver `pkg/cel/cidr.go`, `CIDR.Size`.
    fn size(&self) -> Option<usize> {
        Some(usize::from(self.n_bits.div_ceil(8)))
    }

    fn text(&self) -> Option<std::string::String> {
        Some(self.to_string())
    }

    fn hashed(&self) -> Hashed {
        Hashed::ByText(self.text().unwrap_or_default())
    }

    fn native_type(&self) -> &'static str {
        "netip.Prefix"
    }

    fn go_type(&self) -> &'static str {
        "cel.CIDR"
    }
}

const PREFIX: &str = "network address parse error during conversion from string";

/// Parses an IPv4 or IPv6 network. Rejects IPv4-mapped IPv6 addresses.
///
/// Source: k8s.io/apiserver `pkg/cel/library/cidr.go`, `parseCIDR`.
fn parse(text: &str) -> std::result::Result<Network, EvalError> {
    let network = Network::parse(text).map_err(|error| failed(format!("{PREFIX}: {error}")))?;
    if is_ipv4_mapped(network.ip) {
        let text = quote(text);
        return Err(failed(format!(
            "IPv4-mapped IPv6 address {text} is not allowed"
        )));
    }
    Ok(network)
}

/// Same as [`parse`], but errors have upstream's message, which contains the prefix twice.
///
/// Source: k8s.io/apiserver `pkg/cel/library/cidr.go`, `stringToCIDR`.
fn read(text: &str) -> std::result::Result<Network, EvalError> {
    parse(text).map_err(|error| failed(format!("{PREFIX}: {error}")))
}

fn cidr(_: &EvalBudget, args: &[Value]) -> Result {
    read(text(args, 0)?).map(Value::opaque)
}

fn is_cidr(_: &EvalBudget, args: &[Value]) -> Result {
    Ok(parse(text(args, 0)?).is_ok().into())
}

fn string(_: &EvalBudget, args: &[Value]) -> Result {
    opaque(args, 0).map(|network: &Network| network.to_string().into())
}

fn contains_ip(_: &EvalBudget, args: &[Value]) -> Result {
    let network: &Network = opaque(args, 0)?;
    Ok(network.contains(addresses::address_of(args.get(1))?).into())
}

fn contains_cidr(_: &EvalBudget, args: &[Value]) -> Result {
    let (network, other) = two_networks(args)?;
    Ok(network.contains_network(other).into())
}

/// Returns true if the first network contains the second network and both start at the same address. This is the result
/// of API servers before [`CONTAINED_NETWORKS`].
///
/// Source: k8s.io/apiserver 0.31 `pkg/cel/library/cidr.go`, `cidrContainsCIDR`.
fn contains_cidr_at_first_address(_: &EvalBudget, args: &[Value]) -> Result {
    let (network, other) = two_networks(args)?;
    let is_contained = network.contains_network(other) && network.masked().ip == other.ip;
    Ok(is_contained.into())
}

fn two_networks(args: &[Value]) -> std::result::Result<(Network, Network), EvalError> {
    let network: &Network = opaque(args, 0)?;
    let other = match args.get(1) {
        Some(Value::String(text)) => read(text)?,
        _ => *opaque(args, 1)?,
    };
    Ok((*network, other))
}

fn ip(_: &EvalBudget, args: &[Value]) -> Result {
    opaque(args, 0).map(|network: &Network| Value::opaque(Ip(network.ip)))
}

fn prefix_length(_: &EvalBudget, args: &[Value]) -> Result {
    opaque(args, 0).map(|network: &Network| Value::Int(network.n_bits.into()))
}

fn masked(_: &EvalBudget, args: &[Value]) -> Result {
    opaque(args, 0).map(|network: &Network| Value::opaque(network.masked()))
}

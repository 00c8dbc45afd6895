//! Parses and formats IP addresses and networks like Go.
//!
//! Source: Go `net/netip/netip.go` (`Addr`, `Prefix`).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use cel::go_text::quote_bytes;

/// A syntax error in an IP address. Its `Display` is Go's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ParseAddr({input}): {message}{place}")]
pub struct AddressError {
    input: String,
    message: &'static str,
    place: String,
}

/// Go's error message, and the part of the input that causes the error.
struct Problem<'a>(&'static str, Option<&'a [u8]>);

impl Problem<'_> {
    fn in_text(self, text: &[u8]) -> AddressError {
        let place = self.1.filter(|at| !at.is_empty());
        AddressError {
            input: quote_bytes(text),
            message: self.0,
            place: place.map_or_else(String::new, |at| format!(" (at {})", quote_bytes(at))),
        }
    }
}

/// A parsed IP address. A zone name, as in `fe80::1%eth0`, is not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The address.
    pub ip: IpAddr,
    /// True if the parsed address had a zone.
    pub has_zone: bool,
}

/// Parses an IP address. The input may be invalid UTF-8.
///
/// # Errors
///
/// Returns an error if the string is not an IP address.
///
/// Source: Go `net/netip/netip.go`, `ParseAddr`.
pub fn parse_address(text: &[u8]) -> Result<Address, AddressError> {
    let parsed = match text.iter().find(|byte| b".:%".contains(byte)) {
        Some(b'.') => parse_fields(text).map(|fields| Address {
            ip: Ipv4Addr::from(fields).into(),
            has_zone: false,
        }),
        Some(b':') => parse_ipv6(text),
        Some(_) => Err(Problem("missing IPv6 address", None)),
        None => Err(Problem("unable to parse IP", None)),
    };
    parsed.map_err(|wrong| wrong.in_text(text))
}

/// Source: Go `net/netip/netip.go`, `parseIPv4Fields`.
fn parse_fields(text: &[u8]) -> Result<[u8; 4], Problem<'_>> {
    let mut fields = [0; 4];
    let (mut n_done, mut value, mut n_digits) = (0, 0_u16, 0);
    for (n, byte) in text.iter().enumerate() {
        let at = || text.get(n..);
        match byte {
            b'0'..=b'9' => {
                if n_digits == 1 && value == 0 {
                    return Err(Problem("IPv4 field has octet with leading zero", None));
                }
                value = value * 10 + u16::from(byte - b'0');
                n_digits += 1;
                if value > 255 {
                    return Err(Problem("IPv4 field has value >255", None));
                }
            }
            b'.' => {
                if n_digits == 0 || n + 1 == text.len() {
                    return Err(Problem("IPv4 field must have at least one digit", at()));
                }
                if n_done == 3 {
                    return Err(Problem("IPv4 address too long", None));
                }
                set(&mut fields, n_done, value);
                (n_done, value, n_digits) = (n_done + 1, 0, 0);
            }
            _ => return Err(Problem("unexpected character", at())),
        }
    }
    if n_done < 3 {
        return Err(Problem("IPv4 address too short", None));
    }
    set(&mut fields, 3, value);
    Ok(fields)
}

fn set(fields: &mut [u8; 4], n: usize, value: u16) {
    if let Some(field) = fields.get_mut(n) {
        *field = u8::try_from(value).unwrap_or(u8::MAX);
    }
}

/// Source: Go `net/netip/netip.go`, `parseIPv6`.
fn parse_ipv6(text: &[u8]) -> Result<Address, Problem<'_>> {
    let mut parts = text.splitn(2, |byte| *byte == b'%');
    let mut rest = parts.next().unwrap_or_default();
    let zone = parts.next();
    if zone == Some(b"") {
        return Err(Problem("zone must be a non-empty string", None));
    }
    let mut bytes: Vec<u8> = Vec::with_capacity(16);
    let mut gap = None;
    if let Some(remaining) = rest.strip_prefix(b"::") {
        gap = Some(0);
        rest = remaining;
    }
    while bytes.len() < 16 && !(rest.is_empty() && gap == Some(0) && bytes.is_empty()) {
        let (group, remaining) = hex_group(rest)?;
        if remaining.first() == Some(&b'.') {
            if gap.is_none() && bytes.len() != 12 {
                return Err(Problem(
                    "embedded IPv4 address must replace the final 2 fields of the address",
                    Some(rest),
                ));
            }
            if bytes.len() > 12 {
                return Err(Problem(
                    "too many hex fields to fit an embedded IPv4 at the end of the address",
                    Some(rest),
                ));
            }
            bytes.extend(parse_fields(rest)?);
            rest = &[];
            break;
        }
        bytes.extend(group.to_be_bytes());
        rest = remaining;
        if rest.is_empty() {
            break;
        }
        let Some(remaining) = rest.strip_prefix(b":") else {
            return Err(Problem("unexpected character, want colon", Some(rest)));
        };
        if remaining.is_empty() {
            return Err(Problem(
                "colon must be followed by more characters",
                Some(rest),
            ));
        }
        rest = remaining;
        if let Some(remaining) = rest.strip_prefix(b":") {
            if gap.is_some() {
                return Err(Problem("multiple :: in address", Some(rest)));
            }
            gap = Some(bytes.len());
            rest = remaining;
            if rest.is_empty() {
                break;
            }
        }
    }
    if !rest.is_empty() {
        return Err(Problem("trailing garbage after address", Some(rest)));
    }
    let n_missing = 16 - bytes.len();
    match gap {
        None if n_missing > 0 => return Err(Problem("address string too short", None)),
        Some(_) if n_missing == 0 => {
            let message = "the :: must expand to at least one field of zeros";
            return Err(Problem(message, None));
        }
        Some(gap) => {
            bytes.splice(gap..gap, std::iter::repeat_n(0, n_missing));
        }
        None => {}
    }
    let mut octets = [0; 16];
    octets
        .iter_mut()
        .zip(bytes)
        .for_each(|(to, from)| *to = from);
    Ok(Address {
        ip: Ipv6Addr::from(octets).into(),
        has_zone: zone.is_some(),
    })
}

/// Parses the hexadecimal number at the start of the string. Returns the number and the rest of the string.
fn hex_group(text: &[u8]) -> Result<(u16, &[u8]), Problem<'_>> {
    let mut value = 0_u32;
    let mut n_digits = 0;
    for digit in text.iter().map_while(|byte| char::from(*byte).to_digit(16)) {
        if n_digits > 3 {
            return Err(Problem("each group must have 4 or less digits", Some(text)));
        }
        value = value << 4 | digit;
        n_digits += 1;
    }
    if n_digits == 0 {
        let message = "each colon-separated field must have at least one digit";
        return Err(Problem(message, Some(text)));
    }
    let remaining = text.get(n_digits..).unwrap_or_default();
    Ok((u16::try_from(value).unwrap_or(u16::MAX), remaining))
}

/// Returns true if the address is an IPv4-mapped IPv6 address.
#[must_use]
pub fn is_ipv4_mapped(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some())
}

/// Returns true if the address is a link-local unicast address.
///
/// Source: Go `net/netip/netip.go`, `Addr.IsLinkLocalUnicast`.
#[must_use]
pub fn is_link_local_unicast(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

/// Returns true if the address is a link-local multicast address.
///
/// Source: Go `net/netip/netip.go`, `Addr.IsLinkLocalMulticast`.
#[must_use]
pub fn is_link_local_multicast(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => matches!(ip.octets(), [224, 0, 0, _]),
        IpAddr::V6(ip) => ip
            .segments()
            .first()
            .is_some_and(|first| first & 0xff0f == 0xff02),
    }
}

/// Returns true if the address is a global unicast address by Go's definition, which includes private networks.
///
/// Source: Go `net/netip/netip.go`, `Addr.IsGlobalUnicast`.
#[must_use]
pub fn is_global_unicast(ip: IpAddr) -> bool {
    let ip = ip.to_canonical();
    !ip.is_unspecified()
        && ip != IpAddr::V4(Ipv4Addr::BROADCAST)
        && !ip.is_loopback()
        && !ip.is_multicast()
        && !is_link_local_unicast(ip)
}

/// A syntax error in a network. Its `Display` is Go's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("netip.ParsePrefix({input}): {message}")]
pub struct NetworkError {
    input: String,
    message: String,
}

/// A network: an IP address and a prefix length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The address. May have host bits, as in `10.0.0.1/8`.
    pub ip: IpAddr,
    /// The prefix length in bits.
    pub n_bits: u8,
}

impl Network {
    /// Parses a network in CIDR notation.
    ///
    /// # Errors
    ///
    /// Returns an error if the string is not a network in CIDR notation.
    ///
    /// Source: Go `net/netip/netip.go`, `ParsePrefix`.
    pub fn parse(text: &str) -> Result<Self, NetworkError> {
        Self::parse_parts(text).map_err(|message| NetworkError {
            input: quote_bytes(text.as_bytes()),
            message,
        })
    }

    fn parse_parts(text: &str) -> Result<Self, String> {
        let (address, bits) = text.rsplit_once('/').ok_or("no '/'")?;
        let address = parse_address(address.as_bytes()).map_err(|error| error.to_string())?;
        if address.has_zone {
            return Err("IPv6 zones cannot be present in a prefix".to_owned());
        }
        let bad = || format!("bad bits after slash: {}", quote_bytes(bits.as_bytes()));
        if bits.len() > 1 && !bits.starts_with(|c| ('1'..='9').contains(&c)) {
            return Err(bad());
        }
        let n_bits: i64 = bits.parse().map_err(|_| bad())?;
        let n_bits = u8::try_from(n_bits).unwrap_or(u8::MAX);
        if n_bits > width(address.ip) {
            return Err("prefix length out of range".to_owned());
        }
        Ok(Self {
            ip: address.ip,
            n_bits,
        })
    }

    /// Clears the host bits.
    #[must_use]
    pub fn masked(self) -> Self {
        let ip = match self.ip {
            IpAddr::V4(ip) => {
                Ipv4Addr::from_bits(kept_bits_of_32(ip.to_bits(), self.n_bits)).into()
            }
            IpAddr::V6(ip) => Ipv6Addr::from_bits(kept_bits(ip.to_bits(), self.n_bits)).into(),
        };
        Self { ip, ..self }
    }

    /// Returns true if `ip` is in the network.
    #[must_use]
    pub fn contains(self, ip: IpAddr) -> bool {
        let of_ip = Self { ip, ..self };
        self.ip.is_ipv4() == ip.is_ipv4() && self.masked() == of_ip.masked()
    }

    /// Returns true if `other` is a subnet of this network or equal to it.
    ///
    /// Source: k8s.io/apiserver `pkg/cel/library/cidr.go`, `cidrContainsCIDR`.
    #[must_use]
    pub fn contains_network(self, other: Self) -> bool {
        self.n_bits <= other.n_bits && self.contains(other.ip)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ip, self.n_bits)
    }
}

/// Returns the number of bits in an address of this family.
#[must_use]
pub fn width(ip: IpAddr) -> u8 {
    match ip {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

fn kept_bits(bits: u128, n: u8) -> u128 {
    let mask = u128::MAX.checked_shl(u32::from(128_u8.saturating_sub(n)));
    bits & mask.unwrap_or(0)
}

fn kept_bits_of_32(bits: u32, n: u8) -> u32 {
    let mask = u32::MAX.checked_shl(u32::from(32_u8.saturating_sub(n)));
    bits & mask.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let result = match parse_address(text.as_bytes()) {
            Ok(address) => address.ip.to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(result, expected, "{text}");
    }

    #[test]
    fn valid_addresses_are_parsed() {
        check("10.0.0.1", "10.0.0.1");
        check("::", "::");
        check("2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1");
        check("1:0:3:4:5:6:7:8", "1:0:3:4:5:6:7:8");
        check("::ffff:1.2.3.4", "::ffff:1.2.3.4");
        check("1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304");
        check("fe80::1%eth0", "fe80::1");
        check("::1.2.3.4", "::102:304");
    }

    #[test]
    fn invalid_addresses_have_go_errors() {
        check("", r#"ParseAddr(""): unable to parse IP"#);
        check("%eth0", r#"ParseAddr("%eth0"): missing IPv6 address"#);
        check("1.2.3", r#"ParseAddr("1.2.3"): IPv4 address too short"#);
        check(
            "1.2.3.4.5",
            r#"ParseAddr("1.2.3.4.5"): IPv4 address too long"#,
        );
        check(
            "1.02.3.4",
            r#"ParseAddr("1.02.3.4"): IPv4 field has octet with leading zero"#,
        );
        check(
            "1.256.3.4",
            r#"ParseAddr("1.256.3.4"): IPv4 field has value >255"#,
        );
        check(
            "1..3.4",
            r#"ParseAddr("1..3.4"): IPv4 field must have at least one digit (at ".3.4")"#,
        );
        check(
            "1.2.3.",
            r#"ParseAddr("1.2.3."): IPv4 field must have at least one digit (at ".")"#,
        );
        check(
            "1.é.3",
            r#"ParseAddr("1.é.3"): unexpected character (at "é.3")"#,
        );
        check(
            "::1%",
            r#"ParseAddr("::1%"): zone must be a non-empty string"#,
        );
        check(
            "12345::",
            r#"ParseAddr("12345::"): each group must have 4 or less digits (at "12345::")"#,
        );
        check(
            "1:::2",
            r#"ParseAddr("1:::2"): each colon-separated field must have at least one digit (at ":2")"#,
        );
        check(
            "1::2::3",
            r#"ParseAddr("1::2::3"): multiple :: in address (at ":3")"#,
        );
        check(
            "1:2:",
            r#"ParseAddr("1:2:"): colon must be followed by more characters (at ":")"#,
        );
        check(
            "1:g::",
            r#"ParseAddr("1:g::"): each colon-separated field must have at least one digit (at "g::")"#,
        );
        check(
            "1:2g::",
            r#"ParseAddr("1:2g::"): unexpected character, want colon (at "g::")"#,
        );
        check("1:2:3", r#"ParseAddr("1:2:3"): address string too short"#);
        check(
            "1:2:3:4:5:6:7:8:9",
            r#"ParseAddr("1:2:3:4:5:6:7:8:9"): trailing garbage after address (at "9")"#,
        );
        check(
            "1:2:3:4::5:6:7:8",
            r#"ParseAddr("1:2:3:4::5:6:7:8"): the :: must expand to at least one field of zeros"#,
        );
        check(
            "1:1.2.3.4",
            r#"ParseAddr("1:1.2.3.4"): embedded IPv4 address must replace the final 2 fields of the address (at "1.2.3.4")"#,
        );
        check(
            "::1:2:3:4:5:6:7:1.2.3.4",
            r#"ParseAddr("::1:2:3:4:5:6:7:1.2.3.4"): too many hex fields to fit an embedded IPv4 at the end of the address (at "1.2.3.4")"#,
        );
    }

    /// The standard library agrees with Go on inputs without a zone.
    #[test]
    fn parsed_addresses_agree_with_standard_library() {
        let pieces = [
            "0", "1", "10", "255", "256", "01", "f", "Fe80", "12345", ".", ":", ":", "::",
            "1.2.3.4",
        ];
        let mut state = 1_u64;
        let mut next = |n: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % n
        };
        let mut n_addresses = 0;
        for _ in 0..50_000 {
            let n_pieces = next(16) + 1;
            let text: String = (0..n_pieces).map(|_| pieces[next(pieces.len())]).collect();
            let ours = parse_address(text.as_bytes())
                .ok()
                .map(|address| address.ip);
            assert_eq!(ours, text.parse().ok(), "{text}");
            n_addresses += usize::from(ours.is_some());
        }
        assert!(n_addresses > 300, "{n_addresses}");
    }

    #[track_caller]
    fn check_network(text: &str, expected: &str) {
        let result = match Network::parse(text) {
            Ok(network) => network.masked().to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(result, expected, "{text}");
    }

    #[test]
    fn parsed_networks_and_their_errors_agree_with_go() {
        check_network("192.168.7.9/16", "192.168.0.0/16");
        check_network("192.168.7.9/0", "0.0.0.0/0");
        check_network("192.168.7.9/32", "192.168.7.9/32");
        check_network("2001:db8::ffff/33", "2001:db8::/33");
        check_network("::1/0", "::/0");
        check_network("x", r#"netip.ParsePrefix("x"): no '/'"#);
        check_network(
            "1.2.3.4/33",
            r#"netip.ParsePrefix("1.2.3.4/33"): prefix length out of range"#,
        );
        check_network(
            "1.2.3.4/08",
            r#"netip.ParsePrefix("1.2.3.4/08"): bad bits after slash: "08""#,
        );
        check_network(
            "1.2.3.4/",
            r#"netip.ParsePrefix("1.2.3.4/"): bad bits after slash: """#,
        );
        check_network(
            "1.2.3.4/-1",
            r#"netip.ParsePrefix("1.2.3.4/-1"): bad bits after slash: "-1""#,
        );
        check_network(
            "::1%a/8",
            r#"netip.ParsePrefix("::1%a/8"): IPv6 zones cannot be present in a prefix"#,
        );
        check_network(
            "1.2.3/8",
            r#"netip.ParsePrefix("1.2.3/8"): ParseAddr("1.2.3"): IPv4 address too short"#,
        );
    }

    #[test]
    fn network_contains_addresses_and_subnets() {
        let network = |text| Network::parse(text).unwrap();
        let ip = |text: &str| parse_address(text.as_bytes()).unwrap().ip;
        assert!(network("10.1.0.0/8").contains(ip("10.200.0.1")));
        assert!(!network("10.0.0.0/8").contains(ip("11.0.0.1")));
        assert!(!network("0.0.0.0/0").contains(ip("::")));
        assert!(network("10.0.0.0/8").contains_network(network("10.1.0.0/16")));
        assert!(!network("10.1.0.0/16").contains_network(network("10.0.0.0/8")));
        assert!(!network("::/0").contains_network(network("10.0.0.0/8")));
    }

    #[test]
    fn address_kinds_agree_with_go() {
        let all = [
            "127.0.0.1",
            "169.254.0.1",
            "224.0.0.251",
            "224.0.1.1",
            "fe80::1",
            "ff02::1",
            "fd00::1",
            "::1",
        ];
        let filtered = |is_kind: fn(IpAddr) -> bool| -> Vec<&str> {
            let kind = |text: &&str| is_kind(parse_address(text.as_bytes()).unwrap().ip);
            all.into_iter().filter(kind).collect()
        };
        assert_eq!(filtered(is_link_local_unicast), ["169.254.0.1", "fe80::1"]);
        assert_eq!(
            filtered(is_link_local_multicast),
            ["224.0.0.251", "ff02::1"]
        );
        assert_eq!(filtered(is_global_unicast), ["fd00::1"]);
    }
}

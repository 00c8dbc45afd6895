//! Base64, as implemented by Go.

/// Decodes base64 with padding. Line breaks are ignored.
///
/// # Errors
///
/// Returns the index of the first invalid byte, as reported by Go.
///
/// Source: Go `encoding/base64/base64.go`, `Encoding.decodeQuantum`.
pub fn decode(text: &str) -> Result<Vec<u8>, usize> {
    decode_with(text, [b'+', b'/'])
}

/// Decodes base64 with the URL-safe alphabet, like [`decode`].
///
/// # Errors
///
/// See [`decode`].
///
/// Source: Go `encoding/base64/base64.go`, `URLEncoding`.
pub fn decode_url(text: &str) -> Result<Vec<u8>, usize> {
    decode_with(text, [b'-', b'_'])
}

/// Decodes base64 with `last` as the last two characters of the alphabet.
fn decode_with(text: &str, last: [u8; 2]) -> Result<Vec<u8>, usize> {
    let mut symbols = text
        .bytes()
        .enumerate()
        .filter(|(_, byte)| !matches!(byte, b'\r' | b'\n'))
        .peekable();
    let mut decoded = Vec::with_capacity(text.len() / 4 * 3);
    while symbols.peek().is_some() {
        let mut bits = 0_u32;
        let mut n_digits = 0_usize;
        while n_digits < 4 {
            let Some((at, symbol)) = symbols.next() else {
                return Err(text.len().saturating_sub(n_digits));
            };
            if let Some(digit) = base64_digit(symbol, last) {
                bits = bits << 6 | digit;
                n_digits += 1;
                continue;
            }
            if symbol != b'=' || n_digits < 2 {
                return Err(at);
            }
            if n_digits == 2 {
                match symbols.next() {
                    Some((_, b'=')) => {}
                    Some((at, _)) => return Err(at.saturating_sub(1)),
                    None => return Err(text.len()),
                }
            }
            if let Some((at, _)) = symbols.next() {
                return Err(at);
            }
            break;
        }
        if n_digits == 0 {
            break;
        }
        bits <<= 6 * (4 - n_digits);
        decoded.extend(bits.to_be_bytes().iter().skip(1).take(n_digits - 1));
    }
    Ok(decoded)
}

fn base64_digit(symbol: u8, last: [u8; 2]) -> Option<u32> {
    let [digit_62, digit_63] = last;
    Some(u32::from(match symbol {
        b'A'..=b'Z' => symbol - b'A',
        b'a'..=b'z' => symbol - b'a' + 26,
        b'0'..=b'9' => symbol - b'0' + 52,
        _ if symbol == digit_62 => 62,
        _ if symbol == digit_63 => 63,
        _ => return None,
    }))
}

/// Encodes base64 with padding.
///
/// Source: Go `encoding/base64`, `StdEncoding`.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    const SYMBOLS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3).saturating_mul(4));
    for chunk in bytes.chunks(3) {
        let byte = |n: usize| u32::from(chunk.get(n).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for n in 0..4_usize {
            if n > chunk.len() {
                text.push('=');
                continue;
            }
            let index = bits >> (18_usize.saturating_sub(n.saturating_mul(6))) & 0x3f;
            let symbol = usize::try_from(index).ok().and_then(|i| SYMBOLS.get(i));
            text.push(char::from(symbol.copied().unwrap_or(b'A')));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An encoded string, and Go's results with the standard and the URL-safe alphabet.
    type Row = (
        &'static str,
        Result<&'static [u8], usize>,
        Result<&'static [u8], usize>,
    );

    const ROWS: &[Row] = &[
        ("", Ok(&[]), Ok(&[])),
        ("YQ==", Ok(&[97]), Ok(&[97])),
        ("YWI=", Ok(&[97, 98]), Ok(&[97, 98])),
        ("YWJj", Ok(&[97, 98, 99]), Ok(&[97, 98, 99])),
        ("YQ=", Err(3), Err(3)),
        ("YQ=x", Err(2), Err(2)),
        ("YQ=\nx", Err(3), Err(3)),
        ("YQ", Err(0), Err(0)),
        ("Y", Err(0), Err(0)),
        ("YWI", Err(0), Err(0)),
        ("YWJ", Err(0), Err(0)),
        ("YQ==x", Err(4), Err(4)),
        ("YQ===", Err(4), Err(4)),
        ("=", Err(0), Err(0)),
        ("Y===", Err(1), Err(1)),
        ("YW=", Err(3), Err(3)),
        ("YWI=x", Err(4), Err(4)),
        ("YWI==", Err(4), Err(4)),
        ("YW\nJj\r\n", Ok(&[97, 98, 99]), Ok(&[97, 98, 99])),
        ("YQ\n==\n", Ok(&[97]), Ok(&[97])),
        ("YQ=\n=", Ok(&[97]), Ok(&[97])),
        ("YQ=\n", Err(4), Err(4)),
        ("!", Err(0), Err(0)),
        ("Y!==", Err(1), Err(1)),
        ("YW!=", Err(2), Err(2)),
        ("YWJ!", Err(3), Err(3)),
        ("YWJj!", Err(4), Err(4)),
        ("+/+/", Ok(&[251, 255, 191]), Err(0)),
        ("-_-_", Err(0), Ok(&[251, 255, 191])),
        ("YWJjY", Err(4), Err(4)),
        ("YWJjYQ", Err(4), Err(4)),
        ("YWJj\nY", Err(5), Err(5)),
        ("\n\n", Ok(&[]), Ok(&[])),
        ("YR==", Ok(&[97]), Ok(&[97])),
        ("\u{e9}===", Err(0), Err(0)),
        ("////", Ok(&[255, 255, 255]), Err(0)),
        ("____", Err(0), Ok(&[255, 255, 255])),
    ];

    #[test]
    fn decoding_agrees_with_go() {
        for (text, standard, url) in ROWS {
            assert_eq!(
                decode(text).as_deref(),
                standard.as_ref().map(|bytes| *bytes),
                "{text}"
            );
            assert_eq!(
                decode_url(text).as_deref(),
                url.as_ref().map(|bytes| *bytes),
                "{text}"
            );
        }
    }

    #[test]
    fn decoding_inverts_encoding() {
        let bytes: Vec<u8> = (0..=255).collect();
        for start in 0..=255 {
            let encoded = encode(&bytes[start..]);
            assert_eq!(decode(&encoded).as_deref(), Ok(&bytes[start..]));
        }
    }
}

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
                    Some((at, _)) => return Err(at),
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

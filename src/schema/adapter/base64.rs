//! Base64, with Go's errors.

/// Base64 with padding; line breaks count for nothing.
///
/// # Errors
///
/// The place of the first byte that is wrong, as Go tells it.
///
/// Source: Go `encoding/base64/base64.go`, `Encoding.decodeQuantum`.
pub(super) fn decode_base64(text: &str) -> Result<Vec<u8>, usize> {
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
            if let Some(digit) = base64_digit(symbol) {
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

fn base64_digit(symbol: u8) -> Option<u32> {
    Some(u32::from(match symbol {
        b'A'..=b'Z' => symbol - b'A',
        b'a'..=b'z' => symbol - b'a' + 26,
        b'0'..=b'9' => symbol - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

//! Reads and writes the frames of JSON-RPC: a header with the length, and a JSON message.
//!
//! A malformed frame affects only itself: the reader continues at the next header. A broken client therefore cannot end
//! the server.
//!
//! Source: Language Server Protocol 3.17, "Base Protocol".

use std::io::{self, BufRead, Read as _, Write};

use serde_json::Value;

/// Maximum size of a message, in bytes. The content of larger messages is skipped.
const MAX_MESSAGE_BYTES: u64 = 128 * 1024 * 1024;

/// Maximum length of a header line, in bytes.
const MAX_LINE_BYTES: u64 = 4096;

/// The name of the only header that the server uses.
const CONTENT_LENGTH: &str = "content-length";

#[derive(Debug, PartialEq)]
pub(super) enum Frame {
    Message(Value),
    /// A frame without valid content, with the reason.
    Malformed(String),
}

/// Reads the next frame. Returns `None` at the end of the input.
///
/// # Errors
/// Returns an error if the input cannot be read.
pub(super) fn read(input: &mut dyn BufRead) -> io::Result<Option<Frame>> {
    let mut length = None;
    let mut has_header = false;
    loop {
        let mut line = Vec::new();
        let mut limited = (&mut *input).take(MAX_LINE_BYTES);
        if limited.read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end_matches(['\r', '\n']);
        if line.is_empty() {
            match (length, has_header) {
                (Some(length), _) => return content(input, length),
                (None, true) => {
                    return Ok(Some(Frame::Malformed("no Content-Length".to_owned())));
                }
                // Line breaks between frames are skipped.
                (None, false) => continue,
            }
        }
        has_header = true;
        // Other lines are ignored: they are unknown headers, or the rest of a malformed frame.
        if let Some((name, value)) = line.split_once(':')
            && name.trim().eq_ignore_ascii_case(CONTENT_LENGTH)
        {
            length = value.trim().parse::<u64>().ok();
        }
    }
}

fn content(input: &mut dyn BufRead, length: u64) -> io::Result<Option<Frame>> {
    let mut limited = input.take(length);
    if length > MAX_MESSAGE_BYTES {
        io::copy(&mut limited, &mut io::sink())?;
        let reason = format!("the message is larger than {MAX_MESSAGE_BYTES} bytes");
        return Ok(Some(Frame::Malformed(reason)));
    }
    let mut bytes = Vec::new();
    limited.read_to_end(&mut bytes)?;
    Ok(Some(match serde_json::from_slice(&bytes) {
        Ok(message) => Frame::Message(message),
        Err(error) => Frame::Malformed(format!("the message is not valid JSON: {error}")),
    }))
}

/// Writes a message.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub(super) fn write(output: &mut dyn Write, message: &Value) -> io::Result<()> {
    let text = message.to_string();
    write!(output, "Content-Length: {}\r\n\r\n{text}", text.len())?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn frames(mut input: &[u8]) -> Vec<Frame> {
        std::iter::from_fn(|| read(&mut input).unwrap()).collect()
    }

    #[test]
    fn written_messages_round_trip() {
        let mut bytes = Vec::new();
        let messages = [json!({"a": "é"}), json!([1])];
        for message in &messages {
            write(&mut bytes, message).unwrap();
        }
        assert_eq!(frames(&bytes), messages.map(Frame::Message));
    }

    #[test]
    fn malformed_frames_do_not_affect_the_next_one() {
        let good = "Content-Length: 2\r\n\r\n{}";
        for bad in [
            "Content-Length: 3\r\n\r\n{{{",
            "Content-Length: -1\r\n\r\n",
            "Content-Length: 99999999999999999999999\r\n\r\n",
            "Content-Type: x\r\n\r\n",
            "Content-Length: 2\r\n\r\n\u{ff}",
            "garbage\r\n\r\n",
        ] {
            let results = frames(format!("{bad}{good}").as_bytes());
            let [Frame::Malformed(_), Frame::Message(message)] = &results[..] else {
                panic!("{bad}: {results:?}")
            };
            assert_eq!(*message, json!({}));
        }
        let results = frames(format!("\r\n\n{good}").as_bytes());
        assert_eq!(results, [Frame::Message(json!({}))]);
    }

    #[test]
    fn end_within_frame_is_end_of_input() {
        assert!(frames(b"Content-Len").is_empty());
        assert!(matches!(
            frames(b"Content-Length: 9\r\n\r\n{}")[..],
            [Frame::Message(_)]
        ));
        let length = u64::MAX;
        let huge = format!("Content-Length: {length}\r\n\r\n{{}}");
        assert!(matches!(frames(huge.as_bytes())[..], [Frame::Malformed(_)]));
    }
}

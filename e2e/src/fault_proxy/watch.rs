//! Copies watch events line by line, and injects faults.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use http_body_util::BodyExt as _;
use hyper::body::{Bytes, Frame};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::mpsc::Sender;

use super::answer::LONGEST_DELAY;
use super::unreadable::{CorruptedObject, corrupt};
use super::{Fault, Inner};

/// The maximum delay of a reordered event.
const HELD_AT_MOST: Duration = Duration::from_secs(1);

/// A channel for lines of the response to the client. An error cuts the connection.
type Lines = Sender<Result<Frame<Bytes>>>;

/// Copies watch events until the client or the API server ends the watch.
pub(super) async fn copy(inner: Arc<Inner>, path: String, mut body: Body, lines: Lines) {
    let mut buffer = Vec::new();
    loop {
        let frame = tokio::select! {
            frame = body.frame() => frame,
            () = lines.closed() => return,
        };
        let data = match frame {
            None => return,
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            Some(Err(error)) => {
                // A failure of the API server is forwarded unchanged.
                drop(lines.send(Err(error.into())).await);
                return;
            }
        };
        buffer.extend_from_slice(&data);
        while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = buffer.drain(..=end).collect();
            tokio::select! {
                goes_on = forward(&inner, &path, line, &lines) => if !goes_on { return },
                () = lines.closed() => return,
            }
        }
    }
}

/// Forwards a line or injects a fault. Returns true if the watch continues.
async fn forward(inner: &Inner, path: &str, line: Vec<u8>, lines: &Lines) -> bool {
    let event: Option<Value> = serde_json::from_slice(&line).ok();
    let kind = |event: &Value| event.get("type").and_then(Value::as_str).map(str::to_owned);
    let kind = event.as_ref().and_then(kind).unwrap_or_default();
    let decision = inner.decide(
        &format!("Event {path}"),
        |schedule| schedule.events_permille,
        |fault| fault.applies_to_event(kind == "BOOKMARK"),
    );
    let Some((fault, mut random)) = decision else {
        return pass(lines, line).await;
    };
    match fault {
        Fault::Delay => tokio::time::sleep(random.duration(LONGEST_DELAY)).await,
        Fault::Reorder => {
            let mut answered = inner.answered_writes.subscribe();
            // If no write is answered, the event is sent after the timeout.
            drop(tokio::time::timeout(HELD_AT_MOST, answered.changed()).await);
        }
        Fault::Cut => return cut(lines).await,
        Fault::BlackHole => {
            inner.black_hole().await;
            return cut(lines).await;
        }
        Fault::HalfLine => {
            let half = line.get(..line.len() / 2).unwrap_or_default().to_vec();
            let is_passed = pass(lines, half).await;
            // Without this pause, the half line would not be sent before the cut.
            tokio::time::sleep(super::HALF_LINE_DELAY).await;
            return is_passed && cut(lines).await;
        }
        Fault::Unreadable => {
            let Some(mut event) = event else {
                return pass(lines, line).await;
            };
            if let Some(object) = event.get_mut("object") {
                let corrupted = CorruptedObject::new(path, object);
                corrupt(object, kind == "DELETED", &mut random);
                // A deleted object is not recorded, because it cannot become readable again.
                inner
                    .state()
                    .corrupted
                    .extend(corrupted.filter(|_| kind != "DELETED"));
            }
            return pass(lines, format!("{event}\n").into_bytes()).await;
        }
        _ => {
            // After an error event, the API server ends the watch.
            let error = json!({"type": "ERROR", "object": fault.body()});
            pass(lines, format!("{error}\n").into_bytes()).await;
            return false;
        }
    }
    pass(lines, line).await
}

async fn pass(lines: &Lines, line: Vec<u8>) -> bool {
    lines.send(Ok(Frame::data(line.into()))).await.is_ok()
}

/// Ends the response as if the connection were cut.
async fn cut(lines: &Lines) -> bool {
    drop(
        lines
            .send(Err(anyhow::anyhow!("injected fault: cut")))
            .await,
    );
    false
}

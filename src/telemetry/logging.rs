//! Writes logs to standard error: human-readable text, or JSON for log collectors.

use std::panic;

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Human-readable lines
    #[default]
    Text,
    /// One JSON object per line
    Json,
}

/// The default log filter.
///
/// It excludes the logs of kube, which report each failed attempt. The controller logs a failure once, with a hint.
pub const DEFAULT_FILTER: &str = "info,kube_client=off,tower=off";

/// Starts logging to standard error.
///
/// `filter` is a list of directives, such as `info,kube_client=debug`. After this call, panics are logged as errors
/// with their source location.
///
/// # Errors
/// Returns an error message if a directive cannot be parsed, or if logging is already started.
pub fn init(format: LogFormat, filter: &str) -> Result<(), String> {
    let filter = EnvFilter::try_new(filter)
        .map_err(|error| format!("invalid log filter `{filter}`: {error}"))?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_span_events(FmtSpan::NONE)
        .with_writer(std::io::stderr);
    let started = match format {
        LogFormat::Text => builder.with_ansi(is_terminal()).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| format!("cannot start logging: {error}"))?;
    panic::set_hook(Box::new(log_panic));
    Ok(())
}

fn is_terminal() -> bool {
    use std::io::IsTerminal;
    std::io::stderr().is_terminal()
}

fn log_panic(info: &panic::PanicHookInfo<'_>) {
    let place = info
        .location()
        .map_or_else(|| "unknown".to_owned(), ToString::to_string);
    let message = panic_message(info.payload());
    tracing::error!(place, message, "panic: this is a bug; please report it");
}

/// Returns the message of a panic, or `no message` if the payload is not a string.
#[must_use]
pub fn panic_message(payload: &(dyn std::any::Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_log_filter_is_valid() {
        assert!(EnvFilter::try_new(DEFAULT_FILTER).is_ok());
    }

    #[test]
    fn invalid_log_filter_is_rejected() {
        let error = init(LogFormat::Text, "info,=,").unwrap_err();
        assert!(
            error.starts_with("invalid log filter `info,=,`: "),
            "{error}"
        );
    }

    #[test]
    fn panic_message_is_text_or_placeholder() {
        let payload = std::panic::catch_unwind(|| std::panic::panic_any("a")).unwrap_err();
        assert_eq!(panic_message(&*payload), "a");
        let payload = std::panic::catch_unwind(|| panic!("{}", 1)).unwrap_err();
        assert_eq!(panic_message(&*payload), "1");
        let payload = std::panic::catch_unwind(|| std::panic::panic_any(7)).unwrap_err();
        assert_eq!(panic_message(&*payload), "no message");
    }
}

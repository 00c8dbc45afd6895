//! Logs: text for people, JSON for collectors, on standard error.

use std::panic;

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// What is logged unless a filter is given.
///
/// The client and its watcher report each failed attempt; the controller says the same once, with what
/// to do about it.
pub const DEFAULT_FILTER: &str = "info,kube_client=off,tower=off";

/// Starts logging.
///
/// `filter` is a list of directives (`info,kube_client=debug`). Panics are logged as errors from then
/// on, with the place where they happened.
///
/// # Errors
/// A directive that cannot be read, as a sentence; or logging was started before.
pub fn init(format: LogFormat, filter: &str) -> Result<(), String> {
    let filter = EnvFilter::try_new(filter)
        .map_err(|error| format!("cannot read the log filter `{filter}`: {error}"))?;
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
    tracing::error!(place, message, "panic, please report it");
}

/// The text of a panic.
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
    fn the_default_filter_is_valid() {
        assert!(EnvFilter::try_new(DEFAULT_FILTER).is_ok());
    }

    #[test]
    fn a_bad_filter_is_a_sentence() {
        let error = init(LogFormat::Text, "info,=,").unwrap_err();
        assert!(
            error.starts_with("cannot read the log filter `info,=,`: "),
            "{error}"
        );
    }

    #[test]
    fn panics_have_messages() {
        let payload = std::panic::catch_unwind(|| std::panic::panic_any("a")).unwrap_err();
        assert_eq!(panic_message(&*payload), "a");
        let payload = std::panic::catch_unwind(|| panic!("{}", 1)).unwrap_err();
        assert_eq!(panic_message(&*payload), "1");
        let payload = std::panic::catch_unwind(|| std::panic::panic_any(7)).unwrap_err();
        assert_eq!(panic_message(&*payload), "no message");
    }
}

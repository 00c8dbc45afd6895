//! The results of validating a value against a schema.
//!
//! Source: kube-openapi `pkg/validation/validate/result.go` (`Result`), `pkg/validation/errors/schema.go`;
//! apiextensions-apiserver `pkg/apiserver/validation/validation.go` (`kubeOpenAPIResultToFieldErrors`).

use std::collections::HashSet;
use std::rc::Rc;

pub(super) use crate::validation_rules::shown;
use crate::validation_rules::{FieldError, FieldErrorKind};
use cel::value::go_quote;

/// The errors of a value, and the number of checks. If all alternatives of `anyOf` or `oneOf` fail, the errors of the
/// alternative with the most checks are reported.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) faults: Vec<Fault>,
    pub(super) n_checks: u64,
    /// The deduplication keys of `faults`. `None` until an error is added after the first [`FEW`] errors.
    seen: Option<HashSet<Rc<str>>>,
}

#[derive(Clone, Debug)]
pub(super) struct Fault {
    /// The deduplication key: upstream's message.
    text: Rc<str>,
    pub(super) error: FieldError,
}

/// With at least this many errors, a hash set replaces the linear search for duplicates.
const FEW: usize = 16;

impl Outcome {
    pub(super) fn from_fault(fault: Fault) -> Self {
        let mut outcome = Self::default();
        outcome.add(fault);
        outcome
    }

    /// Adds an error, unless an error with the same key exists.
    pub(super) fn add(&mut self, fault: Fault) {
        if self.faults.len() < FEW {
            if self.faults.iter().any(|known| known.text == fault.text) {
                return;
            }
        } else {
            let faults = &self.faults;
            let texts = || faults.iter().map(|known| Rc::clone(&known.text)).collect();
            let seen = self.seen.get_or_insert_with(texts);
            if !seen.insert(Rc::clone(&fault.text)) {
                return;
            }
        }
        self.faults.push(fault);
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.n_checks = self.n_checks.saturating_add(other.n_checks);
        if self.faults.is_empty() {
            self.faults = other.faults;
            self.seen = other.seen;
        } else {
            other.faults.into_iter().for_each(|fault| self.add(fault));
        }
    }

    pub(super) fn count(&mut self) {
        self.n_checks = self.n_checks.saturating_add(1);
    }

    pub(super) fn is_valid(&self) -> bool {
        self.faults.is_empty()
    }
}

impl Fault {
    /// Creates an error for the value at `path`. `text` is upstream's message and the deduplication key.
    pub(super) fn new(
        path: &str,
        kind: FieldErrorKind,
        value: Option<String>,
        text: String,
    ) -> Self {
        Self {
            error: FieldError {
                kind,
                field: field_of(path),
                value,
                detail: text.clone(),
            },
            text: text.into(),
        }
    }

    /// Creates an error with the message `detail` and the deduplication key `text`.
    pub(super) fn with_key(
        path: &str,
        kind: FieldErrorKind,
        value: Option<String>,
        text: String,
        detail: String,
    ) -> Self {
        let mut fault = Self::new(path, kind, value, text);
        fault.error.detail = detail;
        fault
    }

    /// Creates an error that the API server reports without a path.
    pub(super) fn without_path(text: String) -> Self {
        Self::new("", FieldErrorKind::Invalid, Some(go_quote("")), text)
    }

    /// Returns the total length of the error's strings, in bytes.
    pub(super) fn len(&self) -> usize {
        let value = self.error.value.as_ref().map_or(0, String::len);
        let texts = self.error.detail.len().saturating_add(self.text.len());
        texts
            .saturating_add(self.error.field.len())
            .saturating_add(value)
    }
}

/// Returns the field path of an error. The root is `<nil>`.
fn field_of(path: &str) -> String {
    match path {
        "" | "." => "<nil>".to_owned(),
        path => path.strip_prefix('.').unwrap_or(path).to_owned(),
    }
}

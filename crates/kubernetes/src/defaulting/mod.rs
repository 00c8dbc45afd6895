//! Changes that the API server makes to objects of built-in kinds before it evaluates policies. It prunes fields that
//! the Go type lacks, sets defaults, and resets fields that users cannot set.
//!
//! The rules are data (ADR 21). `table.bin` contains the rules of each kind. They were derived by running upstream's
//! own functions. [`kubernetes`] returns the version of these functions. If a kind or field has no rules, the result is
//! an [`Error`].
//!
//! This module does not use the current time or random identifiers. It uses [`NOW`] and [`UID`] instead.

mod convert;
mod custom;
mod daemon_set;
mod decode;
mod image;
mod job;
mod kind_rules;
mod plugins;
mod prepare;
mod quality;
mod rules;
mod secret;
mod subresource;
pub(crate) mod table;
mod typed;
mod versions;

use serde_json::Value;

pub use convert::convert;
pub use custom::{complete, complete_defaults};
pub(crate) use custom::{has_unknown, prune_unknown};
pub use decode::{Decoding, decode};
pub use kind_rules::{has_generation, is_null_unset};
pub use prepare::{Custom, Operation, PreparedObjects, Request, SUFFIX, Stage, prepare};
pub use subresource::{
    SubresourceRequest, complete_subresource, is_published_elsewhere, subresource,
};
pub use versions::{adapt_to_version, is_adapted};

use crate::schema::Gvk;
use crate::version::Behavior;
use table::{KindTable, Table};
use typed::Encoder;

/// The value of `creationTimestamp` if an object has none.
pub const NOW: &str = "2026-01-01T00:00:00Z";

/// The value of `uid` if an object has none.
pub const UID: &str = "00000000-0000-4000-8000-000000000000";

/// An error that prevents computing the object that policies see.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The table has no rules for this kind.
    #[error("the defaults of {0} are unknown")]
    Kind(String),
    /// The table has no rules for this field.
    #[error("cannot determine how the API server sets `{0}`")]
    Field(String),
    /// This crate does not implement the conversion between these versions.
    #[error("cannot determine how the API server converts {0}")]
    Conversion(String),
    /// A value has the wrong type, so the API server rejects the object.
    #[error("the API server cannot decode the object: `{path}` must be {expected}")]
    Type {
        /// The path of the field.
        path: String,
        /// The requirement, such as `a string`.
        expected: String,
    },
    /// A metadata field of a custom resource has the wrong type. The string is the API server's message.
    #[error("the API server cannot decode the object: {0}")]
    Undecodable(String),
    /// The table in this program is corrupt.
    #[error("the table of defaults is corrupt: {0}")]
    Broken(String),
}

/// Returns the Kubernetes version of the rules, such as `1.36.3`.
///
/// # Errors
/// Returns [`Error::Broken`] if the table in this program is corrupt.
pub fn kubernetes() -> Result<&'static str, Error> {
    Table::get().map(|table| table.kubernetes.as_str())
}

/// Returns true if the table has rules for the kind.
#[must_use]
pub fn has(gvk: &Gvk) -> bool {
    Table::get().is_ok_and(|table| table.kind(gvk).is_some())
}

/// Returns the kinds with rules, sorted.
///
/// # Errors
/// Returns [`Error::Broken`] if the table in this program is corrupt.
pub fn kinds() -> Result<Vec<Gvk>, Error> {
    let mut kinds: Vec<Gvk> = Table::get()?.kinds().cloned().collect();
    kinds.sort();
    Ok(kinds)
}

/// An object of a built-in kind, decoded into its Go type.
#[derive(Clone, Debug)]
pub struct TypedObject {
    kind: &'static KindTable,
    gvk: Gvk,
    /// The object in compact form, which omits fields that have Go's zero value.
    value: Value,
    /// True if the object is a Job that shares one map of labels with its Pod template in Go.
    shares_labels: bool,
}

impl TypedObject {
    /// Decodes an object and sets its defaults.
    ///
    /// # Errors
    /// Returns an error if the table has no rules for the kind or for a field, or if a value has the wrong type.
    pub fn read(gvk: &Gvk, object: &Value) -> Result<Self, Error> {
        let table = Table::get()?;
        let kind = find(table, gvk)?;
        let mut value = Value::Object(typed::read_struct(table, object, kind.root, "", 0)?);
        if let Some(path) = rules::unknown(table, kind, &kind.unknown, &value) {
            return Err(Error::Field(path));
        }
        let shares_labels = value.as_object().is_some_and(job::shares_labels);
        let generation = daemon_set::generation(&value).filter(|_| daemon_set::is(gvk));
        let given = ["stringData", "data"].map(|field| value.get(field).cloned());
        rules::apply(table, kind, &kind.rules, &mut value)?;
        if gvk.group.is_empty() && gvk.kind == "Secret" {
            secret::merge(&mut value, given);
        }
        if let Some(generation) = generation {
            daemon_set::set(&mut value, generation);
        }
        Ok(Self {
            shares_labels,
            kind,
            gvk: gvk.clone(),
            value,
        })
    }

    /// Sets the fields that the API server sets when it creates an object, except metadata.
    ///
    /// # Errors
    /// Returns an error if the table has no rules for a field.
    pub fn create(&mut self) -> Result<(), Error> {
        let table = Table::get()?;
        if let Some(path) = rules::unknown(table, self.kind, &self.kind.create_unknown, &self.value)
        {
            return Err(Error::Field(path));
        }
        let quality = self
            .value
            .get("status")
            .and_then(|status| status.get("qosClass"));
        let quality = quality.cloned();
        rules::apply(table, self.kind, &self.kind.create, &mut self.value)?;
        if self.gvk.group.is_empty() && self.gvk.kind == "Pod" {
            quality::set(&mut self.value, quality);
        }
        if self.gvk.group == "batch" && self.gvk.kind == "Job" {
            job::select(&mut self.value, self.shares_labels);
        }
        Ok(())
    }

    /// Calls `change` with the object in compact form.
    pub fn change(&mut self, change: impl FnOnce(&mut Value)) {
        change(&mut self.value);
    }

    /// Returns the object in compact form.
    #[must_use]
    pub fn compact(&self) -> &Value {
        &self.value
    }

    /// Encodes the object as policies see it.
    ///
    /// # Errors
    /// Returns [`Error::Broken`] if the table in this program is corrupt.
    pub fn write(&self) -> Result<Value, Error> {
        Ok(write(
            Encoder::new(Table::get()?),
            self.kind.root,
            &self.gvk,
            &self.value,
        ))
    }
}

fn write(encoder: Encoder<'_>, root: usize, gvk: &Gvk, compact: &Value) -> Value {
    let mut value = encoder.write_struct(Some(compact), root);
    if let Some(fields) = value.as_object_mut() {
        fields.insert("apiVersion".to_owned(), gvk.api_version().into());
        fields.insert("kind".to_owned(), gvk.kind.clone().into());
    }
    value
}

/// Decodes an object into its Go type and encodes it again, as an API server with `behavior` does. Does not set
/// defaults.
///
/// # Errors
/// Returns an error if the kind has no Go type, or if a value has the wrong type.
pub fn round_trip(gvk: &Gvk, object: &Value, behavior: &Behavior) -> Result<Value, Error> {
    let table = Table::get()?;
    let root = table.root(gvk).ok_or_else(|| unknown_kind(gvk))?;
    let compact = typed::read_struct(table, object, root, "", 0)?;
    let encoder = Encoder {
        table,
        omits_zero_times: behavior.omits_zero_times,
    };
    Ok(write(encoder, root, gvk, &compact.into()))
}

fn find<'a>(table: &'a Table, gvk: &Gvk) -> Result<&'a KindTable, Error> {
    table.kind(gvk).ok_or_else(|| unknown_kind(gvk))
}

fn unknown_kind(gvk: &Gvk) -> Error {
    Error::Kind(format!("{} {}", gvk.api_version(), gvk.kind))
}

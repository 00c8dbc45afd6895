//! Changes that the API server makes to an object of Kubernetes' own APIs before it asks a policy: fields that its type
//! does not have go, defaults come, and what a user may not set is set anew.
//!
//! The rules are data (ADR 21): `table.bin` has them by kind, derived from upstream's own functions of the version
//! [`kubernetes`]. A kind without rules, and a field whose rules are not known, is an [`Error`] that says so.
//!
//! Nothing here reads a clock or makes an identifier: [`NOW`] and [`UID`] stand for what the server would make.

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
mod table;
mod typed;

use serde_json::Value;

pub use convert::convert;
pub use custom::{complete, complete_defaults};
pub(crate) use custom::{has_unknown, prune_unknown};
pub use decode::{Decoding, decode};
pub use kind_rules::{has_generation, is_null_unset};
pub use prepare::{Custom, Operation, Prepared, Request, SUFFIX, Stage, prepare};
pub use subresource::{
    SubresourceRequest, complete_subresource, is_published_elsewhere, subresource,
};

use crate::schema::Gvk;
use table::{KindTable, Table};

/// The time of creation of objects that have none.
pub const NOW: &str = "2026-01-01T00:00:00Z";

/// The uid of objects that have none.
pub const UID: &str = "00000000-0000-4000-8000-000000000000";

/// Why it is not known what the API server makes of an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The kind is not in the table.
    #[error("the defaults of {0} are not known")]
    Kind(String),
    /// A field has rules that the table does not have.
    #[error("how the API server sets `{0}` is not known")]
    Field(String),
    /// An object cannot be converted here.
    #[error("how the API server converts {0} is not known")]
    Conversion(String),
    /// A value is not of its type, so that the API server refuses the object.
    #[error("the API server does not read the object: `{path}` must be {expected}")]
    Type {
        /// The field.
        path: String,
        /// The expected type.
        expected: String,
    },
    /// The metadata of a custom resource are not of their type: the API server's words.
    #[error("the API server does not read the object: {0}")]
    Unread(String),
    /// The table of this build is broken.
    #[error("the table of defaults is broken: {0}")]
    Broken(String),
}

/// The version of Kubernetes that the rules are of, `1.36.3`.
///
/// # Errors
/// [`Error::Broken`], never in a build that has passed its tests.
pub fn kubernetes() -> Result<&'static str, Error> {
    Table::get().map(|table| table.kubernetes.as_str())
}

/// Reports whether the table has rules for the kind.
#[must_use]
pub fn has(gvk: &Gvk) -> bool {
    Table::get().is_ok_and(|table| table.kind(gvk).is_some())
}

/// The kinds that the table has rules for, sorted.
///
/// # Errors
/// [`Error::Broken`], never in a build that has passed its tests.
pub fn kinds() -> Result<Vec<Gvk>, Error> {
    let mut kinds: Vec<Gvk> = Table::get()?.kinds().cloned().collect();
    kinds.sort();
    Ok(kinds)
}

/// An object of a kind of the table, by its Go type.
#[derive(Clone, Debug)]
pub struct Typed {
    kind: &'static KindTable,
    gvk: Gvk,
    /// Compact: without Go's zero values.
    value: Value,
    /// True if labels of the object are those of its template.
    shares_labels: bool,
}

impl Typed {
    /// Reads an object and sets its defaults.
    ///
    /// # Errors
    /// If the kind or one of its fields has no rules, or a value is not of its type.
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

    /// Sets what the API server sets on creation, beside metadata.
    ///
    /// # Errors
    /// If one of the fields has no rules.
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

    /// Changes the object without its empty fields.
    pub fn change(&mut self, change: impl FnOnce(&mut Value)) {
        change(&mut self.value);
    }

    /// The object without its empty fields.
    #[must_use]
    pub fn compact(&self) -> &Value {
        &self.value
    }

    /// The object as policies see it.
    ///
    /// # Errors
    /// [`Error::Broken`], never in a build that has passed its tests.
    pub fn write(&self) -> Result<Value, Error> {
        Ok(write(Table::get()?, self.kind, &self.gvk, &self.value))
    }
}

fn write(table: &Table, kind: &KindTable, gvk: &Gvk, compact: &Value) -> Value {
    let mut value = typed::write_struct(table, Some(compact), kind.root);
    if let Some(fields) = value.as_object_mut() {
        fields.insert("apiVersion".to_owned(), gvk.api_version().into());
        fields.insert("kind".to_owned(), gvk.kind.clone().into());
    }
    value
}

/// Returns an object as its Go type reads and writes it, without defaults.
///
/// # Errors
/// If the kind is unknown, or a value does not have its type.
pub fn round_trip(gvk: &Gvk, object: &Value) -> Result<Value, Error> {
    let table = Table::get()?;
    let kind = find(table, gvk)?;
    let compact = typed::read_struct(table, object, kind.root, "", 0)?;
    Ok(write(table, kind, gvk, &compact.into()))
}

fn find<'a>(table: &'a Table, gvk: &Gvk) -> Result<&'a KindTable, Error> {
    let unknown = || Error::Kind(format!("{} {}", gvk.api_version(), gvk.kind));
    table.kind(gvk).ok_or_else(unknown)
}

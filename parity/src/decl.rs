//! `parity decl`: prints the declared types of all kinds that CustomResourceDefinitions define. The format is that of
//! `oracle decl --summary`.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;
use vap_status_controller::schema::Gvk;
use vap_status_controller::schema::resolver::{Resolution, SchemaResolver as _};

use crate::schemas::Schemas;
use crate::write_line;

#[path = "../../tests/support/declared.rs"]
mod declared;

/// The result for a kind, as a line of output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct DeclLine<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
    types: usize,
    #[serde(skip_serializing_if = "String::is_empty")]
    digest: String,
}

/// Prints a line for each kind.
///
/// # Errors
/// Returns an error if a CustomResourceDefinition cannot be read or `out` cannot be written.
pub fn run(crds: &Path, out: &mut dyn Write) -> Result<()> {
    let schemas = Schemas::load(None, Some(crds))?;
    let kinds: BTreeSet<&Gvk> = schemas.types.kinds().collect();
    for gvk in kinds {
        let (types, digest) = match schemas.types.resolve(gvk) {
            Resolution::Found(type_) => declared::summary(&type_),
            _ => (0, String::new()),
        };
        write_line(
            out,
            &DeclLine {
                group: &gvk.group,
                version: &gvk.version,
                kind: &gvk.kind,
                types,
                digest,
            },
        )?;
    }
    Ok(())
}

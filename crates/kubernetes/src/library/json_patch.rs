//! The JSON patch library: escapes keys for use in JSON patch paths.

use super::args::{Result, text};
use super::costs::CONVERTED_URL;
use Sig::String;
use cel::decls::{OverloadRow, Sig, Source};
use cel::value::EvalBudget;

const SOURCE: Source =
    Source::new("k8s.io/apiserver pkg/cel/library/jsonpatch.go, jsonPatchLibraryDecls");

/// The function `jsonpatch.escapeKey`, which only mutation expressions can use.
pub static ROWS: &[OverloadRow] = &[OverloadRow::global(
    "jsonpatch.escapeKey",
    "string_jsonpatch_escapeKey_string",
    &[String],
    String,
    CONVERTED_URL,
    SOURCE,
)
.evaluated_by(escape_key)];

fn escape_key(_: &EvalBudget, args: &[cel::value::Value]) -> Result {
    let key = text(args, 0)?;
    Ok(key.replace('~', "~0").replace('/', "~1").into())
}

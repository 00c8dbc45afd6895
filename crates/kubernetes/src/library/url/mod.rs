//! The URL library: URLs and their components.

mod value;

pub use value::{Url, UrlError, parse_request_uri};

use super::args::{Result, failed, opaque, strings, text};
use super::costs::{CONVERTED_URL, NOMINAL};
use Sig::{Bool, List, Map, String};
use cel::cost::Costs;
use cel::decls::{OverloadRow, Sig, Source};
use cel::types::Type;
use cel::value::{EvalBudget, EvalError, Opaque, Value};

use super::types::URL;

const SOURCE: Source = Source::new("k8s.io/apiserver pkg/cel/library/urls.go, urlLibraryDecls");

/// Functions that parse URLs and return their components.
pub static ROWS: &[OverloadRow] = &[
    OverloadRow::global(
        "url",
        "string_to_url",
        &[String],
        URL,
        CONVERTED_URL,
        SOURCE,
    )
    .evaluated_by(url),
    OverloadRow::member(
        "getScheme",
        "url_get_scheme",
        &[URL],
        String,
        NOMINAL,
        SOURCE,
    )
    .evaluated_by(scheme),
    OverloadRow::member("getHost", "url_get_host", &[URL], String, NOMINAL, SOURCE)
        .evaluated_by(host),
    OverloadRow::member(
        "getHostname",
        "url_get_hostname",
        &[URL],
        String,
        NOMINAL,
        SOURCE,
    )
    .evaluated_by(hostname),
    OverloadRow::member("getPort", "url_get_port", &[URL], String, NOMINAL, SOURCE)
        .evaluated_by(port),
    OverloadRow::member(
        "getEscapedPath",
        "url_get_escaped_path",
        &[URL],
        String,
        NOMINAL,
        SOURCE,
    )
    .evaluated_by(escaped_path),
    OverloadRow::member(
        "getQuery",
        "url_get_query",
        &[URL],
        Map(&String, &List(&String)),
        NOMINAL,
        SOURCE,
    )
    .evaluated_by(query),
    OverloadRow::global(
        "isURL",
        "is_url_string",
        &[String],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(is_url),
];

impl Opaque for Url {
    fn type_(&self) -> Type {
        URL.to_type()
    }

    /// Compares the string forms of two URLs.
    ///
    /// Source: k8s.io/apiserver `pkg/cel/url.go`, `URL.Equal`.
    fn equals(&self, other: &Value) -> std::result::Result<bool, EvalError> {
        match other.downcast::<Self>() {
            Some(other) => Ok(self.to_string() == other.to_string()),
            None => Err(EvalError::no_such_overload()),
        }
    }

    fn heap_size(&self) -> usize {
        self.text_len()
    }

    fn text(&self) -> Option<std::string::String> {
        Some(self.to_string())
    }

    fn native_type(&self) -> &'static str {
        "*url.URL"
    }

    fn go_type(&self) -> &'static str {
        "cel.URL"
    }
}

fn url(_: &EvalBudget, args: &[Value]) -> Result {
    Url::parse(text(args, 0)?)
        .map(Value::opaque)
        .map_err(|error| {
            failed(format!(
                "URL parse error during conversion from string: {error}"
            ))
        })
}

fn is_url(_: &EvalBudget, args: &[Value]) -> Result {
    Ok(parse_request_uri(text(args, 0)?).is_ok().into())
}

fn scheme(_: &EvalBudget, args: &[Value]) -> Result {
    opaque(args, 0).map(|url: &Url| url.scheme().into())
}

fn host(_: &EvalBudget, args: &[Value]) -> Result {
    opaque(args, 0).map(|url: &Url| url.host().into())
}

fn hostname(_: &EvalBudget, args: &[Value]) -> Result {
    opaque(args, 0).map(|url: &Url| url.hostname().into())
}

fn port(_: &EvalBudget, args: &[Value]) -> Result {
    opaque(args, 0).map(|url: &Url| url.port().into())
}

fn escaped_path(_: &EvalBudget, args: &[Value]) -> Result {
    opaque(args, 0).map(|url: &Url| url.escaped_path().into())
}

/// The memory of one parsed query parameter in bytes: a map entry, a list of values, and two strings.
const PARAMETER: usize = 512;

fn query(budget: &EvalBudget, args: &[Value]) -> Result {
    let url = opaque::<Url>(args, 0)?;
    let n_bytes = url.n_parameters().saturating_mul(PARAMETER);
    budget.allocate(n_bytes.saturating_add(url.text_len()))?;
    let parameters = url.query();
    Value::map(
        parameters
            .into_iter()
            .map(|(name, values)| (name.into(), strings(values))),
    )
}

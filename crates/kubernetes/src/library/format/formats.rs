//! The named formats, such as `dns1123Label`.
//!
//! Source: k8s.io/apiserver `pkg/cel/library/format.go` (`ConstantFormats`), `pkg/cel/format.go` (`Format`).

use crate::library::types::NAMED_FORMAT;
use crate::library::url;
use cel::types::Type;
use cel::value::{EvalBudget, EvalError, Hashed, Opaque, Value};

use super::validation;

/// A named format with its validation function.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// The function name without the prefix `format.`.
    pub function: &'static str,
    /// The name. Two formats are equal if their names are equal.
    pub name: &'static str,
    check: fn(&str) -> Vec<String>,
    /// The assumed length of the format's regular expression in upstream's cost model, in bytes.
    pub pattern_len: u64,
}

impl Format {
    const fn new(
        function: &'static str,
        name: &'static str,
        pattern_len: u64,
        check: fn(&str) -> Vec<String>,
    ) -> Self {
        Self {
            function,
            name,
            check,
            pattern_len,
        }
    }

    /// Validates a string. Returns the error messages, or an empty list if the string has the format.
    #[must_use]
    pub fn messages(&self, text: &str) -> Vec<String> {
        (self.check)(text)
    }

    pub(super) fn value(&self) -> Value {
        Value::opaque(*self)
    }
}

impl Opaque for Format {
    fn type_(&self) -> Type {
        NAMED_FORMAT.to_type()
    }

    fn equals(&self, other: &Value) -> Result<bool, EvalError> {
        match other.downcast::<Self>() {
            Some(other) => Ok(self.name == other.name),
            None => Err(EvalError::no_such_overload()),
        }
    }

    fn text(&self) -> Option<String> {
        Some(self.name.to_owned())
    }

    fn hashed(&self) -> Hashed {
        Hashed::Never
    }

    fn native_type(&self) -> &'static str {
        "cel.Format"
    }

    fn through_native(&self, _: &EvalBudget) -> Result<Option<Value>, EvalError> {
        Ok(None)
    }
}

fn unless(is_valid: bool, message: &str) -> Vec<String> {
    if is_valid {
        Vec::new()
    } else {
        vec![message.to_owned()]
    }
}

pub(super) static DNS1123_LABEL: Format = Format::new("dns1123Label", "DNS1123Label", 30, |text| {
    validation::dns1123_label(text.as_bytes())
});

pub(super) static DNS1123_SUBDOMAIN: Format =
    Format::new("dns1123Subdomain", "DNS1123Subdomain", 60, |text| {
        validation::dns1123_subdomain(text.as_bytes())
    });

pub(super) static DNS1035_LABEL: Format = Format::new("dns1035Label", "DNS1035Label", 30, |text| {
    validation::dns1035_label(text.as_bytes())
});

pub(super) static QUALIFIED_NAME: Format =
    Format::new("qualifiedName", "QualifiedName", 60, |text| {
        validation::qualified_name(text.as_bytes())
    });

pub(super) static DNS1123_LABEL_PREFIX: Format =
    Format::new("dns1123LabelPrefix", "DNS1123LabelPrefix", 30, |text| {
        validation::dns1123_label(&validation::without_trailing_dash(text.as_bytes()))
    });

pub(super) static DNS1123_SUBDOMAIN_PREFIX: Format = Format::new(
    "dns1123SubdomainPrefix",
    "DNS1123SubdomainPrefix",
    60,
    |text| validation::dns1123_subdomain(&validation::without_trailing_dash(text.as_bytes())),
);

pub(super) static DNS1035_LABEL_PREFIX: Format =
    Format::new("dns1035LabelPrefix", "DNS1035LabelPrefix", 30, |text| {
        validation::dns1035_label(&validation::without_trailing_dash(text.as_bytes()))
    });

pub(super) static LABEL_VALUE: Format = Format::new("labelValue", "LabelValue", 40, |text| {
    validation::label_value(text.as_bytes())
});

pub(super) static URI: Format = Format::new("uri", "URI", 1103, |text| {
    let error = url::parse_request_uri(text).err();
    error.map(|error| error.to_string()).into_iter().collect()
});

pub(super) static UUID: Format = Format::new("uuid", "uuid", 70, |text| {
    unless(validation::is_uuid(text), "does not match the UUID format")
});

pub(super) static BYTE: Format = Format::new("byte", "byte", 84, |text| {
    unless(validation::is_base64(text), "invalid base64")
});

pub(super) static DATE: Format = Format::new("date", "date", 71, |text| {
    unless(validation::is_date(text), "invalid date")
});

pub(super) static DATETIME: Format = Format::new("datetime", "datetime", 71, |text| {
    unless(validation::is_date_time(text), "invalid datetime")
});

static ALL: [&Format; 13] = [
    &DNS1123_LABEL,
    &DNS1123_SUBDOMAIN,
    &DNS1035_LABEL,
    &QUALIFIED_NAME,
    &DNS1123_LABEL_PREFIX,
    &DNS1123_SUBDOMAIN_PREFIX,
    &DNS1035_LABEL_PREFIX,
    &LABEL_VALUE,
    &URI,
    &UUID,
    &BYTE,
    &DATE,
    &DATETIME,
];

/// Returns the format for a function name without the prefix `format.`, such as `uuid`.
#[must_use]
pub fn named(function: &str) -> Option<&'static Format> {
    ALL.into_iter().find(|format| format.function == function)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_found_by_function_name() {
        for format in ALL {
            assert_eq!(
                named(format.function).map(|found| found.name),
                Some(format.name)
            );
        }
        assert!(named("DNS1123Label").is_none());
    }

    #[test]
    fn messages_of_formats_agree_with_upstream() {
        let messages = |name, text| named(name).unwrap().messages(text);
        assert_eq!(messages("dns1123LabelPrefix", "ab-"), [""; 0]);
        assert_eq!(messages("dns1123Label", "ab-").len(), 1);
        assert_eq!(
            messages("uri", "x"),
            [r#"parse "x": invalid URI for request"#]
        );
        assert_eq!(messages("uuid", "x"), ["does not match the UUID format"]);
        assert_eq!(messages("byte", "x"), ["invalid base64"]);
        assert_eq!(messages("date", "2024-01-01"), [""; 0]);
        assert_eq!(messages("datetime", "2024-01-01"), ["invalid datetime"]);
    }
}

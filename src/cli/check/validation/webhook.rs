//! Constraints on webhooks that need a function of their own ([`super::table::Constraint::Special`]).

use goyaml::{Data, Node};

use super::Violations;
use super::syntax::Form;
use super::walk::{Spot, present, quoted, text, violation_message};
use crate::library::url::Url;
use crate::policy::rule::Rule;

/// The versions of `AdmissionReview` that an API server can send.
///
/// Source: `AcceptedAdmissionReviewVersions`.
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// Maximum timeout of a webhook, in seconds.
const MAX_TIMEOUT: i64 = 30;

fn number(node: Option<&Node>) -> Option<i64> {
    match node.map(|node| &node.data) {
        // Go also decodes `1e1` as an integer.
        Some(Data::Scalar(value, _)) => {
            let number = value.as_f64().filter(|number| number.fract() == 0.0)?;
            format!("{number}").parse().ok()
        }
        _ => None,
    }
}

/// Requires a timeout from 1 to 30 seconds.
///
/// Source: `validateValidatingWebhook`.
pub(super) fn timeout(spot: &Spot<'_>, violations: &mut Violations) {
    let is_other = |seconds: &i64| !(1..=MAX_TIMEOUT).contains(seconds);
    if let Some(seconds) = number(spot.node).filter(is_other) {
        let message = format!(
            "`{}` is {seconds}, but must be from 1 to {MAX_TIMEOUT}",
            spot.field_ref
        );
        violations.add(Rule::InvalidValue, spot.field_ref, message, None);
    }
}

/// Requires a version that an API server can send.
///
/// Source: `validateAdmissionReviewVersions`.
pub(super) fn has_known_version(spot: &Spot<'_>, violations: &mut Violations) {
    let mut versions = spot.items().iter().map(|item| text(Some(item)));
    let is_known = versions.any(|version| REVIEW_VERSIONS.contains(&version));
    if !spot.items().is_empty() && !is_known {
        let message = format!(
            "`{}` must contain one of {}",
            spot.field_ref,
            REVIEW_VERSIONS.join(", ")
        );
        let advice = "write [v1]".to_owned();
        violations.add(Rule::InvalidValue, spot.field_ref, message, Some(advice));
    }
}

/// Requires exactly one of `url` and `service`.
///
/// Source: `validateValidatingWebhook`.
pub(super) fn client_config(spot: &Spot<'_>, violations: &mut Violations) {
    match (spot.get("url"), spot.get("service")) {
        (None, None) | (Some(_), Some(_)) => {
            let message = format!(
                "`{}` must have exactly one of `url` and `service`",
                spot.field_ref
            );
            let advice =
                "set the service of the webhook, or the URL if it runs outside the cluster"
                    .to_owned();
            violations.add(Rule::Required, spot.field_ref, message, Some(advice));
        }
        (Some(address), None) => url(&format!("{}.url", spot.field_ref), address, violations),
        (None, Some(reference)) => {
            service(
                &format!("{}.service", spot.field_ref),
                reference,
                violations,
            );
        }
    }
}

/// Source: `k8s.io/apiserver` `pkg/util/webhook/validation.go`, `ValidateWebhookURL`.
fn url(field_ref: &str, node: &Node, violations: &mut Violations) {
    let Some(address) = node.as_str() else { return };
    let requirement = match Url::parse(address) {
        Ok(url) if url.scheme() != "https" => "begin with https://",
        Ok(url) if url.host().is_empty() => "have a host",
        Ok(url) if url.has_user() => "not have a user",
        Ok(url) if url.has_fragment_or_query() => "not have a query or a fragment",
        Ok(_) => return,
        Err(_) => "be a URL such as https://example.com/path",
    };
    let message = violation_message(field_ref, address, requirement);
    violations.add(Rule::InvalidValue, field_ref, message, None);
}

/// Source: `k8s.io/apiserver` `pkg/util/webhook/validation.go`, `ValidateWebhookService`.
fn service(field_ref: &str, node: &Node, violations: &mut Violations) {
    for name in ["namespace", "name"] {
        let value = present(node.get(name));
        if value.is_none_or(|value| value.as_str() == Some("")) {
            let field_ref = format!("{field_ref}.{name}");
            let message = format!("`{field_ref}` is required");
            let advice = format!("set the {name} of the service");
            violations.add(Rule::Required, &field_ref, message, Some(advice));
        }
    }
    let port = number(present(node.get("port")));
    if let Some(port) = port.filter(|port| !(1..=65_535).contains(port)) {
        let field_ref = format!("{field_ref}.port");
        let message = format!("`{field_ref}` is {port}, but must be from 1 to 65535");
        violations.add(Rule::InvalidValue, &field_ref, message, None);
    }
    let path = text(present(node.get("path")));
    if let Some(requirement) = path_requirement(path) {
        let field_ref = format!("{field_ref}.path");
        let message = format!("`{field_ref}` is {}, but must {requirement}", quoted(path));
        let meant = format!("/{path}");
        let is_meant = !path.starts_with('/') && path_requirement(&meant).is_none();
        let advice = is_meant.then(|| format!("write `{meant}`"));
        violations.add(Rule::InvalidValue, &field_ref, message, advice);
        violations.set_meant(&field_ref, is_meant.then_some(&*meant).as_slice());
    }
}

/// Returns the requirement that the path of a service violates, as a phrase that follows "must". `None` if the path is
/// valid.
fn path_requirement(path: &str) -> Option<String> {
    if path.is_empty() || path == "/" {
        return None;
    }
    let Some(segments) = path.strip_prefix('/') else {
        return Some("begin with `/`".to_owned());
    };
    let segments = segments.strip_suffix('/').unwrap_or(segments);
    segments.split('/').find_map(|segment| {
        let requirement = Form::Subdomain.violated(segment)?;
        Some(if segment.is_empty() {
            "not have an empty part between slashes".to_owned()
        } else {
            format!("have parts between slashes that {requirement}")
        })
    })
}

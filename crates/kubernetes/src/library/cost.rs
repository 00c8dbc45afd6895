//! What the functions of the API server's libraries cost, by the API server's estimator.
//!
//! Functions go by their names here, as upstream has it, since all overloads of a name belong to these
//! libraries; the few overloads that differ are told apart by their ids.
//!
//! Source: k8s.io/apiserver `pkg/cel/library/cost.go`, `CostEstimator`.

use super::limits::{MAX_FORMAT_SIZE, MAX_NAME_FORMAT_REGEX_SIZE};
use cel::ast::Literal;
use cel::checker::CheckedAst;
use cel::cost::factors::{
    LIST_CREATE_BASE_COST, REGEX_STRING_LENGTH_COST_FACTOR, STRING_TRAVERSAL_COST_FACTOR,
    STRUCT_CREATE_BASE_COST,
};
use cel::cost::{
    self, AstNode, Call, CallEstimate, CostEstimate, CostEstimator, CostOptions, SizeEstimate,
    SizeEstimator, size_of,
};
use cel::types::Type;

/// The cost of a question to the authorizer, in cost units: two fit into a call.
pub const AUTHORIZER_CHECK_COST: u64 = 350_000;

/// The cost of a requirement of a selector: an object with a list of values.
///
/// Source: k8s.io/apiserver `pkg/cel/library/cost.go`, `costPerRequirement`.
pub(super) const SELECTOR_REQUIREMENT_COST: u64 = LIST_CREATE_BASE_COST + STRUCT_CREATE_BASE_COST;

/// The cost of a function that does next to nothing.
const NOMINAL: CostEstimate = CostEstimate::fixed(1);

/// The bytes of an address, of the fourth or the sixth version.
const ADDRESS_SIZE: SizeEstimate = SizeEstimate::new(4, 16);

/// The API server's choices of the cost model: `has()` is free.
///
/// Source: k8s.io/apiserver `pkg/cel/environment/base.go`, `baseOpts`.
pub const COST_OPTIONS: CostOptions = CostOptions {
    presence_test_has_cost: false,
};

/// Estimates what evaluating `checked` costs in the API server, where `sizes` knows those of variables.
///
/// With [`UnknownSizes`](cel::cost::UnknownSizes), what depends on the size of a variable is
/// without bound. The API server estimates the rules of CRDs, and refuses those that may exceed its
/// limits; of policies it makes no estimate, and only measures.
///
/// # Example
/// ```
/// use std::sync::Arc;
/// use cel::cost::{CostEstimate, UnknownSizes};
/// use cel::{checker, syntax};
/// use kubernetes::library::cost;
/// use kubernetes::library::environment::{KubernetesVersion, base_env};
///
/// let text = "quantity('1Gi').isGreaterThan(quantity('500Mi'))";
/// let ast = Arc::new(syntax::parse(text).0.ok_or("a syntax error")?);
/// let (checked, found) = checker::check(&ast, text, base_env(KubernetesVersion::LATEST));
/// assert!(found.is_empty());
/// assert_eq!(cost::estimate(&checked, &UnknownSizes), CostEstimate::fixed(3));
/// # Ok::<(), &str>(())
/// ```
#[must_use]
pub fn estimate(checked: &CheckedAst, sizes: &dyn SizeEstimator) -> CostEstimate {
    cost::estimate(checked, &KubernetesCosts { sizes }, COST_OPTIONS)
}

/// Whether a call does next to nothing, and costs 1 by the estimate as well as when it is evaluated: the
/// builders and accessors of the authorizer, of addresses, formats, quantities, versions and URLs.
///
/// Source: k8s.io/apiserver `pkg/cel/library/cost.go`, `CostEstimator.CallCost` and `EstimateCallCost`.
pub(super) fn is_nominal(function: &str, overload: &str) -> bool {
    match function {
        "ip" => overload == "cidr_ip",
        "serviceAccount"
        | "path"
        | "group"
        | "resource"
        | "subresource"
        | "namespace"
        | "name"
        | "allowed"
        | "reason"
        | "error"
        | "errored"
        | "masked"
        | "prefixLength"
        | "family"
        | "isUnspecified"
        | "isLoopback"
        | "isLinkLocalMulticast"
        | "isLinkLocalUnicast"
        | "isGlobalUnicast"
        | "format.named"
        | "sign"
        | "asInteger"
        | "isInteger"
        | "asApproximateFloat"
        | "isGreaterThan"
        | "isLessThan"
        | "compareTo"
        | "add"
        | "sub"
        | "major"
        | "minor"
        | "patch"
        | "getScheme"
        | "getHostname"
        | "getHost"
        | "getPort"
        | "getEscapedPath"
        | "getQuery" => true,
        _ => false,
    }
}

/// Knows the costs of the API server's functions; sizes are asked of another.
#[derive(Clone, Copy)]
pub struct KubernetesCosts<'a> {
    /// Who knows the sizes of variables.
    pub sizes: &'a dyn SizeEstimator,
}

impl std::fmt::Debug for KubernetesCosts<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KubernetesCosts").finish_non_exhaustive()
    }
}

impl SizeEstimator for KubernetesCosts<'_> {
    fn estimate_size(&self, node: &AstNode<'_>) -> Option<SizeEstimate> {
        self.sizes.estimate_size(node)
    }
}

impl CostEstimator for KubernetesCosts<'_> {
    fn estimate_call_cost(&self, call: &Call<'_>) -> Option<CallEstimate> {
        if is_nominal(call.function, call.overload) {
            return Some(CallEstimate::of_cost(NOMINAL));
        }
        match call.function {
            "check" => Some(CallEstimate::of_cost(CostEstimate::fixed(
                AUTHORIZER_CHECK_COST,
            ))),
            "fieldSelector" | "labelSelector" => match call.args {
                [selector] => Some(CallEstimate::of_cost(selector_cost(self.size(selector)))),
                _ => None,
            },
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => {
                self.scan(call.target?)
            }
            "url" | "jsonpatch.escapeKey" => match call.args {
                [text] => Some(self.traversal(text)),
                _ => None,
            },
            "lowerAscii" | "upperAscii" | "substring" | "trim" => {
                Some(self.traversal(call.target?))
            }
            "replace" => self.replace(call),
            "split" => self.split(call),
            "join" => self.join(call),
            "find" | "findAll" => self.find(call),
            "ip" | "cidr" | "isIP" | "isCIDR" | "quantity" | "isQuantity" | "semver"
            | "isSemver" => {
                let size = self.size(call.args.first()?);
                Some(CallEstimate::of_cost(traversal_cost(size)))
            }
            "ip.isCanonical" => {
                // The address is parsed, and compared with its own text.
                let size = self.size(call.args.first()?);
                let factor = 2.0 * STRING_TRAVERSAL_COST_FACTOR;
                Some(CallEstimate::of_cost(size.by_factor(factor)))
            }
            "containsIP" => self.contains(call, "cidr_contains_ip_string", CostEstimate::fixed(0)),
            "containsCIDR" => {
                // The network is masked, and the bits of its prefix are compared.
                let masking = traversal_cost(ADDRESS_SIZE).plus(NOMINAL);
                self.contains(call, "cidr_contains_cidr_string", masking)
            }
            "validate" => {
                let regex_size = cost_factor_of_regex(MAX_NAME_FORMAT_REGEX_SIZE);
                let text = traversal_cost(self.size(call.args.first()?));
                Some(CallEstimate::of_cost(text.by_factor(regex_size)))
            }
            "_==_" => match call.args {
                [left, right] => equality_cost(left, right).map(CallEstimate::of_cost),
                _ => None,
            },
            _ => None,
        }
    }
}

impl KubernetesCosts<'_> {
    fn size(&self, node: &AstNode<'_>) -> SizeEstimate {
        size_of(self.sizes, node)
    }

    /// One walk over a string, whose result is no longer than it.
    fn traversal(&self, text: &AstNode<'_>) -> CallEstimate {
        let size = self.size(text);
        CallEstimate::sized(traversal_cost(size), size)
    }

    /// One walk over a list with a comparison for each element, or over a string.
    #[expect(
        clippy::unnecessary_wraps,
        reason = "the caller has an option of the same type"
    )]
    fn scan(&self, target: &AstNode<'_>) -> Option<CallEstimate> {
        let size = self.size(target);
        let Some(items) = target.items() else {
            return Some(CallEstimate::of_cost(traversal_cost(size)));
        };
        let mut comparison = NOMINAL;
        if items.is_text() {
            comparison = comparison.plus(traversal_cost(self.size(&items)));
        }
        Some(CallEstimate::of_cost(size.times_cost(comparison)))
    }

    /// The text is read, and the result is written.
    fn replace(&self, call: &Call<'_>) -> Option<CallEstimate> {
        let (Some(target), [replaced, replacement, ..]) = (call.target, call.args) else {
            return None;
        };
        let size = self.size(target);
        let (replaced, replacement) = (self.size(replaced), self.size(replacement));
        // The longest result: as many as can be of the shortest parts become the longest replacement.
        let (most, kept_most) = if replaced.min == 0 {
            // An empty part is found between any two code points, and at both ends.
            (size.max.saturating_add(1), size.max)
        } else if replacement.max <= replaced.min {
            (0, size.max)
        } else {
            (quotient(size.max, replaced.min), 0)
        };
        // The shortest result: as many as can be of the longest parts become the shortest replacement.
        let (fewest, kept_fewest) = if replaced.max == 0 {
            (size.min.saturating_add(1), size.min)
        } else if replaced.max <= replacement.min {
            (0, size.min)
        } else {
            (quotient(size.min, replaced.max), 0)
        };
        let result = SizeEstimate::new(fewest, most)
            .times(replacement)
            .plus(SizeEstimate::new(kept_fewest, kept_most));
        let cost = size.by_factor(2.0 * STRING_TRAVERSAL_COST_FACTOR);
        Some(CallEstimate::sized(cost, result))
    }

    /// The text is read, and the parts are written: at most one for each code point.
    fn split(&self, call: &Call<'_>) -> Option<CallEstimate> {
        let size = self.size(call.target?);
        let most = match call.args.get(1).and_then(AstNode::literal) {
            Some(Literal::Int(limit)) => limit.cast_unsigned(),
            _ => size.max,
        };
        let cost = size.by_factor(2.0 * STRING_TRAVERSAL_COST_FACTOR);
        Some(CallEstimate::sized(cost, SizeEstimate::new(0, most)))
    }

    /// The result is written: all elements, and a separator between any two.
    fn join(&self, call: &Call<'_>) -> Option<CallEstimate> {
        let list = call.target?;
        let n_elements = self.size(list);
        let mut size = list.items().map_or(SizeEstimate::fixed(0), |items| {
            n_elements.times(self.size(&items))
        });
        if let Some(separator) = call.args.first() {
            let n_separators = SizeEstimate::new(
                n_elements.min.saturating_sub(1),
                n_elements.max.saturating_sub(1),
            );
            size = size.plus(self.size(separator).times(n_separators));
        }
        Some(CallEstimate::sized(traversal_cost(size), size))
    }

    /// The regular expression runs over the text; each code point may be a match of its own.
    fn find(&self, call: &Call<'_>) -> Option<CallEstimate> {
        let (Some(target), [regex, ..]) = (call.target, call.args) else {
            return None;
        };
        let size = self.size(target);
        // An empty text still costs what the regular expression does.
        let text = traversal_cost(size.plus(SizeEstimate::fixed(1)));
        let regex = self.size(regex).by_factor(REGEX_STRING_LENGTH_COST_FACTOR);
        let result = SizeEstimate::new(0, size.max);
        Some(CallEstimate::sized(text.times(regex), result))
    }

    /// Two addresses are compared, of which the second may have to be parsed.
    fn contains(
        &self,
        call: &Call<'_>,
        parsing_overload: &str,
        more: CostEstimate,
    ) -> Option<CallEstimate> {
        let other = call.args.first()?;
        let mut cost = traversal_cost(ADDRESS_SIZE.plus(ADDRESS_SIZE)).plus(more);
        if call.overload == parsing_overload {
            cost = cost.plus(traversal_cost(self.size(other)));
        }
        Some(CallEstimate::of_cost(cost))
    }
}

fn traversal_cost(size: SizeEstimate) -> CostEstimate {
    size.by_factor(STRING_TRAVERSAL_COST_FACTOR)
}

/// The quotient of the nearest floats, rounded up.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "upstream divides floats; a conversion back saturates"
)]
fn quotient(size: u64, part: u64) -> u64 {
    (size as f64 / part as f64).ceil() as u64
}

/// How much more a text costs that a regular expression of `size` bytes is matched with.
#[expect(
    clippy::cast_precision_loss,
    reason = "sizes of regular expressions are small"
)]
const fn cost_factor_of_regex(size: u64) -> f64 {
    size as f64 * REGEX_STRING_LENGTH_COST_FACTOR
}

/// Parsing a selector, and keeping its requirements, each of which has two code points at least.
///
/// Source: k8s.io/apiserver `pkg/cel/library/cost.go`, `selectorCostEstimate`.
fn selector_cost(size: SizeEstimate) -> CostEstimate {
    const REQUIREMENTS_PER_CODE_POINT: f64 = 0.5;
    const COST_PER_REQUIREMENT: f64 = 50.0;
    const _: () = assert!(SELECTOR_REQUIREMENT_COST == 50);
    let requirements = size
        .by_factor(REQUIREMENTS_PER_CODE_POINT)
        .by_factor(COST_PER_REQUIREMENT);
    CostEstimate::fixed(LIST_CREATE_BASE_COST)
        .plus(traversal_cost(size))
        .plus(requirements)
}

/// The cost of comparing two values of one of the API server's types.
fn equality_cost(left: &AstNode<'_>, right: &AstNode<'_>) -> Option<CostEstimate> {
    let (Some(name), Some(other)) = (name_of(left.type_()), name_of(right.type_())) else {
        return None;
    };
    if name != other {
        return None;
    }
    match (left.type_(), name) {
        (Type::Opaque(_), "net.IP" | "net.CIDR")
        | (
            Type::Struct(_),
            "kubernetes.Quantity"
            | "kubernetes.Semver"
            | "kubernetes.authorization.Authorizer"
            | "kubernetes.authorization.PathCheck"
            | "kubernetes.authorization.GroupCheck"
            | "kubernetes.authorization.ResourceCheck"
            | "kubernetes.authorization.Decision",
        ) => Some(NOMINAL),
        (Type::Struct(_), "kubernetes.NamedFormat") => {
            Some(CostEstimate::new(1, MAX_FORMAT_SIZE).by_factor(STRING_TRAVERSAL_COST_FACTOR))
        }
        (Type::Struct(_), "kubernetes.URL") => {
            // Upstream looks at the right side only.
            let size = right.computed_size().map_or(1, |size| size.max);
            Some(CostEstimate::new(1, size).by_factor(STRING_TRAVERSAL_COST_FACTOR))
        }
        _ => None,
    }
}

fn name_of(type_: &Type) -> Option<&str> {
    match type_ {
        Type::Struct(object) => Some(&object.name),
        Type::Opaque(opaque) => Some(&opaque.name),
        _ => None,
    }
}

#[cfg(test)]
mod tests;

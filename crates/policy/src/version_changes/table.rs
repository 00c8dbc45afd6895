//! The table of changes, newest release first.

use super::calls::{call, is_library_value, is_method, qualified_call};
use super::change::{Since, VersionChange};
use crate::rule::Rule;
use cel::ast::{Expr, Literal};
use cel::types::Type;
use cel::version::CelGo;
use kubernetes::version::NESTED_PATCH_VALUES;

/// The default values of the fields in the rows of [`ALL`].
const CHANGE: VersionChange = VersionChange {
    id: "",
    since: Since::Kubernetes(0),
    summary: "",
    source: "",
    rule: None,
    affects: None,
    compiles: None,
};

/// All changes, newest release first. `docs/versions.md` contains the same table.
pub static ALL: &[VersionChange] = &[
    VersionChange {
        id: "or-value-without-optional",
        since: Since::CelGo(CelGo::V0_28),
        summary: "`x.orValue(y)` and `x.or(y)` fail if `x` is not an optional. Before, the result was `x`.",
        source: "cel-go 0.28 cel/library.go, evalOptionalOrValue",
        rule: Some(Rule::OrValueWithoutOptional),
        affects: Some(|checked, id| {
            is_method(checked, id, &["or", "orValue"])
                && call(checked, id)
                    .and_then(|(_, target, _)| target)
                    .is_some_and(|target| checked.type_at(target).optional_value().is_none())
        }),
        ..CHANGE
    },
    VersionChange {
        id: "escaped-field-names",
        since: Since::CelGo(CelGo::V0_28),
        summary: "Names in backticks: ``object.metadata.labels.`app.kubernetes.io/name` ``",
        source: "cel-go 0.28 parser/options.go, EnableIdentEscapeSyntax",
        compiles: Some(|text| text.contains('`')),
        ..CHANGE
    },
    VersionChange {
        id: "locals-first",
        since: Since::CelGo(CelGo::V0_27),
        summary: "In `list.all(net, net.IP == 'x')`, `net` is the variable. Before, `net.IP` was the type `net.IP`.",
        source: "cel-go 0.27 checker/env.go, Env.resolveQualifiedIdent",
        compiles: Some(|text| text.contains("net")),
        ..CHANGE
    },
    VersionChange {
        id: "optional-values",
        since: Since::CelGo(CelGo::V0_29),
        summary: "A macro such as `optMap` works on `optional.of(quantity('1'))`. Before, the evaluation failed. A nested optional remains an optional.",
        source: "cel-go 0.29 interpreter/attributes.go, applyQualifiers",
        affects: Some(|checked, id| {
            let names = ["of", "ofNonZeroValue"];
            let Some([value]) = qualified_call(checked, id, "optional", &names) else {
                return false;
            };
            let holds_optional = checked.type_at(*value).optional_value().is_some();
            holds_optional || is_library_value(checked, *value)
        }),
        ..CHANGE
    },
    VersionChange {
        id: "function-costs",
        since: Since::CelGo(CelGo::V0_29),
        summary: "The cost of `startsWith` and `endsWith` depends on the length of their argument; `matches(string, pattern)` costs as much as `string.matches(pattern)`.",
        source: "cel-go 0.29 interpreter/runtimecost.go, CostTracker.costCall",
        ..CHANGE
    },
    VersionChange {
        id: "range-limits",
        since: Since::CelGo(CelGo::V0_29),
        summary: "`lists.range` fails for a negative argument and for more than 1,000,000 elements.",
        source: "cel-go 0.29 ext/lists.go, genRange",
        affects: Some(|checked, id| qualified_call(checked, id, "lists", &["range"]).is_some()),
        ..CHANGE
    },
    VersionChange {
        id: "index-bounds",
        since: Since::CelGo(CelGo::V0_29),
        summary: "`indexOf('', n)` and `lastIndexOf('', n)` fail for a negative `n`, and return at most the length of the string.",
        source: "cel-go 0.29 ext/strings.go, indexOfOffset",
        affects: Some(|checked, id| {
            let n_args = call(checked, id).map_or(0, |(_, _, args)| args.len());
            n_args == 2 && is_method(checked, id, &["indexOf", "lastIndexOf"])
        }),
        ..CHANGE
    },
    VersionChange {
        id: "go-values",
        since: Since::Kubernetes(37),
        summary: "Built-in objects, `request` and `namespaceObject` are Go values: comparisons with values of other types, and lookups with keys of other types, are errors, as in `object.spec == 'x'` and `1 in object.metadata.labels`. An empty list or map equals an absent one in `object == oldObject`.",
        source: "k8s.io/apiserver 0.37 pkg/cel/common/valuesschemalesstyped.go",
        affects: Some(|checked, id| {
            let type_of = |id: &cel::ast::ExprId| checked.type_at(*id);
            let is_number = |type_: &Type| matches!(type_, Type::Int | Type::Uint | Type::Double);
            match call(checked, id) {
                Some(("@in", None, [key, container])) => {
                    matches!(type_of(container), Type::Dyn) && {
                        let key = type_of(key);
                        is_number(key) || matches!(key, Type::Bool)
                    }
                }
                Some(("_[_]", None, [container, key])) => {
                    matches!(type_of(container), Type::Dyn)
                        && matches!(type_of(key), Type::Uint | Type::Double | Type::Bool)
                }
                // Only comparisons of whole objects or of their top-level fields are affected. Such a value may contain
                // an empty list or map, which now equals an absent one.
                Some(("_==_" | "_!=_", None, [left, right])) => [left, right].iter().all(|id| {
                    let name = checked.ast().qualified_name(**id).unwrap_or_default();
                    let mut parts = name.split('.');
                    matches!(parts.next(), Some("object" | "oldObject")) && parts.count() <= 1
                }),
                _ => false,
            }
        }),
        ..CHANGE
    },
    VersionChange {
        id: "quantity-copies",
        since: Since::Kubernetes(37),
        summary: "`quantity.add()` and `sub()` do not change the quantity on which they are called. Before, they \
            changed a large quantity.",
        source: "k8s.io/apiserver 0.37 pkg/cel/library/quantity.go, quantityAdd",
        affects: Some(|checked, id| {
            is_method(checked, id, &["add", "sub"])
                && call(checked, id)
                    .and_then(|(_, target, _)| target)
                    .is_some_and(|target| is_library_value(checked, target))
        }),
        ..CHANGE
    },
    VersionChange {
        id: "audit-failures",
        since: Since::Kubernetes(37),
        summary: "The audit annotation `validation_failure` lists up to 50 failed validations. Before, it contained \
            only the first failed validation.",
        source: "k8s.io/apiserver 0.37 pkg/admission/plugin/policy/validating/dispatcher.go, maxValidationFailures",
        ..CHANGE
    },
    VersionChange {
        id: "new-defaults",
        since: Since::Kubernetes(37),
        summary: "The API server sets `maxUnavailable` of a StatefulSet's rolling update and \
            `preventPodSchedulingIfMissing` of a CSIDriver if these fields are absent.",
        source: "k8s.io/kubernetes 1.37 pkg/apis/apps/v1/defaults.go, pkg/apis/storage/v1/defaults.go",
        affects: Some(|checked, id| {
            let fields = ["maxUnavailable", "preventPodSchedulingIfMissing"];
            let ast = checked.ast();
            match ast.expr(id) {
                Expr::Select { field, .. } => fields.contains(&&**field),
                Expr::Literal(Literal::String(text)) => fields.contains(&&**text),
                _ => false,
            }
        }),
        ..CHANGE
    },
    VersionChange {
        id: "static-names",
        since: Since::Kubernetes(37),
        summary: "The names of policies, bindings and webhook configurations cannot end in `.static.k8s.io`, except for static manifests.",
        source: "k8s.io/kubernetes 1.37 pkg/apis/admissionregistration/validation/static_suffix.go, ValidateStaticSuffix",
        ..CHANGE
    },
    VersionChange {
        id: "webhooks-skip-reviews",
        since: Since::Kubernetes(37),
        summary: "Webhooks are not called for reviews, such as `TokenReview`.",
        source: "k8s.io/apiserver 0.37 pkg/features/kube_features.go, ExcludeAdmissionWebhookVirtualResources",
        ..CHANGE
    },
    VersionChange {
        id: "nested-patch-values",
        since: Since::Patches(NESTED_PATCH_VALUES),
        summary: "The value of a JSONPatch can be a list or map of `Object` values. Before, the API server panicked.",
        source: "k8s.io/apiserver 0.36.5 pkg/cel/mutation/dynamic/objects.go, ObjectVal.ConvertToNative",
        compiles: Some(|text| text.contains("JSONPatch")),
        ..CHANGE
    },
    VersionChange {
        id: "format-messages",
        since: Since::Kubernetes(35),
        summary: "Messages of `format.labelValue()` and `format.qualifiedName()` count bytes: `must be no more than 63 bytes`. Before, they counted characters.",
        source: "k8s.io/apimachinery 0.35 pkg/api/validate/content/errors.go, MaxLenError",
        ..CHANGE
    },
    VersionChange {
        id: "creation-times",
        since: Since::Kubernetes(34),
        summary: "An object without a creation time, such as the metadata of a Pod template, has no field `creationTimestamp`. Before, the field was null.",
        source: "k8s.io/apimachinery 0.34 pkg/apis/meta/v1/types.go, ObjectMeta.CreationTimestamp",
        ..CHANGE
    },
    VersionChange {
        id: "lists-in-messages",
        since: Since::Kubernetes(34),
        summary: "Errors about label selectors contain lists as JSON. Before, they contained Go syntax.",
        source: "k8s.io/apimachinery 0.34 pkg/util/validation/field/errors.go, Error.ErrorBody",
        ..CHANGE
    },
    VersionChange {
        id: "optional-functions",
        since: Since::CelGo(CelGo::V0_23),
        summary: "`first()`, `last()`, `optional.unwrap()` and `unwrapOpt()`",
        source: "cel-go 0.23 cel/library.go, OptionalTypes",
        compiles: Some(|text| {
            ["first", "last", "unwrap"]
                .iter()
                .any(|name| text.contains(name))
        }),
        ..CHANGE
    },
    VersionChange {
        id: "estimates-of-variables",
        since: Since::CelGo(CelGo::V0_23),
        summary: "Cost estimates use the sizes of local variables and of list elements. Before, such estimates were unlimited.",
        source: "cel-go 0.23 checker/cost.go, coster",
        ..CHANGE
    },
    VersionChange {
        id: "library-costs",
        since: Since::Kubernetes(32),
        summary: "Calls of the API server's functions cost more, and an expression exceeds its cost limit at the third authorization check. Before, each call cost 1.",
        source: "k8s.io/apiserver 0.32 pkg/features/kube_features.go, StrictCostEnforcementForVAP",
        ..CHANGE
    },
    VersionChange {
        id: "contains-cidr",
        since: Since::Patches(&[(32, 4)]),
        summary: "`cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')` is true. Before, a network contained only networks that start at its first address.",
        source: "k8s.io/apiserver 0.32.4 pkg/cel/library/cidr.go, cidrContainsCIDR",
        affects: Some(|checked, id| is_method(checked, id, &["containsCIDR"])),
        ..CHANGE
    },
    VersionChange {
        id: "index-past-end",
        since: Since::CelGo(CelGo::V0_22),
        summary: "`indexOf` and `lastIndexOf` are -1 for an offset after the end of the string. Before, they failed.",
        source: "cel-go 0.22 ext/strings.go, indexOfOffset",
        affects: Some(|checked, id| is_method(checked, id, &["indexOf", "lastIndexOf"])),
        ..CHANGE
    },
    VersionChange {
        id: "result-types-in-messages",
        since: Since::Kubernetes(32),
        summary: "Errors about the result of an expression contain its type: `must evaluate to bool but got string`.",
        source: "k8s.io/apiserver 0.32 pkg/admission/plugin/cel/compile.go, compiler.CompileCELExpression",
        ..CHANGE
    },
];

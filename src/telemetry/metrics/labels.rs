//! Labels of metrics. Label values are enum variants, so error messages and names cannot become label values.

use std::fmt;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};

/// Defines an enum whose variants are the values of a label.
macro_rules! label_values {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $value:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $name {
            /// All values.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the value of the label.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $value,)*
                }
            }
        }

        impl EncodeLabelValue for $name {
            fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
                self.as_str().encode(encoder)
            }
        }
    };
}

label_values! {
    /// The outcome of a reconciliation.
    ReconcileOutcome {
        /// The status was already up to date.
        Unchanged = "unchanged",
        /// The status was written.
        Applied = "applied",
        /// The policy does not exist.
        Deleted = "deleted",
        /// The reconciliation failed and is retried.
        Failed = "failed",
        /// The write was rejected because the policy had changed. The policy is reconciled again.
        Conflict = "conflict",
        /// The status was computed but not written, because another instance is the leader.
        Observed = "observed",
        /// The rate limit for writes of this status was exceeded. The reconciliation is retried.
        RateLimited = "rate_limited",
    }
}

label_values! {
    /// The reason why a reconciliation did not write a status.
    Skipped {
        /// The status is up to date.
        Equal = "equal",
        /// Schemas that the check needs are loading.
        SchemasLoading = "schemas_loading",
        /// Params that bindings refer to are loading.
        ParamsLoading = "params_loading",
        /// Probes are not listed yet.
        ProbesLoading = "probes_loading",
        /// Objects, bindings or conditions of the kind are not listed yet, or the cluster does not serve the kind.
        KindLoading = "kind_loading",
        /// The check is continued later, on a thread for deferred or slow checks.
        CheckDeferred = "check_deferred",
        /// The object was changed or deleted during the check.
        ObjectChanged = "object_changed",
        /// The subject is excluded, and its status is not from this controller.
        Excluded = "excluded",
        /// The CustomResourceDefinition has no rules and no probes.
        NoRules = "no_rules",
        /// Another instance is the leader.
        NotLeader = "not_leader",
        /// The rate limit for writes of this status was exceeded. The reconciliation is retried.
        RateLimited = "rate_limited",
    }
}

label_values! {
    /// The class of an error.
    ErrorReason {
        /// The API server rejected the request for lack of permission.
        Forbidden = "forbidden",
        /// The API server rejected the credentials.
        Unauthorized = "unauthorized",
        /// The object was changed or replaced since it was read.
        Conflict = "conflict",
        /// The object does not exist.
        NotFound = "not_found",
        /// The API server rejected the request as invalid.
        Invalid = "invalid",
        /// The object would exceed the size limit.
        TooLarge = "too_large",
        /// The API server throttles requests.
        Throttled = "throttled",
        /// The API server failed.
        Server = "server",
        /// The API server could not be reached.
        Connection = "connection",
        /// No response arrived in time.
        Timeout = "timeout",
        /// The response could not be parsed.
        Decode = "decode",
        /// The check of a policy panicked.
        Panic = "panic",
        /// Any other error.
        Other = "other",
    }
}

label_values! {
    /// A watch or poll that keeps the controller's cluster state in sync.
    Source {
        /// The watch of ValidatingAdmissionPolicies.
        Policies = "policies",
        /// The watch of `ValidatingAdmissionPolicyBinding`s.
        Bindings = "bindings",
        /// The watch of PolicyProbes, if their kind is served.
        Probes = "probes",
        /// The watches of params of all kinds.
        Params = "params",
        /// The watch of CustomResourceDefinitions.
        Crds = "crds",
        /// The watch of mutating policies, if enabled.
        MutatingPolicies = "mutatingpolicies",
        /// The watch of bindings of mutating policies.
        MutatingBindings = "mutatingbindings",
        /// The watch of the status objects of mutating policies.
        PolicyStatuses = "policystatuses",
        /// The watch of validating webhook configurations, if enabled.
        ValidatingWebhooks = "validatingwebhooks",
        /// The watch of the status objects of validating webhook configurations.
        ValidatingWebhookStatuses = "validatingwebhookstatuses",
        /// The watch of mutating webhook configurations, if enabled.
        MutatingWebhooks = "mutatingwebhooks",
        /// The watch of the status objects of mutating webhook configurations.
        MutatingWebhookStatuses = "mutatingwebhookstatuses",
        /// The watch of the status objects of CustomResourceDefinitions, if enabled.
        DefinitionStatuses = "definitionstatuses",
        /// The watch of `APIServices`.
        ApiServices = "apiservices",
        /// The polls of discovery.
        Discovery = "discovery",
        /// The polls of the index of OpenAPI documents.
        OpenApi = "openapi",
    }
}

label_values! {
    /// The verb of a request to the API server.
    Verb {
        /// Reads an object, a list of resources or a document.
        Get = "get",
        /// Lists objects.
        List = "list",
        /// Watches objects. The measured duration ends with the response headers.
        Watch = "watch",
        /// Creates an object or requests a review.
        Create = "create",
        /// Replaces an object.
        Update = "update",
        /// Patches an object, including server-side apply.
        Patch = "patch",
        /// Deletes objects.
        Delete = "delete",
        /// Any other verb.
        Other = "other",
    }
}

/// The result of a request to the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Code {
    /// The HTTP status of the response.
    Status(u16),
    /// There was no response.
    Error,
}

impl EncodeLabelValue for Code {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => status.encode(encoder),
            Self::Error => "error".encode(encoder),
        }
    }
}

label_values! {
    /// The result of a cache lookup.
    Lookup {
        /// The value was cached.
        Hit = "hit",
        /// The value was not cached and was fetched.
        Fetched = "fetched",
        /// The value is unavailable.
        Failed = "failed",
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct OutcomeLabels {
    pub(super) outcome: ReconcileOutcome,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct SkippedLabels {
    pub(super) reason: Skipped,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ErrorLabels {
    pub(super) reason: ErrorReason,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct SourceLabels {
    pub(super) source: Source,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct SourceErrorLabels {
    pub(super) source: Source,
    pub(super) reason: ErrorReason,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct LookupLabels {
    pub(super) result: Lookup,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct VerbLabels {
    pub(super) verb: Verb,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RequestLabels {
    pub(super) verb: Verb,
    pub(super) code: Code,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct TaskLabels {
    pub(super) task: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct KubernetesLabels {
    pub(super) version: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct KindLabels {
    pub(super) kind: &'static str,
}

//! Labels of metrics: closed enums, so that no value comes from a text.

use std::fmt;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};

/// Declares an enum whose variants are label values.
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

            /// The value of the label.
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
    /// How a reconciliation ended.
    ReconcileOutcome {
        /// The status said it all already.
        Unchanged = "unchanged",
        /// The status was written.
        Applied = "applied",
        /// The policy is gone.
        Deleted = "deleted",
        /// It failed and is tried again.
        Failed = "failed",
        /// The write was refused since the policy had changed in between: it is looked at again.
        Conflict = "conflict",
        /// It was judged and not written: another instance leads.
        Observed = "observed",
        /// It was written too often and is tried again.
        RateLimited = "rate_limited",
    }
}

label_values! {
    /// Why a reconciliation wrote nothing.
    Skipped {
        /// The status is as it should be.
        Equal = "equal",
        /// Schemas that the check needs are loading.
        SchemasLoading = "schemas_loading",
        /// Params that bindings refer to are loading.
        ParamsLoading = "params_loading",
        /// Probes are not listed yet.
        ProbesLoading = "probes_loading",
        /// Objects, bindings or conditions of the kind are not listed yet, or the cluster does not serve them.
        KindLoading = "kind_loading",
        /// The check continues in another lane.
        CheckDeferred = "check_deferred",
        /// The object is not the stored one any more.
        ObjectChanged = "object_changed",
        /// The subject is excluded and has nothing of ours.
        Excluded = "excluded",
        /// The definition has no rules and no probes.
        NoRules = "no_rules",
        /// Another instance leads.
        NotLeader = "not_leader",
        /// The status was written too often.
        RateLimited = "rate_limited",
    }
}

label_values! {
    /// Why something failed.
    ErrorReason {
        /// The API server refused for lack of permission.
        Forbidden = "forbidden",
        /// The credentials were refused.
        Unauthorized = "unauthorized",
        /// The object changed or was replaced in between.
        Conflict = "conflict",
        /// The object is gone.
        NotFound = "not_found",
        /// The API server found the request invalid.
        Invalid = "invalid",
        /// The object would become too large.
        TooLarge = "too_large",
        /// The API server asks to come back later.
        Throttled = "throttled",
        /// The API server failed.
        Server = "server",
        /// The API server could not be reached.
        Connection = "connection",
        /// No answer came in time.
        Timeout = "timeout",
        /// An answer could not be read.
        Decode = "decode",
        /// The check of a policy panicked.
        Panic = "panic",
        /// Anything else.
        Other = "other",
    }
}

label_values! {
    /// Sources of facts that are kept in sync with the cluster.
    Source {
        /// The watch of policies.
        Policies = "policies",
        /// The watch of bindings.
        Bindings = "bindings",
        /// The watch of probes, where their kind is served.
        Probes = "probes",
        /// The watches of params, of all kinds together.
        Params = "params",
        /// The watch of CustomResourceDefinitions.
        Crds = "crds",
        /// The watch of mutating policies, where they are followed.
        MutatingPolicies = "mutatingpolicies",
        /// The watch of their bindings.
        MutatingBindings = "mutatingbindings",
        /// The watch of the objects that hold conditions of ours.
        PolicyStatuses = "policystatuses",
        /// The watch of configurations of validating webhooks, where they are followed.
        ValidatingWebhooks = "validatingwebhooks",
        /// The watch of the objects that hold their conditions.
        ValidatingWebhookStatuses = "validatingwebhookstatuses",
        /// The watch of configurations of mutating webhooks, where they are followed.
        MutatingWebhooks = "mutatingwebhooks",
        /// The watch of the objects that hold their conditions.
        MutatingWebhookStatuses = "mutatingwebhookstatuses",
        /// The watch of the objects that hold conditions of CustomResourceDefinitions, where these are followed.
        DefinitionStatuses = "definitionstatuses",
        /// The watch of API services.
        ApiServices = "apiservices",
        /// The list of served resources.
        Discovery = "discovery",
        /// The index of OpenAPI documents.
        OpenApi = "openapi",
    }
}

label_values! {
    /// Verbs of requests to the API server.
    Verb {
        /// Reads one object, a list of resources or a document.
        Get = "get",
        /// Lists objects.
        List = "list",
        /// Watches objects; the request lasts until the head of its response.
        Watch = "watch",
        /// Creates an object or asks for a review.
        Create = "create",
        /// Replaces an object.
        Update = "update",
        /// Patches an object, server-side apply included.
        Patch = "patch",
        /// Deletes objects.
        Delete = "delete",
        /// Anything else.
        Other = "other",
    }
}

/// How a request to the API server was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Code {
    /// The HTTP status of the answer.
    Status(u16),
    /// There was no answer.
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
    /// How a look into a cache ended.
    Lookup {
        /// It was there.
        Hit = "hit",
        /// It was fetched.
        Fetched = "fetched",
        /// It could not be had.
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

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct KindLabels {
    pub(super) kind: &'static str,
}

//! Defines [`Behavior`]: the differences between Kubernetes versions, except for overloads.

/// The response to a request that creates an object whose name is reserved for static manifests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaticNames {
    /// The request succeeds.
    Accepted,
    /// The request succeeds with a warning.
    Warned,
    /// The request is rejected.
    Rejected,
}

/// The wording of errors about values that are too long.
///
/// Source: k8s.io/apimachinery 0.30 to 0.34 `pkg/util/validation/field/errors.go`, `TooLong`, `TooLongMaxLength`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LengthErrors {
    /// `must have at most 5 bytes` for metadata, but `may not be longer than 5` for strings of custom resources.
    Separate,
    /// `may not be more than 1 bytes`, with a plural for every number.
    Bytes,
    /// `may not be more than 1 byte`, with a singular for one byte.
    #[default]
    ByteOrBytes,
}

impl LengthErrors {
    /// Returns the error text for metadata that is longer than `max` bytes.
    #[must_use]
    pub fn metadata_text(self, max: usize) -> String {
        match self {
            Self::Separate => format!("must have at most {max} bytes"),
            Self::ByteOrBytes if max == 1 => "may not be more than 1 byte".to_owned(),
            Self::Bytes | Self::ByteOrBytes => format!("may not be more than {max} bytes"),
        }
    }

    /// Returns the error text for a string in a custom resource that is longer than `max`, the `maxLength` of the
    /// string's schema.
    #[must_use]
    pub fn string_text(self, max: i64) -> String {
        match self {
            _ if max < 0 => "value is too long".to_owned(),
            Self::Separate => format!("may not be longer than {max}"),
            Self::ByteOrBytes if max == 1 => "may not be more than 1 byte".to_owned(),
            Self::Bytes | Self::ByteOrBytes => format!("may not be more than {max} bytes"),
        }
    }
}

/// The differences between Kubernetes versions, except for overloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each flag is one independent change in Kubernetes"
)]
pub struct Behavior {
    /// The behavior of cel-go.
    pub language: cel::version::Behavior,
    /// The value of a JSON patch can be a list or map that contains an `Object`. Older versions panic.
    ///
    /// Source: k8s.io/apiserver 0.35.10, 0.36.5 and 0.37 `pkg/cel/mutation/dynamic/objects.go`,
    /// `ObjectVal.ConvertToNative`.
    pub patches_convert_nested_objects: bool,
    /// In kube-controller-manager, the type checker declares `params` even if the schema of the paramKind is unknown.
    ///
    /// Source: k8s.io/apiserver 0.36 `pkg/admission/plugin/policy/validating/typechecking.go`, `TypeChecker.compiler`.
    pub declares_untyped_params: bool,
    /// If the result of an expression has the wrong type, the error contains the actual type.
    ///
    /// Source: k8s.io/apiserver 0.32 `pkg/admission/plugin/cel/compile.go`, `compiler.CompileCELExpression`.
    pub names_result_types: bool,
    /// An object without a creation time has no field `creationTimestamp`. In older versions, the field is null.
    ///
    /// Source: apimachinery 0.34 `pkg/apis/meta/v1/types.go`, `ObjectMeta.CreationTimestamp`.
    pub omits_zero_times: bool,
    /// Errors show lists and structs as JSON. In older versions, they show Go syntax, such as `[]string{"x"}`.
    ///
    /// Source: apimachinery 0.34 `pkg/util/validation/field/errors.go`, `Error.ErrorBody`.
    pub writes_lists_as_json: bool,
    /// The error of a violated validation rule contains the validated value if it is a scalar, and no value otherwise.
    /// In older versions, it contains the type of the schema instead.
    ///
    /// Source: k8s.io/apiextensions-apiserver 0.35 `pkg/apiserver/schema/cel/validation.go`,
    /// `Validator.validateExpressions`.
    pub rule_errors_have_values: bool,
    /// Errors about long labels state the limit in bytes. Older versions say "characters", and call a label key a
    /// qualified name.
    ///
    /// Source: apimachinery 0.35 `pkg/api/validate/content/errors.go`, `MaxLenError`; `kube.go`, `IsLabelKey`.
    pub limits_labels_in_bytes: bool,
    /// API servers never call webhooks for reviews, such as `TokenReview`.
    ///
    /// Source: k8s.io/apiserver 0.37 `pkg/features/kube_features.go`, `ExcludeAdmissionWebhookVirtualResources`.
    pub webhooks_skip_reviews: bool,
    /// The maximum number of failed validations in the audit annotation of a request.
    ///
    /// Source: k8s.io/apiserver 0.37 `pkg/admission/plugin/policy/validating/dispatcher.go`, `maxValidationFailures`.
    pub max_audited_failures: usize,
    /// Validating policies read objects of built-in kinds, `request` and `namespaceObject` as Go values. In older
    /// versions, they read unstructured objects. Objects without a Go type remain unstructured.
    ///
    /// Mutating policies read `request`, `namespaceObject` and `params` as Go values. They also read `object` and
    /// `oldObject` as Go values after match conditions have been evaluated for objects of the same kind.
    ///
    /// Source: k8s.io/apiserver 0.37 `pkg/admission/plugin/cel/activation.go`, `newActivation`;
    /// `pkg/admission/conversion.go`, `LazyObject`.
    pub reads_go_values: bool,
    /// The version is newer than all supported versions, so this crate may lack functions, macros and syntax.
    pub is_incomplete: bool,
    /// The concatenation of lists with a schema contains CEL values, and lists of type `set` are compared by CEL
    /// values. Lists of type `set` or `map` with repeated elements are equal only if they have the same distinct
    /// elements. Older versions use Go values, and do not compare the distinct elements.
    ///
    /// Source: k8s.io/apiserver 0.37 `pkg/cel/common/valuesunstructured.go`, `unstructuredSetList.Equal`,
    /// `unstructuredMapList.Equal`, `unstructuredList.Add`.
    pub lists_hold_cel_values: bool,
    /// In schemas of custom resources, the type determines the available formats. For example, `int32` is a format of
    /// integers. In older versions, every type has the formats of strings.
    ///
    /// Source: k8s.io/apiextensions-apiserver 0.36 `pkg/apiserver/validation/formats.go`,
    /// `StripUnsupportedFormatsPostProcessorForVersion`.
    pub formats_depend_on_type: bool,
    /// Schemas of custom resources can use the formats `k8s-short-name` and `k8s-long-name`.
    ///
    /// Source: k8s.io/apiextensions-apiserver 0.34 `pkg/apiserver/validation/formats.go`, `supportedVersionedFormats`.
    pub enforces_name_formats: bool,
    /// The response to a request that creates a policy, binding or webhook configuration whose name ends with
    /// `.static.k8s.io`.
    ///
    /// Source: kubernetes 1.36 and 1.37 `pkg/apis/admissionregistration/validation/static_suffix.go`;
    /// `pkg/features/kube_features.go`, `ManifestBasedAdmissionControlConfig`.
    pub static_names: StaticNames,
    /// The estimated costs of validation rules of CustomResourceDefinitions assume that `metadata.name` has at most 253
    /// characters and `metadata.generateName` at most 252. In older versions, each can be as long as a request.
    ///
    /// Source: k8s.io/apiextensions-apiserver 0.37 `pkg/apiserver/schema/cel/model/schemas.go`,
    /// `cappedLengthStringType`.
    pub bounds_names_in_rules: bool,
    /// The estimated costs of validation rules use the `maxLength` of `x-kubernetes-int-or-string` schemas.
    ///
    /// Source: k8s.io/apiserver 0.34 `pkg/cel/common/schemas.go`, `SchemaDeclType`.
    pub bounds_int_or_string_by_length: bool,
    /// Built-in objects have the defaults of the features that 1.37 enables.
    ///
    /// Source: kubernetes 1.37 `pkg/features/kube_features.go`, `MaxUnavailableStatefulSet`, `VolumeLimitScaling`.
    pub has_defaults_of_1_37: bool,
    /// The wording of errors about values that are too long.
    pub length_errors: LengthErrors,
    /// The errors about empty fields of owner references contain the field, as in `name must not be empty`.
    ///
    /// Source: k8s.io/apimachinery 0.33 and 0.34 `pkg/api/validation/objectmeta.go`, `validateOwnerReference`.
    pub names_empty_owner_fields: bool,
    /// Errors about owner references contain the index of the reference. Errors about empty fields of owner references
    /// and `managedFields` have the type `Required` instead of `Invalid`. An update rejects a negative `generation`.
    ///
    /// Source: k8s.io/apimachinery 0.37 `pkg/api/validation/objectmeta.go`, `validateOwnerReference`,
    /// `ValidateObjectMetaAccessorUpdate`; `pkg/apis/meta/v1/validation/validation.go`, `ValidateManagedFields`.
    pub reports_missing_metadata_fields: bool,
}

//! Compares the settings of two versions of a policy and of its bindings: failurePolicy, reinvocationPolicy, actions,
//! matching and params.
//!
//! A setting can change without an effect on the compared requests. Expressions are not settings: they are evaluated
//! for the requests.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::PolicyPair;
use super::param_objects::ParamObjects;
use super::report::Group;
use crate::cli::audit::PolicyResult;
use crate::cli::eval::policy_set::{PolicySet, PreparedPolicy};
use crate::cli::unified;
use crate::policy::admission::Binding;

/// A setting that differs between two versions of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Setting {
    /// The name of the policy.
    pub policy: String,
    /// The binding, if the setting belongs to a binding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binding: Option<String>,
    /// The namespace and name of the params, such as `default/limits`, if they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<String>,
    /// The version without bindings, `old` or `new`, if the other version has bindings. The version without bindings is
    /// not enforced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unbound: Option<&'static str>,
    /// The name of the field, or `binding` for a binding that only one version has.
    pub field: SettingField,
    /// The old value: a name, a list of names, or an object as YAML; `absent` for no value.
    pub old: String,
    /// The new value.
    pub new: String,
    /// True if the setting may have an effect on a compared request.
    pub affected: bool,
    /// The unified diff between the values, if they are objects.
    #[serde(skip)]
    pub(super) diff: String,
}

/// The field of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum SettingField {
    /// The failurePolicy of the policy.
    FailurePolicy,
    /// The matchConstraints of the policy.
    MatchConstraints,
    /// A binding that only one version has.
    Binding,
    /// The validationActions of a binding.
    ValidationActions,
    /// The matchResources of a binding.
    MatchResources,
    /// The paramRef of a binding.
    ParamRef,
    /// The paramKind of the policy.
    ParamKind,
    /// The reinvocationPolicy of a mutating policy.
    ReinvocationPolicy,
    /// An object of the params.
    Params,
}

impl SettingField {
    /// Returns the name that the output shows.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::FailurePolicy => "failurePolicy",
            Self::MatchConstraints => "matchConstraints",
            Self::Binding => "binding",
            Self::ValidationActions => "validationActions",
            Self::MatchResources => "matchResources",
            Self::ParamRef => "paramRef",
            Self::ParamKind => "paramKind",
            Self::ReinvocationPolicy => "reinvocationPolicy",
            Self::Params => "params",
        }
    }

    /// Returns the sentence for a setting that affects no compared request.
    pub(super) const fn unaffected(self) -> &'static str {
        match self {
            Self::FailurePolicy => "no expression fails for a compared request",
            Self::ValidationActions => "no compared request violates the policy",
            Self::MatchConstraints
            | Self::Binding
            | Self::MatchResources
            | Self::ParamRef
            | Self::ParamKind
            | Self::Params => "the decision is the same for every compared request",
            Self::ReinvocationPolicy => "its effect depends on the other mutating policies",
        }
    }
}

/// The results that a setting can affect.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Results {
    /// True if an expression fails for a request.
    pub(super) has_errors: bool,
    /// True if a validation is false for a request.
    pub(super) has_violations: bool,
}

impl Results {
    pub(super) fn add(&mut self, result: &PolicyResult) {
        self.has_errors |= !result.errors.is_empty();
        self.has_violations |= !result.violations.is_empty();
    }
}

/// Returns the settings that differ between two versions of a policy. Empty unless both versions exist.
pub(super) fn between(
    pair: &PolicyPair,
    [before, after]: [&PolicySet<'_>; 2],
    params: &ParamObjects<'_>,
    results: Results,
    groups: &[Group],
) -> Vec<Setting> {
    let [old, new] = pair.sides;
    let old = old.and_then(|n| before.policies.get(n));
    let new = new.and_then(|n| after.policies.get(n));
    let Some((old, new)) = old.zip(new) else {
        return Vec::new();
    };
    let policy = pair.id.to_string();
    let mut settings = Settings {
        has_difference: groups.iter().any(|group| group.policy == policy),
        policy,
        results,
        all: Vec::new(),
    };
    let [was, is] = pair.failure_policies.map(str::to_owned);
    settings.add(SettingField::FailurePolicy, None, was, is);
    let constraints =
        |policy: &PreparedPolicy<'_>| value(policy.object.value.match_constraints.as_ref());
    let values = [constraints(old), constraints(new)];
    settings.add_values(SettingField::MatchConstraints, None, values);
    let values = [old, new].map(|policy| value(policy.object.value.param_kind.as_ref()));
    settings.add_values(SettingField::ParamKind, None, values);
    let [was, is] = [old, new].map(|policy| {
        let mutating = policy.mutating.as_ref();
        let reinvokes = mutating.is_some_and(|mutating| mutating.reinvokes);
        if reinvokes { "IfNeeded" } else { "Never" }.to_owned()
    });
    settings.add(SettingField::ReinvocationPolicy, None, was, is);
    settings.add_bindings(&bindings(old), &bindings(new));
    for (name, values) in params.changed() {
        let n = settings.all.len();
        let values = values.map(Option::unwrap_or_default);
        settings.add_values(SettingField::Params, None, values);
        if let Some(setting) = settings.all.get_mut(n) {
            setting.params = Some(name);
        }
    }
    for setting in &mut settings.all {
        let is_binding = setting.field == SettingField::Binding;
        setting.unbound = pair.unbound_version().filter(|_| is_binding);
    }
    settings.all
}

/// Returns the bindings by name, without an implied binding.
pub(super) fn bindings<'a>(policy: &'a PreparedPolicy<'_>) -> BTreeMap<&'a str, &'a Binding> {
    let bindings = policy.bindings.iter().filter(|_| !policy.is_unbound);
    bindings.map(|binding| (binding.name(), binding)).collect()
}

/// Collects the settings of a policy that differ.
struct Settings {
    policy: String,
    results: Results,
    /// True if a decision or message of the policy differs for a request.
    has_difference: bool,
    all: Vec<Setting>,
}

impl Settings {
    fn add(&mut self, field: SettingField, binding: Option<&str>, old: String, new: String) {
        if old != new {
            self.push(field, binding, [old, new], String::new());
        }
    }

    /// Adds a setting whose values are objects.
    fn add_values(&mut self, field: SettingField, binding: Option<&str>, values: [Value; 2]) {
        let [old, new] = values;
        let diff = unified::from_objects(("old", "new"), &old, &new);
        if diff.is_empty() {
            return;
        }
        let text = |value: &Value| match value {
            Value::Null => "absent".to_owned(),
            value => unified::yaml(value),
        };
        self.push(field, binding, [text(&old), text(&new)], diff);
    }

    fn add_bindings(&mut self, old: &BTreeMap<&str, &Binding>, new: &BTreeMap<&str, &Binding>) {
        let names: BTreeSet<&str> = old.keys().chain(new.keys()).copied().collect();
        for name in names {
            let (Some(before), Some(after)) = (old.get(name), new.get(name)) else {
                let presence = |bindings: &BTreeMap<&str, &Binding>| {
                    let is_present = bindings.contains_key(name);
                    if is_present { "present" } else { "absent" }.to_owned()
                };
                let (was, is) = (presence(old), presence(new));
                self.add(SettingField::Binding, Some(name), was, is);
                continue;
            };
            let actions = |binding: &Binding| {
                let actions: BTreeSet<&String> = binding.validation_actions().iter().collect();
                let actions: Vec<&str> = actions.into_iter().map(String::as_str).collect();
                if actions.is_empty() {
                    "none".to_owned()
                } else {
                    actions.join(", ")
                }
            };
            let (was, is) = (actions(before), actions(after));
            self.add(SettingField::ValidationActions, Some(name), was, is);
            let values = [before, after].map(|it| value(it.spec().match_resources.as_ref()));
            self.add_values(SettingField::MatchResources, Some(name), values);
            let values = [before, after].map(|it| value(it.spec().param_ref.as_ref()));
            self.add_values(SettingField::ParamRef, Some(name), values);
        }
    }

    fn push(
        &mut self,
        field: SettingField,
        binding: Option<&str>,
        [old, new]: [String; 2],
        diff: String,
    ) {
        let affected = match field {
            SettingField::FailurePolicy => self.results.has_errors,
            SettingField::ReinvocationPolicy => false,
            SettingField::ValidationActions => {
                self.results.has_violations || self.results.has_errors
            }
            _ => self.has_difference,
        };
        self.all.push(Setting {
            policy: self.policy.clone(),
            binding: binding.map(str::to_owned),
            params: None,
            unbound: None,
            field,
            old,
            new,
            affected,
            diff,
        });
    }
}

/// Returns an object in a form for comparison: without empty values and defaults, and with sorted lists. `null` for an
/// empty object.
fn value(object: Option<&impl Serialize>) -> Value {
    let value = object.and_then(|it| serde_json::to_value(it).ok());
    value.map_or(Value::Null, |value| normalized("", value))
}

fn normalized(field: &str, value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let fields = map.into_iter();
            let fields = fields.map(|(key, value)| (key.clone(), normalized(&key, value)));
            let fields: serde_json::Map<String, Value> =
                fields.filter(|(_, value)| !value.is_null()).collect();
            if fields.is_empty() {
                Value::Null
            } else {
                Value::Object(fields)
            }
        }
        Value::Array(items) if items.is_empty() => Value::Null,
        Value::Array(items) => {
            let mut items: Vec<Value> =
                items.into_iter().map(|item| normalized("", item)).collect();
            items.sort_by_cached_key(Value::to_string);
            Value::Array(items)
        }
        Value::String(text)
            if matches!(
                (field, text.as_str()),
                ("matchPolicy", "Equivalent") | ("scope", "*")
            ) =>
        {
            Value::Null
        }
        value => value,
    }
}

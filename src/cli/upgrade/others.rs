//! CustomResourceDefinitions and webhook configurations of the input.
//!
//! The rules for creating these objects are compared. Their validation rules and match conditions are not evaluated.
//! The report lists each object with such expressions.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::report::{Change, Class, NotCompared};
use super::{change, rejections};
use crate::cli::check::finding::Finding;
use crate::cli::check::known::Known;
use crate::cli::check::{self, crd};
use crate::cli::input::{Input, KindFilter, Object};
use crate::policy::analysis::Profile;
use crate::policy::rule::Rule;
use crate::schema::Crd;
use crate::validation_rules;
use crate::version::KubernetesVersion;

/// The CustomResourceDefinitions of the input.
pub(super) struct Others {
    crds: Vec<Object<Crd>>,
}

impl Others {
    /// Reads the CustomResourceDefinitions in `paths` and `crds`. Their problems are reported when the policies are read.
    pub(super) fn read(paths: &[PathBuf], crds: &[PathBuf], stdin: &mut dyn std::io::Read) -> Self {
        let mut paths = paths.to_vec();
        paths.extend_from_slice(crds);
        let input = Input::load(&paths, KindFilter::Crds, stdin);
        Self { crds: input.crds }
    }

    /// Returns the errors for which an API server rejects new definitions and webhook configurations. `known`
    /// determines the version of the API server.
    pub(super) fn creation_errors(
        &self,
        input: &Input,
        known: &Known,
        static_dir: Option<&Path>,
    ) -> Vec<Finding> {
        let version = known.version();
        let mut errors = crd::check(&self.crds, version);
        for configuration in &input.webhooks {
            let place = (true, static_dir);
            errors.extend(check::configuration_findings(
                configuration,
                known,
                Profile::Upstream,
                place,
            ));
        }
        errors.retain(|error| error.rejected);
        errors
    }

    /// Returns true if an API server of `version` accepts the definition `name` of `file`.
    pub(super) fn accepts(&self, (name, file): (&str, &str), version: KubernetesVersion) -> bool {
        let is_it = |crd: &&Object<Crd>| crd.name() == Some(name) && *crd.source.name == *file;
        let definition = self.crds.iter().find(is_it);
        definition.is_none_or(|definition| {
            let errors = crd::check(std::slice::from_ref(definition), version);
            !errors.iter().any(|error| error.rejected)
        })
    }

    /// Returns the objects whose expressions are not evaluated.
    pub(super) fn not_compared(&self, input: &Input) -> Vec<NotCompared> {
        let with_rules = self
            .crds
            .iter()
            .filter(|crd| validation_rules::has_rules(&crd.document.node.to_json()))
            .map(|crd| not_compared(crd, "validation rules"));
        let with_conditions = input
            .webhooks
            .iter()
            .filter(|configuration| has_match_conditions(&configuration.value))
            .map(|configuration| not_compared(configuration, "match conditions"));
        with_rules.chain(with_conditions).collect()
    }
}

/// Returns a change for each webhook that API servers of the new version no longer call for a resource. Also returns
/// the webhook configurations with any other finding that the old version does not have.
pub(super) fn webhook_changes(
    input: &Input,
    known: [&Known; 2],
    static_dir: Option<&Path>,
) -> (Vec<Change>, Vec<NotCompared>) {
    let [old, new] = known.map(Known::version);
    let (mut uncalled, mut others) = (Vec::new(), Vec::new());
    for configuration in &input.webhooks {
        for finding in new_findings(configuration, known, static_dir) {
            if finding.rule == Rule::ExemptResource {
                uncalled.push(uncalled_webhook(configuration, finding, (old, new)));
            } else {
                others.push(NotCompared {
                    reason: format!("for {new}: {}", finding.message),
                    ..not_compared(configuration, "rules")
                });
            }
        }
    }
    (uncalled, others)
}

/// Returns the change of a webhook that is no longer called. `finding` is the finding of the new version.
fn uncalled_webhook(
    configuration: &Object<Value>,
    finding: Finding,
    versions: (KubernetesVersion, KubernetesVersion),
) -> Change {
    let name = configuration.name().unwrap_or_default();
    let place = finding.location.place.unwrap_or(configuration.place());
    let is_mutating = configuration.kind().starts_with("Mutating");
    Change {
        class: if is_mutating {
            Class::Mutates
        } else {
            Class::Admits
        },
        place: Some(format!("{}:{}", configuration.source.name, place.line)),
        old: "calls the webhook".to_owned(),
        new: "does not call the webhook".to_owned(),
        new_message: Some(finding.message),
        reason: rejections::first_release_with(versions, &["webhooks-skip-reviews"], |version| {
            version.behavior().webhooks_skip_reviews
        }),
        ..change(
            None,
            format!("webhook configuration {name}"),
            finding.field_ref,
        )
    }
}

/// Returns the findings that a webhook configuration has in the new version, but not in the old version. Excludes
/// errors for which API servers reject the configuration.
fn new_findings(
    configuration: &Object<Value>,
    known: [&Known; 2],
    static_dir: Option<&Path>,
) -> Vec<Finding> {
    let [before, mut after] = known.map(|known| {
        let place = (true, static_dir);
        check::configuration_findings(configuration, known, Profile::Upstream, place)
    });
    let is_known = |finding: &Finding| before.iter().any(|it| it.message == finding.message);
    after.retain(|finding| !finding.rejected && !is_known(finding));
    after
}

fn not_compared<T>(object: &Object<T>, part: &str) -> NotCompared {
    let place = object.place();
    NotCompared {
        kind: object.kind().to_owned(),
        name: object.name().unwrap_or_default().to_owned(),
        place: format!("{}:{}", object.source.name, place.line),
        reason: format!(
            "its {part} are not evaluated; only the rules for creating the object are compared"
        ),
    }
}

fn has_match_conditions(configuration: &Value) -> bool {
    let webhooks = configuration.get("webhooks").and_then(Value::as_array);
    let mut conditions = webhooks
        .into_iter()
        .flatten()
        .filter_map(|webhook| webhook.get("matchConditions")?.as_array());
    conditions.any(|conditions| !conditions.is_empty())
}

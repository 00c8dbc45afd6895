//! Tests of finding the targets of probes, and of reading their definitions.

use std::collections::BTreeSet;

use super::*;
use crate::cluster::testing::client;
use crate::controller::context::Settings;
use crate::controller::probe_runner::target::{self, Missing};
use crate::controller::process::memory;
use crate::controller::subjects::params::Unavailable;
use crate::controller::subjects::rules::Rules;
use crate::controller::subjects::store::Entry;
use crate::controller::subjects::subject::Subject;
use crate::controller::tests::settings;
use crate::policy::RequestPolicy;
use crate::policy::subject::{SubjectId, SubjectKind};
use crate::telemetry::Metrics;
use crate::version::KubernetesVersion;

const WEBHOOKS: SubjectKind = SubjectKind::ValidatingWebhookConfiguration;
const DEFINITION: SubjectKind = SubjectKind::CustomResourceDefinition;

fn context_of(
    followed: &[SubjectKind],
    answer: impl Fn(&ReceivedRequest) -> Option<Reply> + Send + Sync + 'static,
) -> Context {
    let (client, _) = client(answer);
    let settings = Settings {
        followed: followed.iter().copied().collect(),
        ..settings()
    };
    Context::new(client, settings, Arc::new(Metrics::new()))
}

fn probe_of(target: &Value) -> Arc<Probe> {
    let mut spec = json!({"samples": "Partial", "cases": []});
    let field = if target.is_string() {
        "policyName"
    } else {
        "target"
    };
    spec[field] = target.clone();
    let probe = json!({
        "apiVersion": "vap-status.dev/v1alpha1", "kind": "PolicyProbe",
        "metadata": {"name": "p", "generation": 1, "resourceVersion": "1"}, "spec": spec,
    });
    let probe: PolicyProbe = serde_json::from_value(probe).unwrap();
    Arc::new(probe.into())
}

fn webhook_target(webhook: &Value) -> Arc<Probe> {
    probe_of(&json!({"kind": WEBHOOKS.as_str(), "name": "a", "webhook": webhook}))
}

fn stored(context: &Context, kind: SubjectKind, metadata: Value, subject: Subject) -> Entry {
    let id = SubjectId::new(kind, "a");
    let metadata = serde_json::from_value(metadata).unwrap();
    let from = EventSource::Watched;
    context
        .store
        .put_opt_in(id.clone(), &metadata, subject, from);
    context.store.get(&id).unwrap()
}

fn described(missing: Missing) -> (&'static str, String) {
    match missing {
        Missing::Unknown => ("unknown", String::new()),
        Missing::Absent(text) => ("absent", text),
        Missing::NotFollowed(text) => ("not followed", text),
    }
}

#[test]
fn missing_target_has_reason() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let _entered = runtime.enter();
    let id = SubjectId::new(WEBHOOKS, "a");
    let probes = [webhook_target(&json!("w"))];
    let missing = |context: &Context| described(target::missing(context, &id, &probes));

    let context = context_of(&[WEBHOOKS], |_| None);
    let policy = described(target::missing(
        &context,
        &SubjectId::policy("a"),
        &[probe_of(&json!("a"))],
    ));
    let text = "there is no ValidatingAdmissionPolicy a";
    assert_eq!(policy, ("absent", text.to_owned()));

    assert_eq!(missing(&context).0, "unknown");
    let state = context.opt_in.state(WEBHOOKS).unwrap();
    state.set_obstacle("the cluster is odd".to_owned());
    let (kind, text) = missing(&context);
    assert_eq!(kind, "not followed");
    assert!(text.ends_with(", and the cluster is odd"), "{text}");
    state.set_version("v1");
    state.set_policies_listed(BTreeSet::new());
    state.set_objects_listed();
    let (kind, text) = missing(&context);
    assert_eq!(kind, "absent");
    assert!(text.starts_with("there is no "), "{text}");

    let (kind, text) = missing(&context_of(&[], |_| None));
    assert_eq!(kind, "not followed");
    let option = "start the controller with `--follow validatingwebhookconfigurations`";
    assert!(text.contains(option), "{text}");
}

#[test]
fn webhook_of_target_is_found_by_name() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let _entered = runtime.enter();
    let context = context_of(&[WEBHOOKS], |_| None);
    let named = |name: &str| RequestPolicy {
        name: Some(name.to_owned()),
        ..RequestPolicy::default()
    };
    let subject = Subject::Webhooks(vec![named("v"), named("w")]);
    let metadata = json!({"name": "a", "uid": "u", "resourceVersion": "1"});
    let entry = stored(&context, WEBHOOKS, metadata, subject);
    assert!(
        target::webhook(
            &entry,
            &webhook_target(&json!("w")),
            KubernetesVersion::DEFAULT
        )
        .is_ok()
    );
    for (webhook, expected) in [
        (json!("x"), "the configuration has no webhook x"),
        (
            Value::Null,
            "its target has no field `webhook`: add the name of a webhook",
        ),
    ] {
        let error = target::webhook(
            &entry,
            &webhook_target(&webhook),
            KubernetesVersion::DEFAULT,
        )
        .err();
        assert_eq!(error.as_deref(), Some(expected));
    }
}

fn failed<T>(result: Result<T, Unavailable>) -> (String, bool) {
    let unavailable = result.err().unwrap();
    (unavailable.text, unavailable.is_transient)
}

/// Returns a context and an entry for generation 2 of the CRD `a`. The API server responds with `items`. If `items` is
/// `None`, it responds with an error.
fn with_definition(items: Option<Value>) -> (Context, Entry) {
    let context = context_of(&[DEFINITION], move |_| {
        Some(match &items {
            Some(items) => Reply::json(&json!({"items": items})),
            None => Reply::failure(500, "broken"),
        })
    });
    let subject = Subject::CustomResourceDefinition(Rules::new("{}"));
    let metadata = json!({"name": "a", "uid": "u", "generation": 2, "resourceVersion": "1"});
    let entry = stored(&context, DEFINITION, metadata, subject);
    (context, entry)
}

#[tokio::test(start_paused = true)]
async fn definition_is_read_only_in_the_stored_generation() {
    let of = |uid: &str, generation: i64| json!({"metadata": {"name": "a", "uid": uid, "generation": generation}});
    let (context, entry) = with_definition(Some(json!([of("u", 2)])));
    let read = target::definition(&context, &entry).await.ok().flatten();
    let read = read.unwrap();
    assert_eq!(read.value, of("u", 2));
    assert!(read.rejection.is_none());

    let changing = "the CustomResourceDefinition a is being changed";
    for items in [json!([of("u", 3)]), json!([of("v", 2)]), json!([])] {
        let (context, entry) = with_definition(Some(items));
        let error = failed(target::definition(&context, &entry).await);
        assert_eq!(error, (changing.to_owned(), true));
    }
    let (context, entry) = with_definition(None);
    let (text, is_transient) = failed(target::definition(&context, &entry).await);
    assert!(is_transient);
    let start = "the CustomResourceDefinition a cannot be read now: ";
    assert!(text.starts_with(start), "{text}");

    // An entry of a different kind has no definition.
    let subject = Subject::Webhooks(Vec::new());
    let metadata = json!({"name": "a", "uid": "u", "resourceVersion": "1"});
    let entry = stored(&context, WEBHOOKS, metadata, subject);
    assert!(matches!(
        target::definition(&context, &entry).await,
        Ok(None)
    ));
}

#[tokio::test(start_paused = true)]
async fn total_size_of_definitions_is_limited() {
    let text = |n_bytes: usize| json!([{"description": "x".repeat(n_bytes)}]);
    let names = |names: &[&str]| Ok(names.iter().map(ToString::to_string).collect());
    let (context, _) = with_definition(Some(json!([])));
    let none = target::definitions(&context, names(&["a"])).await.ok();
    assert!(none.unwrap().unpack().unwrap().is_empty());

    // The JSON of each definition has 18 bytes in addition to its description.
    let half = memory::MAX_DEFINITIONS_OF_POLICY / 2 - 18;
    let (context, _) = with_definition(Some(text(half)));
    let both = target::definitions(&context, names(&["a", "b"])).await;
    assert!(both.ok().unwrap().unpacked_bytes > 2 * half);
    let (context, _) = with_definition(Some(text(half + 1)));
    let (error, is_transient) = failed(target::definitions(&context, names(&["a", "b"])).await);
    assert!(!is_transient);
    assert!(error.ends_with("exceeds the limit of 4 MiB"), "{error}");

    let rejected = Unavailable::lasting("no");
    let error = failed(target::definitions(&context, Err(rejected)).await);
    assert_eq!(error, ("no".to_owned(), false));
}

#[tokio::test(start_paused = true)]
async fn definition_that_cannot_be_parsed_is_an_error() {
    let (context, _) = with_definition(Some(json!([{"spec": 7}])));
    let names = Ok(BTreeSet::from(["a".to_owned()]));
    let packed = target::definitions(&context, names).await.ok().unwrap();
    let error = packed.unpack().unwrap_err();
    let start = "the CustomResourceDefinition a cannot be parsed: ";
    assert!(error.starts_with(start), "{error}");
}

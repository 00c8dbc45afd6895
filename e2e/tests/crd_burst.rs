//! Creates many CRDs at once, with policies that require them. All watches keep working. The status of a policy changes
//! as soon as the API server publishes the policy's resources. Polling is disabled, so only watches trigger the
//! changes.

#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test fails by a panic"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use e2e::controller::{Controller, control_plane};
use e2e::policies;
use futures::{StreamExt as _, stream};
use http::Request;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

const N_CRDS: usize = 100;
const N_POLICIES: usize = 50;

/// The number of CRDs per API group. A typical operator installs this number.
const CRDS_OF_A_GROUP: usize = 5;

/// The controller's own delays between the publication of a resource and the status of the policy that requires it.
const OWN_PAUSES: Duration = Duration::from_secs(1);

/// The number of sequential requests between publication and status: discovery, index, document and status. Each
/// request may be as slow as the slowest request of this test.
const ROUNDS: u32 = 4;

const PAUSE: Duration = Duration::from_millis(50);

const TIMEOUT: Duration = Duration::from_secs(120);

/// Sets a polling interval that is longer than the duration of this test.
const NO_POLLING: &str = "--refresh-interval=1440m";

fn group(n: usize) -> String {
    format!("g{}.burst.example.com", n / CRDS_OF_A_GROUP)
}

fn plural(n: usize) -> String {
    format!("burst{n}s")
}

fn crd(n: usize, replicas_type: &str) -> CustomResourceDefinition {
    let properties = json!({"spec": {
        "type": "object", "properties": {"replicas": {"type": replicas_type}}}});
    serde_json::from_value(json!({
        "metadata": {"name": format!("{}.{}", plural(n), group(n))},
        "spec": {
            "group": group(n), "scope": "Namespaced",
            "names": {"plural": plural(n), "singular": format!("burst{n}"),
                      "kind": format!("Burst{n}"), "listKind": format!("Burst{n}List")},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "properties": properties}}}],
        },
    }))
    .unwrap()
}

fn policy(n: usize) -> ValidatingAdmissionPolicy {
    let (name, group, plural) = (format!("burst-{n}"), group(n), plural(n));
    policies::policy(&name, (&group, &plural), "object.spec.replicas <= 5")
}

/// The published resources and schemas, according to polls of this test.
struct Published {
    client: Client,
    hashes: BTreeMap<String, String>,
    documents: BTreeMap<String, Value>,
}

impl Published {
    fn new(client: Client) -> Self {
        Self {
            client,
            hashes: BTreeMap::new(),
            documents: BTreeMap::new(),
        }
    }

    /// Returns the plural names of the served resources.
    async fn served(&self) -> BTreeSet<String> {
        let request = Request::get("/apis")
            .header(
                "accept",
                "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
            )
            .body(Vec::new())
            .unwrap();
        let list: Value = self.client.request(request).await.unwrap();
        let groups = list["items"].as_array().cloned().unwrap_or_default();
        let versions = groups
            .iter()
            .flat_map(|group| group["versions"].as_array().cloned().unwrap_or_default());
        versions
            .flat_map(|version| version["resources"].as_array().cloned().unwrap_or_default())
            .filter_map(|resource| Some(resource["resource"].as_str()?.to_owned()))
            .collect()
    }

    /// Polls the index, and reads the changed documents.
    async fn poll(&mut self) {
        let request = Request::get("/openapi/v3").body(Vec::new()).unwrap();
        let index: Value = self.client.request(request).await.unwrap();
        for (path, entry) in index["paths"].as_object().unwrap() {
            let url = entry["serverRelativeURL"].as_str().unwrap();
            if !path.contains("burst.example.com/")
                || self.hashes.get(path).is_some_and(|hash| hash == url)
            {
                continue;
            }
            let request = Request::get(url).body(Vec::new()).unwrap();
            let Ok(document) = self.client.request::<Value>(request).await else {
                // The document was replaced after the index was read.
                continue;
            };
            self.hashes.insert(path.clone(), url.to_owned());
            self.documents.insert(path.clone(), document);
        }
    }

    /// Returns the type of the field `replicas` in the `n`th CRD, if its schema is published.
    fn replicas_type(&self, n: usize) -> Option<&str> {
        let document = self.documents.get(&format!("apis/{}/v1", group(n)))?;
        let schemas = document["components"]["schemas"].as_object()?;
        let suffix = format!(".v1.Burst{n}");
        let (_, schema) = schemas.iter().find(|(name, _)| name.ends_with(&suffix))?;
        schema["properties"]["spec"]["properties"]["replicas"]["type"].as_str()
    }
}

/// Returns the conditions `TypeChecked` and `Ready` of each policy as `True/NoWarnings`.
async fn conditions(api: &Api<ValidatingAdmissionPolicy>) -> BTreeMap<String, [String; 2]> {
    let list = api.list(&ListParams::default()).await.unwrap();
    list.into_iter()
        .map(|policy| {
            let conditions = policy.status.unwrap_or_default().conditions;
            let of = |type_: &str| {
                let mut conditions = conditions.iter().flatten();
                let condition = conditions.find(|condition| condition.type_ == type_);
                condition.map_or(String::new(), |condition| {
                    format!("{}/{}", condition.status, condition.reason)
                })
            };
            let statuses = [of("TypeChecked"), of("Ready")];
            (policy.metadata.name.unwrap(), statuses)
        })
        .collect()
}

/// The time at which each policy had the expected state, and the duration of the slowest poll.
#[derive(Default)]
struct Times {
    at: BTreeMap<usize, Duration>,
    slowest: Duration,
}

/// Waits until the API server has published all resources and schemas of the policies.
async fn publication(client: &Client, started: Instant) -> (Published, Times) {
    let mut published = Published::new(client.clone());
    let Times {
        mut at,
        mut slowest,
    } = Times::default();
    while at.len() < N_POLICIES {
        assert!(started.elapsed() < TIMEOUT, "{} are published", at.len());
        let start = Instant::now();
        let served = published.served().await;
        published.poll().await;
        slowest = slowest.max(start.elapsed());
        let now = started.elapsed();
        for n in 0..N_POLICIES {
            if served.contains(&plural(n)) && published.replicas_type(n).is_some() {
                at.entry(n).or_insert(now);
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
    (published, Times { at, slowest })
}

async fn await_ready(api: &Api<ValidatingAdmissionPolicy>, started: Instant) -> Times {
    let Times {
        mut at,
        mut slowest,
    } = Times::default();
    while at.len() < N_POLICIES {
        let start = Instant::now();
        let conditions = conditions(api).await;
        slowest = slowest.max(start.elapsed());
        let now = started.elapsed();
        assert!(now < TIMEOUT, "{conditions:?}");
        for n in 0..N_POLICIES {
            if conditions[&format!("burst-{n}")] == ["True/NoWarnings", "True/Ready"] {
                at.entry(n).or_insert(now);
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
    Times { at, slowest }
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_become_ready_after_a_burst_of_crds() {
    let control_plane = control_plane().await.unwrap();
    let controller = Controller::start(&control_plane, &[NO_POLLING])
        .await
        .unwrap();
    let client = control_plane.client().await.unwrap();
    let api: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let create = PostParams::default();
    for n in 0..N_POLICIES {
        api.create(&create, &policy(n)).await.unwrap();
    }
    let started = Instant::now();
    let is_unserved = |[_, ready]: &[String; 2]| ready == "False/NoServedResources";
    while !conditions(&api).await.values().all(is_unserved) {
        assert!(started.elapsed() < TIMEOUT, "{:?}", conditions(&api).await);
        tokio::time::sleep(PAUSE).await;
    }

    let started = Instant::now();
    let burst = async {
        stream::iter(0..N_CRDS)
            .for_each_concurrent(16, |n| {
                let (crds, create) = (&crds, &create);
                async move {
                    crds.create(create, &crd(n, "integer")).await.unwrap();
                }
            })
            .await;
        println!("{N_CRDS} CRDs created after {:.2?}", started.elapsed());
    };
    let ((), (mut published, publication), ready) = tokio::join!(
        burst,
        publication(&client, started),
        await_ready(&api, started)
    );
    let slowest = publication.slowest.max(ready.slowest);
    let allowed = OWN_PAUSES + slowest * ROUNDS;
    let (published_at, ready_at) = (publication.at, ready.at);
    let late: BTreeMap<usize, Duration> = ready_at
        .iter()
        .map(|(n, ready)| (*n, ready.saturating_sub(published_at[n])))
        .collect();
    println!("the slowest poll took {slowest:.2?}; the limit is {allowed:.2?}");
    println!(
        "the last CRD is published after {:.2?}, its policy is Ready after {:.2?}; at most {:.2?} between the two",
        published_at.values().max().unwrap(),
        ready_at.values().max().unwrap(),
        late.values().max().unwrap()
    );
    let too_late: Vec<_> = late.iter().filter(|(_, late)| **late > allowed).collect();

    // After the burst, one CRD changes.
    let patch = Patch::Apply(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "spec": serde_json::to_value(crd(7, "string").spec).unwrap(),
    }));
    let name = format!("{}.{}", plural(7), group(7));
    crds.patch(&name, &PatchParams::apply("e2e").force(), &patch)
        .await
        .unwrap();
    let started = Instant::now();
    let mut document_at = None;
    let ready_at = loop {
        published.poll().await;
        if published.replicas_type(7) == Some("string") {
            document_at.get_or_insert_with(|| started.elapsed());
        }
        let condition = &conditions(&api).await["burst-7"];
        if condition[0] == "False/ExpressionWarnings" && document_at.is_some() {
            break started.elapsed();
        }
        assert!(started.elapsed() < TIMEOUT, "{condition:?}");
        tokio::time::sleep(PAUSE).await;
    };
    let document_at = document_at.unwrap();
    println!(
        "a changed schema is published after {document_at:.2?}, its policy changes after {ready_at:.2?}"
    );
    controller.finish().await.unwrap();
    assert!(too_late.is_empty(), "{too_late:?}");
    let late = ready_at.saturating_sub(document_at);
    assert!(late <= allowed, "{late:?}, allowed {allowed:?}");
}

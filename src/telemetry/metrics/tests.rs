use super::*;
use crate::policy::subject::SubjectKind;

fn id(name: &str) -> SubjectId {
    SubjectId::policy(name)
}

fn lines(metrics: &Metrics, prefix: &str) -> Vec<String> {
    let text = metrics.encode().unwrap();
    text.lines()
        .filter(|line| line.starts_with(prefix))
        .map(str::to_owned)
        .collect()
}

fn sample() -> PolicySample {
    PolicySample {
        conditions: vec![ConditionSample {
            type_: "Ready",
            status: "False",
            reason: "CompilationFailed",
        }],
        failure_policy: "Fail",
        actions: actions(["Warn", "Audit", "Warn"]),
        n_warnings: 2,
        probes: vec![ProbeSample {
            probe: "p".to_owned(),
            outcomes: [("Passed", 1), ("Failed", 2), ("Pending", 0)],
        }],
    }
}

#[test]
fn policy_series_are_removed_with_policy() {
    let metrics = Metrics::new();
    metrics.set_policy(&id("a"), sample());
    metrics.set_policy(&id("b\"\\\n"), sample());
    assert_eq!(
        lines(
            &metrics,
            "vap_policy_condition{kind=\"ValidatingAdmissionPolicy\",policy=\"a\""
        ),
        [
            "vap_policy_condition{kind=\"ValidatingAdmissionPolicy\",policy=\"a\",condition=\"Ready\",status=\"False\"} 1"
        ]
    );
    assert_eq!(
        lines(&metrics, "vap_policy_expression_warnings{"),
        [
            "vap_policy_expression_warnings{kind=\"ValidatingAdmissionPolicy\",policy=\"a\"} 2",
            "vap_policy_expression_warnings{kind=\"ValidatingAdmissionPolicy\",policy=\"b\\\"\\\\\\n\"} 2",
        ]
    );
    assert_eq!(
        lines(
            &metrics,
            "vap_probe_cases{kind=\"ValidatingAdmissionPolicy\",policy=\"a\""
        ),
        [
            "vap_probe_cases{kind=\"ValidatingAdmissionPolicy\",policy=\"a\",probe=\"p\",outcome=\"Passed\"} 1",
            "vap_probe_cases{kind=\"ValidatingAdmissionPolicy\",policy=\"a\",probe=\"p\",outcome=\"Failed\"} 2",
            "vap_probe_cases{kind=\"ValidatingAdmissionPolicy\",policy=\"a\",probe=\"p\",outcome=\"Pending\"} 0",
        ]
    );
    metrics.remove_policy(&id("a"));
    assert_eq!(
        lines(
            &metrics,
            "vap_policy_condition{kind=\"ValidatingAdmissionPolicy\",policy=\"a\""
        ),
        Vec::<String>::new()
    );
    assert_eq!(lines(&metrics, "vap_policies "), ["vap_policies 1"]);
}

#[test]
fn metric_counters_increase_with_each_event() {
    let metrics = Metrics::new();
    metrics.reconciled(ReconcileOutcome::Applied, 0.001);
    metrics.reconcile_failed(ErrorReason::Timeout);
    metrics.status_written();
    metrics.check_panicked();
    metrics.schema_lookup(Lookup::Fetched);
    metrics.sync_failed(Source::Crds, ErrorReason::Forbidden);
    metrics.synced(Source::Discovery);
    for line in [
        "vap_reconciles_total{outcome=\"applied\"} 1",
        "vap_reconciles_total{outcome=\"failed\"} 0",
        "vap_reconcile_errors_total{reason=\"timeout\"} 1",
        "vap_status_writes_total 1",
        "vap_check_panics_total 1",
        "vap_schema_cache_lookups_total{result=\"fetched\"} 1",
        "vap_sync_errors_total{source=\"crds\",reason=\"forbidden\"} 1",
        "vap_reconcile_duration_seconds_count 1",
    ] {
        assert_eq!(lines(&metrics, line), [line]);
    }
    assert_eq!(
        lines(
            &metrics,
            "vap_last_sync_timestamp_seconds{source=\"discovery\"}"
        )
        .len(),
        1
    );
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        lines(&metrics, "vap_build_info"),
        [format!("vap_build_info{{version=\"{version}\"}} 1")]
    );
}

#[test]
fn metrics_are_encoded_as_openmetrics() {
    let text = Metrics::new().encode().unwrap();
    assert!(text.ends_with("# EOF\n"));
    for line in text.lines().filter(|line| line.starts_with("# TYPE ")) {
        let is_known = ["# TYPE vap_", "# TYPE process_"]
            .iter()
            .any(|prefix| line.starts_with(prefix));
        assert!(is_known, "{line}");
    }
}

#[test]
fn policy_series_have_reason_and_actions() {
    let metrics = Metrics::new();
    metrics.set_policy(&id("a"), sample());
    assert_eq!(
        lines(&metrics, "vap_policy_condition_reason{"),
        [
            "vap_policy_condition_reason{kind=\"ValidatingAdmissionPolicy\",policy=\"a\",condition=\"Ready\",status=\"False\",\
          reason=\"CompilationFailed\"} 1"
        ]
    );
    assert_eq!(
        lines(&metrics, "vap_policy_info{"),
        [
            "vap_policy_info{kind=\"ValidatingAdmissionPolicy\",policy=\"a\",failure_policy=\"Fail\",actions=\"Audit,Warn\"} 1"
        ]
    );
    assert_eq!(actions([]), "");
}

#[test]
fn policy_series_have_kind_as_label() {
    let metrics = Metrics::new();
    let mutating = SubjectId::new(SubjectKind::MutatingAdmissionPolicy, "a");
    metrics.set_policy(&mutating, sample());
    metrics.set_policy(&id("a"), sample());
    let infos = lines(&metrics, "vap_policy_info{");
    let labels = "policy=\"a\",failure_policy=\"Fail\",actions=\"Audit,Warn\"";
    assert_eq!(
        infos,
        [
            format!("vap_policy_info{{kind=\"ValidatingAdmissionPolicy\",{labels}}} 1"),
            format!("vap_policy_info{{kind=\"MutatingAdmissionPolicy\",{labels}}} 1"),
        ]
    );
    metrics.remove_policy(&mutating);
    assert_eq!(lines(&metrics, "vap_policy_info{").len(), 1);
}

#[test]
fn series_of_forgotten_source_are_removed() {
    let metrics = Metrics::new();
    let source = Source::MutatingPolicies;
    metrics.synced(source);
    metrics.set_unreadable(source, 1);
    metrics.forget_source(source);
    let text = metrics.encode().unwrap();
    assert!(!text.contains("mutatingpolicies"), "{text}");
}

#[test]
fn probe_policy_missing_metric_is_set_until_policy_exists() {
    let metrics = Metrics::new();
    let missing = || lines(&metrics, "vap_probe_policy_missing{");
    metrics.set_policy(&id("a"), sample());
    metrics.set_missing_policy(&id("a"), vec!["p".into(), "q".into()]);
    assert_eq!(
        missing(),
        [
            "vap_probe_policy_missing{kind=\"ValidatingAdmissionPolicy\",probe=\"p\",policy=\"a\"} 1",
            "vap_probe_policy_missing{kind=\"ValidatingAdmissionPolicy\",probe=\"q\",policy=\"a\"} 1",
        ]
    );
    assert_eq!(lines(&metrics, "vap_policies "), ["vap_policies 0"]);
    metrics.set_missing_policy(&id("a"), vec!["q".into()]);
    assert_eq!(missing().len(), 1);
    metrics.set_policy(&id("a"), sample());
    assert_eq!(missing(), Vec::<String>::new());
    metrics.set_missing_policy(&id("a"), vec!["q".into()]);
    metrics.remove_policy(&id("a"));
    assert_eq!(missing(), Vec::<String>::new());
}

#[test]
fn standby_exports_no_policy_or_probe_series() {
    let metrics = Metrics::new();
    metrics.set_policy(&id("a"), sample());
    metrics.set_missing_policy(&id("b"), vec!["q".into()]);
    assert_eq!(lines(&metrics, "vap_leader "), ["vap_leader 1"]);
    let text = metrics.encode().unwrap();
    assert!(text.contains("policy=\"") && text.contains("probe=\""));
    metrics.set_leading(false);
    let text = metrics.encode().unwrap();
    assert!(!text.contains("policy=\""), "{text}");
    assert!(!text.contains("probe=\""), "{text}");
    assert_eq!(lines(&metrics, "vap_leader "), ["vap_leader 0"]);
    assert_eq!(lines(&metrics, "vap_policies "), ["vap_policies 1"]);
    metrics.set_leading(true);
    assert_eq!(lines(&metrics, "vap_policy_info{").len(), 1);
}

#[test]
fn queue_metrics_are_evaluated_at_scrape() {
    let metrics = Metrics::new();
    assert_eq!(lines(&metrics, "vap_queue_"), Vec::<String>::new());
    let length = Arc::new(std::sync::atomic::AtomicUsize::new(1));
    let seen = Arc::clone(&length);
    metrics.set_queue_gauge(Arc::new(move || {
        (seen.load(std::sync::atomic::Ordering::Relaxed), 2.5)
    }));
    length.store(7, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(lines(&metrics, "vap_queue_length "), ["vap_queue_length 7"]);
    assert_eq!(
        lines(&metrics, "vap_queue_oldest_seconds "),
        ["vap_queue_oldest_seconds 2.5"]
    );
}

#[test]
fn last_in_sync_metric_is_exported_after_first_sync() {
    let metrics = Metrics::new();
    let stamp = || lines(&metrics, "vap_last_in_sync_timestamp_seconds ");
    let in_sync = || lines(&metrics, "vap_in_sync ");
    assert_eq!(in_sync(), ["vap_in_sync 0"]);
    assert_eq!(stamp(), Vec::<String>::new());
    metrics.set_in_sync(true);
    assert_eq!(in_sync(), ["vap_in_sync 1"]);
    let first = stamp();
    assert_eq!(first.len(), 1);
    metrics.set_in_sync(false);
    assert_eq!(in_sync(), ["vap_in_sync 0"]);
    assert_eq!(stamp(), first);
}

#[test]
fn request_metrics_have_count_and_duration() {
    let metrics = Metrics::new();
    metrics.requested(Verb::Patch, Code::Status(409), 0.02);
    metrics.requested(Verb::Patch, Code::Error, 20.0);
    metrics.set_unreadable(Source::Crds, 2);
    metrics.supervised("refresher");
    metrics.panicked("crds");
    for line in [
        "vap_requests_total{verb=\"patch\",code=\"409\"} 1",
        "vap_requests_total{verb=\"patch\",code=\"error\"} 1",
        "vap_request_duration_seconds_count{verb=\"patch\"} 2",
        "vap_unreadable_objects{source=\"crds\"} 2",
        "vap_panics_total{task=\"refresher\"} 0",
        "vap_panics_total{task=\"crds\"} 1",
        "vap_reconciles_total{outcome=\"conflict\"} 0",
        "vap_reconciles_total{outcome=\"observed\"} 0",
    ] {
        assert_eq!(lines(&metrics, line), [line]);
    }
}

/// A scrape encodes a snapshot without holding a lock. Concurrent changes do not wait for the scrape, and the scrape
/// does not export them.
#[test]
fn samples_snapshot_is_unaffected_by_later_changes() {
    let samples = policies::PolicySamples::default();
    samples.set(&id("a"), sample());
    let snapshot = samples.snapshot();
    samples.set(&id("b"), sample());
    samples.remove(&id("a"), Vec::new());
    assert_eq!(snapshot.n_policies(), 1);
    assert_eq!(samples.snapshot().n_policies(), 1);
}

#[test]
fn samples_with_equal_content_are_shared_and_unused_samples_are_dropped() {
    let samples = policies::PolicySamples::default();
    samples.set(&id("a"), sample());
    samples.set(&id("b"), sample());
    assert_eq!(samples.n_distinct(), 1);
    for n_warnings in 0..10_000 {
        let sample = PolicySample {
            n_warnings,
            ..sample()
        };
        samples.set(&id("a"), sample);
    }
    assert!(samples.n_distinct() < 1000, "{}", samples.n_distinct());
    assert_eq!(samples.snapshot().n_policies(), 2);
}

/// The runbook must list every source, because the alert has the source as a label.
#[test]
fn runbook_for_silent_watch_lists_each_source() {
    let runbook = include_str!("../../../docs/runbooks/VapStatusControllerWatchSilent.md");
    for source in Source::ALL {
        let name = format!("`{}`", source.as_str());
        assert!(runbook.contains(&name), "{name}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn process_metrics_describe_this_process() {
    let metrics = Metrics::new();
    let value = |name: &str| -> f64 {
        let line = lines(&metrics, &format!("{name} ")).remove(0);
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    assert!(value("process_cpu_seconds_total") >= 0.0);
    assert!(value("process_resident_memory_bytes") > 1e6);
    assert!(value("process_virtual_memory_bytes") >= value("process_resident_memory_bytes"));
    assert!(value("process_threads") >= 1.0);
    assert!((1.0..=value("process_max_fds")).contains(&value("process_open_fds")));
    let age = seconds_since_epoch() - value("process_start_time_seconds");
    assert!((-2.0..3600.0).contains(&age), "{age}");
}

//! Checks the dashboard in `config/dashboards`. Its counts must agree with the alerts.

#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use std::collections::BTreeSet;

use serde_json::Value;

use crate::repository::{alerts, yaml};

/// Returns the panels of the dashboard. Rows are omitted.
pub(crate) fn panels() -> Vec<Value> {
    let dashboard = yaml("config/dashboards/vap-status-controller.json");
    let all = dashboard["panels"].as_array().unwrap();
    let panels = all.iter().filter(|panel| panel["type"] != "row");
    panels.cloned().collect()
}

pub(crate) fn queries(panel: &Value) -> Vec<String> {
    let targets = panel["targets"].as_array().unwrap();
    let exprs = targets.iter().map(|target| target["expr"].as_str());
    exprs.map(|expr| expr.unwrap().to_owned()).collect()
}

/// Each panel must have a description, a unit, and a message for missing data.
#[test]
fn dashboard_panels_have_descriptions() {
    for panel in panels() {
        let title = panel["title"].as_str().unwrap();
        let defaults = &panel["fieldConfig"]["defaults"];
        let texts = [
            &panel["description"],
            &defaults["unit"],
            &defaults["noValue"],
        ];
        for text in texts {
            assert!(text.as_str().is_some_and(|it| !it.is_empty()), "{title}");
        }
        // Grafana truncates longer titles in a window of 1280 pixels.
        let width = panel["gridPos"]["w"].as_u64().unwrap();
        assert!(
            title.len() as u64 + 9 <= 13 * width / 2,
            "{title} is too long"
        );
        for (target, query) in panel["targets"]
            .as_array()
            .unwrap()
            .iter()
            .zip(queries(&panel))
        {
            let is_rate = query.contains("$__rate_interval");
            // For rates, the query interval must be the scrape interval of the ServiceMonitor, because the rate over
            // fewer than two scrapes is empty.
            let interval = target["interval"].as_str();
            assert_eq!(interval, is_rate.then_some("30s"), "{title}");
        }
    }
    let scrapes = yaml("config/alerts/servicemonitor.yaml");
    let interval = &scrapes["spec"]["endpoints"][0]["interval"];
    assert_eq!(interval.as_str(), Some("30s"));
}

/// The panel "Policies blocking requests" must count the policies of all critical alerts.
#[test]
fn dashboard_counts_subjects_of_critical_alerts() {
    let all = panels();
    let denied = all
        .iter()
        .find(|it| it["title"] == "Policies blocking requests");
    let query = queries(denied.unwrap()).concat();
    // The dashboard selects one cluster, but the alerts are per cluster. The comparison ignores this difference.
    let query = query
        .replace(",policy=~\"$policy\"", "")
        .replace("cluster=\"$cluster\",", "");
    let alerts = alerts();
    let critical = alerts
        .iter()
        .filter(|alert| alert["labels"]["severity"].as_str() == Some("critical"));
    for alert in critical {
        let expr = alert["expr"].as_str().unwrap();
        let expr = expr
            .replace("policy, reason)", "policy)")
            .replace("(cluster, ", "(");
        assert!(query.contains(&expr), "{expr}\n{query}");
    }
    assert_eq!(query.matches(" or max by ").count(), 2);
}

/// Each query must select one cluster, and each alert must be per cluster, because a ruler may have the series of
/// several clusters.
#[test]
fn alerts_and_dashboard_distinguish_clusters() {
    for query in panels().iter().flat_map(queries) {
        let n_selectors = query.matches("{cluster=\"$cluster\"").count();
        let n_series = query.matches("vap_").count() + query.matches("ALERTS").count();
        assert_eq!(n_selectors, n_series, "{query}");
    }
    for alert in alerts() {
        let expr = alert["expr"].as_str().unwrap();
        for operator in [" by (", " on ("] {
            let after = expr.split(operator).skip(1);
            let mut labels = after.map(|rest| rest.split(')').next().unwrap());
            assert!(
                labels.all(|it| it.split(", ").any(|label| label == "cluster")),
                "{expr}"
            );
        }
        // The result of `absent` has no labels of a series, so it cannot be grouped by cluster.
        let n_groups =
            ["sum", "max", "count"].map(|name| expr.matches(&format!("{name} by (")).count());
        assert!(
            n_groups.iter().sum::<usize>() > 0 || expr == "absent(vap_build_info)",
            "{expr}"
        );
        assert!(
            !["sum(", "max(", "count("]
                .iter()
                .any(|it| expr.contains(it)),
            "{expr}"
        );
    }
}

/// Without a leader, no values are reported. No panel may then show a green zero.
#[test]
fn dashboard_is_not_green_without_leader() {
    let mut n_stats = 0;
    for panel in panels() {
        let title = panel["title"].as_str().unwrap();
        for query in queries(&panel) {
            let counts = query.split("vector(0)").count() - 1;
            let exists = "and on () max(vap_build_info{cluster=\"$cluster\"})";
            assert!(counts == 0 || query.ends_with(exists), "{title}");
        }
        if panel["type"] == "stat" {
            n_stats += 1;
            let has_null = |mapping: &Value| mapping["options"]["match"] == "null+nan";
            let mappings = panel["fieldConfig"]["defaults"]["mappings"].as_array();
            assert!(
                mappings.is_some_and(|it| it.iter().any(has_null)),
                "{title}"
            );
        }
    }
    assert!(n_stats >= 10, "{n_stats}");
}

/// Panels must not overlap, leave gaps, or exceed the 24 columns of the grid. Otherwise Grafana moves them.
#[test]
fn dashboard_panels_fill_grid() {
    let dashboard = yaml("config/dashboards/vap-status-controller.json");
    let (mut ids, mut cells) = (BTreeSet::new(), BTreeSet::new());
    for panel in dashboard["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        assert!(
            ids.insert(panel["id"].as_u64().unwrap()),
            "{title}: the id is not unique"
        );
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|it| panel["gridPos"][it].as_u64().unwrap());
        for cell in (y..y + h).flat_map(|y| (x..x + w).map(move |x| (x, y))) {
            assert!(cells.insert(cell), "{title} overlaps at {cell:?}");
        }
    }
    let n_lines = cells.iter().map(|(_, y)| y + 1).max().unwrap();
    let all: BTreeSet<_> = (0..n_lines)
        .flat_map(|y| (0..24).map(move |x| (x, y)))
        .collect();
    assert_eq!(cells, all, "the panels leave gaps or exceed 24 columns");
}

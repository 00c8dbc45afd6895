//! Computes the condition `ResourcesMatched`. The condition is True if the rules of the policy match a served resource
//! that is not exempt from admission. For a webhook configuration, the rules of each webhook must match such a
//! resource.

use super::compute::{MatchSummary, Observations};
use super::condition::{ConditionStatus, Reason};
use super::message;
use super::verdict::{Evidence, Verdict};
use crate::policy::subject::SubjectKind;

pub(super) fn verdict(observed: &Observations<'_>) -> Verdict {
    let matches = match observed.matches.done() {
        Ok(matches) => *matches,
        Err(unknown) => return unknown,
    };
    if !observed.subject.is_webhooks() {
        return resources_verdict(matches, observed.subject);
    }
    let verdicts = matches.webhooks.iter().map(|(name, matched)| {
        let mut verdict = resources_verdict(matched, observed.subject);
        verdict.message = format!("{name}: {}", verdict.message);
        verdict
    });
    let verdicts: Vec<Verdict> = verdicts.collect();
    let first = |status| verdicts.iter().find(|verdict| verdict.status == status);
    let decisive = first(ConditionStatus::False).or_else(|| first(ConditionStatus::Unknown));
    if let Some(verdict) = decisive {
        return verdict.clone();
    }
    match verdicts.as_slice() {
        [] => Verdict::new(
            ConditionStatus::True,
            Reason::ResourcesServed,
            "the configuration has no webhooks",
        ),
        [only] => only.clone(),
        all => {
            let texts: Vec<String> = all.iter().map(|verdict| verdict.message.clone()).collect();
            let is_whole = all
                .iter()
                .all(|verdict| verdict.evidence == Evidence::Complete);
            let text = message::list(&texts);
            let verdict = Verdict::new(ConditionStatus::True, Reason::ResourcesServed, text);
            verdict.with_evidence(if is_whole {
                Evidence::Complete
            } else {
                Evidence::Partial
            })
        }
    }
}

fn resources_verdict(matches: &MatchSummary, subject: SubjectKind) -> Verdict {
    let unserved: Vec<String> = matches
        .unserved
        .iter()
        .map(|unserved| match &unserved.suggestion {
            Some(suggestion) => format!("{} (did you mean {suggestion}?)", unserved.rule),
            None => unserved.rule.clone(),
        })
        .collect();
    let undiscovered: Vec<String> = matches
        .incomplete
        .iter()
        .map(|(group_version, reason)| format!("{group_version} ({reason})"))
        .collect();
    let not_evaluated = || {
        let exempt = message::list(&matches.exempt);
        let verb = if subject.is_webhooks() {
            "call"
        } else {
            "evaluate"
        };
        let evaluated = subject.row().evaluated;
        format!("API servers never {verb} a {evaluated} for {exempt}")
    };
    if matches.n_resources == 0 {
        if !undiscovered.is_empty() {
            let text = format!(
                "cannot determine whether the rules match a resource; not discovered: {}",
                message::list(&undiscovered)
            );
            return Verdict::new(ConditionStatus::Unknown, Reason::DiscoveryIncomplete, text)
                .with_evidence(Evidence::Pending);
        }
        // Exempt resources stay exempt, but unserved resources may be served later. Therefore unserved resources
        // determine the reason.
        let not_served = || format!("not served: {}", message::list(&unserved));
        let (reason, cause) = match (unserved.is_empty(), matches.exempt.is_empty()) {
            (true, true) => (
                Reason::NoServedResources,
                "no rule matches a served resource".to_owned(),
            ),
            (false, true) => (Reason::NoServedResources, not_served()),
            (true, false) => (Reason::ExemptResources, not_evaluated()),
            (false, false) => (
                Reason::NoServedResources,
                format!("{}; {}", not_served(), not_evaluated()),
            ),
        };
        let text = format!("{cause}; {}", subject.row().never_runs);
        return Verdict::new(ConditionStatus::False, reason, text);
    }
    // Resources that only wildcards match are not counted. Otherwise each new or removed CRD would change the message,
    // and the controller would write the status of every policy with a wildcard.
    let n_named = matches.n_resources - matches.n_by_wildcard.min(matches.n_resources);
    let mut parts = vec![match (n_named, matches.n_by_wildcard) {
        (n_named, 0) => format!("the rules match {}", message::count(n_named, "resource")),
        (0, _) => "the rules match resources by wildcards".to_owned(),
        (n_named, _) => format!(
            "the rules match {} by name and others by wildcards",
            message::count(n_named, "resource")
        ),
    }];
    if !matches.exempt.is_empty() {
        parts.push(not_evaluated());
    }
    if !unserved.is_empty() {
        parts.push(format!("not served: {}", message::list(&unserved)));
    }
    if !undiscovered.is_empty() {
        parts.push(format!("not discovered: {}", message::list(&undiscovered)));
    }
    let text = parts.join("; ");
    let verdict = Verdict::new(ConditionStatus::True, Reason::ResourcesServed, text);
    verdict.with_evidence(if undiscovered.is_empty() {
        Evidence::Complete
    } else {
        Evidence::Partial
    })
}

//! Levels of rules: the severity of a rule's findings, set by flags and the configuration file.
//!
//! Levels cannot suppress or lower findings about rejected objects and unreadable input.

use std::collections::BTreeMap;

use super::finding::{Finding, Severity};
use super::suggestion::nearest;
use crate::policy::rule::Rule;

/// The name that selects all rules.
pub(super) const ALL: &str = "all";

/// The level of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The findings of the rule are errors.
    Error,
    /// The findings of the rule are warnings.
    Warn,
    /// The findings of the rule are notes, which do not affect the exit status.
    Note,
    /// The findings of the rule are not reported.
    Allow,
}

impl Level {
    /// All levels, the highest first.
    pub const ALL: [Self; 4] = [Self::Error, Self::Warn, Self::Note, Self::Allow];

    /// Returns the name in flags and files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Note => "note",
            Self::Allow => "allow",
        }
    }

    /// Returns the severity of findings. `None` if they are not reported.
    const fn severity(self) -> Option<Severity> {
        match self {
            Self::Error => Some(Severity::Error),
            Self::Warn => Some(Severity::Warning),
            Self::Note => Some(Severity::Note),
            Self::Allow => None,
        }
    }
}

/// An error in a level that a flag or the configuration file sets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LevelError {
    /// No rule has the id.
    #[error("no rule `{id}`; {hint}`kubectl vap explain` lists all")]
    NoSuchRule {
        /// The id.
        id: String,
        /// The question `did you mean ...?` with a similar rule, or empty.
        hint: String,
    },
    /// The flags or the configuration file set two different levels for a rule.
    #[error("`{id}` has two levels, {first} and {second}; remove one of them")]
    Twice {
        /// The id of the rule.
        id: String,
        /// The first level.
        first: &'static str,
        /// The second level.
        second: &'static str,
    },
}

/// The levels from one source: the flags, or the configuration file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Levels {
    all: Option<Level>,
    of_rules: BTreeMap<Rule, Level>,
}

impl Levels {
    /// Sets the level of a rule, or of all rules without a level of their own.
    ///
    /// # Errors
    /// Returns an error if no rule has this id, or if the rule already has another level.
    pub fn set(&mut self, id: &str, level: Level) -> Result<(), LevelError> {
        let before = if id == ALL {
            self.all.replace(level)
        } else {
            self.of_rules.insert(rule(id)?, level)
        };
        match before.filter(|before| *before != level) {
            Some(before) => Err(LevelError::Twice {
                id: id.to_owned(),
                first: before.name(),
                second: level.name(),
            }),
            None => Ok(()),
        }
    }

    /// Returns the level of a rule. If it is not set, returns the level of all rules.
    fn level(&self, rule: Rule) -> Option<Level> {
        self.of_rules.get(&rule).copied().or(self.all)
    }
}

/// Returns the rule with this id. The error suggests a similar id.
pub(super) fn rule(id: &str) -> Result<Rule, LevelError> {
    Rule::from_id(id).ok_or_else(|| {
        let ids = Rule::ALL.iter().map(|rule| rule.id()).chain([ALL]);
        let hint = nearest(id, ids).map(|meant| format!("did you mean `{meant}`? "));
        LevelError::NoSuchRule {
            id: id.to_owned(),
            hint: hint.unwrap_or_default(),
        }
    })
}

/// Returns true if a finding cannot be suppressed or lowered: the API server rejects the object, or the check is
/// incomplete.
pub(in crate::cli) fn is_unsuppressible(finding: &Finding) -> bool {
    finding.rejected
        || matches!(
            finding.rule,
            Rule::Unreadable | Rule::EmptyInput | Rule::CheckFailed | Rule::ClusterReadFailed
        )
}

/// Sets the severity of a finding to the level of its rule. The first of `sources` with a level for the rule takes
/// precedence.
///
/// Returns false if the finding must not be reported.
pub(super) fn apply(sources: &[Levels], finding: &mut Finding) -> bool {
    let level = sources.iter().find_map(|levels| levels.level(finding.rule));
    let Some(level) = level else { return true };
    if is_unsuppressible(finding) {
        // A level can raise the severity of an unsuppressible finding, but not lower it.
        if level == Level::Error {
            finding.severity = Severity::Error;
        }
        return true;
    }
    match level.severity() {
        Some(severity) => {
            finding.severity = severity;
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::check::finding::Location;

    fn sample(rule: Rule, rejected: bool) -> Finding {
        Finding {
            rejected,
            ..Finding::new(Severity::Warning, rule, "m", Location::from_file("f"))
        }
    }

    #[track_caller]
    fn check(places: &[&[(&str, Level)]], rule: Rule, wanted: Option<Severity>) {
        let places: Vec<Levels> = places
            .iter()
            .map(|set| {
                let mut levels = Levels::default();
                for (id, level) in *set {
                    levels.set(id, *level).unwrap();
                }
                levels
            })
            .collect();
        let mut finding = sample(rule, false);
        let is_reported = apply(&places, &mut finding);
        assert_eq!(is_reported.then_some(finding.severity), wanted);
    }

    #[test]
    fn first_source_takes_precedence_and_rule_id_overrides_all() {
        let rule = Rule::AbsentField;
        let id = "absent-field";
        check(&[], rule, Some(Severity::Warning));
        check(&[&[(id, Level::Note)]], rule, Some(Severity::Note));
        check(&[&[("all", Level::Error)]], rule, Some(Severity::Error));
        check(&[&[(id, Level::Allow), ("all", Level::Error)]], rule, None);
        check(
            &[&[("all", Level::Allow)], &[(id, Level::Error)]],
            rule,
            None,
        );
        let other = &[("absent-key", Level::Allow)];
        let config = &[(id, Level::Error)];
        check(&[other, config], rule, Some(Severity::Error));
    }

    #[test]
    fn levels_do_not_apply_to_rejected_or_unreadable_findings() {
        for mut finding in [
            sample(Rule::InvalidValue, true),
            sample(Rule::Unreadable, false),
            sample(Rule::EmptyInput, false),
        ] {
            for level in [Level::Note, Level::Allow] {
                let mut levels = Levels::default();
                levels.set(ALL, level).unwrap();
                assert!(apply(&[levels], &mut finding));
                assert_eq!(finding.severity, Severity::Warning);
            }
        }
    }

    #[test]
    fn level_for_unknown_rule_and_second_level_for_one_rule_are_errors() {
        let mut levels = Levels::default();
        let error = levels.set("absent-feild", Level::Note).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no rule `absent-feild`; did you mean `absent-field`? `kubectl vap explain` lists all"
        );
        levels.set("absent-field", Level::Note).unwrap();
        levels.set("absent-field", Level::Note).unwrap();
        let error = levels.set("absent-field", Level::Warn).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`absent-field` has two levels, note and warn; remove one of them"
        );
    }
}

//! Levels of rules: how bad the findings of a rule are, by flags and the configuration file.
//!
//! What the API server refuses stays an error, and what could not be read stays told, whatever the levels say.

use std::collections::BTreeMap;

use super::finding::{Finding, Severity};
use super::suggestion::nearest;
use crate::policy::rule::Rule;

/// The name that stands for all rules.
pub(super) const ALL: &str = "all";

/// The level of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Its findings are errors.
    Error,
    /// Its findings are warnings.
    Warn,
    /// Its findings are notes, which do not count for the exit status.
    Note,
    /// Its findings are not reported.
    Allow,
}

impl Level {
    /// All, from the highest down.
    pub const ALL: [Self; 4] = [Self::Error, Self::Warn, Self::Note, Self::Allow];

    /// The name, as flags and files have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Note => "note",
            Self::Allow => "allow",
        }
    }

    /// The severity of findings; `None` where there are none.
    const fn severity(self) -> Option<Severity> {
        match self {
            Self::Error => Some(Severity::Error),
            Self::Warn => Some(Severity::Warning),
            Self::Note => Some(Severity::Note),
            Self::Allow => None,
        }
    }
}

/// Why a level cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LevelError {
    /// No rule has the id.
    #[error("no rule `{id}`; {hint}`kubectl vap explain` lists all")]
    NoSuchRule {
        /// The id.
        id: String,
        /// The rule that was probably meant, in a question, or nothing.
        hint: String,
    },
    /// A rule is given two levels in one place.
    #[error("`{id}` is given two levels, {first} and {second}; remove one of the two")]
    Twice {
        /// The id of the rule.
        id: String,
        /// One of them.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
}

/// The levels of one place: the flags, or the configuration file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Levels {
    all: Option<Level>,
    of_rules: BTreeMap<Rule, Level>,
}

impl Levels {
    /// Sets the level of a rule, or of all that have none of their own.
    ///
    /// # Errors
    /// There is no such rule, or it has another level already.
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

    /// The level of a rule, if it is set: its own before that of all.
    fn of(&self, rule: Rule) -> Option<Level> {
        self.of_rules.get(&rule).copied().or(self.all)
    }
}

/// The rule of an id.
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

/// Reports whether a finding stays what it is: the API server refuses the object, or the check is not complete.
pub(super) fn is_fixed(found: &Finding) -> bool {
    found.refused
        || matches!(
            found.rule,
            Rule::Unreadable | Rule::EmptyInput | Rule::BrokenCheck | Rule::UnreadCluster
        )
}

/// Gives a finding the level of its rule, by the first of `places` that sets one; false where that is not to
/// report it.
pub(super) fn apply(places: &[Levels], found: &mut Finding) -> bool {
    let level = places.iter().find_map(|levels| levels.of(found.rule));
    let Some(level) = level else { return true };
    if is_fixed(found) {
        // What is refused though it is only noted may be made worse.
        if level == Level::Error {
            found.severity = Severity::Error;
        }
        return true;
    }
    match level.severity() {
        Some(severity) => {
            found.severity = severity;
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::check::finding::Location;

    fn finding(rule: Rule, refused: bool) -> Finding {
        Finding {
            refused,
            ..Finding::new(Severity::Warning, rule, "m", Location::of_file("f"))
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
        let mut found = finding(rule, false);
        let is_told = apply(&places, &mut found);
        assert_eq!(is_told.then_some(found.severity), wanted);
    }

    #[test]
    fn the_first_place_decides_and_in_it_the_rule_before_all() {
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
    fn what_is_refused_or_unread_cannot_be_lowered() {
        for mut found in [
            finding(Rule::InvalidValue, true),
            finding(Rule::Unreadable, false),
            finding(Rule::EmptyInput, false),
        ] {
            for level in [Level::Note, Level::Allow] {
                let mut levels = Levels::default();
                levels.set(ALL, level).unwrap();
                assert!(apply(&[levels], &mut found));
                assert_eq!(found.severity, Severity::Warning);
            }
        }
    }

    #[test]
    fn a_level_is_of_a_rule_and_one() {
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
            "`absent-field` is given two levels, note and warn; remove one of the two"
        );
    }
}

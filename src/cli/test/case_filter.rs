//! Selects the cases to run by a regular expression (`--run`).

use std::sync::Arc;

use regexp::{MemoryLimit, Program};

use super::probes::Probe;

/// A regular expression, in Go's syntax, for the names `PROBE/CASE`.
#[derive(Clone, Debug)]
pub struct CaseFilter {
    program: Arc<Program>,
    /// The source of the regular expression.
    pub(in crate::cli) pattern: String,
}

/// The cases that a filter does not select.
#[derive(Clone, Debug, Default)]
pub(super) struct NotSelected {
    pub(super) n: usize,
    /// The name of the first such case, `PROBE/CASE`.
    pub(super) first: Option<String>,
}

impl CaseFilter {
    /// Parses a regular expression.
    ///
    /// # Errors
    /// Returns Go's message if the expression is invalid.
    pub fn parse(pattern: &str) -> Result<Self, String> {
        let program = Program::new(pattern).map_err(|error| error.to_string())?;
        Ok(Self {
            program: Arc::new(program),
            pattern: pattern.to_owned(),
        })
    }

    fn selects(&self, name: &str) -> bool {
        // If the search needs too much memory, the case is run.
        self.program.is_match(name, &MemoryLimit).unwrap_or(true)
    }

    /// Removes the cases whose names do not match, and the probes without remaining cases.
    pub(super) fn retain(&self, probes: &mut Vec<Probe>) -> NotSelected {
        let mut not_selected = NotSelected::default();
        for probe in &mut *probes {
            let names = probe.spec.cases.iter();
            let names = names.map(|case| format!("{}/{}", probe.name(), case.name));
            let names: Vec<String> = names.collect();
            let is_selected: Vec<bool> = names.iter().map(|name| self.selects(name)).collect();
            not_selected.n += is_selected
                .iter()
                .filter(|is_selected| !**is_selected)
                .count();
            if not_selected.first.is_none() {
                let mut names = names.iter().zip(&is_selected);
                let first = names.find(|(_, is_selected)| !**is_selected);
                not_selected.first = first.map(|(name, _)| name.clone());
            }
            probe.retain_cases(&is_selected);
        }
        probes.retain(|probe| !probe.spec.cases.is_empty());
        not_selected
    }
}

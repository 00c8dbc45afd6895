//! `kubectl vap check`: policies in files, checked without a cluster.
//!
//! Takes manifests, gives findings with their places. The engine is that of the controller; what is
//! served is Kubernetes' own APIs and the CRDs of the input.

mod absence;
mod advice;
pub mod annotations;
mod cascade;
pub mod costs;
mod expressions;
pub mod finding;
pub mod known;
mod lockout;
mod names;
pub mod policy;
pub mod render;
pub mod report;
pub mod shape;
pub(super) mod suggestion;
mod suspicious;
mod types;
pub mod validation;
pub mod versions;

use std::io::Read;
use std::path::PathBuf;

use crate::cel::decls::Version;
use crate::policy::analysis::Profile;
use crate::schema::SchemaError;

use super::input::{Input, Wanted};
use known::Known;
use report::CheckReport;

/// The subject and the settings of a check.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Files and directories; `-` is standard input.
    pub paths: Vec<PathBuf>,
    /// Files and directories of CRDs.
    pub crds: Vec<PathBuf>,
    /// Whose answers.
    pub profile: Profile,
    /// The version of the API server that is to take the policies; the newest that is known if it is none.
    pub version: Option<Version>,
}

/// Checks all policies of the input.
///
/// # Errors
/// Where the built-in schemas cannot be read, which is an error of the build.
pub fn run(options: &Options, stdin: &mut dyn Read) -> Result<CheckReport, SchemaError> {
    let mut input = Input::load(&options.paths, Wanted::Policies, stdin);
    let crds = Input::load(&options.crds, Wanted::Crds, stdin);
    let no_crds = report::no_crds(&options.crds, &crds);
    input.problems.extend(crds.problems);
    let all_crds: Vec<_> = input.crds.iter().chain(&crds.crds).collect();
    let mut of_input = names::duplicates(&input, &all_crds);
    of_input.extend(names::passed_over(&input.dropped));
    let reads_stdin = options.paths.iter().any(|path| path.as_os_str() == "-");
    of_input.extend(names::empty_input(&input, reads_stdin));
    let own_crds = std::mem::take(&mut input.crds);
    let all_crds = own_crds.into_iter().chain(crds.crds);
    let known = Known::new(
        all_crds.map(|crd| crd.value),
        input.policies.iter().map(|policy| &policy.value),
    )?;
    let mut report = CheckReport::new(known.kubernetes(), options.profile, &input);
    report.expressions = options.version.map(|version| version.to_string());
    for invalid in input.invalid.iter().chain(&crds.invalid) {
        report.findings.extend(shape::invalid(invalid));
    }
    for policy in &input.policies {
        let mut outcome = policy::check(policy, &input.bindings, &known, options.profile);
        outcome.findings.extend(shape::check(policy));
        outcome.findings.extend(validation::policy(policy));
        if let Some(version) = options.version {
            outcome.findings.extend(versions::check(policy, version));
        }
        cascade::without(&mut outcome.findings);
        report.add(policy, outcome);
    }
    for binding in &input.bindings {
        let mut findings = shape::check(binding);
        findings.extend(validation::binding(binding));
        cascade::without(&mut findings);
        report.findings.extend(findings);
    }
    report.add_bindings(&input);
    report.findings.extend(no_crds);
    report.findings.extend(of_input);
    report.finish();
    Ok(report)
}

//! Checks and evaluates texts in memory, for callers without files and clusters, such as a web page.

use serde::Deserialize;

use super::check::report::CheckReport;
use super::check::settings::Settings;
use super::check::{self, Options};
use super::eval::evaluate_policies;
use super::eval::report::EvalReport;
use super::eval::request::from_texts;
use super::eval::setup::Setup;
use super::input::files::ReadFile;
use super::input::{Input, KindFilter};
use super::time_limit::TimeLimit;
use super::yaml_text;
use crate::version::KubernetesVersion;

pub use super::eval::request::RequestTexts;

/// A text that is treated like a file on the command line.
#[derive(Clone, Debug, Deserialize)]
pub struct Text {
    /// The name in locations.
    pub name: String,
    /// The content.
    pub text: String,
}

/// Checks texts as `kubectl vap check --no-config` checks files. Probes are counted, but not validated, because they may
/// refer to files.
///
/// # Errors
/// Returns an error if the built-in schemas cannot be read, which only happens in a broken build.
pub fn check(texts: &[Text], version: Option<KubernetesVersion>) -> Result<CheckReport, String> {
    let options = Options {
        version,
        ..Options::default()
    };
    let input = read(texts, KindFilter::Policies);
    let settings = Settings::default();
    check::check_input(&options, &settings, input, Input::default(), None)
        .map_err(|error| error.to_string())
}

/// Evaluates the policies of the texts for a request, as `kubectl vap eval` does for files.
///
/// # Errors
/// Returns an error if the request cannot be parsed.
pub fn eval(
    texts: &[Text],
    request: &RequestTexts,
    version: Option<KubernetesVersion>,
) -> Result<EvalReport, String> {
    let request = from_texts(request).map_err(|error| error.to_string())?;
    let input = read(texts, KindFilter::All);
    let inputs = (input, Input::default());
    let setup = Setup::from_input(inputs, Vec::new(), version, |_, _| Ok(None));
    let setup = setup.map_err(|error| error.to_string())?;
    Ok(evaluate_policies(&request, setup, TimeLimit::default()))
}

/// Returns a value as YAML, as `kubectl get -o yaml` prints it.
///
/// # Errors
/// Returns an error if the value cannot be serialized.
pub fn yaml(value: &serde_json::Value) -> Result<String, String> {
    yaml_text::to_string(value).map_err(|error| error.to_string())
}

fn read(texts: &[Text], filter: KindFilter) -> Input {
    let mut input = Input::default();
    for Text { name, text } in texts {
        let file = ReadFile {
            name: name.clone(),
            is_given: true,
            text: Ok(text.clone()),
        };
        input.add_file(file, filter);
    }
    input
}

//! `kubectl vap explain`: describes a rule of `check`, with an example and a remedy, or a field of a kind.
//!
//! [`crate::policy::rule`] defines the rules. This module renders them for the terminal, as JSON, and as the page
//! `docs/rules.md`. [`field_reference`] describes the kinds of `vap-status.dev`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde::Serialize;

use super::check::render::{BOLD, painted};
use super::check::report::CheckReport;
use super::error::CliError;
use super::field_reference::{self, FieldReference};
use super::terminal::Terminal;
use super::text::wrap;
use crate::policy::nearest::nearest;
use crate::policy::rule::{Entry, Example, Rule};

const FIRST_RELEASE: &str = "0.1.0";

/// The rules that were added after the first release, and the release of each.
const LATER_RULES: &[(Rule, &str)] = &[];

/// The output of `kubectl vap explain -o json`.
///
/// The format is stable: fields may be added, but no field is removed or changes its meaning while `apiVersion` stays
/// the same.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleList {
    /// Always `cli.vap-status.dev/v1alpha1`.
    pub api_version: &'static str,
    /// Always `RuleList`.
    pub kind: &'static str,
    /// The rules, sorted by id.
    pub items: Vec<RuleReport>,
}

/// A rule in the output of `explain -o json`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleReport {
    /// The id, such as `undefined-field`.
    pub id: &'static str,
    /// A description of the rule's findings.
    pub summary: &'static str,
    /// The levels of the findings: `error`, `warning` or `note`. The first is the usual level.
    pub levels: Vec<&'static str>,
    /// True if `--fix` can fix some findings.
    pub fixable: bool,
    /// The objects that have such findings, such as `policies`.
    pub objects: Vec<&'static str>,
    /// The first release with the rule.
    pub since: &'static str,
    /// The versions of Kubernetes; absent for all versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versions: Option<&'static str>,
    /// An example of code with a finding, and of the corrected code.
    pub example: ExampleReport,
    /// The remedy: how to resolve a finding.
    #[serde(rename = "mend")]
    pub remedy: &'static str,
}

/// An example of a finding of the rule.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExampleReport {
    /// The kind of example: `expression`, `spec`, `file` or `words`.
    #[serde(rename = "of")]
    pub kind: &'static str,
    /// The code with the finding.
    pub wrong: &'static str,
    /// The corrected code, if there is an example.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub right: Option<&'static str>,
}

impl From<Rule> for RuleReport {
    fn from(rule: Rule) -> Self {
        let Entry {
            id,
            summary,
            example,
            mend,
        } = rule.entry();
        let (kind, wrong, right) = match example {
            Example::Expression { wrong, right } => ("expression", wrong, Some(right)),
            Example::Spec { wrong, right } => ("spec", wrong, Some(right)),
            Example::File { wrong, right } => ("file", wrong, Some(right)),
            Example::Words(words) => ("words", words, None),
        };
        let scope = rule.scope();
        Self {
            id,
            summary,
            levels: scope.levels.iter().map(|level| level.name()).collect(),
            fixable: scope.is_fixable,
            objects: scope.objects.iter().map(|object| object.name()).collect(),
            since: since(rule),
            versions: scope.versions,
            example: ExampleReport { kind, wrong, right },
            remedy: mend,
        }
    }
}

/// Returns the list of `rules` for `-o json`.
#[must_use]
pub fn list(rules: &[Rule]) -> RuleList {
    RuleList {
        api_version: "cli.vap-status.dev/v1alpha1",
        kind: "RuleList",
        items: rules.iter().copied().map(RuleReport::from).collect(),
    }
}

pub(super) enum Topic {
    /// A rule, or the rules that match a search.
    Rules(Vec<Rule>),
    /// A kind or a field.
    Field(Box<FieldReference>),
}

/// Returns the rule with this id, the field with this path, or the rules whose text contains all the words.
///
/// # Errors
/// Returns an error with a suggestion if there is no such rule or field.
pub(super) fn topic(words: &[String]) -> Result<Topic, CliError> {
    let text = words.join(" ");
    if let Some(rule) = Rule::from_id(&text) {
        return Ok(Topic::Rules(vec![rule]));
    }
    if let Some(reference) = field_reference::reference(&text) {
        return reference.map(|reference| Topic::Field(Box::new(reference)));
    }
    let rules = search(&text);
    if rules.is_empty() {
        let ids = Rule::ALL.iter().map(|rule| rule.id());
        let hint = nearest(&text, ids).map(|meant| format!("did you mean `{meant}`? "));
        return Err(CliError::NoSuchRule {
            id: text,
            hint: hint.unwrap_or_default(),
        });
    }
    Ok(Topic::Rules(rules))
}

/// Returns the rules whose id or summary contains all words of `text`, regardless of case. If there are none, returns
/// the rules whose explanation contains the words.
fn search(text: &str) -> Vec<Rule> {
    let text = text.to_lowercase();
    let words: Vec<&str> = text.split_whitespace().collect();
    let matching = |searched: &dyn Fn(Rule) -> String| -> Vec<Rule> {
        let matches = |rule: &&Rule| {
            let searched = searched(**rule).to_lowercase();
            !words.is_empty() && words.iter().all(|word| searched.contains(word))
        };
        Rule::ALL.iter().filter(matches).copied().collect()
    };
    let rules = matching(&|rule| format!("{} {}", rule.id(), rule.summary()));
    if rules.is_empty() {
        matching(&section)
    } else {
        rules
    }
}

/// Renders rules, one per line.
#[must_use]
pub fn table(rules: &[Rule], terminal: Terminal) -> String {
    let ids = rules.iter().map(|rule| rule.id().len());
    let n_columns = ids.max().unwrap_or_default() + 2;
    let max = terminal.width.unwrap_or(usize::MAX);
    let mut out = String::new();
    for rule in rules {
        let (id, indent) = (rule.id(), " ".repeat(n_columns));
        let room = max.saturating_sub(n_columns);
        for (n, line) in wrap(rule.summary(), room, usize::MAX, "")
            .iter()
            .enumerate()
        {
            let head = if n == 0 { id } else { "" };
            let gap = indent.get(head.len()..).unwrap_or_default();
            let _ = writeln!(out, "{}{gap}{line}", painted(head, BOLD, terminal));
        }
    }
    out
}

/// Renders a rule for the terminal.
#[must_use]
pub fn text(rule: Rule, terminal: Terminal) -> String {
    let max = terminal.width.unwrap_or(usize::MAX);
    let Entry {
        id,
        summary,
        example,
        mend,
    } = rule.entry();
    let paragraph = |text: &str| wrap(text, max, usize::MAX, "").join("\n");
    let mut out = format!(
        "{}\n\n{}\n",
        painted(id, BOLD, terminal),
        paragraph(&sentence(summary))
    );
    out.push('\n');
    for line in scope_lines(rule) {
        let _ = writeln!(out, "{}", paragraph(&line));
    }
    match render_example(example) {
        RenderedExample::Words(words) => {
            let _ = write!(out, "\nExample: {}\n", paragraph(words));
        }
        RenderedExample::Code { what, wrong, right } => {
            let _ = write!(out, "\n{what}:\n{}", indented(wrong));
            if !right.is_empty() {
                let _ = write!(out, "Instead:\n{}", indented(right));
            }
        }
    }
    let _ = write!(out, "\n{}\n", paragraph(mend));
    out
}

/// Returns the level, the fixes, the objects and the versions of a rule, one per line.
fn scope_lines(rule: Rule) -> Vec<String> {
    let scope = rule.scope();
    let levels: Vec<&str> = scope.levels.iter().map(|level| level.name()).collect();
    let objects: Vec<&str> = scope.objects.iter().map(|object| object.name()).collect();
    let level = match levels.as_slice() {
        [usual, others @ ..] if !others.is_empty() => {
            format!("{usual}, in some cases {}", others.join(" or "))
        }
        levels => levels.join(""),
    };
    let fix = if scope.is_fixable {
        "some findings, with --fix"
    } else {
        "no"
    };
    let mut lines = vec![format!("Level: {level}"), format!("Fixable: {fix}")];
    if !objects.is_empty() {
        lines.push(format!("Objects: {}", objects.join(", ")));
    }
    let versions = scope.versions.unwrap_or("all");
    lines.push(format!("Kubernetes versions: {versions}"));
    lines.push(format!("Since: {}", since(rule)));
    lines
}

/// Returns the first release with the rule.
fn since(rule: Rule) -> &'static str {
    let later = LATER_RULES.iter().find(|(later, _)| *later == rule);
    later.map_or(FIRST_RELEASE, |(_, release)| release)
}

/// Renders the explanations of all rules that have findings in `report`.
#[must_use]
pub(super) fn for_report(report: &CheckReport, terminal: Terminal) -> String {
    let rules: BTreeSet<Rule> = report.findings.iter().map(|found| found.rule).collect();
    let texts = rules
        .into_iter()
        .map(|rule| format!("\n{}", text(rule, terminal)));
    texts.collect()
}

/// Renders the page of all rules in Markdown.
#[must_use]
pub fn markdown() -> String {
    let mut out = String::from(
        "# Rules of `kubectl vap check`\n\nEach finding belongs to a rule with a stable id, which is shown in the text output, in JSON \
         (`rule`), in SARIF (`ruleId`) and in the titles of GitHub annotations.\n`kubectl vap explain RULE` prints the \
         sections of this page.\nThis page is generated from the tables in `crates/policy/src/rule` by \
         `VAP_UPDATE=1 cargo test --test all explain`.\n\n| rule | level | fixable | applies to | finds |\n|---|---|---|---|---|\n",
    );
    for rule in Rule::ALL {
        let id = rule.id();
        let scope = rule.scope();
        let level = scope.levels.first().map_or("", |level| level.name());
        let fixable = if scope.is_fixable { "some" } else { "no" };
        let objects: Vec<&str> = scope.objects.iter().map(|object| object.name()).collect();
        let _ = writeln!(
            out,
            "| [`{id}`](#{id}) | {level} | {fixable} | {} | {} |",
            objects.join(", "),
            rule.summary()
        );
    }
    for rule in Rule::ALL {
        let _ = write!(out, "\n## {}\n\n{}", rule.id(), section(*rule));
    }
    out
}

/// Renders the section of a rule in Markdown, without the heading.
#[must_use]
pub fn section(rule: Rule) -> String {
    let Entry {
        id: _,
        summary,
        example,
        mend,
    } = rule.entry();
    let mut out = sentence(summary) + "\n\n";
    for line in scope_lines(rule) {
        let _ = writeln!(out, "- {line}");
    }
    match render_example(example) {
        RenderedExample::Words(words) => {
            let _ = write!(out, "\nExample: {words}\n");
        }
        RenderedExample::Code { what, wrong, right } => {
            let _ = write!(out, "\n{what}:\n\n```\n{wrong}\n```\n");
            if !right.is_empty() {
                let _ = write!(out, "\nInstead:\n\n```\n{right}\n```\n");
            }
        }
    }
    let _ = write!(out, "\n{mend}\n");
    out
}

/// An example with its heading, for the terminal and for Markdown.
enum RenderedExample {
    Words(&'static str),
    Code {
        what: &'static str,
        wrong: &'static str,
        right: &'static str,
    },
}

fn render_example(example: Example) -> RenderedExample {
    let code = |what, wrong: &'static str, right| {
        // An empty expression is shown as two quotation marks.
        let wrong = if wrong.is_empty() { "\"\"" } else { wrong };
        RenderedExample::Code { what, wrong, right }
    };
    match example {
        Example::Expression { wrong, right } => {
            code("Example, an expression for Deployments", wrong, right)
        }
        Example::Spec { wrong, right } => code("Example, in the spec of a policy", wrong, right),
        Example::File { wrong, right } => code("Example, a file", wrong, right),
        Example::Words(words) => RenderedExample::Words(words),
    }
}

/// Converts a summary to a sentence, with a capital letter and a period.
fn sentence(summary: &str) -> String {
    let mut chars = summary.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), chars.as_str())
}

fn indented(code: &str) -> String {
    let mut out = String::new();
    for line in code.lines() {
        let _ = writeln!(out, "  {line}");
    }
    out
}

//! Suggested changes of expressions, as edits of the file.

use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::input::Object;
use crate::cli::input::edit::Edit;
use crate::policy::suggestion::{Effect, Suggestion};

/// A change of an expression, after which the expression does not fail. If a finding has several suggestions, they have
/// different effects, and the author chooses one. A single suggestion without `default` denies or checks the requests
/// for which the expression fails now.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SuggestionReport {
    /// The new code. It may contain `...` for the unchanged condition.
    pub text: String,
    /// The edits of the file. Together, they make the change. Empty if the style of the YAML scalar does not permit
    /// them.
    pub edits: Vec<Edit>,
    /// The effect on the requests for which the expression fails now.
    pub effect: EffectReport,
    /// The effective default of the field, as a CEL expression. Present if the change treats an absent field as this
    /// value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// The effect of a change on the requests for which the expression fails now.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub struct EffectReport {
    /// `denied` or `passed` by the validation, `matched` or `not-matched` by the match condition; `evaluated` if the
    /// expression does not decide about the request; `compared` if absent values are compared too.
    pub id: &'static str,
    /// The effect as a sentence, without an initial capital letter and a final period.
    pub message: &'static str,
}

impl From<Effect> for EffectReport {
    fn from(effect: Effect) -> Self {
        Self {
            id: effect.id(),
            message: effect.message(),
        }
    }
}

impl SuggestionReport {
    pub(super) fn new<T>(object: &Object<T>, suggestion: &Suggestion) -> Self {
        Self {
            text: suggestion.text.clone(),
            edits: edits(object, suggestion)
                .or_else(|| whole(object, suggestion).map(|edit| vec![edit]))
                .unwrap_or_default(),
            effect: suggestion.effect.into(),
            default: suggestion.default.clone(),
        }
    }

    /// Returns the edit if the change is one edit.
    pub(super) fn only_edit(&self) -> Option<&Edit> {
        match &*self.edits {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Returns the edit if there is only one and the author does not have to choose.
    pub(super) fn fix(&self) -> Option<&Edit> {
        let mut intended = Effect::INTENDED.iter();
        let is_decided =
            self.default.is_some() || intended.any(|effect| self.effect.id == effect.id());
        self.only_edit().filter(|_| is_decided)
    }
}

/// Returns the smallest edits that make the change, in the order of the file. `None` if the field cannot be edited.
fn edits<T>(object: &Object<T>, suggestion: &Suggestion) -> Option<Vec<Edit>> {
    let field_ref = &suggestion.field_ref;
    let text = object.document.node.nearest(field_ref).as_str()?;
    let (start, end) = (suggestion.range.start, suggestion.range.end);
    let old: Vec<char> = text.chars().skip(start).take(end - start).collect();
    let new: Vec<char> = suggestion.replacement.chars().collect();
    let edits = match insertions(&old, &new) {
        // An edit cannot be empty, so the insertions also replace the first and the last character of the old text.
        Some((before, after)) if old.len() > 1 && !after.is_empty() => {
            let (first, last) = (old.first()?, old.last()?);
            vec![
                object.edit_text(field_ref, start..start + 1, &format!("{before}{first}"))?,
                object.edit_text(field_ref, end - 1..end, &format!("{last}{after}"))?,
            ]
        }
        _ => {
            let n_max = old.len().min(new.len());
            let pairs = old.iter().zip(&new);
            let n_before = pairs.take_while(|(a, b)| a == b).count();
            let n_before = n_before.min(n_max.saturating_sub(1)).min(old.len() - 1);
            let pairs = old.iter().rev().zip(new.iter().rev());
            let n_after = pairs.take_while(|(a, b)| a == b).count();
            let n_after = n_after.min(n_max - n_before).min(old.len() - n_before - 1);
            let changed: String = new.get(n_before..new.len() - n_after)?.iter().collect();
            vec![object.edit_text(field_ref, start + n_before..end - n_after, &changed)?]
        }
    };
    edits.iter().all(Edit::changes_one_value).then_some(edits)
}

/// Returns the edit that replaces the whole expression, with quotes if they are necessary.
fn whole<T>(object: &Object<T>, suggestion: &Suggestion) -> Option<Edit> {
    let node = object.document.node.nearest(&suggestion.field_ref);
    let text = node.as_str()?;
    let (start, end) = (suggestion.range.start, suggestion.range.end);
    let before = text.chars().take(start);
    let after = text.chars().skip(end);
    let new: String = before
        .chain(suggestion.replacement.chars())
        .chain(after)
        .collect();
    let edit = object.document.edit_value(&object.source, node, &new)?;
    edit.changes_one_value().then_some(edit)
}

/// Returns the text before and after `old` in `new`. `None` if `new` does not contain `old`.
fn insertions(old: &[char], new: &[char]) -> Option<(String, String)> {
    let mut positions = (0..=new.len().checked_sub(old.len())?).rev();
    let at = positions.find(|at| new.get(*at..*at + old.len()) == Some(old))?;
    let before = new.get(..at)?.iter().collect();
    let after = new.get(at + old.len()..)?.iter().collect();
    Some((before, after))
}

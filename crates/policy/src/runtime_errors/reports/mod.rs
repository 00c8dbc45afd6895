//! The messages of findings, and the suggested changes of expressions.

mod candidates;
mod guard;
pub(crate) mod messages;
pub(crate) mod trial;

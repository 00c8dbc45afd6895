//! The messages of findings, and the suggested changes of expressions.

mod candidates;
mod guard;
mod intent;
pub(crate) mod messages;
mod null_roots;
mod rewrites;
pub(crate) mod trial;

//! The messages of findings, and the guards that fix expressions.

mod guard;
pub(crate) mod messages;

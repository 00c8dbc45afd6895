//! Writes the messages of findings, and the guards that fix the expressions.

mod guard;
pub(crate) mod messages;

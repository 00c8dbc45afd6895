//! Messages of findings, and guards that fix the expressions.

mod guard;
pub(crate) mod messages;

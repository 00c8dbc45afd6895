//! Path conditions, and the constraints on a request that satisfy them.

mod sample_text;
pub(crate) mod solver;

//! What the end-to-end tests, the demo and the benches share.

pub mod parity;

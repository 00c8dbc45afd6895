//! Code shared by the end-to-end tests, the demo and the benches.

pub mod answer;
pub mod audit;
pub mod builtin;
#[expect(
    clippy::indexing_slicing,
    reason = "generators choose from lists of known lengths and write into objects of their own"
)]
pub mod cases;
pub mod conditions;
pub mod conformance;
pub mod control_plane;
pub mod controller;
pub mod corpus;
pub mod defaults;
pub mod demo;
pub mod documents;
pub mod fault_proxy;
pub mod hostile;
pub mod kubernetes;
pub mod live;
pub mod parity;
pub mod policies;
pub mod random;
pub mod refusals;
pub mod soak;
pub mod statuses;
pub mod trouble;

pub use control_plane::{ControlPlane, User};

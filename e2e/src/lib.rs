//! Code shared by the end-to-end tests, the demo and the benches.

pub mod allowed_failures;
pub mod audit;
pub mod conditions;
pub mod control_plane;
pub mod controller;
pub mod demo;
pub mod fault_proxy;
pub mod hostile;
pub mod kubernetes;
pub mod live;
pub mod policies;
pub mod response;
pub mod soak;
pub mod statuses;

// The fuzz targets also include the module `hostile`. They provide `random` at the same path.
use parity::random;

pub use control_plane::{ControlPlane, User};

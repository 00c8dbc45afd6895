//! What the end-to-end tests, the demo and the benches share.

pub mod control_plane;

pub use control_plane::{ControlPlane, User};

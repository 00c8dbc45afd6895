//! Values as typed objects, for comparisons with upstream.
//!
//! Upstream's programs evaluate over objects that were decoded by Go types, or are read through a schema; an API
//! server evaluates policies over plain JSON. What compares the two has to make the same objects, and the
//! product does not: nothing of this is in the controller or the plugin.
//!
//! - [`builtin`]: built-in objects as their Go types decode them.
//! - [`adapter`]: values read through the schema of a CustomResourceDefinition, which the rules of CRDs use.

pub mod builtin;

pub use kubernetes::typed_values as adapter;

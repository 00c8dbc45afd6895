//! Runs the conformance tests of the CEL specification on our engine: each test is parsed, checked and evaluated.
//!
//! The tests are `tests/simple/testdata/*.textproto` of the Go module `cel.dev/expr`, at the version that the oracle
//! requires. They are read from Go's module cache and not copied. They run in the environment of Kubernetes: cel-go's
//! standard environment with optionals and some of its extensions. `parity/conformance/skip.toml` lists the tests for
//! features that Kubernetes lacks, with reasons.
//!
//! If cel-go differs from the specification, we follow cel-go, and the skip list gives the reason.
//!
//! Source: cel-spec `proto/cel/expr/conformance/test/simple.proto`, `SimpleTest`; cel-go
//! `conformance/conformance_test.go`, `conformanceTest`.

pub mod eval;
pub mod files;
pub mod run;
pub mod skip;
pub mod suite;
pub mod textproto;
pub mod types;
pub mod value;

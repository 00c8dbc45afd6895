//! The conformance tests of the language's specification, run against our engine.
//!
//! The tests are `tests/simple/testdata/*.textproto` of the Go module `cel.dev/expr`, at the version that
//! the oracle is built with; they are read from Go's module cache, never copied. They run in the
//! environment of Kubernetes, the one we have, which is cel-go's standard environment with optionals and
//! some of its extensions. What Kubernetes lacks is named in `parity/conformance/skip.toml`, with the reason.
//!
//! A test is parsed, checked and evaluated.
//!
//! Where cel-go differs from the specification we follow cel-go, and the skip list says so.
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

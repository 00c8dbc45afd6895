//! Runs the conformance tests of the CEL specification on our engine. Each test is parsed, checked and evaluated.
//!
//! The tests are `tests/simple/testdata/*.textproto` in the Go module `cel.dev/expr`, whose version the oracle's
//! `go.mod` determines. The files are read from Go's module cache. The tests run in the environment of Kubernetes,
//! which is cel-go's standard environment with optionals and some of its extensions.
//!
//! `parity/conformance/skip.toml` lists the skipped tests with reasons. A test is skipped if Kubernetes lacks the
//! feature, or if cel-go differs from the specification, because our engine follows cel-go.
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

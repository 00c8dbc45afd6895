//! Tests of evaluation.

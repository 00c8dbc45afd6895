//! Tests of the rules of validation.

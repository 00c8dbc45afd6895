//! What generated inputs reach.

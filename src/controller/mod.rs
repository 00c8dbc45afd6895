//! The controller: the only place that talks to the cluster.
#![allow(dead_code, reason = "wip")]

pub mod crds;
mod discovery;
pub mod error;
mod http;
mod mapper;
mod openapi;
mod schemas;
mod settle;
#[cfg(test)]
mod testing;
mod world;

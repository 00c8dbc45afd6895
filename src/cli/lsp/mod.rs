//! `kubectl vap lsp`: a language server for policies and their bindings, probes and definitions.
//!
//! Threads: `transport` reads messages on one thread and writes them on another. `server` applies changes of documents,
//! in order and without waiting. `checker` checks documents, and `requests` processes requests, each on a thread with a
//! snapshot of the `workspace`. `cluster` reads a cluster, if one is used. Each feature has a module, which converts the
//! results of the engine.
//!
//! Source: Language Server Protocol 3.17.

mod actions;
mod cel;
mod checker;
mod cluster;
mod completion;
mod completion_in_yaml;
mod context;
mod cursor;
mod diagnostics;
mod document;
mod functions;
mod hover;
mod lenses;
mod navigation;
mod outbox;
mod positions;
mod requests;
mod server;
mod signature;
mod symbols;
#[cfg(test)]
mod tests;
mod tokens;
mod transport;
mod typing;
mod uri;
mod workspace;

use std::io::{self, BufReader};

use super::args::LspArgs;
use super::exit::Exit;

/// Runs the server on standard input and output until the client ends the session.
pub(super) fn run(args: &LspArgs) -> Exit {
    let is_live = args.cluster.live || args.connection.is_given();
    let connection = is_live.then(|| args.connection.clone());
    server::serve(BufReader::new(io::stdin()), io::stdout(), connection)
}

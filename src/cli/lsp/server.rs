//! The main loop: applies the notifications of the client, and queues checks and requests.

use std::collections::BTreeSet;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, channel, sync_channel};
use std::thread;

use gen_lsp_types::{
    DidChangeTextDocumentParams, DidChangeWatchedFilesParams, DidCloseTextDocumentParams,
    DidOpenTextDocumentParams, DidSaveTextDocumentParams, MessageType,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::checker::Checker;
use super::cluster::{Outcome, Reader};
use super::document;
use super::outbox::{ErrorCode, Failure, Outbox};
use super::positions::Encoding;
use super::requests::Requests;
use super::transport::{self, Frame};
use super::uri;
use super::workspace::{Effect, Workspace};
use super::{lenses, tokens};
use crate::cli::check::known::Known;
use crate::cli::connection::Connection;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::live::Gap;

/// An input of the main loop.
enum Event {
    Frame(Frame),
    /// The end of the client's messages.
    End,
    Cluster(Box<Outcome>),
}

/// Serves a client until the end of the session or of the input. With a connection, uses the data of that cluster.
pub(super) fn serve(
    mut input: impl BufRead + Send + 'static,
    mut output: impl Write + Send + 'static,
    connection: Option<Connection>,
) -> Exit {
    let (sender, receiver) = channel::<Option<Value>>();
    let writer = thread::spawn(move || {
        for message in receiver.into_iter().map_while(|message| message) {
            if transport::write(&mut output, &message).is_err() {
                return;
            }
        }
    });
    let outbox = Outbox::new(sender);
    // Without a buffer, the client waits while the loop is busy, so that its messages do not accumulate here.
    let (events, received) = sync_channel(0);
    let mut server = Server {
        outbox: outbox.clone(),
        state: State::New,
        cluster: connection.map(|connection| (connection, events.clone())),
    };
    thread::spawn(move || {
        while let Ok(Some(frame)) = transport::read(&mut input) {
            if events.send(Event::Frame(frame)).is_err() {
                return;
            }
        }
        let _ = events.send(Event::End);
    });
    let exit = loop {
        match received.recv() {
            Ok(Event::Frame(Frame::Message(message))) => {
                if let Some(exit) = server.receive(message) {
                    break exit;
                }
            }
            Ok(Event::Frame(Frame::Malformed(reason))) => {
                let failure = Failure::with_code(ErrorCode::Parse, &reason);
                outbox.respond(&Value::Null, Err(failure));
            }
            Ok(Event::Cluster(outcome)) => server.set_cluster(*outcome),
            Ok(Event::End) | Err(_) => break server.exit(),
        }
    };
    outbox.close();
    let _ = writer.join();
    exit
}

struct Server {
    outbox: Outbox,
    state: State,
    /// The cluster to read, and where to send its data. `None` after the session has started.
    cluster: Option<(Connection, SyncSender<Event>)>,
}

enum State {
    /// Before the request `initialize`.
    New,
    Running(Box<Session>),
    /// After the request `shutdown`.
    ShutDown,
}

struct Session {
    workspace: Arc<Workspace>,
    encoding: Encoding,
    checker: Checker,
    requests: Requests,
    /// True if the client can watch files for the server.
    watches_files: bool,
    outbox: Outbox,
    /// Reads the cluster, if one is used.
    cluster: Option<Reader>,
    /// The messages about the cluster that the client has received.
    shown: BTreeSet<String>,
    /// True if a change of an open document may affect the findings about files that are not open. These files are
    /// checked again when a document is saved or closed.
    affects_closed: bool,
}

impl Server {
    fn exit(&self) -> Exit {
        match self.state {
            State::ShutDown => Exit::Clean,
            State::New | State::Running(_) => Exit::Findings,
        }
    }

    /// Processes a message. Returns the exit status if the message ends the session.
    fn receive(&mut self, message: Value) -> Option<Exit> {
        // A batch is an array. The protocol has no batches.
        let Value::Object(mut fields) = message else {
            self.reject(
                &Value::Null,
                ErrorCode::InvalidRequest,
                "a message must be an object",
            );
            return None;
        };
        let params = fields.remove("params").unwrap_or_default();
        let id = fields.remove("id");
        let Some(Value::String(method)) = fields.remove("method") else {
            // Responses to the server's own requests are ignored.
            let is_response = fields.contains_key("result") || fields.contains_key("error");
            if !is_response {
                let id = id.unwrap_or_default();
                self.reject(&id, ErrorCode::InvalidRequest, "the message has no method");
            }
            return None;
        };
        match id {
            None if method == "exit" => return Some(self.exit()),
            None => self.notification(&method, params),
            Some(id @ (Value::String(_) | Value::Number(_))) => self.request(&id, &method, params),
            Some(_) => {
                let message = "the id must be a string or a number";
                self.reject(&Value::Null, ErrorCode::InvalidRequest, message);
            }
        }
        None
    }

    fn reject(&self, id: &Value, code: ErrorCode, message: &str) {
        let failure = Failure::with_code(code, message);
        self.outbox.respond(id, Err(failure));
    }

    fn request(&mut self, id: &Value, method: &str, params: Value) {
        match (&mut self.state, method) {
            (State::New, "initialize") => {
                let (session, result) = Session::start(&params, &self.outbox, self.cluster.take());
                self.state = State::Running(Box::new(session));
                self.outbox.respond(id, Ok(result));
            }
            (State::New, _) => {
                self.reject(
                    id,
                    ErrorCode::ServerNotInitialized,
                    "send `initialize` first",
                );
            }
            (State::ShutDown, _) => {
                self.reject(id, ErrorCode::InvalidRequest, "the server is shut down");
            }
            (State::Running(_), "initialize") => {
                self.reject(id, ErrorCode::InvalidRequest, "the server is initialized");
            }
            (State::Running(_), "shutdown") => {
                self.state = State::ShutDown;
                self.outbox.respond(id, Ok(Value::Null));
            }
            (State::Running(session), _) => {
                let request = (id.clone(), method, params);
                if !session.requests.queue(request, &session.workspace) {
                    let message = format!("no method `{method}`");
                    self.reject(id, ErrorCode::MethodNotFound, &message);
                }
            }
        }
    }

    fn notification(&mut self, method: &str, params: Value) {
        if let State::Running(session) = &mut self.state {
            session.notification(method, params);
        }
    }

    fn set_cluster(&mut self, outcome: Outcome) {
        if let State::Running(session) = &mut self.state {
            session.set_cluster(outcome);
        }
    }
}

fn folders(params: &Value) -> Vec<PathBuf> {
    let uris: Vec<&str> = match params.get("workspaceFolders") {
        Some(Value::Array(folders)) => {
            let uris = folders
                .iter()
                .filter_map(|folder| folder.get("uri")?.as_str());
            uris.collect()
        }
        _ => params
            .get("rootUri")
            .and_then(Value::as_str)
            .into_iter()
            .collect(),
    };
    let of_files = uris.into_iter().filter(|uri| uri.starts_with("file://"));
    of_files.map(uri::path).collect()
}

/// Returns the preferred encoding among those that the client offers.
fn encoding(params: &Value) -> Encoding {
    let offered = params.pointer("/capabilities/general/positionEncodings");
    let offered = offered.and_then(Value::as_array);
    let is_offered = |encoding: &Encoding| {
        offered.is_some_and(|all| all.iter().any(|name| name == encoding.name()))
    };
    let mut preferred = Encoding::ALL.into_iter();
    preferred.find(is_offered).unwrap_or_default()
}

impl Session {
    /// Opens the workspace. Returns the session and the result of `initialize`.
    fn start(
        params: &Value,
        outbox: &Outbox,
        cluster: Option<(Connection, SyncSender<Event>)>,
    ) -> (Self, Value) {
        let encoding = encoding(params);
        let (workspace, error) = Workspace::open(folders(params));
        let checker = Checker::start(outbox.clone(), encoding);
        let reports = checker.reports.clone();
        let snippets = "/capabilities/textDocument/completion/completionItem/snippetSupport";
        let has_snippets = params.pointer(snippets).and_then(Value::as_bool) == Some(true);
        let watching = "/capabilities/workspace/didChangeWatchedFiles/dynamicRegistration";
        let cluster = cluster.map(|(connection, events)| {
            Reader::start(connection, move |outcome| {
                let _ = events.send(Event::Cluster(Box::new(outcome)));
            })
        });
        let session = Self {
            workspace: Arc::new(workspace),
            encoding,
            checker,
            requests: Requests::start(outbox.clone(), (encoding, has_snippets), reports),
            watches_files: params.pointer(watching).and_then(Value::as_bool) == Some(true),
            outbox: outbox.clone(),
            cluster,
            shown: BTreeSet::new(),
            affects_closed: false,
        };
        session.show_problems(error);
        session.read_cluster();
        let result = json!({
            "capabilities": capabilities(encoding),
            "serverInfo": {"name": "kubectl-vap", "version": env!("CARGO_PKG_VERSION")},
        });
        (session, result)
    }

    /// Shows the error of the configuration, and the files that were not read.
    fn show_problems(&self, error: Option<CliError>) {
        let error = error.map(|error| (MessageType::Error, error.to_string()));
        let incomplete = self.workspace.incomplete();
        let incomplete = incomplete.map(|reason| (MessageType::Warning, reason));
        for (level, message) in error.into_iter().chain(incomplete) {
            self.message("window/showMessage", level, &message);
        }
    }

    fn message(&self, method: &str, level: MessageType, message: &str) {
        let params = json!({"type": level, "message": format!("kubectl vap: {message}")});
        self.outbox.notify(method, &params);
    }

    /// Queues a read of the cluster, if one is used.
    fn read_cluster(&self) {
        if let Some(cluster) = &self.cluster {
            cluster.read(&self.workspace);
        }
    }

    /// Uses the data of the cluster, and checks all documents again. If the cluster cannot be read, the earlier data or the
    /// built-in APIs remain in use. The client receives each message about the cluster once.
    fn set_cluster(&mut self, outcome: Outcome) {
        match outcome {
            Ok(cluster) => {
                let version = &cluster.served.kubernetes;
                let server = cluster.data.server.as_deref().unwrap_or_default();
                let message = format!("using the APIs of {server}, version {version}");
                self.message_once("window/logMessage", MessageType::Info, message);
                for Gap {
                    message,
                    help,
                    is_fatal,
                } in &cluster.data.gaps
                {
                    let method = if *is_fatal {
                        "window/showMessage"
                    } else {
                        "window/logMessage"
                    };
                    self.message_once(method, MessageType::Warning, format!("{message}; {help}"));
                }
                Arc::make_mut(&mut self.workspace).set_cluster(cluster);
                self.check_all();
            }
            Err(error) => {
                let used = if self.workspace.has_cluster() {
                    "the data that were read before remain in use".to_owned()
                } else {
                    let version = self.workspace.known().map(Known::kubernetes);
                    format!(
                        "the built-in APIs of Kubernetes {} are used",
                        version.unwrap_or_default()
                    )
                };
                let message = format!("the cluster cannot be read: {error}; {used}");
                self.message_once("window/showMessage", MessageType::Error, message);
                if !self.workspace.has_cluster() {
                    self.check_closed();
                }
            }
        }
    }

    fn message_once(&mut self, method: &str, level: MessageType, message: String) {
        if !self.shown.contains(&message) {
            self.message(method, level, &message);
            self.shown.insert(message);
        }
    }

    fn notification(&mut self, method: &str, params: Value) {
        match method {
            "initialized" => self.initialized(),
            "textDocument/didOpen" => self.apply(params, Self::open),
            "textDocument/didChange" => self.apply(params, Self::change),
            "textDocument/didClose" => self.apply(params, Self::close),
            "textDocument/didSave" => self.apply(params, Self::save),
            "workspace/didChangeWatchedFiles" => self.apply(params, Self::change_files),
            "workspace/didChangeWorkspaceFolders" => self.change_folders(&params),
            "$/cancelRequest" => {
                if let Some(id) = params.get("id") {
                    self.requests.cancel(id);
                }
            }
            _ => {}
        }
    }

    /// Registers for changes of files, and queues the first check of all files.
    fn initialized(&self) {
        if self.watches_files {
            let watchers = json!([{"globPattern": "**/*.{yaml,yml,json}"}]);
            let registration = json!({
                "id": "files",
                "method": "workspace/didChangeWatchedFiles",
                "registerOptions": {"watchers": watchers},
            });
            let params = json!({"registrations": [registration]});
            self.outbox
                .request("register-files", "client/registerCapability", &params);
        }
        // If a cluster is used, the files are checked once it has been read.
        if self.cluster.is_none() {
            self.check_closed();
        }
    }

    /// Decodes the parameters and applies the notification. Invalid parameters are ignored, because a notification has no
    /// response.
    fn apply<P: DeserializeOwned>(&mut self, params: Value, change: fn(&mut Self, &P)) {
        if let Ok(params) = serde_json::from_value(params) {
            change(self, &params);
        }
    }

    fn open(&mut self, params: &DidOpenTextDocumentParams) {
        let document = &params.text_document;
        self.set_document(
            document.uri.clone(),
            document.text.clone(),
            document.version,
        );
    }

    fn change(&mut self, params: &DidChangeTextDocumentParams) {
        let version = params.text_document.version;
        let uri = &params.text_document.text_document_identifier.uri;
        let path = uri::path(&uri.0);
        let file = self
            .workspace
            .file(&path)
            .filter(|file| file.version.is_some());
        // Changes of a document that is not open are ignored.
        let Some(file) = file else { return };
        let mark = if file.source.has_byte_order_mark() {
            "\u{feff}"
        } else {
            ""
        };
        let text = format!("{mark}{}", file.source.text());
        let text = document::changed(text, &params.content_changes, self.encoding);
        self.set_document(uri.clone(), text, version);
    }

    fn set_document(&mut self, uri: gen_lsp_types::Uri, text: String, version: i32) {
        let path = uri::path(&uri.0);
        let effect = Arc::make_mut(&mut self.workspace).set_document(uri, text, version);
        if let Some(file) = self.workspace.file(&path) {
            self.checker.check(file, &self.workspace);
            if self.workspace.lacks_schemas(file) {
                self.read_cluster();
            }
        }
        if effect == Effect::Others {
            self.affects_closed = true;
            self.check_open(Some(&path));
        }
    }

    fn close(&mut self, params: &DidCloseTextDocumentParams) {
        let path = uri::path(&params.text_document.uri.0);
        let Some(file) = self.workspace.file(&path).cloned() else {
            return;
        };
        let effect = Arc::make_mut(&mut self.workspace).read_from_disk(&path, true);
        match self.workspace.file(&path) {
            Some(file) => self.checker.check(file, &self.workspace),
            None => self.checker.remove(&file),
        }
        if effect == Effect::Others || self.affects_closed {
            self.check_all();
        }
    }

    fn save(&mut self, params: &DidSaveTextDocumentParams) {
        let path = uri::path(&params.text_document.uri.0);
        if self.workspace.is_configuration(&path) {
            self.reload();
        } else if self.affects_closed {
            self.check_closed();
        }
        self.affects_closed = false;
        self.read_cluster();
    }

    fn change_files(&mut self, params: &DidChangeWatchedFilesParams) {
        let paths = params.changes.iter().map(|change| uri::path(&change.uri.0));
        let paths: Vec<PathBuf> = paths.collect();
        if paths
            .iter()
            .any(|path| self.workspace.is_configuration(path))
        {
            self.reload();
            return;
        }
        let before: Vec<_> = paths
            .iter()
            .map(|path| self.workspace.file(path).cloned())
            .collect();
        let workspace = Arc::make_mut(&mut self.workspace);
        let mut affects_others = false;
        for path in &paths {
            affects_others |= workspace.read_from_disk(path, false) == Effect::Others;
        }
        for (path, old) in paths.iter().zip(before) {
            match (self.workspace.file(path), old) {
                (Some(file), _) if file.version.is_none() => {
                    self.checker.check(file, &self.workspace);
                }
                (None, Some(old)) => self.checker.remove(&old),
                _ => {}
            }
        }
        if affects_others {
            self.check_all();
        }
    }

    fn change_folders(&mut self, params: &Value) {
        let paths = |name: &str| {
            let event = params.get("event").and_then(|event| event.get(name));
            folders(&json!({"workspaceFolders": event}))
        };
        let (added, removed) = (paths("added"), paths("removed"));
        self.replace_files(|workspace| workspace.change_folders(added, &removed));
    }

    /// Reads the configuration and all files again, and checks all files.
    fn reload(&mut self) {
        self.replace_files(Workspace::reload);
    }

    /// Changes the files of the workspace, and checks all files.
    fn replace_files(&mut self, change: impl FnOnce(&mut Workspace) -> Option<CliError>) {
        let before: Vec<_> = self.workspace.files().cloned().collect();
        let error = change(Arc::make_mut(&mut self.workspace));
        self.show_problems(error);
        for file in before {
            if self.workspace.file(&file.path).is_none() {
                self.checker.remove(&file);
            }
        }
        self.check_all();
    }

    fn check_all(&mut self) {
        self.affects_closed = false;
        self.check_open(None);
        self.check_closed();
    }

    /// Queues the checks of the files that are not open.
    fn check_closed(&self) {
        let files = self.workspace.files();
        for file in files.filter(|file| file.version.is_none()) {
            self.checker.check(file, &self.workspace);
        }
    }

    /// Queues the checks of the open documents, except for `checked`.
    fn check_open(&self, checked: Option<&PathBuf>) {
        for file in self.workspace.open_files() {
            if Some(&file.path) != checked {
                self.checker.check(file, &self.workspace);
            }
        }
    }
}

fn capabilities(encoding: Encoding) -> Value {
    json!({
        "positionEncoding": encoding.name(),
        "textDocumentSync": {"openClose": true, "change": 2, "save": {"includeText": false}},
        "codeActionProvider": {"codeActionKinds": ["quickfix", "source.fixAll"]},
        "completionProvider": {"triggerCharacters": ["."]},
        "hoverProvider": true,
        "definitionProvider": true,
        "referencesProvider": true,
        "renameProvider": {"prepareProvider": true},
        "documentSymbolProvider": true,
        "semanticTokensProvider": {
            "legend": {"tokenTypes": tokens::TYPES, "tokenModifiers": []},
            "full": true,
        },
        "signatureHelpProvider": {"triggerCharacters": ["(", ","]},
        "codeLensProvider": {},
        "executeCommandProvider": {"commands": [lenses::SHOW]},
        "workspace": {"workspaceFolders": {"supported": true, "changeNotifications": true}},
    })
}

//! A started server: its offered tools, and the tasks that keep them up to date.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Duration;

use tokio::sync::Mutex as AsyncMutex;
use tokio::task::JoinHandle;

use super::bounds::{CALL_TIMEOUT, MAX_OUTPUT};
use super::client::{Client, UpstreamError};
use super::definition::{self, Definition};
use super::pins::{PinStatus, Pins};
use crate::mcp::notices::{Notices, Print};
use crate::policy::path::escape;
use crate::policy::{Demand, ToolRule};
use crate::tools::{Ending, Served, Session, ShellCommand, ToolError, words};

/// The least time between two listings of changed tools.
const MIN_RELIST_INTERVAL: Duration = Duration::from_secs(1);

/// A tool that is offered.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Offer {
    pub(super) definition: Definition,
    pub(super) pin: PinStatus,
}

/// A third party's server, confined, and what it offers.
pub(super) struct Server {
    /// The command, as it is shown.
    pub(super) command: String,
    /// Bytes that identify the command.
    pub(super) identity: Vec<u8>,
    pins: Pins,
    /// The rules of the config by tool name.
    rules: BTreeMap<String, ToolRule>,
    /// Names of the config's own tools.
    reserved: Vec<String>,
    client: RwLock<Option<Arc<Client>>>,
    ending: Ending,
    offers: RwLock<BTreeMap<String, Arc<Offer>>>,
    /// Incremented by each listing.
    revision: AtomicU64,
    running: AsyncMutex<Option<Served>>,
    watchers: Mutex<Vec<JoinHandle<()>>>,
    pub(super) call_time: Duration,
    pub(super) call_output: u64,
    notices: Notices,
    /// A separate queue for its standard error.
    stderr_notices: Notices,
}

/// What starts a server.
pub(super) struct Start<'a> {
    /// Its program and arguments.
    pub(super) argv: Vec<OsString>,
    /// Where it starts.
    pub(super) directory: &'a Path,
    /// The state directory, for its pins.
    pub(super) state: &'a Path,
    pub(super) print: Print,
}

impl Server {
    /// Starts it in the sandbox of the session, and lists its tools.
    pub(super) async fn start(session: &Session, start: Start<'_>) -> Result<Arc<Self>, StartError> {
        let Start {
            argv: arguments,
            directory,
            state,
            print,
        } = start;
        let command = escape(&words(&ShellCommand::Argv(arguments.clone())));
        let pins = Pins::of(state, &arguments, directory);
        let no_thread = |error| ToolError::Private(error);
        // Two queues: a flood on its standard error must not displace notices.
        let (notices, stderr_notices) = (
            Notices::new(print).map_err(no_thread)?,
            Notices::new(print).map_err(no_thread)?,
        );
        let (running, streams) = session.serve(arguments, stderr_notices.sender()).await?;
        let ending = running.ending();
        let client = match Client::connect(streams, ending.clone()).await {
            Ok(client) => Arc::new(client),
            Err(error) => {
                notices.report_end(running.finish().await.as_deref());
                notices.finish().await;
                stderr_notices.finish().await;
                return Err(error.into());
            }
        };
        let server = Arc::new(Self {
            identity: pins.path().into_bytes(),
            command,
            pins,
            rules: session.rules().clone(),
            reserved: session.custom_names(),
            call_time: running.call_time.unwrap_or(CALL_TIMEOUT),
            call_output: running.call_output.unwrap_or(MAX_OUTPUT),
            client: RwLock::new(Some(Arc::clone(&client))),
            ending,
            offers: RwLock::default(),
            revision: AtomicU64::new(0),
            running: AsyncMutex::new(Some(running)),
            watchers: Mutex::default(),
            notices,
            stderr_notices,
        });
        if let Some(name) = client.server_name() {
            server.notify(&format!("the MCP server calls itself {name}"));
        }
        if let Err(error) = server.list(&client).await {
            drop(client);
            server.finish().await;
            return Err(error.into());
        }
        if server.offers().is_empty() {
            server.notify("the MCP server offers no tools that can be passed on");
        }
        server.report_unknown_names();
        for name in session.asked_before_written().await {
            server.notify(&format!(
                "the root `{name}` asks before it is written, so the MCP server can only read it \
                 (`write_approval: false` there would let it write)"
            ));
        }
        let watchers = [
            tokio::spawn(watch_list(Arc::downgrade(&server), Arc::clone(&client))),
            tokio::spawn(watch_connection(Arc::downgrade(&server), client)),
            tokio::spawn(watch_end(Arc::downgrade(&server), server.ending.clone())),
        ];
        server
            .watchers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(watchers);
        Ok(server)
    }

    /// The rule that would allow a tool without a question.
    pub(super) fn rule_allowing(&self, name: &str) -> String {
        let rule = format!("`tools: {{{name}: {{approval: none}}}}`");
        if self.rules.contains_key(name) || crate::config::TOOL_NAMES.contains(&name) {
            rule
        } else {
            format!("{rule} with `custom_tools: {{{name}: {{}}}}`")
        }
    }

    /// The path of the pins.
    pub(super) fn pins_path(&self) -> String {
        self.pins.path()
    }

    /// The client, while the server runs.
    pub(super) fn client(&self) -> Result<Arc<Client>, UpstreamError> {
        if let Some(end) = self.ending.now() {
            return Err(UpstreamError::Ended(end.message()));
        }
        let client = self.client.read().unwrap_or_else(PoisonError::into_inner).clone();
        client.ok_or_else(|| UpstreamError::Ended("Stockade is ending".to_owned()))
    }

    /// The tool of this name, as it is offered now.
    pub(super) fn offer(&self, name: &str) -> Option<Arc<Offer>> {
        self.offers
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(name)
            .cloned()
    }

    /// Changes whenever the offered tools may have changed.
    pub(super) fn revision(&self) -> u64 {
        self.revision.load(Ordering::SeqCst)
    }

    /// All offered tools, by name.
    pub(super) fn offers(&self) -> Vec<Arc<Offer>> {
        self.offers
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
            .cloned()
            .collect()
    }

    /// Lists the tools, and offers the valid ones.
    async fn list(&self, client: &Client) -> Result<(), UpstreamError> {
        let listing = client.tools().await?;
        let (definitions, left_out) = definition::select(listing.tools, &self.reserved);
        for line in left_out
            .into_iter()
            .chain(listing.cut.map(|cut| format!("the MCP server: {cut}")))
        {
            self.notify(&line);
        }
        let mut standings = self.pins.compare(&definitions);
        let mut offers = BTreeMap::new();
        for definition in definitions {
            let denied = self
                .rules
                .get(&definition.name)
                .is_some_and(|rule| rule.approval == Demand::Deny);
            let Some(pin) = standings.remove(&definition.name).filter(|_| !denied) else {
                continue;
            };
            if let PinStatus::Changed(why) = &pin {
                self.notify(&format!(
                    "the tool `{}`: {why}; what the config pre-approves does not hold for it. Remove {} to take all \
                     definitions as they are now.",
                    definition.name,
                    self.pins.path()
                ));
            }
            let name = definition.name.clone();
            offers.insert(name, Arc::new(Offer { definition, pin }));
        }
        *self.offers.write().unwrap_or_else(PoisonError::into_inner) = offers;
        self.revision.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    /// Marks all tools as changed.
    fn distrust(&self, why: &str) {
        let mut offers = self.offers.write().unwrap_or_else(PoisonError::into_inner);
        for offer in offers.values_mut() {
            *offer = Arc::new(Offer {
                definition: offer.definition.clone(),
                pin: PinStatus::Changed(format!(
                    "the server says that its tools changed, and did not list them ({why})"
                )),
            });
        }
    }

    /// Reports rules for tools that the server does not have.
    fn report_unknown_names(&self) {
        let offers = self.offers.read().unwrap_or_else(PoisonError::into_inner);
        for (name, rule) in &self.rules {
            let known = offers.contains_key(name)
                || self.reserved.contains(name)
                || crate::config::TOOL_NAMES.contains(&name.as_str())
                || rule.approval == Demand::Deny;
            if !known {
                self.notify(&format!(
                    "`tools: {name}` at {} names no tool of the MCP server",
                    rule.origin
                ));
            }
        }
    }

    fn notify(&self, line: &str) {
        self.notices.send(line);
    }

    /// Ends the server and everything it started.
    pub(super) async fn finish(&self) {
        let watchers = std::mem::take(&mut *self.watchers.lock().unwrap_or_else(PoisonError::into_inner));
        for watcher in watchers {
            watcher.abort();
            // Its references are dropped when it has ended.
            let _aborted = watcher.await;
        }
        let client = self.client.write().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(client) = client {
            client.end();
        }
        let ended_before = self.ending.now().is_some();
        let running = self.running.lock().await.take();
        if let Some(running) = running {
            let end = running.finish().await;
            if !ended_before {
                self.notices.report_end(end.as_deref());
            }
        }
        self.notices.finish().await;
        self.stderr_notices.finish().await;
    }
}

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    /// It could not be started, or not be confined.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// It does not follow the protocol.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
}

/// Lists the tools again whenever they change.
async fn watch_list(server: Weak<Server>, client: Arc<Client>) {
    loop {
        client.changed().await;
        let Some(server) = server.upgrade() else { return };
        // The old definitions are not valid until the new list arrives.
        server.distrust("it has not done so yet");
        if let Err(error) = server.list(&client).await {
            server.distrust(&error.to_string());
            server.notify(&format!("its list of tools cannot be had again: {error}"));
        }
        drop(server);
        tokio::time::sleep(MIN_RELIST_INTERVAL).await;
    }
}

/// Ends the server when its connection closes.
async fn watch_connection(server: Weak<Server>, client: Arc<Client>) {
    client.closed().await;
    let Some(server) = server.upgrade() else { return };
    let running = server.running.lock().await.take();
    if let Some(running) = running {
        running.finish().await;
    }
}

/// Reports that the server ended by itself.
async fn watch_end(server: Weak<Server>, mut ending: Ending) {
    let end = ending.wait().await;
    let Some(server) = server.upgrade() else { return };
    let how = end
        .as_ref()
        .map_or_else(|| "nobody knows how".to_owned(), |end| end.message());
    server.notify(&format!("the MCP server has ended ({how}); it is not started again"));
    server.notices.report_end(end.as_deref());
}

impl Drop for Server {
    fn drop(&mut self) {
        for watcher in self.watchers.get_mut().unwrap_or_else(PoisonError::into_inner) {
            watcher.abort();
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("command", &self.command)
            .finish_non_exhaustive()
    }
}

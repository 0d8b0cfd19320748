//! A server that was started: what it offers now, and who keeps that up to date.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Duration;

use tokio::sync::Mutex as AsyncMutex;
use tokio::task::JoinHandle;

use super::bounds::{CALL, MOST_OUTPUT};
use super::client::{Client, UpstreamError};
use super::definition::{self, Definition};
use super::seen::{Seen, Standing};
use crate::mcp::voice::{Say, Voice};
use crate::policy::path::escape;
use crate::policy::{Demand, ToolRule};
use crate::tools::{Ending, Served, Session, ShellCommand, ToolError, words};

/// A server that says that its tools changed is not asked for them more often than this.
const RELISTED: Duration = Duration::from_secs(1);

/// A tool that is offered.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Offer {
    pub(super) definition: Definition,
    pub(super) standing: Standing,
}

/// A third party's server, confined, and what it offers.
pub(super) struct Server {
    command: String,
    identity: Vec<u8>,
    seen: Seen,
    /// What the config says of tools by name.
    rules: BTreeMap<String, ToolRule>,
    /// Names that the config gives to tools of its own.
    taken: Vec<String>,
    client: RwLock<Option<Arc<Client>>>,
    ending: Ending,
    offers: RwLock<BTreeMap<String, Arc<Offer>>>,
    /// How often it was listed.
    revision: AtomicU64,
    running: AsyncMutex<Option<Served>>,
    watchers: Mutex<Vec<JoinHandle<()>>>,
    call_time: Duration,
    call_output: u64,
    voice: Voice,
    /// What it says to standard error, by another.
    its: Voice,
}

/// What starts a server.
pub(super) struct Start<'a> {
    /// Its program and arguments.
    pub(super) words: Vec<OsString>,
    /// Where it starts.
    pub(super) directory: &'a Path,
    /// Where it is kept what it said first.
    pub(super) state: &'a Path,
    pub(super) say: Say,
}

impl Server {
    /// Starts it in the sandbox of the session, and has it say what it is and what its tools are.
    pub(super) async fn start(session: &Session, start: Start<'_>) -> Result<Arc<Self>, StartError> {
        let Start {
            words: argv,
            directory,
            state,
            say,
        } = start;
        let command = escape(&words(&ShellCommand::Argv(argv.clone())));
        let seen = Seen::of(state, &argv, directory);
        let no_thread = |error| ToolError::Private(error);
        // A server that says much keeps nobody from hearing what is said of it.
        let (voice, its) = (Voice::new(say).map_err(no_thread)?, Voice::new(say).map_err(no_thread)?);
        let (running, streams) = session.serve(argv, its.sender()).await?;
        let ending = running.ending();
        let client = match Client::begin(streams, ending.clone()).await {
            Ok(client) => Arc::new(client),
            Err(error) => {
                voice.tell_end(running.finish().await.as_deref());
                voice.finish().await;
                its.finish().await;
                return Err(error.into());
            }
        };
        let server = Arc::new(Self {
            identity: seen.place().into_bytes(),
            command,
            seen,
            rules: session.rules().clone(),
            taken: session.custom_names(),
            call_time: running.call_time.unwrap_or(CALL),
            call_output: running.call_output.unwrap_or(MOST_OUTPUT),
            client: RwLock::new(Some(Arc::clone(&client))),
            ending,
            offers: RwLock::default(),
            revision: AtomicU64::new(0),
            running: AsyncMutex::new(Some(running)),
            watchers: Mutex::default(),
            voice,
            its,
        });
        if let Some(name) = client.calls_itself() {
            server.say(&format!("the MCP server calls itself {name}"));
        }
        if let Err(error) = server.list(&client).await {
            drop(client);
            server.finish().await;
            return Err(error.into());
        }
        if server.offers().is_empty() {
            server.say("the MCP server offers no tools that can be passed on");
        }
        server.tell_unknown_names();
        for name in session.asked_before_written().await {
            server.say(&format!(
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

    /// The command, as it is shown.
    pub(super) fn command(&self) -> &str {
        &self.command
    }

    /// Bytes that are others for every other command.
    pub(super) fn identity(&self) -> &[u8] {
        &self.identity
    }

    /// What in a config lets a tool be called unasked.
    pub(super) fn allowing(&self, name: &str) -> String {
        let rule = format!("`tools: {{{name}: {{approval: none}}}}`");
        if self.rules.contains_key(name) || crate::config::TOOL_NAMES.contains(&name) {
            rule
        } else {
            format!("{rule} with `custom_tools: {{{name}: {{}}}}`")
        }
    }

    /// Where it is kept what was first seen of it.
    pub(super) fn seen_at(&self) -> String {
        self.seen.place()
    }

    pub(super) const fn call_time(&self) -> Duration {
        self.call_time
    }

    pub(super) const fn call_output(&self) -> u64 {
        self.call_output
    }

    /// The conversation, while there is one.
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

    /// Another number whenever what is offered may be another.
    pub(super) fn revision(&self) -> u64 {
        self.revision.load(Ordering::SeqCst)
    }

    /// Everything that is offered now, by name.
    pub(super) fn offers(&self) -> Vec<Arc<Offer>> {
        self.offers
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
            .cloned()
            .collect()
    }

    /// Asks it for its tools, and offers those that can be.
    async fn list(&self, client: &Client) -> Result<(), UpstreamError> {
        let listed = client.tools().await?;
        let (definitions, left_out) = definition::take(listed.tools, &self.taken);
        for line in left_out
            .into_iter()
            .chain(listed.cut.map(|cut| format!("the MCP server: {cut}")))
        {
            self.say(&line);
        }
        let mut standings = self.seen.compare(&definitions);
        let mut offers = BTreeMap::new();
        for definition in definitions {
            let denied = self
                .rules
                .get(&definition.name)
                .is_some_and(|rule| rule.approval == Demand::Deny);
            let Some(standing) = standings.remove(&definition.name).filter(|_| !denied) else {
                continue;
            };
            if let Standing::Changed(why) = &standing {
                self.say(&format!(
                    "the tool `{}`: {why}; what the config pre-approves does not hold for it. Remove {} to take all \
                     definitions as they are now.",
                    definition.name,
                    self.seen.place()
                ));
            }
            let name = definition.name.clone();
            offers.insert(name, Arc::new(Offer { definition, standing }));
        }
        *self.offers.write().unwrap_or_else(PoisonError::into_inner) = offers;
        self.revision.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    /// It said that its tools are others now, and not which.
    fn distrust(&self, why: &str) {
        let mut offers = self.offers.write().unwrap_or_else(PoisonError::into_inner);
        for offer in offers.values_mut() {
            *offer = Arc::new(Offer {
                definition: offer.definition.clone(),
                standing: Standing::Changed(format!(
                    "the server says that its tools changed, and did not list them ({why})"
                )),
            });
        }
    }

    /// A rule for a name that the server does not have may be meant for another.
    fn tell_unknown_names(&self) {
        let offers = self.offers.read().unwrap_or_else(PoisonError::into_inner);
        for (name, rule) in &self.rules {
            let known = offers.contains_key(name)
                || self.taken.contains(name)
                || crate::config::TOOL_NAMES.contains(&name.as_str())
                || rule.approval == Demand::Deny;
            if !known {
                self.say(&format!(
                    "`tools: {name}` at {} names no tool of the MCP server",
                    rule.origin
                ));
            }
        }
    }

    fn say(&self, line: &str) {
        self.voice.say(line);
    }

    /// Ends it, and waits until nothing of it is left.
    pub(super) async fn finish(&self) {
        let watchers = std::mem::take(&mut *self.watchers.lock().unwrap_or_else(PoisonError::into_inner));
        for watcher in watchers {
            watcher.abort();
            // What it held is let go of when it is gone.
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
                self.voice.tell_end(end.as_deref());
            }
        }
        self.voice.finish().await;
        self.its.finish().await;
    }
}

/// Why no server is there to be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    /// It could not be started, or not be confined.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// It started, and does not speak as it should.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
}

/// Keeps what is offered up to date, for as long as there is anybody to offer it to.
async fn watch_list(server: Weak<Server>, client: Arc<Client>) {
    loop {
        client.changed().await;
        let Some(server) = server.upgrade() else { return };
        // Until the new list is here nobody knows what the old names stand for.
        server.distrust("it has not done so yet");
        if let Err(error) = server.list(&client).await {
            server.distrust(&error.to_string());
            server.say(&format!("its list of tools cannot be had again: {error}"));
        }
        drop(server);
        tokio::time::sleep(RELISTED).await;
    }
}

/// Ends a server that cannot be spoken with any more.
async fn watch_connection(server: Weak<Server>, client: Arc<Client>) {
    client.gone().await;
    let Some(server) = server.upgrade() else { return };
    let running = server.running.lock().await.take();
    if let Some(running) = running {
        running.finish().await;
    }
}

/// Says when the server ends by itself.
async fn watch_end(server: Weak<Server>, mut ending: Ending) {
    let end = ending.wait().await;
    let Some(server) = server.upgrade() else { return };
    let how = end
        .as_ref()
        .map_or_else(|| "nobody knows how".to_owned(), |end| end.message());
    server.say(&format!("the MCP server has ended ({how}); it is not started again"));
    server.voice.tell_end(end.as_deref());
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

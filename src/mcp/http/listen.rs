//! Listens, serves each connection, and ends without cutting off what is under way.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::net::{SocketAddr, TcpListener as BoundListener};
use std::pin::pin;
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::signal::Signal;
use nix::sys::socket::{setsockopt, sockopt};
use rmcp::ServerHandler;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::{Duration, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::gate::Gate;
use super::token::TokenFrom;
use super::{Bounds, HttpError, HttpSettings};
use crate::policy::path::display;

/// How many connections may wait to be accepted.
const BACKLOG: u32 = 4096;
/// How many files are left to calls.
const OWN_FILES: usize = 256;
/// How long nobody is let in when the machine has no room for another connection.
const PAUSE: Duration = Duration::from_millis(50);
/// How long the last replies may take on their way out.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A server that has its address, and accepts nobody yet.
#[derive(Debug)]
pub struct HttpServer {
    listener: BoundListener,
    address: SocketAddr,
    settings: HttpSettings,
}

/// How serving ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// After this signal what was under way was done.
    Drained(Signal),
    /// After this signal it took too long, and was withdrawn.
    Withdrawn(Signal),
    /// A second signal, this one, came first; nothing was waited for.
    Cut(Signal),
}

impl HttpServer {
    /// Takes the address; connections wait from now on.
    pub fn bind(settings: HttpSettings) -> Result<Self, HttpError> {
        let failed = |source| HttpError::Listen {
            address: settings.address,
            source,
        };
        let listener = listener(settings.address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self {
            listener,
            address,
            settings,
        })
    }

    /// The address that it has.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What a person is told once: where it is, and how a client is given the token.
    pub fn announcement(&self) -> String {
        let url = self.settings.url(self.address);
        let mut told = format!("serving MCP at {url}\n");
        let words = match &self.settings.token.from {
            TokenFrom::Start => self.settings.token.token.words().to_owned(),
            TokenFrom::File(file) => {
                // Writing to a String cannot fail.
                let _infallible = writeln!(told, "  the token is the one in {}", display(file));
                "TOKEN".to_owned()
            }
        };
        let _infallible = writeln!(
            told,
            "  claude mcp add --transport http stockade {url} --header \"Authorization: Bearer {words}\""
        );
        told
    }

    /// Serves until a signal comes, then until what is under way is done.
    ///
    /// `service` makes the server of one client; `ready` says whether calls can be confined now; `withdraw` is cancelled
    /// when nothing is to go on. What calls have started is still the caller's to end.
    pub async fn serve<S: ServerHandler + Send + 'static>(
        self,
        service: impl Fn() -> S + Send + Sync + 'static,
        ready: impl Fn() -> bool + Send + Sync + 'static,
        withdraw: CancellationToken,
        mut stops: mpsc::Receiver<Signal>,
    ) -> Result<End, HttpError> {
        let (address, bounds, drain) = (self.address, self.settings.bounds, self.settings.drain);
        let listener = TcpListener::from_std(self.listener).map_err(|source| HttpError::Listen { address, source })?;
        let gate = Gate::new(
            self.settings,
            address.port(),
            service,
            Box::new(ready),
            withdraw.clone(),
        );
        let door = Door::new(Arc::new(gate), bounds);
        let end = tokio::select! {
            end = ending(&door.gate, &mut stops, drain, &withdraw) => end,
            end = door.accept(listener) => match end {},
            end = door.gate.sessions.watch() => match end {},
        };
        match end {
            End::Drained(_) | End::Withdrawn(_) => door.close().await,
            End::Cut(_) => {}
        }
        Ok(end)
    }
}

fn listener(address: SocketAddr) -> std::io::Result<BoundListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()
    } else {
        TcpSocket::new_v6()
    }?;
    // A port that a server has just left is free.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)?.into_std()
}

/// Waits for a signal, and then for what is under way.
async fn ending<S: ServerHandler + Send + 'static>(
    gate: &Gate<S>,
    stops: &mut mpsc::Receiver<Signal>,
    drain: Duration,
    withdraw: &CancellationToken,
) -> End {
    // Where nobody is left who could tell it to stop, that is its end too.
    let first = stops.recv().await.unwrap_or(Signal::SIGTERM);
    gate.load.drain();
    let end = tokio::select! {
        () = gate.load.done() => End::Drained(first),
        () = sleep(drain) => End::Withdrawn(first),
        Some(signal) = stops.recv() => End::Cut(signal),
    };
    // Ends what only listens, and sessions; calls that are still under way are told.
    withdraw.cancel();
    match end {
        End::Drained(_) | End::Cut(_) => return end,
        End::Withdrawn(_) => {}
    }
    tokio::select! {
        _ended = timeout(gate.withdrawal(), gate.load.done()) => end,
        Some(signal) = stops.recv() => End::Cut(signal),
    }
}

/// Where connections come in.
struct Door<S> {
    gate: Arc<Gate<S>>,
    bounds: Bounds,
    slots: Arc<Semaphore>,
    /// Tells every connection to end after the reply it is at.
    crowded: watch::Sender<()>,
    connections: TaskTracker,
}

impl<S: ServerHandler + Send + 'static> Door<S> {
    fn new(gate: Arc<Gate<S>>, bounds: Bounds) -> Self {
        Self {
            gate,
            bounds,
            slots: Arc::new(Semaphore::new(most_connections(bounds.connections))),
            crowded: watch::Sender::new(()),
            connections: TaskTracker::new(),
        }
    }

    /// Lets in whoever comes, for ever. When all places are taken, idle connections are closed, and others wait.
    async fn accept(&self, listener: TcpListener) -> Infallible {
        loop {
            if self.slots.available_permits() == 0 {
                self.crowded.send_replace(());
            }
            // It is never closed.
            let Ok(slot) = Arc::clone(&self.slots).acquire_owned().await else {
                return std::future::pending().await;
            };
            match listener.accept().await {
                Ok((stream, _)) => self.serve(stream, slot),
                Err(_) => sleep(PAUSE).await,
            }
        }
    }

    fn serve(&self, stream: TcpStream, slot: OwnedSemaphorePermit) {
        // Without them it is slower, or a dead client is noticed later.
        let _prompt = stream.set_nodelay(true);
        let unread = u32::try_from(self.bounds.unread.as_millis()).unwrap_or(u32::MAX);
        let _noticed = setsockopt(&stream, sockopt::TcpUserTimeout, &unread);
        let gate = Arc::clone(&self.gate);
        let service = service_fn(move |request| {
            let gate = Arc::clone(&gate);
            async move { Ok::<_, Infallible>(gate.answer(request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.bounds.header_time)
            // hyper reads as much again before it looks.
            .max_buf_size(self.bounds.header_bytes / 2)
            .serve_connection(TokioIo::new(stream), service);
        let mut crowded = self.crowded.subscribe();
        self.connections.spawn(async move {
            let _slot = slot;
            let mut connection = pin!(connection);
            let told = tokio::select! {
                _ended = connection.as_mut() => return,
                told = crowded.changed() => told,
            };
            // Where nobody can tell it any more, all of it is at its end.
            if told.is_ok() {
                connection.as_mut().graceful_shutdown();
                let _ended = connection.await;
            }
        });
    }

    /// Lets the last replies out.
    async fn close(self) {
        self.crowded.send_replace(());
        self.connections.close();
        let _late = timeout(LAST_WORDS, self.connections.wait()).await;
    }
}

/// As many as the process may open files for, with some left for calls.
fn most_connections(wanted: usize) -> usize {
    let files =
        getrlimit(Resource::RLIMIT_NOFILE).map_or(1024, |(soft, _)| usize::try_from(soft).unwrap_or(usize::MAX));
    let spare = files.saturating_sub(OWN_FILES).max(files / 2);
    wanted.min(spare).max(1)
}

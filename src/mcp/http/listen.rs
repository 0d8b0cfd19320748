//! Listens, serves connections, and drains before it ends.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::net::{SocketAddr, TcpListener as BoundListener};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::Request;
use hyper::body::Incoming;
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

use super::bounds::Bounds;
use super::error::HttpError;
use super::gate::Gate;
use super::reply::closing;
use super::settings::HttpSettings;
use super::token::TokenSource;
use crate::policy::path::display;

/// How many connections may wait to be accepted.
const BACKLOG: u32 = 4096;
/// How many open files are reserved for calls.
const RESERVED_FILES: usize = 256;
/// How long to wait after a failed accept.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);
/// How long the last replies may take on their way out.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// A server that is bound, and does not accept yet.
#[derive(Debug)]
pub struct HttpServer {
    listener: BoundListener,
    address: SocketAddr,
    settings: HttpSettings,
}

/// How serving ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Calls under way finished after this signal.
    Drained(Signal),
    /// Calls under way took too long after this signal, and were cancelled.
    Withdrawn(Signal),
    /// A second signal ended the wait.
    Cut(Signal),
}

impl HttpServer {
    /// Binds the address; connections queue from now on.
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

    /// The bound address.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The notice at the start: the URL, and how to give a client the token.
    pub fn announcement(&self) -> String {
        let url = self.settings.url(self.address);
        let mut text = format!("serving MCP at {url}\n");
        let token = match &self.settings.token.source {
            TokenSource::Generated => self.settings.token.token.as_str().to_owned(),
            TokenSource::File(file) => {
                // Writing to a String cannot fail.
                let _infallible = writeln!(text, "  the token is the one in {}", display(file));
                "TOKEN".to_owned()
            }
        };
        let _infallible = writeln!(
            text,
            "  claude mcp add --transport http stockade {url} --header \"Authorization: Bearer {token}\""
        );
        text
    }

    /// Serves until a signal, then drains.
    ///
    /// `service` makes the server of one client; `ready` says whether calls can be confined; `withdraw` is cancelled when calls must end.
    /// The caller ends what calls have started.
    pub async fn serve<S: ServerHandler + Send + 'static>(
        self,
        service: impl Fn() -> S + Send + Sync + 'static,
        ready: impl Fn() -> bool + Send + Sync + 'static,
        withdraw: CancellationToken,
        mut stops: mpsc::Receiver<Signal>,
    ) -> Result<End, HttpError> {
        let (address, bounds, drain) = (self.address, self.settings.bounds, self.settings.drain);
        let listener = TcpListener::from_std(self.listener).map_err(|source| HttpError::Listen { address, source })?;
        let slots = Arc::new(Semaphore::new(max_connections(bounds.connections)));
        let gate = Gate::new(
            self.settings,
            address.port(),
            service,
            Box::new(ready),
            withdraw.clone(),
            &slots,
        );
        let acceptor = Acceptor::new(Arc::new(gate), bounds, slots);
        let end = tokio::select! {
            end = ending(&acceptor.gate, &mut stops, drain, &withdraw) => end,
            end = acceptor.accept(listener) => match end {},
            end = acceptor.gate.sessions.watch() => match end {},
        };
        match end {
            End::Drained(_) | End::Withdrawn(_) => acceptor.close().await,
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
    // Allows to bind a port that was just closed.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)?.into_std()
}

/// Waits for a signal, then for calls under way.
async fn ending<S: ServerHandler + Send + 'static>(
    gate: &Gate<S>,
    stops: &mut mpsc::Receiver<Signal>,
    drain: Duration,
    withdraw: &CancellationToken,
) -> End {
    // A closed channel counts as a signal.
    let first = stops.recv().await.unwrap_or(Signal::SIGTERM);
    gate.load.drain();
    let end = tokio::select! {
        () = gate.load.done() => End::Drained(first),
        () = sleep(drain) => End::Withdrawn(first),
        Some(signal) = stops.recv() => End::Cut(signal),
    };
    // Ends streams and sessions, and cancels calls.
    withdraw.cancel();
    match end {
        End::Drained(_) | End::Cut(_) => return end,
        End::Withdrawn(_) => {}
    }
    tokio::select! {
        _ended = timeout(gate.bounds.withdrawal, gate.load.done()) => end,
        Some(signal) = stops.recv() => End::Cut(signal),
    }
}

/// Accepts connections.
struct Acceptor<S> {
    gate: Arc<Gate<S>>,
    bounds: Bounds,
    slots: Arc<Semaphore>,
    events: watch::Sender<ConnectionEvent>,
    connections: TaskTracker,
}

/// An event for every connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConnectionEvent {
    /// All slots are taken: idle connections close.
    Full,
    /// The server ends: connections without a request close.
    Closing,
}

impl<S: ServerHandler + Send + 'static> Acceptor<S> {
    fn new(gate: Arc<Gate<S>>, bounds: Bounds, slots: Arc<Semaphore>) -> Self {
        Self {
            gate,
            bounds,
            slots,
            events: watch::Sender::new(ConnectionEvent::Full),
            connections: TaskTracker::new(),
        }
    }

    /// Accepts connections, forever. When all slots are taken, idle connections close and new ones wait.
    async fn accept(&self, listener: TcpListener) -> Infallible {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                sleep(ACCEPT_RETRY).await;
                continue;
            };
            if self.slots.available_permits() == 0 {
                self.events.send_replace(ConnectionEvent::Full);
            }
            // It is never closed.
            if let Ok(slot) = Arc::clone(&self.slots).acquire_owned().await {
                self.serve(stream, slot);
            }
        }
    }

    fn serve(&self, stream: TcpStream, slot: OwnedSemaphorePermit) {
        // These options are not essential.
        let _prompt = stream.set_nodelay(true);
        let unread = u32::try_from(self.bounds.unread.as_millis()).unwrap_or(u32::MAX);
        let _noticed = setsockopt(&stream, sockopt::TcpUserTimeout, &unread);
        let has_requested = Arc::new(AtomicBool::new(false));
        let pressure = self.gate.pressure();
        let (gate, slots, requested) = (
            Arc::clone(&self.gate),
            Arc::clone(&self.slots),
            Arc::clone(&has_requested),
        );
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(pressure);
            requested.store(true, Ordering::Release);
            let (gate, slots) = (Arc::clone(&gate), Arc::clone(&slots));
            async move {
                let reply = gate.answer(request).await;
                let is_full = slots.available_permits() == 0;
                Ok::<_, Infallible>(if is_full { closing(reply) } else { reply })
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.bounds.header_time)
            // hyper reads twice this size before it checks.
            .max_buf_size(self.bounds.header_bytes / 2)
            .serve_connection(TokioIo::new(stream), service);
        let mut events = self.events.subscribe();
        self.connections.spawn(async move {
            let _slot = slot;
            let mut connection = pin!(connection);
            loop {
                let notified = tokio::select! {
                    // A request that has arrived is read before the connection counts as idle.
                    biased;
                    _ended = connection.as_mut() => return,
                    changed = events.changed() => changed,
                };
                let goes = match (notified, *events.borrow_and_update()) {
                    // A connection without a request yet is about to send one; hyper would close it.
                    (Ok(()), ConnectionEvent::Full) => has_requested.load(Ordering::Acquire),
                    (Ok(()), ConnectionEvent::Closing) | (Err(_), _) => true,
                };
                if goes {
                    connection.as_mut().graceful_shutdown();
                    let _ended = connection.await;
                    return;
                }
            }
        });
    }

    /// Sends the last replies.
    async fn close(self) {
        self.events.send_replace(ConnectionEvent::Closing);
        self.connections.close();
        let _late = timeout(FLUSH_TIMEOUT, self.connections.wait()).await;
    }
}

/// As many connections as the limit of open files allows, less the reserved files.
fn max_connections(limit: usize) -> usize {
    let files =
        getrlimit(Resource::RLIMIT_NOFILE).map_or(1024, |(soft, _)| usize::try_from(soft).unwrap_or(usize::MAX));
    let spare = files.saturating_sub(RESERVED_FILES).max(files / 2);
    limit.min(spare).max(1)
}

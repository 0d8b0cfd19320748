//! Listens, serves each connection, and ends without cutting off what is under way.

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
use super::token::TokenFrom;
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
        let places = Arc::new(Semaphore::new(most_connections(bounds.connections)));
        let gate = Gate::new(
            self.settings,
            address.port(),
            service,
            Box::new(ready),
            withdraw.clone(),
            &places,
        );
        let door = Door::new(Arc::new(gate), bounds, places);
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
    crowd: watch::Sender<Crowd>,
    connections: TaskTracker,
}

/// What is told to every connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Crowd {
    /// All places are taken: whoever was answered and asks nothing makes room.
    Full,
    /// It is over: whoever is not being answered goes.
    Closing,
}

impl<S: ServerHandler + Send + 'static> Door<S> {
    fn new(gate: Arc<Gate<S>>, bounds: Bounds, slots: Arc<Semaphore>) -> Self {
        Self {
            gate,
            bounds,
            slots,
            crowd: watch::Sender::new(Crowd::Full),
            connections: TaskTracker::new(),
        }
    }

    /// Lets in whoever comes, for ever. When all places are taken, idle connections are closed, and others wait.
    async fn accept(&self, listener: TcpListener) -> Infallible {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                sleep(PAUSE).await;
                continue;
            };
            if self.slots.available_permits() == 0 {
                self.crowd.send_replace(Crowd::Full);
            }
            // It is never closed.
            if let Ok(slot) = Arc::clone(&self.slots).acquire_owned().await {
                self.serve(stream, slot);
            }
        }
    }

    fn serve(&self, stream: TcpStream, slot: OwnedSemaphorePermit) {
        // Without them it is slower, or a dead client is noticed later.
        let _prompt = stream.set_nodelay(true);
        let unread = u32::try_from(self.bounds.unread.as_millis()).unwrap_or(u32::MAX);
        let _noticed = setsockopt(&stream, sockopt::TcpUserTimeout, &unread);
        let has_asked = Arc::new(AtomicBool::new(false));
        let crowd = self.gate.crowd();
        let (gate, slots, asks) = (Arc::clone(&self.gate), Arc::clone(&self.slots), Arc::clone(&has_asked));
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(crowd);
            asks.store(true, Ordering::Release);
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
            // hyper reads as much again before it looks.
            .max_buf_size(self.bounds.header_bytes / 2)
            .serve_connection(TokioIo::new(stream), service);
        let mut crowd = self.crowd.subscribe();
        self.connections.spawn(async move {
            let _slot = slot;
            let mut connection = pin!(connection);
            loop {
                let told = tokio::select! {
                    // What has come is read before the connection is called idle.
                    biased;
                    _ended = connection.as_mut() => return,
                    told = crowd.changed() => told,
                };
                let goes = match (told, *crowd.borrow_and_update()) {
                    // One that has not asked yet is about to: hyper would close it unheard.
                    (Ok(()), Crowd::Full) => has_asked.load(Ordering::Acquire),
                    (Ok(()), Crowd::Closing) | (Err(_), _) => true,
                };
                if goes {
                    connection.as_mut().graceful_shutdown();
                    let _ended = connection.await;
                    return;
                }
            }
        });
    }

    /// Lets the last replies out.
    async fn close(self) {
        self.crowd.send_replace(Crowd::Closing);
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

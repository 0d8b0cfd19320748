//! Accepts connections, detects the protocol of each by its first byte, and closes all of them.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener as BoundListener};
use std::sync::Arc;

use bytes::BytesMut;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Duration, Instant, sleep, timeout};
use tokio_util::sync::DropGuard;
use tokio_util::task::TaskTracker;

use super::bounds::Bounds;
use super::client::Client;
use super::file_budget::FileBudget;
use super::gate::Gate;
use super::open::Opened;
use super::record::Record;
use super::resolve::Resolve;
use super::state::ProxyState;
use super::tunnel::{Tunnel, Tunnelled, tunnel};
use super::unreadable::Unreadable;
use super::{http, socks};

/// The pause after a failed accept.
const PAUSE: Duration = Duration::from_millis(50);

/// The proxy of one command. Dropping it stops it; [`stop`](Self::stop) also waits for the end.
#[derive(Debug)]
pub struct Proxy {
    tasks: TaskTracker,
    stop: DropGuard,
}

impl Proxy {
    /// Serves these sockets, on the runtime that it is called in.
    ///
    /// # Errors
    /// A socket cannot be waited for.
    pub fn start(
        listeners: Vec<BoundListener>,
        gate: Arc<dyn Gate>,
        resolver: Arc<dyn Resolve>,
        bounds: Bounds,
    ) -> io::Result<Self> {
        Self::start_within(FileBudget::of_this_process(), listeners, gate, resolver, bounds)
    }

    /// The same, where all proxies together have these files.
    pub(super) fn start_within(
        files: &FileBudget,
        listeners: Vec<BoundListener>,
        gate: Arc<dyn Gate>,
        resolver: Arc<dyn Resolve>,
        bounds: Bounds,
    ) -> io::Result<Self> {
        let listeners = listeners.into_iter().map(|listener| {
            listener.set_nonblocking(true)?;
            TcpListener::from_std(listener)
        });
        let listeners = listeners.collect::<io::Result<Vec<_>>>()?;
        let tasks = TaskTracker::new();
        let state = Arc::new(ProxyState::new(files, gate, resolver, bounds));
        let stop = state.stop.clone().drop_guard();
        for listener in listeners {
            let (state, connections) = (Arc::clone(&state), tasks.clone());
            tasks.spawn(async move {
                let accepting = accept(&state, listener, &connections);
                let _stopped = state.stop.run_until_cancelled(accepting).await;
            });
        }
        Ok(Self { tasks, stop })
    }

    /// Closes everything, and waits until every attempt is recorded.
    pub async fn stop(self) {
        drop(self.stop);
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Accepts connections until the socket is shut down.
async fn accept(state: &Arc<ProxyState>, listener: TcpListener, connections: &TaskTracker) {
    loop {
        match listener.accept().await {
            Ok((stream, address)) => {
                let Some(slot) = state.slot().await else { return };
                let state = Arc::clone(state);
                connections.spawn(async move {
                    serve(&state, stream, address).await;
                    drop(slot);
                });
            }
            // The socket was shut down: its command has ended.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => return,
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// Serves one connection, until it is closed or the proxy is stopped.
async fn serve(state: &ProxyState, stream: TcpStream, address: SocketAddr) {
    // Replies are small, and the client sends nothing until it has one.
    let _slower_without = stream.set_nodelay(true);
    let mut client = Client {
        stream,
        buffer: BytesMut::new(),
        address,
    };
    let Some(Some(opened)) = state.stop.run_until_cancelled(requests(state, &mut client)).await else {
        return;
    };
    let Opened {
        mut record,
        server,
        host,
        port,
    } = opened;
    let early = client.buffer.to_vec();
    // The buffer is large, and tunnels live long.
    drop(client.buffer);
    let ends = Tunnel {
        early,
        client: client.stream,
        server,
        host: &host,
        port,
    };
    let bounds = &state.bounds;
    let Tunnelled { outcome, content } = tunnel(ends, bounds, &record.meter, &state.stop).await;
    record.set_content(content);
    record.end(outcome);
}

/// Serves requests until one opens a tunnel, which is returned, or the connection is over.
async fn requests<'a>(state: &'a ProxyState, client: &mut Client) -> Option<Opened<'a>> {
    // Without a byte there is no attempt to record.
    match timeout(state.bounds.head_time, client.more()).await {
        Ok(Ok(1..)) => {}
        Ok(Ok(0) | Err(_)) | Err(_) => return None,
    }
    let started = Instant::now();
    match client.buffer.first()? {
        5 => socks::serve(state, client, started).await,
        4 => {
            let answer = [0, 91, 0, 0, 0, 0, 0, 0];
            refuse_protocol(state, client, started, Unreadable::Socks4, &answer).await;
            None
        }
        0x16 | 0x80 => {
            refuse_protocol(state, client, started, Unreadable::ProxyTls, &[]).await;
            None
        }
        _ => http::serve(state, client, started).await,
    }
}

/// Refuses a protocol that is not served.
async fn refuse_protocol(state: &ProxyState, client: &mut Client, started: Instant, why: Unreadable, answer: &[u8]) {
    Record::unreadable(&*state.gate, started, &client.buffer, None, client.address, why);
    client.send_final(answer, state.bounds.linger).await;
}

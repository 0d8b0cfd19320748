//! Takes connections in, tells by the first byte which protocol each speaks, and ends them all.

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
use super::files::Files;
use super::gate::Gate;
use super::open::Opened;
use super::record::Record;
use super::resolve::Resolve;
use super::served::Served;
use super::tunnel::{Tunnel, Tunnelled, tunnel};
use super::unreadable::Unreadable;
use super::{http, socks};

/// How long accepting pauses when the machine has no room for another connection.
const PAUSE: Duration = Duration::from_millis(50);

/// The proxy of one command. Stopped when it is dropped, but only [`stop`](Self::stop) waits for that.
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
        Self::start_within(Files::of_this_process(), listeners, gate, resolver, bounds)
    }

    /// The same, where all proxies together have these files.
    pub(super) fn start_within(
        files: &Files,
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
        let served = Arc::new(Served::new(files, gate, resolver, bounds));
        let stop = served.stop.clone().drop_guard();
        for listener in listeners {
            let (served, connections) = (Arc::clone(&served), tasks.clone());
            tasks.spawn(async move {
                let accepting = accept(&served, listener, &connections);
                let _stopped = served.stop.run_until_cancelled(accepting).await;
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

/// Takes in whoever comes, until the socket is shut down.
async fn accept(served: &Arc<Served>, listener: TcpListener, connections: &TaskTracker) {
    loop {
        match listener.accept().await {
            Ok((stream, address)) => {
                let Some(place) = served.place().await else { return };
                let served = Arc::clone(served);
                connections.spawn(async move {
                    serve(&served, stream, address).await;
                    drop(place);
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
async fn serve(served: &Served, stream: TcpStream, address: SocketAddr) {
    // Answers are small, and whoever waits for one sends nothing.
    let _slower_without = stream.set_nodelay(true);
    let mut client = Client {
        stream,
        buffer: BytesMut::new(),
        address,
    };
    let Some(Some(opened)) = served.stop.run_until_cancelled(requests(served, &mut client)).await else {
        return;
    };
    let Opened {
        mut record,
        server,
        host,
        port,
    } = opened;
    let early = client.buffer.to_vec();
    // It has room for whole requests, and tunnels live long.
    drop(client.buffer);
    let ends = Tunnel {
        early,
        client: client.stream,
        server,
        host: &host,
        port,
    };
    let bounds = &served.bounds;
    let Tunnelled { outcome, seen } = tunnel(ends, bounds, &record.meter, &served.stop).await;
    record.saw(seen);
    record.end(outcome);
}

/// Reads what the client asks for. Returns with the tunnel that it got, or when nothing more comes of it.
async fn requests<'a>(served: &'a Served, client: &mut Client) -> Option<Opened<'a>> {
    // A client that sends nothing asked for nothing: there is no attempt to record.
    match timeout(served.bounds.head_time, client.more()).await {
        Ok(Ok(1..)) => {}
        Ok(Ok(0) | Err(_)) | Err(_) => return None,
    }
    let begun = Instant::now();
    match client.buffer.first()? {
        5 => socks::serve(served, client, begun).await,
        4 => {
            let answer = [0, 91, 0, 0, 0, 0, 0, 0];
            turn_away(served, client, begun, Unreadable::Socks4, &answer).await;
            None
        }
        0x16 | 0x80 => {
            turn_away(served, client, begun, Unreadable::ProxyTls, &[]).await;
            None
        }
        _ => http::serve(served, client, begun).await,
    }
}

/// Refuses a protocol that is not served.
async fn turn_away(served: &Served, client: &mut Client, begun: Instant, why: Unreadable, answer: &[u8]) {
    Record::unreadable(&*served.gate, begun, &client.buffer, None, client.address, why);
    client.last_word(answer, served.bounds.linger).await;
}

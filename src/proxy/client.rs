//! A client's connection: its bytes as they come in, and which protocol they are.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;

use bytes::{BufMut as _, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Duration, Instant, timeout};

use super::accept::Served;
use super::attempt::{End, Outcome};
use super::bounds::BUFFER;
use super::connect::{Connected, Rejected, connect};
use super::gate::{Verdict, Wanted};
use super::record::Record;
use super::tunnel::{Tunnel, Tunnelled, tunnel};
use super::unreadable::Unreadable;
use super::{http, socks};
use crate::policy::Host;

/// How much is read at once.
pub(super) const PIECE: usize = 16 * 1024;

/// A client, and what it sent that is not used yet.
pub(super) struct Client {
    pub(super) stream: TcpStream,
    pub(super) buffer: BytesMut,
    pub(super) address: SocketAddr,
}

/// A tunnel whose ends are connected, and whose client knows it.
pub(super) struct Opened<'a> {
    pub(super) record: Record<'a>,
    pub(super) server: TcpStream,
    pub(super) host: Host,
    pub(super) port: u16,
}

/// Serves one connection, until it is closed or the proxy is stopped.
pub(super) async fn serve(served: &Served, stream: TcpStream, address: SocketAddr) {
    // Answers are small, and whoever waits for one sends nothing.
    let _slower_without = stream.set_nodelay(true);
    let mut client = Client {
        stream,
        buffer: BytesMut::new(),
        address,
    };
    let Some(Some(opened)) = served.stop.run_until_cancelled(client.requests(served)).await else {
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

/// Has the gate decide, and connects. A client that leaves meanwhile ends both.
pub(super) async fn open(served: &Served, client: &mut Client, wanted: &Wanted) -> Result<Connected, Outcome> {
    let gate = &*served.gate;
    let verdict = client.watched(gate.decide(wanted.clone())).await;
    match verdict.map_err(Outcome::Abandoned)? {
        Verdict::Allowed => {}
        Verdict::Refused(why) => return Err(Outcome::Refused(why)),
    }
    let connecting = connect(gate, &*served.resolver, &served.bounds, &wanted.host, wanted.port);
    match client.watched(connecting).await.map_err(Outcome::Abandoned)? {
        Ok(connected) => Ok(connected),
        Err(Rejected::Refused(why)) => Err(Outcome::Refused(why)),
        Err(Rejected::Failed(why)) => Err(Outcome::Failed(why)),
    }
}

impl Client {
    /// Reads what the client asks for. Returns with the tunnel that it got, or when nothing more comes of it.
    async fn requests<'a>(&mut self, served: &'a Served) -> Option<Opened<'a>> {
        // Whoever sends nothing asks for nothing.
        match timeout(served.bounds.head_time, self.more()).await {
            Ok(Ok(1..)) => {}
            Ok(Ok(0) | Err(_)) | Err(_) => return None,
        }
        let begun = Instant::now();
        match self.buffer.first()? {
            5 => socks::serve(served, self, begun).await,
            4 => {
                let answer = [0, 91, 0, 0, 0, 0, 0, 0];
                self.turn_away(served, begun, Unreadable::Socks4, &answer).await;
                None
            }
            0x16 | 0x80 => {
                self.turn_away(served, begun, Unreadable::ProxyTls, &[]).await;
                None
            }
            _ => http::serve(served, self, begun).await,
        }
    }

    /// Refuses what no protocol is.
    async fn turn_away(&mut self, served: &Served, begun: Instant, why: Unreadable, answer: &[u8]) {
        Record::unreadable(&*served.gate, begun, &self.buffer, None, self.address, why);
        self.last_word(answer, served.bounds.linger).await;
    }

    /// Reads once; 0 when the client sends nothing more. Nothing is lost when it is dropped.
    ///
    /// # Errors
    /// The connection is broken, or there is no room for more.
    pub(super) async fn more(&mut self) -> io::Result<usize> {
        let room = BUFFER.saturating_sub(self.buffer.len());
        if room == 0 {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.buffer.reserve(room.min(PIECE));
        let mut room = (&mut self.buffer).limit(room);
        self.stream.read_buf(&mut room).await
    }

    /// Does the work, unless the client leaves first.
    ///
    /// What it sends meanwhile is kept, until there is no room.
    pub(super) async fn watched<T>(&mut self, work: impl Future<Output = T>) -> Result<T, End> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                more = self.more(), if self.buffer.len() < BUFFER => match more {
                    Ok(1..) => {}
                    Ok(0) | Err(_) => return Err(End::ClientLeft),
                },
            }
        }
    }

    /// Sends bytes; whoever does not take them in time gets no more.
    pub(super) async fn send(&mut self, bytes: &[u8], time: Duration) -> Result<(), End> {
        match timeout(time, self.stream.write_all(bytes)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(End::ClientLeft),
            Err(_elapsed) => Err(End::Idle),
        }
    }

    /// Sends the last bytes that the client gets. What it still sends is thrown away for a while, because closing with
    /// that unread would take the answer from it.
    pub(super) async fn last_word(&mut self, bytes: &[u8], time: Duration) {
        self.buffer = BytesMut::new();
        last_word(&mut self.stream, bytes, time).await;
    }
}

/// [`Client::last_word`], where nothing but its connection is left.
pub(super) async fn last_word(stream: &mut TcpStream, bytes: &[u8], time: Duration) {
    let words = async {
        stream.write_all(bytes).await?;
        stream.shutdown().await?;
        let mut thrown_away = [0; 1024];
        while stream.read(&mut thrown_away).await? > 0 {}
        io::Result::Ok(())
    };
    // Whatever becomes of it, the connection ends here.
    let _ended = timeout(time, words).await;
}

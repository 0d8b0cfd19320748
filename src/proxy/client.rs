//! A client's connection: its bytes as they come in, and what it is sent.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;

use bytes::{BufMut as _, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Duration, timeout};

use super::attempt::End;
use super::bounds::BUFFER;

/// How much is read at once.
pub(super) const PIECE: usize = 16 * 1024;

/// A client, and what it sent that is not used yet.
pub(super) struct Client {
    pub(super) stream: TcpStream,
    pub(super) buffer: BytesMut,
    pub(super) address: SocketAddr,
}

impl Client {
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

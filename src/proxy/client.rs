//! A client's connection and its receive buffer.

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

/// A client with its unparsed bytes.
pub(super) struct Client {
    pub(super) stream: TcpStream,
    pub(super) buffer: BytesMut,
    pub(super) address: SocketAddr,
}

impl Client {
    /// Reads once; 0 at the end of the stream. Cancel-safe.
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

    /// Awaits the work unless the client closes the connection first.
    ///
    /// Buffers what the client sends meanwhile.
    pub(super) async fn unless_closed<T>(&mut self, work: impl Future<Output = T>) -> Result<T, End> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                more = self.more(), if self.buffer.len() < BUFFER => match more {
                    Ok(1..) => {}
                    Ok(0) | Err(_) => return Err(End::ClientClosed),
                },
            }
        }
    }

    /// Sends bytes within a time limit.
    pub(super) async fn send(&mut self, bytes: &[u8], time: Duration) -> Result<(), End> {
        match timeout(time, self.stream.write_all(bytes)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(End::ClientClosed),
            Err(_elapsed) => Err(End::Idle),
        }
    }

    /// Sends the final bytes. Input is then discarded for a while: closing with unread input would reset the connection
    /// before the client has read the reply.
    pub(super) async fn send_final(&mut self, bytes: &[u8], time: Duration) {
        self.buffer = BytesMut::new();
        send_final(&mut self.stream, bytes, time).await;
    }
}

/// [`Client::send_final`] for a bare stream.
pub(super) async fn send_final(stream: &mut TcpStream, bytes: &[u8], time: Duration) {
    let words = async {
        stream.write_all(bytes).await?;
        stream.shutdown().await?;
        let mut thrown_away = [0; 1024];
        while stream.read(&mut thrown_away).await? > 0 {}
        io::Result::Ok(())
    };
    // An error is ignored: the connection is closed in any case.
    let _ended = timeout(time, words).await;
}

//! The direction from client to server in a tunnel: inspected as far as possible, then copied.

use std::sync::{Mutex, PoisonError};

use bytes::BufMut as _;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::oneshot;
use tokio::time::{Duration, Instant, timeout_at};

use super::attempt::{End, Refusal, TunnelContent};
use super::bounds::BUFFER;
use super::detect::{ProtocolDetector, TunnelProtocol, is_old_request};
use super::first_reply::FirstReply;
use super::http::body::{Body, Piece};
use super::http::head::{Finder, Head};
use super::meter::{Meter, Way};
use super::pump::{Broken, hang_up, pump, send};
use super::tls::{HelloError, HelloReader, NextRecord};
use super::tunnelled_request::{AfterHead, Order, judge};
use super::unreadable::Unreadable;
use crate::policy::Host;

/// The size of one read.
const PIECE: usize = 16 * 1024;

/// Why the direction was cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cut {
    /// Its content was refused.
    Refused(Refusal),
    /// An end closed the connection.
    Left(End),
}

impl From<Broken> for Cut {
    fn from(broken: Broken) -> Self {
        Self::Left(match broken {
            Broken::Source => End::ClientClosed,
            Broken::Sink => End::ServerClosed,
        })
    }
}

impl From<HelloError> for Cut {
    fn from(why: HelloError) -> Self {
        Self::Refused(why.into())
    }
}

impl From<Unreadable> for Cut {
    fn from(why: Unreadable) -> Self {
        Self::Refused(Refusal::Tunnelled(why))
    }
}

/// The direction from client to server.
#[derive(Debug)]
pub(super) struct ClientToServer<'a> {
    pub(super) from: ReadHalf<'a>,
    pub(super) to: WriteHalf<'a>,
    /// Bytes of the client that are not judged yet.
    pub(super) pending: Vec<u8>,
    pub(super) host: &'a Host,
    pub(super) port: u16,
    /// The time limit of a hello or a head, from its first byte on.
    pub(super) head_time: Duration,
    pub(super) meter: &'a Meter,
    pub(super) content: &'a Mutex<TunnelContent>,
    /// The first reply of the server.
    pub(super) answer: oneshot::Receiver<FirstReply>,
    pub(super) progress: Progress,
}

/// The progress of the client.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The number of pending bytes that were sent on already.
    sent: usize,
    /// The client has sent its last byte.
    ended: bool,
    /// When the first pending byte was received.
    since: Option<Instant>,
}

impl ClientToServer<'_> {
    /// Sends on what the client sends, until it ends.
    pub(super) async fn run(mut self) -> Result<(), Cut> {
        self.begin();
        match self.detect().await? {
            TunnelProtocol::Tls => self.tls().await?,
            TunnelProtocol::Http => self.http().await?,
            TunnelProtocol::Other => {}
        }
        self.pass(self.pending.len()).await?;
        if self.progress.ended {
            hang_up(&mut self.to).await;
            return Ok(());
        }
        // From here on nothing is inspected.
        self.pending = Vec::new();
        Ok(pump(&self.from, &mut self.to, self.meter, Way::Up, |_| {}).await?)
    }

    async fn detect(&mut self) -> Result<TunnelProtocol, Cut> {
        let mut detector = ProtocolDetector::default();
        loop {
            if let Some(protocol) = detector.detect(&self.pending).map_err(Cut::Refused)? {
                self.set_content(match protocol {
                    TunnelProtocol::Other => TunnelContent::Other,
                    // It is set after the first message was judged.
                    TunnelProtocol::Tls | TunnelProtocol::Http => TunnelContent::Nothing,
                });
                return Ok(protocol);
            }
            if !self.pending.is_empty() {
                self.set_content(TunnelContent::Other);
            }
            self.send_pending(self.pending.len()).await?;
            if !self.more().await? {
                return if is_old_request(&self.pending) {
                    self.set_content(TunnelContent::Nothing);
                    Err(Unreadable::Short.into())
                } else {
                    Ok(TunnelProtocol::Other)
                };
            }
        }
    }

    /// Judges the client's hellos.
    async fn tls(&mut self) -> Result<(), Cut> {
        let content = self.hello().await?;
        self.set_content(content);
        match self.answer().await? {
            FirstReply::Retry => {}
            FirstReply::Switched | FirstReply::Other => return Ok(()),
        }
        loop {
            match NextRecord::of(&self.pending)? {
                NextRecord::More => {
                    if !self.more_in_time(HelloError::Slow).await? {
                        return if self.pending.is_empty() {
                            Ok(())
                        } else {
                            Err(HelloError::Unreadable.into())
                        };
                    }
                }
                NextRecord::Record(length) => self.pass(length).await?,
                NextRecord::Hello => {
                    self.hello().await?;
                    return Ok(());
                }
            }
        }
    }

    /// Judges one hello, and sends it on.
    async fn hello(&mut self) -> Result<TunnelContent, Cut> {
        let mut reader = HelloReader::default();
        loop {
            if let Some((hello, length)) = reader.read(&self.pending)? {
                let content = hello.check_host(self.host)?;
                self.pass(length).await?;
                return Ok(content);
            }
            if !self.more_in_time(HelloError::Slow).await? {
                return Err(HelloError::Unreadable.into());
            }
        }
    }

    /// Judges requests until the connection switches its protocol or ends.
    async fn http(&mut self) -> Result<(), Cut> {
        let mut order = Order::First;
        while let Some((head, length)) = self.head().await? {
            let after_head = judge(&head, order, self.host, self.port)?;
            self.set_content(TunnelContent::Http);
            self.pass(length).await?;
            match after_head {
                AfterHead::Body => self.body(Body::new(head.framing)).await?,
                AfterHead::Upgrade => match self.answer().await? {
                    FirstReply::Switched => {
                        self.set_content(TunnelContent::Upgraded);
                        return Ok(());
                    }
                    FirstReply::Retry | FirstReply::Other => {}
                },
            }
            order = Order::Later;
        }
        Ok(())
    }

    /// The next head and its length; `None` at the end of the stream.
    async fn head(&mut self) -> Result<Option<(Head, usize)>, Cut> {
        let mut finder = Finder::default();
        loop {
            if let Some(length) = finder.find(&self.pending)? {
                let head = Head::read(self.pending.get(..length).unwrap_or_default())?;
                return Ok(Some((head, length)));
            }
            if !self.more_in_time(Unreadable::Slow).await? {
                return if self.pending.is_empty() {
                    Ok(None)
                } else {
                    Err(Unreadable::Short.into())
                };
            }
        }
    }

    async fn body(&mut self, mut body: Body) -> Result<(), Cut> {
        loop {
            let mut length = 0;
            let is_over = loop {
                match body.next(self.pending.get(length..).unwrap_or_default())? {
                    Piece::Data(more) | Piece::Framing(more) => length += more,
                    Piece::More => break false,
                    Piece::End => break true,
                }
            };
            self.pass(length).await?;
            if is_over {
                return Ok(());
            }
            if !self.more().await? {
                return Err(Cut::Left(End::ClientClosed));
            }
        }
    }

    /// Waits for the first reply of the server, or the end of the client.
    async fn answer(&mut self) -> Result<FirstReply, Cut> {
        let answer = self.first_reply().await;
        // The time limit of the client does not include the time that the server took.
        self.begin();
        answer
    }

    async fn first_reply(&mut self) -> Result<FirstReply, Cut> {
        loop {
            if self.progress.ended && self.pending.is_empty() {
                return Ok(FirstReply::Other);
            }
            let is_open = !self.progress.ended && self.pending.len() < BUFFER;
            let more = async {
                if is_open {
                    Self::read(&self.from, &mut self.pending).await
                } else {
                    std::future::pending().await
                }
            };
            tokio::select! {
                biased;
                // The sender is dropped where the server closes without a reply.
                answer = &mut self.answer => return Ok(answer.unwrap_or(FirstReply::Other)),
                more = more => self.progress.ended = !more?,
            }
        }
    }

    /// Reads once; false when the client sends nothing more.
    async fn more(&mut self) -> Result<bool, Cut> {
        if self.progress.ended {
            return Ok(false);
        }
        let more = Self::read(&self.from, &mut self.pending).await?;
        self.progress.ended = !more;
        if self.progress.since.is_none() {
            self.begin();
        }
        Ok(more)
    }

    /// Reads once, within the time limit of a hello or a head.
    async fn more_in_time(&mut self, timeout_error: impl Into<Cut>) -> Result<bool, Cut> {
        match self.progress.since {
            None => self.more().await,
            Some(since) => match timeout_at(since + self.head_time, self.more()).await {
                Ok(more) => more,
                Err(_late) => Err(timeout_error.into()),
            },
        }
    }

    /// Restarts the time limit.
    fn begin(&mut self) {
        self.progress.since = (!self.pending.is_empty()).then(Instant::now);
    }

    /// Reads once; false at the end of the stream. Cancel-safe.
    async fn read(from: &ReadHalf<'_>, pending: &mut Vec<u8>) -> Result<bool, Cut> {
        let room = BUFFER.saturating_sub(pending.len());
        if room == 0 {
            return Err(Unreadable::TooLong.into());
        }
        loop {
            from.readable().await.map_err(|_| Broken::Source)?;
            pending.reserve(room.min(PIECE));
            match from.try_read_buf(&mut (&mut *pending).limit(room)) {
                Ok(read) => return Ok(read > 0),
                Err(why) if why.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return Err(Broken::Source.into()),
            }
        }
    }

    /// Sends pending bytes on, and keeps them for inspection.
    async fn send_pending(&mut self, length: usize) -> Result<(), Cut> {
        let unsent = self.pending.get(self.progress.sent..length).unwrap_or_default();
        send(&mut self.to, unsent, self.meter, Way::Up).await?;
        self.progress.sent = self.progress.sent.max(length);
        Ok(())
    }

    /// Sends pending bytes on, and removes them.
    async fn pass(&mut self, length: usize) -> Result<(), Cut> {
        self.send_pending(length).await?;
        self.pending.drain(..length.min(self.pending.len()));
        self.progress.sent = self.progress.sent.saturating_sub(length);
        self.begin();
        Ok(())
    }

    fn set_content(&self, content: TunnelContent) {
        *self.content.lock().unwrap_or_else(PoisonError::into_inner) = content;
    }
}

//! What a client sends into its tunnel: looked at until nothing more can be told, then moved.

use std::sync::{Mutex, PoisonError};

use bytes::BufMut as _;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::oneshot;
use tokio::time::{Duration, Instant, timeout_at};

use super::answer::Answer;
use super::attempt::{End, Refusal, Seen};
use super::bounds::BUFFER;
use super::http::body::{Body, Piece};
use super::http::head::{Finder, Head};
use super::inside::{Order, Then, judge};
use super::look::{Look, Spoken};
use super::meter::{Meter, Way};
use super::pump::{Broken, hang_up, pump, send};
use super::tls::{Between, HelloError, HelloReader};
use super::unreadable::Unreadable;
use crate::policy::Host;

/// How much is read at once, of what is looked at.
const PIECE: usize = 16 * 1024;

/// Why nothing more of the client's is sent on, before it has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cut {
    /// For what it sent.
    Refused(Refusal),
    /// An end broke off.
    Left(End),
}

impl From<Broken> for Cut {
    fn from(broken: Broken) -> Self {
        Self::Left(match broken {
            Broken::Source => End::ClientLeft,
            Broken::Sink => End::ServerLeft,
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

/// The way from a client to a server.
#[derive(Debug)]
pub(super) struct Upward<'a> {
    pub(super) from: ReadHalf<'a>,
    pub(super) to: WriteHalf<'a>,
    /// What the client sent that is not judged yet.
    pub(super) held: Vec<u8>,
    pub(super) host: &'a Host,
    pub(super) port: u16,
    /// How long a hello or a head may take, from its first byte on.
    pub(super) head_time: Duration,
    pub(super) meter: &'a Meter,
    pub(super) seen: &'a Mutex<Seen>,
    /// What the server says first.
    pub(super) answer: oneshot::Receiver<Answer>,
    pub(super) so_far: SoFar,
}

/// How far the client has come.
#[derive(Debug, Default)]
pub(super) struct SoFar {
    /// How much of what is held was sent on already.
    sent: usize,
    /// The client has sent its last byte.
    ended: bool,
    /// When the first byte of what is held was there.
    since: Option<Instant>,
}

impl Upward<'_> {
    /// Sends on what the client sends, until it ends.
    pub(super) async fn run(mut self) -> Result<(), Cut> {
        self.begin();
        match self.look().await? {
            Spoken::Tls => self.tls().await?,
            Spoken::Http => self.http().await?,
            Spoken::Other => {}
        }
        self.pass(self.held.len()).await?;
        if self.so_far.ended {
            hang_up(&mut self.to).await;
            return Ok(());
        }
        // The rest needs no room of its own.
        self.held = Vec::new();
        Ok(pump(&self.from, &mut self.to, self.meter, Way::Up, |_| {}).await?)
    }

    async fn look(&mut self) -> Result<Spoken, Cut> {
        let mut look = Look::default();
        loop {
            if let Some(spoken) = look.at(&self.held).map_err(Cut::Refused)? {
                self.saw(match spoken {
                    Spoken::Other => Seen::Other,
                    // Told when it is judged.
                    Spoken::Tls | Spoken::Http => Seen::Nothing,
                });
                return Ok(spoken);
            }
            if !self.held.is_empty() {
                self.saw(Seen::Other);
            }
            self.show(self.held.len()).await?;
            if !self.more().await? {
                return if Look::ended(&self.held) {
                    self.saw(Seen::Nothing);
                    Err(Unreadable::Short.into())
                } else {
                    Ok(Spoken::Other)
                };
            }
        }
    }

    /// Until the client's hellos are over.
    async fn tls(&mut self) -> Result<(), Cut> {
        let seen = self.hello().await?;
        self.saw(seen);
        match self.answer().await? {
            Answer::Retry => {}
            Answer::Switched | Answer::Other => return Ok(()),
        }
        loop {
            match Between::of(&self.held)? {
                Between::More => {
                    if !self.more_in_time(HelloError::Slow).await? {
                        return if self.held.is_empty() {
                            Ok(())
                        } else {
                            Err(HelloError::Unreadable.into())
                        };
                    }
                }
                Between::Record(length) => self.pass(length).await?,
                Between::Hello => {
                    self.hello().await?;
                    return Ok(());
                }
            }
        }
    }

    /// One hello: read, judged, and sent on.
    async fn hello(&mut self) -> Result<Seen, Cut> {
        let mut reader = HelloReader::default();
        loop {
            if let Some((hello, length)) = reader.read(&self.held)? {
                let seen = hello.agrees(self.host)?;
                self.pass(length).await?;
                return Ok(seen);
            }
            if !self.more_in_time(HelloError::Slow).await? {
                return Err(HelloError::Unreadable.into());
            }
        }
    }

    /// Until the connection is no HTTP any more, or the client has ended.
    async fn http(&mut self) -> Result<(), Cut> {
        let mut order = Order::First;
        while let Some((head, length)) = self.head().await? {
            let then = judge(&head, order, self.host, self.port)?;
            self.saw(Seen::Http);
            self.pass(length).await?;
            match then {
                Then::Body => self.body(Body::new(head.framing)).await?,
                Then::Upgrade => match self.answer().await? {
                    Answer::Switched => {
                        self.saw(Seen::Upgraded);
                        return Ok(());
                    }
                    Answer::Retry | Answer::Other => {}
                },
            }
            order = Order::Later;
        }
        Ok(())
    }

    /// The next head, and its length; none where the client has ended before it.
    async fn head(&mut self) -> Result<Option<(Head, usize)>, Cut> {
        let mut finder = Finder::default();
        loop {
            if let Some(length) = finder.find(&self.held)? {
                let head = Head::read(self.held.get(..length).unwrap_or_default())?;
                return Ok(Some((head, length)));
            }
            if !self.more_in_time(Unreadable::Slow).await? {
                return if self.held.is_empty() {
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
                match body.next(self.held.get(length..).unwrap_or_default())? {
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
                return Err(Cut::Left(End::ClientLeft));
            }
        }
    }

    /// What the server says first. Notices meanwhile that the client has ended.
    async fn answer(&mut self) -> Result<Answer, Cut> {
        let answer = self.answered().await;
        // The client is not to blame for how long the server took.
        self.begin();
        answer
    }

    async fn answered(&mut self) -> Result<Answer, Cut> {
        loop {
            if self.so_far.ended && self.held.is_empty() {
                return Ok(Answer::Other);
            }
            let is_open = !self.so_far.ended && self.held.len() < BUFFER;
            let more = async {
                if is_open {
                    Self::read(&self.from, &mut self.held).await
                } else {
                    std::future::pending().await
                }
            };
            tokio::select! {
                biased;
                // A server that ends without a word says nothing else.
                answer = &mut self.answer => return Ok(answer.unwrap_or(Answer::Other)),
                more = more => self.so_far.ended = !more?,
            }
        }
    }

    /// Reads once; false when the client sends nothing more.
    async fn more(&mut self) -> Result<bool, Cut> {
        if self.so_far.ended {
            return Ok(false);
        }
        let more = Self::read(&self.from, &mut self.held).await?;
        self.so_far.ended = !more;
        if self.so_far.since.is_none() {
            self.begin();
        }
        Ok(more)
    }

    /// The same, of a hello or a head that has begun, or is yet to begin.
    async fn more_in_time(&mut self, late: impl Into<Cut>) -> Result<bool, Cut> {
        match self.so_far.since {
            None => self.more().await,
            Some(since) => match timeout_at(since + self.head_time, self.more()).await {
                Ok(more) => more,
                Err(_late) => Err(late.into()),
            },
        }
    }

    /// What is held is the beginning of something new.
    fn begin(&mut self) {
        self.so_far.since = (!self.held.is_empty()).then(Instant::now);
    }

    /// Nothing is lost when it is dropped.
    async fn read(from: &ReadHalf<'_>, held: &mut Vec<u8>) -> Result<bool, Cut> {
        let room = BUFFER.saturating_sub(held.len());
        if room == 0 {
            return Err(Unreadable::TooLong.into());
        }
        loop {
            from.readable().await.map_err(|_| Broken::Source)?;
            held.reserve(room.min(PIECE));
            match from.try_read_buf(&mut (&mut *held).limit(room)) {
                Ok(read) => return Ok(read > 0),
                Err(why) if why.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return Err(Broken::Source.into()),
            }
        }
    }

    /// Sends on so many bytes of what is held, and keeps them.
    async fn show(&mut self, length: usize) -> Result<(), Cut> {
        let unsent = self.held.get(self.so_far.sent..length).unwrap_or_default();
        send(&mut self.to, unsent, self.meter, Way::Up).await?;
        self.so_far.sent = self.so_far.sent.max(length);
        Ok(())
    }

    /// Sends on so many bytes of what is held, and is done with them.
    async fn pass(&mut self, length: usize) -> Result<(), Cut> {
        self.show(length).await?;
        self.held.drain(..length.min(self.held.len()));
        self.so_far.sent = self.so_far.sent.saturating_sub(length);
        self.begin();
        Ok(())
    }

    fn saw(&self, seen: Seen) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
    }
}

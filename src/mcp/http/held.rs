//! What a request holds until all of it is over.
//!
//! Two keep it: the reply, until it is sent or nobody reads it any more, and the request itself, as an extension that
//! goes with it into the handler. So a call that goes on after its client went away still counts.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use http_body_util::combinators::BoxBody;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

use super::load::Room;
use super::reply::Reply;
use super::sessions::InUse;

/// All of it.
#[derive(Debug, Clone)]
pub(super) struct Held {
    _all: Arc<(Option<Room>, Option<OwnedSemaphorePermit>, Option<InUse>)>,
}

impl Held {
    pub(super) fn new(room: Option<Room>, large: Option<OwnedSemaphorePermit>, session: Option<InUse>) -> Self {
        Self {
            _all: Arc::new((room, large, session)),
        }
    }

    /// The reply, which holds it until it is sent.
    pub(super) fn until_sent(self, reply: Reply) -> Reply {
        reply.map(|body| {
            let holding = Holding { body, held: Some(self) };
            holding.boxed()
        })
    }
}

struct Holding {
    body: BoxBody<Bytes, Infallible>,
    held: Option<Held>,
}

impl Body for Holding {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if matches!(polled, Poll::Ready(None)) {
            self.held = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

//! The permits of a request, held until it is finished.
//!
//! Held by the reply, until it is sent or the connection closes, and by the request, as an extension that reaches the handler. So a call
//! that continues after its client disconnected still counts.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use http_body_util::combinators::BoxBody;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

use super::load::LoadPermit;
use super::reply::Reply;
use super::sessions::SessionUse;

#[derive(Debug, Clone)]
pub(super) struct Permits {
    _all: Arc<(Option<LoadPermit>, Option<OwnedSemaphorePermit>, Option<SessionUse>)>,
}

impl Permits {
    pub(super) fn new(
        room: Option<LoadPermit>,
        large: Option<OwnedSemaphorePermit>,
        session: Option<SessionUse>,
    ) -> Self {
        Self {
            _all: Arc::new((room, large, session)),
        }
    }

    /// Makes the reply hold the permits until it is sent.
    pub(super) fn until_sent(self, reply: Reply) -> Reply {
        reply.map(|body| {
            let with_permits = PermitBody {
                body,
                permits: Some(self),
            };
            with_permits.boxed()
        })
    }
}

struct PermitBody {
    body: BoxBody<Bytes, Infallible>,
    permits: Option<Permits>,
}

impl Body for PermitBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if matches!(polled, Poll::Ready(None)) {
            self.permits = None;
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

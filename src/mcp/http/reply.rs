//! Fixed replies.

use std::convert::Infallible;

use bytes::Bytes;
use http::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Empty, Full};

/// A reply.
pub(super) type Reply = Response<BoxBody<Bytes, Infallible>>;

/// A status without a body.
pub(super) fn empty(status: StatusCode) -> Reply {
    let mut reply = Response::new(Empty::new().boxed());
    *reply.status_mut() = status;
    reply
}

/// A status with a text.
pub(super) fn text_reply(status: StatusCode, text: &'static str) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *reply.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    reply.headers_mut().insert(CONTENT_TYPE, plain);
    reply
}

/// A JSON-RPC error as the body.
pub(super) fn rpc_error(error: Vec<u8>) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from(error)).boxed());
    *reply.status_mut() = StatusCode::BAD_REQUEST;
    let json = HeaderValue::from_static("application/json");
    reply.headers_mut().insert(CONTENT_TYPE, json);
    reply
}

/// The token is missing or wrong.
pub(super) fn unauthorized() -> Reply {
    let mut reply = text_reply(
        StatusCode::UNAUTHORIZED,
        "this server wants its token: `Authorization: Bearer …`\n",
    );
    let bearer = HeaderValue::from_static("Bearer realm=\"stockade\"");
    reply.headers_mut().insert(WWW_AUTHENTICATE, bearer);
    closing(reply)
}

/// The method is not for this path.
pub(super) fn not_allowed(allowed: &'static str) -> Reply {
    let mut reply = empty(StatusCode::METHOD_NOT_ALLOWED);
    reply.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    reply
}

/// Refuses a request that was not started, with `Retry-After`.
pub(super) fn retry_later(seconds: &'static str, text: &'static str) -> Reply {
    let mut reply = text_reply(StatusCode::SERVICE_UNAVAILABLE, text);
    let seconds = HeaderValue::from_static(seconds);
    reply.headers_mut().insert(RETRY_AFTER, seconds);
    reply
}

/// Closes the connection after the reply.
pub(super) fn closing(mut reply: Reply) -> Reply {
    let close = HeaderValue::from_static("close");
    reply.headers_mut().insert(CONNECTION, close);
    reply
}

//! Health checks, without a token.

use http::{Method, StatusCode};

use super::reply::{Reply, empty, not_allowed};

/// `/healthz`: the process answers.
pub(super) fn live(method: &Method) -> Reply {
    reply(method, StatusCode::OK)
}

/// `/readyz`: it takes calls, and can confine what they start.
pub(super) fn ready(method: &Method, is_ready: bool) -> Reply {
    let status = if is_ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    reply(method, status)
}

fn reply(method: &Method, status: StatusCode) -> Reply {
    if method == Method::GET || method == Method::HEAD {
        empty(status)
    } else {
        not_allowed("GET, HEAD")
    }
}

//! HTTP of a proxy's clients. Each request is parsed strictly, and sent on as it was parsed.
//!
//! [`head`] reads the head of a request, [`target`] what it is for ([`authority`]: of which host), [`body`] what follows
//! it; the same readers serve for HTTP inside of tunnels. [`mod@serve`] has each request of a connection decided for
//! itself; [`forward`] builds it anew and brings the server's answer back, built anew too; [`response`] has the
//! proxy's own answers.

pub(super) mod authority;
pub(super) mod body;
mod forward;
pub(super) mod head;
pub(super) mod response;
mod serve;
pub(super) mod target;

pub(super) use serve::serve;

//! Allowed origins of web pages, and the CORS headers for browsers.
//!
//! A browser sends the token for a page only after a preflight allowed its origin. Other origins get no CORS header, so their pages
//! cannot read any reply.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, HeaderMap, HeaderValue,
    ORIGIN, VARY,
};
use http::uri::Scheme;
use http::{StatusCode, Uri};

use super::reply::{Reply, empty};

/// A scheme, a host and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    scheme: String,
    host: String,
    port: Option<u16>,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}", self.scheme, self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl Origin {
    /// Parses an origin and fills in the default port of its scheme.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        if scheme.is_empty() || scheme.parse::<Scheme>().is_err() || rest.contains(['/', '?', '#', '@', '*']) {
            return None;
        }
        let uri: Uri = text.parse().ok()?;
        let authority = uri.authority().filter(|authority| !authority.host().is_empty())?;
        let scheme = scheme.to_ascii_lowercase();
        let implied = match scheme.as_str() {
            "http" => Some(80),
            "https" => Some(443),
            _ => None,
        };
        Some(Self {
            host: authority.host().to_ascii_lowercase(),
            port: authority.port_u16().or(implied),
            scheme,
        })
    }
}

/// The reply to a CORS preflight.
pub(super) fn preflight(allowed: &[Origin], headers: &HeaderMap) -> Option<Reply> {
    let origin = allowed_origin(allowed, headers)?;
    let mut reply = empty(StatusCode::NO_CONTENT);
    let reply_headers = reply.headers_mut();
    reply_headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    reply_headers.insert(
        ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("GET, POST, DELETE"),
    );
    // Every header is allowed: without the token none has an effect.
    if let Some(headers) = headers.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        reply_headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, headers.clone());
    }
    reply_headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    reply_headers.insert(VARY, HeaderValue::from_static("Origin"));
    Some(reply)
}

/// The `Origin` header, if pages of that origin may read the reply.
pub(super) fn allowed_origin(allowed: &[Origin], headers: &HeaderMap) -> Option<HeaderValue> {
    let value = headers.get(ORIGIN)?;
    let origin = Origin::parse(value.to_str().ok()?)?;
    allowed.contains(&origin).then(|| value.clone())
}

/// Adds the headers that let a page read the reply.
pub(super) fn allow_reading(reply: &mut Reply, origin: HeaderValue) {
    let reply_headers = reply.headers_mut();
    reply_headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    reply_headers.insert(
        ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate"),
    );
    reply_headers.insert(VARY, HeaderValue::from_static("Origin"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_has_the_port_that_its_scheme_implies() {
        let parse = |text: &str| Origin::parse(text).unwrap();
        assert_eq!(parse("https://A.example"), parse("https://a.example:443"));
        assert_ne!(parse("https://a.example"), parse("http://a.example"));
        assert_ne!(parse("https://a.example"), parse("https://a.example:8443"));
        assert_eq!(parse("http://[::1]:8080").to_string(), "http://[::1]:8080");
    }

    #[test]
    fn what_is_no_origin_is_none() {
        for text in [
            "",
            "null",
            "a.example",
            "https://",
            "https://a/",
            "https://u@a",
            "https://*.a",
            "://a",
        ] {
            assert_eq!(Origin::parse(text), None, "{text}");
        }
    }
}

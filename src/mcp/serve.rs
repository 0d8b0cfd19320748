//! Serves over the chosen transport, and shuts down in order.

use std::sync::Arc;
use std::time::Duration;

use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use nix::sys::signal::Signal;

use super::http;
use super::notices::Notices;
use super::server::Server;
use super::stdio::Stdio;
use super::upstream;
use crate::tools::serving::{ApproverChain, HttpOptions, ServeEnd, ServeError, ServedTools, Serving, Transport};
use crate::tools::{Boxed, Provider};

/// Serves until the client disconnects or a signal comes; then ends all calls with everything they started.
pub fn serve(serving: Serving) -> Boxed<'static, Result<ServeEnd, ServeError>> {
    Box::pin(async move {
        let Serving {
            offered,
            asking,
            transport,
            mut stops,
            say,
        } = serving;
        let provider = match offered {
            ServedTools::Own(provider) => provider,
            ServedTools::Upstream(upstream) => {
                let starting = upstream::start(*upstream, say);
                tokio::select! {
                    started = starting => started?,
                    // Dropping the future ends the server.
                    Some(signal) = stops.recv() => return Ok(ServeEnd::Stopped(signal)),
                }
            }
        };
        let notices = Arc::new(Notices::new(say).map_err(|error| ServeError::Client(error.to_string()))?);
        let last_notices = Arc::clone(&notices);
        let ended = match transport {
            Transport::Stdio => over_stdio(&provider, asking, notices, &mut stops).await,
            Transport::Http(options) => over_http(&provider, asking, options, stops, (say, notices)).await,
        };
        provider.finish().await;
        last_notices.finish().await;
        ended
    })
}

/// How long a client may take to read the last answers.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

async fn over_stdio(
    provider: &Arc<dyn Provider>,
    asking: ApproverChain,
    notices: Arc<Notices>,
    stops: &mut mpsc::Receiver<Signal>,
) -> Result<ServeEnd, ServeError> {
    let shutdown = CancellationToken::new();
    let server = Server::new(Arc::clone(provider), asking, notices, shutdown.clone())?;
    let stop = CancellationToken::new();
    let serving = async {
        let running = match server.serve_with_ct(Stdio::new(shutdown.clone()), stop.clone()).await {
            Ok(running) => running,
            // The client disconnected before it initialized.
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => return Ok(()),
            Err(error) => return Err(ServeError::Client(error.to_string())),
        };
        running
            .waiting()
            .await
            .map(|_quit| ())
            .map_err(|error| ServeError::Client(error.to_string()))
    };
    let mut serving = std::pin::pin!(serving);
    // A client that does not read is not waited for.
    let flush_time = async {
        shutdown.cancelled().await;
        tokio::time::sleep(FLUSH_TIMEOUT).await;
    };
    let mut flush_time = std::pin::pin!(flush_time);
    let signal = tokio::select! {
        done = &mut serving => return done.map(|()| ServeEnd::Closed),
        () = &mut flush_time => return Ok(ServeEnd::Closed),
        Some(signal) = stops.recv() => signal,
    };
    shutdown.cancel();
    stop.cancel();
    tokio::select! {
        done = &mut serving => done.map(|()| ServeEnd::Stopped(signal)),
        () = &mut flush_time => Ok(ServeEnd::Stopped(signal)),
        // A second signal ends it at once.
        Some(signal) = stops.recv() => Ok(ServeEnd::Stopped(signal)),
    }
}

async fn over_http(
    provider: &Arc<dyn Provider>,
    asking: ApproverChain,
    options: HttpOptions,
    stops: mpsc::Receiver<Signal>,
    (say, notices): (fn(&str), Arc<Notices>),
) -> Result<ServeEnd, ServeError> {
    let shutdown = CancellationToken::new();
    let server = Server::new(Arc::clone(provider), asking, notices, shutdown.clone())?;
    http::serve(options, move || server.clone(), shutdown, stops, say)
        .await
        .map_err(|error| ServeError::Http(error.to_string()))
}

//! Serves over whatever transport was chosen, and ends in order.

use std::sync::Arc;
use std::time::Duration;

use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use nix::sys::signal::Signal;

use super::http;
use super::server::Server;
use super::stdio::Stdio;
use super::upstream;
use super::voice::Voice;
use crate::tools::serving::{ApproverChain, HttpOptions, ServeEnd, ServeError, ServedTools, Serving, Transport};
use crate::tools::{Boxed, Provider};

/// Serves until the client is gone or a signal comes; then whatever is under way is ended, with all that it started.
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
                let starting = upstream::start(upstream, say);
                tokio::select! {
                    started = starting => started?,
                    // What was started is ended with it.
                    Some(signal) = stops.recv() => return Ok(ServeEnd::Stopped(signal)),
                }
            }
        };
        let voice = Arc::new(Voice::new(say).map_err(|error| ServeError::Client(error.to_string()))?);
        let last = Arc::clone(&voice);
        let ended = match transport {
            Transport::Stdio => over_stdio(&provider, asking, voice, &mut stops).await,
            Transport::Http(asked) => over_http(&provider, asking, asked, stops, (say, voice)).await,
        };
        provider.finish().await;
        last.finish().await;
        ended
    })
}

/// How long answers may take to be read by a client that is told that there will be no more.
const LAST_WORDS: Duration = Duration::from_secs(3);

async fn over_stdio(
    provider: &Arc<dyn Provider>,
    asking: ApproverChain,
    voice: Arc<Voice>,
    stops: &mut mpsc::Receiver<Signal>,
) -> Result<ServeEnd, ServeError> {
    let ending = CancellationToken::new();
    let server = Server::new(Arc::clone(provider), asking, voice, ending.clone())?;
    let stop = CancellationToken::new();
    let serving = async {
        let running = match server.serve_with_ct(Stdio::new(ending.clone()), stop.clone()).await {
            Ok(running) => running,
            // It went before it said anything.
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
    // A client that reads nothing is not waited for.
    let unread = async {
        ending.cancelled().await;
        tokio::time::sleep(LAST_WORDS).await;
    };
    let mut unread = std::pin::pin!(unread);
    let signal = tokio::select! {
        done = &mut serving => return done.map(|()| ServeEnd::Closed),
        () = &mut unread => return Ok(ServeEnd::Closed),
        Some(signal) = stops.recv() => signal,
    };
    ending.cancel();
    stop.cancel();
    tokio::select! {
        done = &mut serving => done.map(|()| ServeEnd::Stopped(signal)),
        () = &mut unread => Ok(ServeEnd::Stopped(signal)),
        // Told twice: at once.
        Some(signal) = stops.recv() => Ok(ServeEnd::Stopped(signal)),
    }
}

async fn over_http(
    provider: &Arc<dyn Provider>,
    asking: ApproverChain,
    asked: HttpOptions,
    stops: mpsc::Receiver<Signal>,
    (say, voice): (fn(&str), Arc<Voice>),
) -> Result<ServeEnd, ServeError> {
    let ending = CancellationToken::new();
    let server = Server::new(Arc::clone(provider), asking, voice, ending.clone())?;
    http::serve(asked, move || server.clone(), ending, stops, say)
        .await
        .map_err(|error| ServeError::Http(error.to_string()))
}

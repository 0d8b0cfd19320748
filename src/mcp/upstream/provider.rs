//! The tools of a third party's server, as a server for agents offers them.

use std::sync::Arc;

use nix::sys::signal::Signal;
use rmcp::model::ProgressNotificationParam;

use super::client::shown;
use super::server::{Server, Start};
use super::tool::{self, Cancelled, Steps};
use crate::mcp::voice::Say;
use crate::tools::serving::{self, ServeError};
use crate::tools::{Boxed, Effect, Output, ProvidedCall, Provider, Reach, Session, ToolError, ToolInfo};

/// Starts the server, and offers its tools.
pub(in crate::mcp) async fn start(upstream: serving::Upstream, say: Say) -> Result<Arc<dyn Provider>, ServeError> {
    let serving::Upstream {
        session,
        command,
        directory,
        state,
    } = upstream;
    let start = Start {
        words: command,
        directory: &directory,
        state: &state,
        say,
    };
    let failed = |error: &dyn std::fmt::Display| ServeError::Upstream(error.to_string());
    let server = Server::start(&session, start).await.map_err(|error| failed(&error))?;
    Ok(Arc::new(Upstream { session, server }))
}

/// A server, and the session whose guard its tools are behind.
#[derive(Debug)]
struct Upstream {
    session: Session,
    server: Arc<Server>,
}

impl Upstream {
    async fn carry_out(&self, call: ProvidedCall) -> Result<Output, ToolError> {
        let ProvidedCall {
            context,
            approver,
            withdraw,
            extra_approver,
            cancelled,
            progress,
        } = call;
        // What stops one call stops no other.
        let session = self.session.beside().await.asking(approver, withdraw, extra_approver);
        let stopper = session.stopper();
        let steps: Steps = Arc::new(move |step: &ProgressNotificationParam| {
            if let Some(progress) = &progress {
                progress(told(step));
            }
        });
        let wanted = cancelled.clone();
        let no_longer: Cancelled = Arc::new(move || {
            let wanted = wanted.clone();
            Box::pin(async move { wanted.cancelled().await })
        });
        let mut work = std::pin::pin!(tool::call(&self.server, &session, &context, no_longer, steps));
        tokio::select! {
            done = &mut work => return done,
            () = cancelled.cancelled() => {}
        }
        // An open question is withdrawn; a call under way has heard of it by itself.
        let _told = stopper.try_send(Signal::SIGTERM);
        work.await
    }
}

/// A step that the server told, in its own words.
fn told(step: &ProgressNotificationParam) -> String {
    let said = step.message.as_deref().map(shown);
    let how_far = match step.total {
        Some(total) => format!("{} of {total}", step.progress),
        None => step.progress.to_string(),
    };
    match said {
        Some(said) => format!("{how_far}: {said}"),
        None => how_far,
    }
}

impl Provider for Upstream {
    fn list(&self) -> Vec<ToolInfo> {
        let info = |offer: Arc<super::server::Offer>| ToolInfo {
            name: offer.definition.name.clone(),
            description: offer.definition.description.clone(),
            input_schema: offer.definition.input_schema.clone(),
            output_schema: offer.definition.output_schema.clone(),
            // Whatever it claims, nothing better is known.
            effect: Effect::Destroys(Reach::World),
            claims: offer.definition.claims.clone(),
        };
        self.server.offers().into_iter().map(info).collect()
    }

    fn revision(&self) -> u64 {
        self.server.revision()
    }

    fn instructions(&self) -> &'static str {
        "Tools of a third party's MCP server, which the operating system confines. What the sandbox forbids fails with \
         an error of the server's. Some calls need a person's yes; a denial says which rule would allow the call."
    }

    fn call(&self, call: ProvidedCall) -> Boxed<'_, Result<Output, ToolError>> {
        Box::pin(self.carry_out(call))
    }

    fn finish(&self) -> Boxed<'_, ()> {
        Box::pin(async {
            self.server.finish().await;
            self.session.finish().await;
        })
    }
}

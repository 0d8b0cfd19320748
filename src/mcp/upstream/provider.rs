//! The tools of a third party's server, offered to agents.

use std::sync::Arc;

use nix::sys::signal::Signal;
use rmcp::model::ProgressNotificationParam;

use super::client::excerpt;
use super::server::{Server, Start};
use super::tool::{self, Cancelled, ProgressSink};
use crate::mcp::notices::Print;
use crate::tools::serving::{self, ServeError};
use crate::tools::{Boxed, Effect, Output, ProvidedCall, Provider, Reach, Session, ToolError, ToolInfo};

/// Starts the server, and offers its tools.
pub(in crate::mcp) async fn start(upstream: serving::Upstream, print: Print) -> Result<Arc<dyn Provider>, ServeError> {
    let serving::Upstream {
        session,
        command,
        directory,
        state,
    } = upstream;
    let start = Start {
        argv: command,
        directory: &directory,
        state: &state,
        print,
    };
    let failed = |error: &dyn std::fmt::Display| ServeError::Upstream(error.to_string());
    let server = Server::start(&session, start).await.map_err(|error| failed(&error))?;
    Ok(Arc::new(Upstream { session, server }))
}

/// A server, and the session that guards its tools.
#[derive(Debug)]
struct Upstream {
    session: Session,
    server: Arc<Server>,
}

impl Upstream {
    async fn run(&self, call: ProvidedCall) -> Result<Output, ToolError> {
        let ProvidedCall {
            context,
            approver,
            withdraw,
            extra_approver,
            cancelled,
            progress,
        } = call;
        // Stopping one call stops no other.
        let session = self.session.beside().await.asking(approver, withdraw, extra_approver);
        let stopper = session.stopper();
        let on_progress: ProgressSink = Arc::new(move |step: &ProgressNotificationParam| {
            if let Some(progress) = &progress {
                progress(progress_text(step));
            }
        });
        let token = cancelled.clone();
        let cancellation: Cancelled = Arc::new(move || {
            let token = token.clone();
            Box::pin(async move { token.cancelled().await })
        });
        let mut work = std::pin::pin!(tool::call(&self.server, &session, &context, cancellation, on_progress));
        tokio::select! {
            done = &mut work => return done,
            () = cancelled.cancelled() => {}
        }
        // Withdraws an open question; a call under way is cancelled already.
        let _sent = stopper.try_send(Signal::SIGTERM);
        work.await
    }
}

/// The text of a progress notification.
fn progress_text(step: &ProgressNotificationParam) -> String {
    let message = step.message.as_deref().map(excerpt);
    let count = match step.total {
        Some(total) => format!("{} of {total}", step.progress),
        None => step.progress.to_string(),
    };
    match message {
        Some(message) => format!("{count}: {message}"),
        None => count,
    }
}

impl Provider for Upstream {
    fn list(&self) -> Vec<ToolInfo> {
        let info = |offer: Arc<super::server::Offer>| ToolInfo {
            name: offer.definition.name.clone(),
            description: offer.definition.description.clone(),
            input_schema: offer.definition.input_schema.clone(),
            output_schema: offer.definition.output_schema.clone(),
            // Its claims are not trusted.
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
        Box::pin(self.run(call))
    }

    fn finish(&self) -> Boxed<'_, ()> {
        Box::pin(async {
            self.server.finish().await;
            self.session.finish().await;
        })
    }
}

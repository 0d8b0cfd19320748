//! Standard input and output as the transport.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::io::{StdioReader, StdioWriter, stdio_pipes};
use tokio_util::sync::CancellationToken;

/// The longest message that is read.
const LONGEST: usize = 16 * 1024 * 1024 + 64 * 1024;

/// The transport over the process's own streams.
pub(super) struct Stdio {
    inner: AsyncRwTransport<RoleServer, StdioReader, StdioWriter>,
    begun: Begun,
    /// Cancelled when the client has closed its end, a moment after.
    gone: CancellationToken,
}

/// How long what is under way may still take when the client has closed its end: whoever pipes requests in closes it at
/// once, and a client that goes waits two seconds at most.
const GRACE: Duration = Duration::from_millis(700);

/// Whether a request has come. What comes before the first one speaks of nothing, and a server that is not told whom it
/// serves would end over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begun {
    NotYet,
    Yes,
}

impl Stdio {
    /// Over the streams that the client holds the other ends of.
    pub(super) fn new(gone: CancellationToken) -> Self {
        let (reader, writer) = stdio_pipes();
        Self {
            inner: AsyncRwTransport::new(reader, writer).with_max_line_length(LONGEST),
            begun: Begun::NotYet,
            gone,
        }
    }
}

impl Transport<RoleServer> for Stdio {
    type Error = std::io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let Some(message) = self.inner.receive().await else {
                let gone = self.gone.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(GRACE).await;
                    gone.cancel();
                });
                return None;
            };
            match (&message, self.begun) {
                (JsonRpcMessage::Request(_), _) => self.begun = Begun::Yes,
                (_, Begun::Yes) => {}
                (_, Begun::NotYet) => continue,
            }
            return Some(message);
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

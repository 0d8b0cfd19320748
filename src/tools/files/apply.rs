//! Making changes that were prepared, with what becomes of protected names.

use nix::sys::signal::Signal;
use tokio::sync::mpsc;

use super::file_client::{Walks, exchange};
use crate::confine::ConfineError;
use crate::confine::files::protocol::{Bound, FileOperation, FileReply};
use crate::confine::wire::protocol::{PutBack, Watch};
use crate::policy::path::escape;
use crate::profile::ApprovedRoots;
use crate::tools::call::ToolError;
use crate::tools::executor::Executor;
use crate::tools::on_record::record_restored;
use crate::tools::restored::Restored;
use crate::tools::undo_offer::offer;

/// Makes changes; what became of protected names.
pub(super) async fn apply(
    executor: &mut Executor,
    approved_roots: &ApprovedRoots,
    changes: Vec<Bound>,
    call: Option<&str>,
    stops: &mut mpsc::Receiver<Signal>,
) -> Result<(FileReply, Vec<Restored>, Option<String>), ToolError> {
    let request = executor.files(stops).request(FileOperation::Apply(changes));
    let mut tries = 0..1;
    let (digest, mut forker, server, mut running) = loop {
        let (digest, mut forker) = executor.files(stops).forker(approved_roots, Walks::Yes).await?;
        match forker.start_file_server(Watch::ProtectedNames).await {
            Ok((server, running)) => break (digest, forker, server, running),
            // Nothing was changed: another forker does it.
            Err(ConfineError::ForkerExited(_)) if tries.next().is_some() => forker.finish().await,
            Err(error) => return Err(error.into()),
        }
    };
    let answer = exchange(&server, request, stops).await;
    server.hang_up();
    // Its end is waited for in every case: only then is settled what it changed.
    let ended = running.ended().await;
    let PutBack {
        violations, unsettled, ..
    } = match ended {
        Ok(ended) => ended.put_back,
        Err(error) => {
            forker.finish().await;
            return Err(error.into());
        }
    };
    let mut restored: Vec<Restored> = violations.into_iter().map(Into::into).collect();
    offer(&executor.deciding, &mut forker, &mut restored, call, stops).await;
    executor.pool.keep(digest, forker).await;
    let mut unsettled = unsettled.map(|why| escape(why.as_bytes()));
    executor.recovered.append_to(&mut restored, &mut unsettled);
    record_restored(executor.deciding.recorder.as_ref(), call, &restored).await?;
    match answer {
        Ok(answer) => Ok((answer.last, restored, unsettled)),
        Err(error) => Err(error.with_put_back(&restored, unsettled)),
    }
}

//! A command, as the log tells of it.

use crate::tools::explain::Explained;
use crate::tools::network::NetworkUse;
use crate::tools::outcome::Status;
use crate::tools::restored::Restored;

/// The name of a call in the log, unique in its session.
pub(in crate::tools) type CallId = String;

pub(in crate::tools) struct CommandEnd<'a> {
    pub(in crate::tools) status: &'a Status,
    pub(in crate::tools) duration: Option<f64>,
    pub(in crate::tools) output_bytes: Option<u64>,
    pub(in crate::tools) restored: &'a [Restored],
    pub(in crate::tools) unsettled: Option<&'a str>,
    pub(in crate::tools) network: Option<&'a NetworkUse>,
    pub(in crate::tools) explained: Option<&'a Explained>,
}

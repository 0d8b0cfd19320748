//! What a command attempted and was denied, and why.
//!
//! Where somebody wants to know, the runner takes note of what a command attempts ([`crate::confine`]) and
//! decides nothing by it. [`forker_plan`] keeps the plan that holds the commands of a forker. Afterwards
//! [`host_path`] looks whether there was anything to be denied: what is not there fails everywhere, and is no
//! denial. [`judge`] holds each attempt against the plan, by the plan's own readers, but for what programs
//! only ask in passing ([`probes`]), [`denials`] has each once, and [`reasons`] says of what is left which clause decides, on which line,
//! what stood in the way, and what would have to change; where the plan blocks more than the config says, [`stricter`] finds the line that
//! it does so for. [`display`] puts that in words; [`hint`] says how to
//! come by it where nobody asked before, also where by its own words a command missed what is [`visible_paths`] from it.

mod answer;
mod command_result;
mod denials;
mod display;
mod explained;
pub(in crate::tools) mod forker_plan;
pub(in crate::tools) mod hint;
mod host_path;
pub(in crate::tools) mod judge;
mod probes;
mod reasons;
pub(in crate::tools) mod stricter;
pub(in crate::tools) mod visible_paths;

pub use answer::{Answer, BackendAnswer, Clause, Permitted, size};
pub(crate) use answer::{Permissions, writing};
pub(in crate::tools) use command_result::CommandResult;
pub(crate) use explained::Subject;
pub use explained::{Blocked, Explained, Layer, Wanted};
pub(crate) use reasons::call_name;

//! What a command attempted and was denied, and why.
//!
//! Where somebody wants to know, the runner takes note of what a command attempts ([`crate::confine`]) and
//! decides nothing by it. [`standing`] keeps the plan that holds the commands of a forker. Afterwards
//! [`there`] looks whether there was anything to be denied: what is not there fails everywhere, and is no
//! denial. [`judge`] holds each attempt against the plan, by the plan's own readers, but for what programs
//! only ask in passing ([`idle`]), [`denials`] has each once, and [`reasons`] says of what is left which clause decides, on which line,
//! what stood in the way, and what would have to change; where the plan blocks more than the config says, [`stricter`] finds the line that
//! it does so for. [`told`] puts that in words; [`hint`] says how to
//! come by it where nobody asked before, also where by its own words a command missed what is [`hidden`] from it.

mod answer;
mod denials;
mod explained;
mod fate;
pub(in crate::tools) mod hidden;
pub(in crate::tools) mod hint;
mod idle;
pub(in crate::tools) mod judge;
mod reasons;
pub(in crate::tools) mod standing;
pub(in crate::tools) mod stricter;
mod there;
mod told;

pub use answer::{Answer, BackendAnswer, Clause, Permitted, size};
pub(crate) use answer::{Permissions, writing};
pub(crate) use explained::Subject;
pub use explained::{Blocked, Explained, Layer, Wanted};
pub(in crate::tools) use fate::Fate;
pub(crate) use reasons::call_name;

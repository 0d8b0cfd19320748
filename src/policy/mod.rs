//! The vocabulary: what may be said about an agent's reach, before any operating system is named.
//!
//! A [`Policy`] is what one config says once every path in it is resolved: roots, base paths,
//! network, limits, environment, shell rules. It is the oracle the rest is held against: a profile
//! derived from it may permit less, never more.
//!
//! Nothing here does I/O, knows serde, or names a kernel facility.

mod asked;
pub mod audit;
pub mod ceiling;
pub mod channel;
pub mod decision;
pub mod environment;
pub mod grant;
pub(crate) mod hex;
pub mod hosts;
pub mod limits;
mod name_pattern;
pub mod network;
pub mod path;
#[expect(clippy::module_inception, reason = "the policy is the idea this floor is named for")]
mod policy;
pub mod private_names;
pub mod protected;
pub mod right;
pub mod rule;
pub mod shell;
pub mod suffix;
mod visible;

pub use asked::line_of;
pub use audit::{Audit, AuditLog};
pub use ceiling::{Ceiling, Ceilings, Cut, Lines, Lost};
pub use channel::{Channel, Channels};
pub use decision::{Demand, Mode, Requirement};
pub use environment::{EnvRule, Environment, VarName};
pub use grant::{Access, Deny, Ending, Grant, Origin, Pattern, Scope, Target};
pub use hosts::{Host, HostAccess, HostList, HostName, HostPattern, HostRule, HostWitness, PatternError, Place, Ports};
pub use limits::Limits;
pub use name_pattern::{NameChanges, NamePattern, NamePatternError};
pub use network::{Network, OwnNetwork, Reached, UnixSockets};
pub use path::AbsPath;
pub use policy::{
    BackendChoice, BasePath, DenyFallback, Explain, HomeChoice, Identity, NetworkOf, OsSandbox, Policy, Protect,
    ProtectFallback, Residuals, Root, ToolRule,
};
pub use right::{Operation, Right, Rights};
pub use rule::ShellRule;
pub use suffix::{Suffix, SuffixSet};

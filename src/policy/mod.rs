//! The vocabulary of an agent's reach, independent of the operating system.
//!
//! A [`Policy`] is a config with every path resolved: roots, base paths,
//! network, limits, environment, shell rules. It is the oracle for all later steps: a profile
//! derived from it may permit less, never more.
//!
//! Nothing here does I/O, knows serde, or names a kernel facility.

mod audit;
mod ceiling;
mod channel;
mod cut;
mod decision;
mod environment;
mod escaping;
mod grant;
pub(crate) mod hex;
pub mod hosts;
mod limits;
mod name_pattern;
mod network;
pub mod path;
#[expect(clippy::module_inception, reason = "the policy is the idea this floor is named for")]
mod policy;
pub(crate) mod private_names;
pub mod protected;
mod right;
mod root;
mod rule;
pub mod shell;
mod suffix;

pub use audit::{Audit, AuditLog};
pub use channel::{Channel, Channels};
pub use cut::{Cut, Lines, Lost, line_of};
pub use decision::{Demand, DemandSource, Mode, Requirement};
pub use environment::{EnvRule, Environment, VarName};
pub use grant::{Access, Deny, Ending, Grant, Origin, Pattern, Scope, Target};
pub use hosts::{
    Destination, Host, HostAccess, HostList, HostName, HostPattern, HostRule, HostWitness, PatternError, Ports,
};
pub use limits::Limits;
pub use name_pattern::{NameChanges, NamePattern, NamePatternError};
pub use network::{Network, NetworkWitness, OwnNetwork, UnixSockets};
pub use path::AbsPath;
pub use policy::{
    BackendChoice, Ceiling, Ceilings, DenyFallback, Explain, HomeChoice, LinePattern, NetworkOf, OsSandbox, Policy,
    Protect, ProtectFallback, Residuals, SafePath, ToolRule,
};
pub use right::{Operation, Right, Rights};
pub use root::{BasePath, Identity, Root};
pub use rule::ShellRule;
pub use suffix::{Suffix, SuffixSet};

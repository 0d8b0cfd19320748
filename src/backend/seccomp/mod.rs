//! Profile → BPF filters, and the reader that interprets them back.
//!
//! [`table`] is the decision, as data: the action for each system call, per role and settings. Its rows (`row`) are
//! in `rows`, `conditions` and `ioctl`. [`lower()`] turns it into filters (`plan`), and what they allow whatever the arguments stays in the kernel's bitmap of allowed
//! calls and costs nothing. `reader` runs such filters in user space, and [`validate()`] checks the result
//! against the table at every start.
//!
//! Landlock guards what has a path; this guards what has none: sockets, other processes, keyrings,
//! the kernel's own surface, and (through a listener) the attributes of files.

mod attempts;
mod call;
mod conditions;
mod instruction;
mod ioctl;
mod lower;
mod number;
mod plan;
mod reader;
mod row;
mod rows;
mod settings;
mod shortcut;
pub mod table;
#[cfg(test)]
mod tests;
mod tree;
mod validate;

pub(crate) use attempts::is_rename;
pub use attempts::{CallKind, DependsOn};
pub use call::{Call, Verdict};
pub use instruction::{Instruction, Program};
pub use lower::{SeccompError, lower};
pub(crate) use number::STATMOUNT;
pub use number::{HIGHEST, NATIVE_ARCH};
pub use plan::{Filters, SeccompPlan, Stack};
pub use reader::{Entered, Filter, Malformed, stacked};
pub use settings::{Attempts, Attributes, Copies, IpSockets, Role, Settings, UnixDomain};
pub use table::tests;
pub use validate::{SeccompWitness, validate};

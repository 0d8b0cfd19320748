//! Policy and call → [`Profile`]: the set of operations one call may perform, free of any OS name.
//!
//! The story, file by file: [`derive()`] turns a policy and what was asked of a person into a
//! profile; [`order`] decides whether one reach lies within another and gives a witness when not;
//! [`diff()`] gives all of them, both ways; `explain` says which clause decides;
//! [`intersect()`] is the greatest profile below two, in the form that `canonical` gives; [`cuts()`] names
//! what a policy asks beyond its ceilings; `index` keeps all of it fast. Every start checks `config ⊒ profile` and `profile ⊒ plan` with the same
//! procedure.

mod canonical;
mod cuts;
mod derive;
mod diff;
mod explain;
pub(crate) mod index;
mod intersect;
pub mod order;
#[expect(
    clippy::module_inception,
    reason = "the profile is the idea this folder is named for"
)]
mod profile;
mod representatives;

pub use cuts::cuts;
pub use derive::{ApprovedRoots, Call, InAdvance, derive};
pub use diff::{Excess, diff};
pub use explain::{Decided, Explanation};
pub use intersect::intersect;
pub use order::{FileReach, Landmarks, Reach, Witness, files_within, within};
pub use profile::Profile;

//! What the stage can be told before everything else is made ready.
//!
//! The first command of a program that runs only one waits longest for the look at its roots. Where the config leaves
//! no choice of the regime and nobody is to be asked, what the stage must know follows from the config alone; so it
//! is told at once, and looks while the rest is made ready and held against the config. It is told that again, or it is
//! ended and nothing comes of it.

use super::call::ShellCall;
use super::executor::{Places, may_lie};
use super::narrowing::Narrowing;
use super::permission::judged;
use super::shell::NAME;
use super::watched;
use crate::confine::{Named, Place, ahead};
use crate::policy::{AbsPath, BackendChoice, Policy, Requirement};
use crate::profile::{Asked, Call, derive};

/// Tells the stage that was started ahead what it will need to know for this call.
///
/// While a question is open nobody may have looked: what a person changes meanwhile is theirs.
pub fn foresee(policy: &Policy, narrowing: &Narrowing, places: &Places, call: &ShellCall) {
    match policy.backend {
        BackendChoice::Landlock => {}
        BackendChoice::Auto | BackendChoice::Namespaces | BackendChoice::Bwrap => return,
    }
    let Ok(directory) = AbsPath::new(&call.directory) else {
        return;
    };
    match judged(policy, &call.command, &directory).requirement {
        // What is said of the tool may ask all the same.
        Requirement::PreApproved if !policy.tools.contains_key(NAME) => {}
        Requirement::PreApproved | Requirement::Blocked | Requirement::NeedsApproval => return,
    }
    let envelope = narrowing.narrow(derive(policy, &Call::of(Asked::Everything)));
    let Some(protect) = watched::setup(policy, &envelope, &places.state, &places.person) else {
        return;
    };
    // Where there is no place for a session, that is complained about when it is needed.
    if let Ok(named) = Named::choose(|base| may_lie(base, &envelope, Place::Host)) {
        ahead::announce(named, Some(protect), Place::Host);
    }
}

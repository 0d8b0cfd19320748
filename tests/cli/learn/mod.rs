//! `stockade learn` reaches a config under which a command passes, and grants nothing that was not accepted.
//!
//! `sessions` has real tools that start from a read-only config, `consent` what is accepted and what is not, `files` the config
//! that is changed, `helps` changes that would not help, `hostile` commands that attempt things to have them granted, and
//! `repositories` what git would run later, `secrets` names that say what lies there, `trials` what each change is held
//! against before anybody is asked. `lab` is what they share.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod consent;
#[cfg(test)]
mod files;
#[cfg(test)]
mod helps;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod lab;
#[cfg(test)]
mod repositories;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod trials;

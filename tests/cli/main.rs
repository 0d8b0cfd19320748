//! The command line and the person at it: every subcommand, questions and answers, the audit log.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
#[path = "../common/mod.rs"]
mod common;

#[cfg(test)]
mod approval;
#[cfg(test)]
mod approvals;
#[cfg(test)]
mod approver_program;
#[cfg(test)]
mod attacked;
#[cfg(test)]
mod audit;
#[cfg(test)]
mod bounds;
#[cfg(test)]
mod ceilings;
#[cfg(test)]
mod check;
#[cfg(test)]
mod command_line;
#[cfg(test)]
mod exit_codes;
#[cfg(test)]
mod learn;
#[cfg(test)]
mod mode_flags;
#[cfg(test)]
mod offered;
#[cfg(test)]
mod preset_flags;
#[cfg(test)]
mod profile_cli;
#[cfg(test)]
mod profile_export;
#[cfg(test)]
mod stories;
#[cfg(test)]
mod terminal;

//! `--explain` says what was denied, and nothing else.
//!
//! `tried` runs a list of operations, really tried by a static program, and holds what is told against what each row
//! expects: path, operation, clause, line and layer, and no more than that. `twins` are a folder outside and one inside; `corpus` and `ways` have the rows, `roots` those that hang on a
//! config, `stricter` those of which the plan gives less than it, `changes` takes what is proposed, `builds` what nothing is denied to, `hostile` what a command does against its being looked at, `hints` what is said
//! where nobody looked, and `plans` that nothing else is different then. All of it in both regimes, as root and as an ordinary user.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod builds;
#[cfg(test)]
mod changes;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod hints;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod plans;
#[cfg(test)]
mod roots;
#[cfg(test)]
mod stricter;
#[cfg(test)]
mod tried;
#[cfg(test)]
mod twins;
#[cfg(test)]
mod ways;

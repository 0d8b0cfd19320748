//! A list of hosts holds: a small internet, real clients, and every way around that we could think of.
//!
//! `lab` makes the internet, and sees all that leaves the machine; `internet.py` serves it. `plain` proves the lab itself,
//! with nothing confined. What is proved of Stockade then is proved twice, by what the command was told and by what
//! the wire saw; and once as root, once as an ordinary user. Only root can make the lab.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
#[path = "../common/mod.rs"]
mod common;

#[cfg(test)]
mod around;
#[cfg(test)]
mod asking;
#[cfg(test)]
mod bounds;
#[cfg(test)]
mod clients;
#[cfg(test)]
mod ended;
#[cfg(test)]
mod inside;
#[cfg(test)]
mod lab;
#[cfg(test)]
mod odd;
#[cfg(test)]
mod plain;
#[cfg(test)]
mod sessions;

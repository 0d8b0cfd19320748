//! Stories: a person at a real terminal, in tmux, says yes and no to what an agent wants.
//!
//! Each test drives the built binary with keys and reads the screen. What the agent sends and gets back is in files, so
//! that the screen holds nothing but what the person is told.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod agent;
#[cfg(test)]
mod answers;
#[cfg(test)]
mod callers;
#[cfg(test)]
mod example;
#[cfg(test)]
mod screens;
#[cfg(test)]
mod terminal;
#[cfg(test)]
mod unasked;

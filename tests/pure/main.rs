//! What needs no sandbox: the laws of the access model, generated text, the documents, and the rules of the code itself.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod architecture;
#[cfg(test)]
#[path = "../../fuzz/src/bounds.rs"]
mod bounds;
#[cfg(test)]
mod corpora;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod laws;
#[cfg(test)]
mod library;
#[cfg(test)]
mod seatbelt_text;
#[cfg(test)]
#[path = "../../fuzz/src/targets/mod.rs"]
mod targets;

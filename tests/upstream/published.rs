//! A published server, as its authors ship it: what it may touch is what the config says, and nothing else.

#[cfg(test)]
mod placeholder {}

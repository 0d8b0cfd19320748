//! The flags of `stockade mcp --http`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::flags::duration;
use crate::policy::Policy;
use crate::tools::reachable_reason;
use crate::tools::serving::{HttpOptions, ReadyCheck};

/// How agents reach it over HTTP.
#[derive(Debug, Args)]
pub struct HttpFlags {
    /// Serve over HTTP at this port of loopback, or at this address and port, under /mcp (0: any free port).
    #[arg(long, value_name = "PORT|ADDRESS:PORT")]
    pub http: Option<String>,
    /// Take the token that clients must know from this file, yours alone; without it one is made and shown once.
    #[arg(long, value_name = "FILE", requires = "http")]
    pub token_file: Option<PathBuf>,
    /// Answer clients that know this machine by this name too (may be repeated); an address that others reach needs one.
    #[arg(long = "allowed-host", value_name = "HOST", requires = "http")]
    pub allowed_hosts: Vec<String>,
    /// Answer web pages of this origin too, as in `https://app.example.org` (may be repeated).
    #[arg(long = "allowed-origin", value_name = "ORIGIN", requires = "http")]
    pub allowed_origins: Vec<String>,
    /// How long calls under way may take after the signal that ends it.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s", requires = "http")]
    pub drain: Duration,
}

impl HttpFlags {
    /// The HTTP transport, if the flags ask for one.
    pub(super) fn into_transport(self, policy: &Policy, ready: ReadyCheck) -> Option<HttpOptions> {
        let policy = policy.clone();
        Some(HttpOptions {
            address: self.http?,
            token_file: self.token_file,
            hosts: self.allowed_hosts,
            origins: self.allowed_origins,
            drain: self.drain,
            reachable_reason: Box::new(move |path| reachable_reason(&policy, path)),
            ready,
        })
    }
}

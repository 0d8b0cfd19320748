//! One profile as it is written.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::clauses::{WrittenDeny, WrittenGrant, name, stored};
use super::error::DocumentError;
use super::hosts::WrittenNetwork;
use crate::config::StoredPath;
use crate::policy::{EnvRule, Environment, Limits, UnixSockets, VarName};
use crate::profile::Profile;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenProfile {
    grants: Vec<WrittenGrant>,
    denies: Vec<WrittenDeny>,
    network: WrittenNetwork,
    unix_sockets: WrittenSockets,
    limits: WrittenLimits,
    environment: BTreeMap<String, WrittenVariable>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WrittenSockets {
    None,
    WithinRoots,
    All,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WrittenVariable {
    Pass,
    Set(StoredPath),
}

/// Every bound; `null` means that none is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenLimits {
    timeout: Option<Duration>,
    memory: Option<u64>,
    processes: Option<u64>,
    open_files: Option<u64>,
    file_size: Option<u64>,
    output: Option<u64>,
}

impl WrittenProfile {
    pub(super) fn of(profile: &Profile) -> Self {
        let mut grants: Vec<WrittenGrant> = profile.grants.iter().map(WrittenGrant::of).collect();
        grants.sort();
        grants.dedup();
        let mut denies: Vec<WrittenDeny> = profile.denies.iter().map(WrittenDeny::of).collect();
        denies.sort();
        denies.dedup();
        let Limits {
            timeout,
            memory,
            processes,
            open_files,
            file_size,
            output,
        } = profile.limits;
        let environment = profile.environment.iter().map(|(name, rule)| {
            let rule = match rule {
                EnvRule::Pass => WrittenVariable::Pass,
                EnvRule::Set(value) => WrittenVariable::Set(stored(value)),
            };
            (name.as_str().to_owned(), rule)
        });
        Self {
            grants,
            denies,
            network: WrittenNetwork::of(&profile.network),
            unix_sockets: match profile.unix_sockets {
                UnixSockets::None => WrittenSockets::None,
                UnixSockets::WithinRoots => WrittenSockets::WithinRoots,
                UnixSockets::All => WrittenSockets::All,
            },
            limits: WrittenLimits {
                timeout,
                memory,
                processes,
                open_files,
                file_size,
                output,
            },
            environment: environment.collect(),
        }
    }

    pub(super) fn profile(self) -> Result<Profile, DocumentError> {
        let WrittenLimits {
            timeout,
            memory,
            processes,
            open_files,
            file_size,
            output,
        } = self.limits;
        let mut environment = Environment::default();
        for (text, rule) in self.environment {
            let var = VarName::new(&text).map_err(|error| DocumentError::Value(error.to_string()))?;
            let rule = match rule {
                WrittenVariable::Pass => EnvRule::Pass,
                WrittenVariable::Set(value) => EnvRule::Set(name(&value)),
            };
            environment.insert(var, rule);
        }
        Ok(Profile {
            grants: self
                .grants
                .into_iter()
                .map(WrittenGrant::grant)
                .collect::<Result<_, _>>()?,
            denies: self
                .denies
                .into_iter()
                .map(WrittenDeny::deny)
                .collect::<Result<_, _>>()?,
            identities: BTreeMap::new(),
            network: self.network.network()?,
            unix_sockets: match self.unix_sockets {
                WrittenSockets::None => UnixSockets::None,
                WrittenSockets::WithinRoots => UnixSockets::WithinRoots,
                WrittenSockets::All => UnixSockets::All,
            },
            limits: Limits {
                timeout,
                memory,
                processes,
                open_files,
                file_size,
                output,
            },
            environment,
        })
    }
}

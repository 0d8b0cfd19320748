//! Ceilings, and what they take from a policy.
//!
//! A ceiling is a policy of its own. What it does not grant is not granted, whatever the config says: the
//! reach of a policy is the intersection with all its ceilings. What a config requests beyond one of
//! them is a [`Cut`], with the lines of both.

use std::ffi::OsStr;
use std::sync::Arc;

use super::cut::{Cut, Lines, Lost};
use super::decision::Mode;
use super::environment::{EnvRule, VarName};
use super::grant::Origin;
use super::limits::Limits;
use super::name_pattern::NamePattern;
use super::network::Network;
use super::policy::{Ceiling, HomeChoice, OsSandbox, Policy, Protect};

/// The setting of the network of all commands.
const NETWORK: &str = "shell.network";

impl Policy {
    /// Limits every setting to what the ceilings give, and records the cuts. Files are excluded:
    /// their reach is compared path by path.
    pub fn cap(&mut self) {
        let ceilings = std::mem::take(&mut self.ceilings.all);
        if !ceilings.is_empty() && self.ceilings.requested.is_empty() {
            self.ceilings.requested = self.networks().cloned().collect();
        }
        // All are compared with the original request, so that their order does not matter.
        let found: Vec<Cut> = ceilings.iter().flat_map(|ceiling| self.beyond(ceiling)).collect();
        for Ceiling { policy: most, .. } in &ceilings {
            self.network = self.network.and(&most.network);
            let own = self.rules.iter_mut().filter_map(|rule| rule.network.as_mut());
            for own in own.chain(self.tool_networks.values_mut()) {
                own.network = own.network.and(&most.network);
            }
            self.unix_sockets = self.unix_sockets.min(most.unix_sockets);
            self.environment = self.environment.and(&most.environment);
            self.limits = self.limits.and(&most.limits);
            self.os_sandbox = self.os_sandbox.min(most.os_sandbox);
            self.residuals = self.residuals.min(most.residuals);
            self.protect_fallback = self.protect_fallback.min(most.protect_fallback);
            self.deny_fallback = self.deny_fallback.min(most.deny_fallback);
            self.mode = self.mode.min(most.mode);
            self.channels = self.channels.and(&most.channels);
            self.audit.and(&most.audit);
            self.home = match most.home {
                HomeChoice::Private => HomeChoice::Private,
                HomeChoice::Real => self.home,
            };
            self.protect = self.protect.and(&most.protect);
            self.names.add.extend(most.names.add.iter().cloned());
            if most.protect != Protect::None {
                self.names.except.clear();
            }
        }
        self.ceilings.all = ceilings;
        self.ceilings.cuts.extend(found);
        self.ceilings.cuts.sort();
        self.ceilings.cuts.dedup();
    }

    /// The line of `shell.network`, if it is set.
    pub fn network_line(&self) -> Option<&Origin> {
        self.ceilings.lines.get(NETWORK)
    }

    /// The networks before any ceiling was applied, in the order of [`networks`](Self::networks).
    pub fn requested_networks(&self) -> impl Iterator<Item = &Network> {
        let requested = self.ceilings.requested.iter().map(Some).chain(std::iter::repeat(None));
        self.networks()
            .zip(requested)
            .map(|(left, requested)| requested.unwrap_or(left))
    }

    /// The loosest mode that the ceilings allow.
    pub fn loosest_mode(&self) -> Mode {
        let all = self.ceilings.all.iter();
        all.map(|ceiling| ceiling.policy.mode).min().unwrap_or(Mode::ApproveAll)
    }

    /// The first ceiling that does not let a command see this variable with this value.
    pub fn variable_beyond(&self, name: &OsStr, value: &OsStr) -> Option<&Ceiling> {
        let name = name.to_str().and_then(|name| VarName::new(name).ok());
        self.ceilings.all.iter().find(|ceiling| {
            let rule = name.as_ref().and_then(|name| ceiling.policy.environment.get(name));
            match rule {
                Some(EnvRule::Pass) => false,
                Some(EnvRule::Set(only)) => only != value,
                None => true,
            }
        })
    }

    /// The requested hosts that a ceiling does not give, line by line.
    fn networks_beyond(&self, ceiling: &Ceiling) -> Vec<Cut> {
        let most = &ceiling.policy;
        let requested = self.network_line().cloned();
        let requested = requested.unwrap_or(Origin::Builtin("the default"));
        let own = self.own_networks().map(|(_, own)| (&own.network, &own.origin));
        let all = std::iter::once((&self.network, &requested)).chain(own);
        let cuts = all.flat_map(|(network, requested)| {
            let beyond = network.beyond(&most.network).into_iter();
            beyond.map(move |(lost, at)| (lost, at.unwrap_or(requested).clone()))
        });
        cuts.map(|(lost, origin)| Cut {
            origin,
            ceiling: Arc::clone(&ceiling.file),
            clause: most.network.decides(&lost).or_else(|| most.network_line()).cloned(),
            what: Lost::Network(lost),
        })
        .collect()
    }

    /// The settings that request more than a ceiling gives.
    fn beyond(&self, ceiling: &Ceiling) -> Vec<Cut> {
        let most = &ceiling.policy;
        let mut cuts = self.networks_beyond(ceiling);
        let mut cut = |key: &str, what: Lost| {
            let requested = self.ceilings.lines.get(key).cloned();
            cuts.push(Cut {
                origin: requested.unwrap_or(Origin::Builtin("the default")),
                ceiling: Arc::clone(&ceiling.file),
                clause: most.ceilings.lines.get(key).cloned(),
                what,
            });
        };
        if self.unix_sockets > most.unix_sockets {
            cut("shell.unix_sockets", Lost::UnixSockets(self.unix_sockets));
        }
        for (name, rule) in self.environment.iter() {
            let granted = match (rule, most.environment.get(name)) {
                (_, Some(EnvRule::Pass)) => true,
                (EnvRule::Set(a), Some(EnvRule::Set(b))) => a == b,
                (EnvRule::Pass, Some(EnvRule::Set(_))) | (_, None) => false,
            };
            if !granted {
                cut(&Lines::of_variable(name), Lost::Variable(name.clone()));
            }
        }
        for (key, wider) in wider_limits(&self.limits, &most.limits) {
            if wider {
                cut(key, Lost::Limit(key));
            }
        }
        let setting = |key: &'static str, value: &str| Lost::Setting {
            key,
            value: value.to_owned(),
        };
        if let (HomeChoice::Real, HomeChoice::Private) = (self.home, most.home) {
            cut("shell.home", setting("shell.home", "real"));
        }
        // Only running unconfined exceeds a ceiling: the other two values both confine.
        if self.os_sandbox == OsSandbox::NotRequired && most.os_sandbox < OsSandbox::NotRequired {
            let key = "sandbox.require_os_sandbox";
            cut(key, setting(key, "false"));
        }
        if self.protect.and(&most.protect).keyword() != self.protect.keyword() {
            cut("sandbox.protect", setting("sandbox.protect", self.protect.keyword()));
        }
        if most.protect != Protect::None && !self.names.except.is_empty() {
            let names: Vec<&str> = self.names.except.iter().map(NamePattern::as_str).collect();
            let value = format!("{{except: [{}]}}", names.join(", "));
            cut("sandbox.protect", setting("sandbox.protect", &value));
        }
        if self.protect_fallback > most.protect_fallback {
            cut("sandbox.protect_fallback", setting("sandbox.protect_fallback", "undo"));
        }
        // A default is no request.
        let requested = self.ceilings.lines.get("sandbox.deny_fallback").is_some();
        if self.deny_fallback > most.deny_fallback && requested {
            let keyword = self.deny_fallback.keyword();
            cut("sandbox.deny_fallback", setting("sandbox.deny_fallback", keyword));
        }
        // A default is no request.
        if self.residuals > most.residuals && self.ceilings.lines.get("sandbox.residuals").is_some() {
            cut("sandbox.residuals", setting("sandbox.residuals", "report"));
        }
        if self.mode > most.mode && self.ceilings.lines.get("approval.mode").is_some() {
            cut("approval.mode", setting("approval.mode", &self.mode.to_string()));
        }
        if let Some(channel) = self.channels.beyond(&most.channels) {
            cut("approval.channel", setting("approval.channel", channel.name()));
        }
        // A default is no request.
        if !self.audit.is_on() && most.audit.is_on() && self.ceilings.lines.get("audit.log").is_some() {
            cut("audit.log", setting("audit.log", &self.audit.log.to_string()));
        }
        cuts
    }
}

/// Each limit, and whether it is set wider than in `most`.
fn wider_limits(requested: &Limits, most: &Limits) -> [(&'static str, bool); 6] {
    fn wider<T: Ord>(requested: Option<T>, most: Option<T>) -> bool {
        requested.zip(most).is_some_and(|(requested, most)| requested > most)
    }
    [
        ("shell.limits.timeout", wider(requested.timeout, most.timeout)),
        ("shell.limits.memory", wider(requested.memory, most.memory)),
        ("shell.limits.processes", wider(requested.processes, most.processes)),
        ("shell.limits.open_files", wider(requested.open_files, most.open_files)),
        ("shell.limits.file_size", wider(requested.file_size, most.file_size)),
        ("shell.limits.output", wider(requested.output, most.output)),
    ]
}

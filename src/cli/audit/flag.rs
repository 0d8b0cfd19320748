//! `--audit`: a log for one session. It may turn on a log, but not turn off or move one that the config or a ceiling demands.

use std::path::PathBuf;

use clap::Args;

use crate::cli::error::CliError;
use crate::policy::path::display;
use crate::policy::{AbsPath, AuditLog, Policy};

/// Whether what happens is recorded.
#[derive(Debug, Clone, Default, Args)]
pub struct AuditFlag {
    /// Record what is asked, decided and run: in the default log, or in this file, outside every root. See `stockade audit`.
    #[arg(long, value_name = "default|off|PATH")]
    pub audit: Option<PathBuf>,
}

impl AuditFlag {
    /// Applies the flag to the policy.
    pub(in crate::cli) fn apply(&self, policy: &mut Policy) -> Result<(), CliError> {
        let Some(named) = &self.audit else {
            return Ok(());
        };
        let wanted = if named.as_os_str() == "off" {
            AuditLog::Off
        } else if named.as_os_str() == "default" {
            AuditLog::Default
        } else {
            let wrong =
                |error: &dyn std::fmt::Display| CliError::failed(format!("--audit {}: {error}", display(named)));
            let whole = std::path::absolute(named).map_err(|error| wrong(&error))?;
            AuditLog::At(AbsPath::new(whole).map_err(|error| wrong(&error))?)
        };
        let demanded = policy.ceilings.all.iter().find(|ceiling| ceiling.policy.audit.is_on());
        let named_by_config = policy.ceilings.lines.get("audit.log");
        let refused = |what: &str, by: &dyn std::fmt::Display| {
            Err(
                CliError::failed(format!("`--audit` cannot {what}: {by} says `{}`", policy.audit.log))
                    .remedy("leave the flag out, or change what says so"),
            )
        };
        match (&policy.audit.log, &wanted) {
            (now, wanted) if now == wanted => Ok(()),
            (AuditLog::Default | AuditLog::At(_), AuditLog::Off) => match (named_by_config, demanded) {
                (_, Some(ceiling)) => refused("turn off the log", &format!("the ceiling {}", display(&*ceiling.file))),
                (Some(line), None) => refused("turn off the log", line),
                (None, None) => refused("turn off the log", &"the config"),
            },
            // A ceiling demands a log, but not where it lies.
            (AuditLog::Default | AuditLog::At(_), AuditLog::Default | AuditLog::At(_)) => match named_by_config {
                Some(line) if policy.ceilings.cuts.iter().all(|cut| cut.origin != *line) => {
                    refused("move the log", line)
                }
                Some(_) | None => {
                    policy.audit.log = wanted;
                    Ok(())
                }
            },
            (AuditLog::Off, _) => {
                policy.audit.log = wanted;
                Ok(())
            }
        }
    }
}

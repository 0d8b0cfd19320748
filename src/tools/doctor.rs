//! What this machine can enforce, as data.

use serde::Serialize;

use super::enforcement::short;
use crate::backend::Regime;
use crate::backend::host::{Finding, Host, LimitEnforcement, RegimeReport, Standing, TreeLimit};

/// The report of `stockade doctor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The regime that `run` would use; `None` stands for "refuse".
    pub regime: Regime,
    /// The kernel's release.
    pub kernel: String,
    /// Each mechanism.
    pub findings: Vec<Finding>,
    /// Each regime, strongest first.
    pub regimes: Vec<RegimeReport>,
    /// How each limit of a whole tree is held in each regime.
    pub tree_limits: Vec<TreeLimit>,
    /// What there is that nobody has tried where it belongs.
    pub untested: Vec<Untested>,
}

/// A regime that was never tried on the system it is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Untested {
    /// The regime.
    pub regime: Regime,
    /// What that means.
    pub detail: &'static str,
}

/// What is said of the backend for macOS wherever it is named.
const UNTESTED: Untested = Untested {
    regime: Regime::Seatbelt,
    detail: "the Seatbelt backend for macOS is untested on a Mac: only its text is checked, by reading it back, and no \
             command is run with it",
};

impl Report {
    /// Tries everything; takes a moment, because processes are started for it.
    pub fn make() -> Self {
        let host = Host::full();
        Self {
            regime: host.regime(),
            kernel: host.kernel.clone(),
            findings: host.findings(),
            regimes: host.regimes(),
            tree_limits: TreeLimit::all(),
            untested: vec![UNTESTED],
        }
    }

    /// Whether commands could run confined.
    pub fn confines(&self) -> bool {
        match self.regime {
            Regime::None | Regime::Seatbelt => false,
            Regime::Landlock | Regime::Namespaces => true,
        }
    }

    /// The report as text, for a person.
    pub fn text(&self) -> String {
        let mut lines = vec![format!("Linux {}", self.kernel), String::new()];
        for finding in &self.findings {
            let mark = match finding.standing {
                Standing::Works => "works  ",
                Standing::Missing => "MISSING",
                Standing::Absent => "absent ",
            };
            lines.push(format!("{mark}  {}: {}", finding.name, finding.detail));
            lines.push(format!("         {}", finding.means));
            lines.extend(finding.get.iter().map(|get| format!("         → {get}")));
        }
        for report in &self.regimes {
            let ready = match (report.regime, report.ready) {
                (Regime::None, _) => "only where the config says `require_os_sandbox: false` and no other works",
                (Regime::Landlock | Regime::Namespaces, true) => "ready",
                (Regime::Landlock | Regime::Namespaces, false) => "not available here",
                (Regime::Seatbelt, _) => "untested on a Mac, and not yet offered",
            };
            lines.push(String::new());
            lines.push(format!("regime {}: {ready}", report.regime.name()));
            lines.extend(report.missing.iter().map(|missing| format!("  lacks: {missing}")));
            lines.extend(report.cannot_hold.iter().map(|what| format!("  cannot hold: {what}")));
            let exact = self.tree_limits.iter().filter(|limit| limit.regime == report.regime);
            for TreeLimit { limit, hold, why, .. } in exact {
                match hold {
                    LimitEnforcement::Exact => {
                        lines.push(format!("  holds exactly: limits.{limit} of the whole tree: {why}"));
                    }
                    LimitEnforcement::Sampled => {}
                }
            }
        }
        lines.push(String::new());
        lines.push(match self.regime {
            Regime::None => "commands would be refused: nothing here can confine them".to_owned(),
            Regime::Seatbelt => "commands would be refused: the `seatbelt` regime is not offered yet".to_owned(),
            Regime::Landlock | Regime::Namespaces => {
                let stronger = self.regimes.iter().take_while(|report| report.regime != self.regime);
                let mut why = stronger.filter_map(|report| Some((report.regime.name(), report.missing.first()?)));
                let because = why.next().map_or_else(String::new, |(regime, lack)| {
                    format!(" (`{regime}` is unavailable: {})", short(lack))
                });
                format!(
                    "commands would run confined, in the `{}` regime{because}; `--backend` or `sandbox.backend` names another",
                    self.regime.name()
                )
            }
        });
        let untested = self.untested.iter();
        lines.extend(untested.map(|untested| format!("regime {}: {}", untested.regime.name(), untested.detail)));
        lines.join("\n")
    }
}

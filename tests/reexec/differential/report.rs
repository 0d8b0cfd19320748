//! What a run found, and its verdict.

use std::collections::BTreeMap;
use std::fmt;

use super::oracle::Reason;

/// What a run found.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) operations: usize,
    pub(crate) cases: usize,
    pub(crate) refused: usize,
    pub(crate) permitted: usize,
    pub(crate) denied: usize,
    pub(crate) by_another_name: usize,
    pub(crate) stricter: BTreeMap<Reason, usize>,
    /// Answers of one layer after another that were held against those of the intersection.
    pub(crate) compared: usize,
    pub(crate) findings: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stricter: usize = self.stricter.values().sum();
        writeln!(
            f,
            "{} operations in {} worlds ({} refused to start): {} permitted, {} denied, {} reached by another name, {stricter} stricter",
            self.operations, self.cases, self.refused, self.permitted, self.denied, self.by_another_name
        )?;
        if self.compared > 0 {
            writeln!(f, "  {} answers are the same stacked and as one", self.compared)?;
        }
        for (reason, count) in &self.stricter {
            writeln!(f, "  {count:5} {reason}")?;
        }
        Ok(())
    }
}

impl Report {
    /// The verdict over the whole run.
    pub(crate) fn hold(&self) {
        println!("{self}");
        assert!(
            self.findings.is_empty(),
            "{} findings\n{}",
            self.findings.len(),
            self.findings.join("\n")
        );
        // A run in which nearly everything goes the same way proves little; a short one may.
        let enough = if self.operations < 1_000 {
            0
        } else {
            self.operations / 10
        };
        assert!(
            self.permitted > enough && self.denied > enough,
            "the cases are one-sided: {self}"
        );
    }
}

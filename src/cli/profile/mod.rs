//! `stockade profile`: a policy audited, one file per way of looking at it.

mod args;
mod check;
mod diff;
mod explain;
mod export;
mod inspected;
mod printed;
mod show;

pub(in crate::cli) use args::ProfileArgs;

use args::View;

use super::complain::Complaint;
use super::exit::Exit;

/// Looks at a policy in the way that was asked for.
pub(super) fn profile(args: ProfileArgs) -> Result<Exit, Complaint> {
    match args.view {
        View::Show(args) => show::show(&args),
        View::Explain(args) => explain::explain(&args),
        View::Check(args) => check::check(args),
        View::Diff(args) => diff::diff(&args),
        View::Export(args) => export::export(&args),
    }
}

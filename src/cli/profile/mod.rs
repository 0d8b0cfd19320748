//! `stockade profile`: audits a policy; one file per view.

mod args;
mod check;
mod diff;
mod explain;
mod export;
mod inspection;
mod print;
mod show;

pub(in crate::cli) use args::ProfileArgs;

use args::View;

use super::error::CliError;
use super::exit::Exit;

pub(super) fn profile(args: ProfileArgs) -> Result<Exit, CliError> {
    match args.view {
        View::Show(args) => show::show(&args),
        View::Explain(args) => explain::explain(&args),
        View::Check(args) => check::check(args),
        View::Diff(args) => diff::diff(&args),
        View::Export(args) => export::export(&args),
    }
}

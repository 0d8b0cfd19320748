//! The `stockade` program. The confined child is told from it before any runtime or argument parser exists.

use std::process::ExitCode;

fn main() -> ExitCode {
    stockade::init();
    stockade::cli::main(stockade::mcp::serve)
}

//! The `stockade` program. The supervisor is told apart here, before any runtime or argument parser exists.

use std::process::ExitCode;

fn main() -> ExitCode {
    let first = std::env::args_os().nth(1);
    match first {
        Some(first) if stockade::confine::is_ours(&first) => stockade::confine::main(),
        Some(_) | None => {}
    }
    stockade::cli::main(stockade::mcp::serve)
}

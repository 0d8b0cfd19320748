//! The `stockade` program. The stage is decided here, before any runtime or argument parser exists.

use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args_os().nth(1) {
        Some(first) if stockade::confine::stage::is_ours(&first) => stockade::confine::stage::main(),
        Some(first) if first == "run" || first == "call" => {
            stockade::confine::ahead::start_stage();
            let exit = stockade::cli::main(stockade::mcp::serve);
            stockade::confine::ahead::end_stage();
            exit
        }
        _ => stockade::cli::main(stockade::mcp::serve),
    }
}

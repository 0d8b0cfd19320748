//! The `stockade` program. The stage is decided here, before any runtime or argument parser exists.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next() {
        Some(first) if stockade::confine::stage::is_ours(&first) => stockade::confine::stage::main(),
        Some(first) if first == stockade::backend::host::PROBE_ARGUMENT => {
            stockade::backend::host::probe_main(&arguments.collect::<Vec<_>>())
        }
        Some(first) if first == "run" || first == "call" => {
            stockade::confine::ahead::start_stage();
            let exit = stockade::cli::main(stockade::mcp::serve);
            stockade::confine::ahead::end_stage();
            exit
        }
        _ => stockade::cli::main(stockade::mcp::serve),
    }
}

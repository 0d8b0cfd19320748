//! What `sandbox-exec -p TEXT -D K=V … -- PROGRAM PROBE…` is taken to do: each probe is two words, an
//! operation and what it is tried on, and is answered with `allow` or `deny`.
//!
//! Under the name `nested` it refuses as the system does to a process that is in a sandbox already, under
//! the name `broken` in a way of its own.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use stockade::backend::seatbelt::operation::Name;
use stockade::backend::seatbelt::reader::{Expressions, Object, Reader, Semantics, Vnode};
use stockade::backend::seatbelt::{Parameter, SeatbeltPlan, parse};
use stockade::policy::AbsPath;

pub(crate) fn main() -> ExitCode {
    let mut words = std::env::args_os();
    let called = words.next().unwrap_or_default();
    match Path::new(&called).file_name().map(OsStrExt::as_bytes) {
        Some(b"nested") => return ExitCode::from(71),
        Some(b"broken") => return ExitCode::from(64),
        _ => {}
    }
    let mut plan = SeatbeltPlan {
        text: String::new(),
        parameters: Vec::new(),
    };
    while let Some(word) = words.next() {
        let value = words.next();
        match (word.to_str(), value.as_deref().and_then(std::ffi::OsStr::to_str)) {
            (Some("-p"), Some(text)) => text.clone_into(&mut plan.text),
            (Some("-D"), Some(pair)) => {
                // As the real one does: at the first `=`.
                let Some((name, value)) = pair.split_once('=') else {
                    return ExitCode::from(64);
                };
                plan.parameters.push(Parameter {
                    name: name.to_owned(),
                    value: value.to_owned(),
                });
            }
            (Some("--"), _) => {
                return value.map_or(ExitCode::from(64), |program| {
                    run(&plan, &program, &words.collect::<Vec<_>>())
                });
            }
            _ => return ExitCode::from(64),
        }
    }
    ExitCode::from(64)
}

fn run(plan: &SeatbeltPlan, program: &OsString, probes: &[OsString]) -> ExitCode {
    let Ok(script) = parse(plan) else {
        return ExitCode::from(65);
    };
    let reader = Reader::new(&script, Expressions::Matched);
    let ask = |name: &str, object: Object<'_>| {
        let name = Name::find(name).expect("a known operation");
        reader.permits(Semantics::LastMatch, name, object)
    };
    let file = |name: &str, path: &OsString, vnode| {
        let path = AbsPath::new(path).unwrap();
        ask(name, Object::File(&path, vnode))
    };
    if !file("process-exec", program, Vnode::File) {
        return ExitCode::from(71);
    }
    for probe in probes.chunks(2) {
        let [what, on] = probe else {
            return ExitCode::from(64);
        };
        let allowed = match what.to_str() {
            Some("read") => file("file-read-data", on, Vnode::File),
            Some("list") => file("file-read-data", on, Vnode::Directory),
            Some("write") => file("file-write-data", on, Vnode::File),
            Some("remove") => file("file-write-unlink", on, Vnode::File),
            Some("execute") => file("process-exec", on, Vnode::File),
            Some("connect") => {
                let path = AbsPath::new(on).unwrap();
                ask("network-outbound", Object::Unix(&path))
            }
            Some("reach") => ask("network-outbound", Object::Internet),
            Some("signal") if on == "inside" => ask("signal", Object::Inside),
            Some("signal") => ask("signal", Object::Outside),
            Some("lookup") => ask("mach-lookup", Object::Service(on.to_str().unwrap())),
            Some("variable") => std::env::var_os(on).is_some(),
            _ => return ExitCode::from(64),
        };
        println!("{}", if allowed { "allow" } else { "deny" });
    }
    ExitCode::SUCCESS
}

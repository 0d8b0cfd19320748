//! What has a bound: output that is kept, an end that somebody does not read, and one that is asked for again.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::process::{Child, Stdio};
    use std::time::{Duration, Instant};

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    use serde_json::Value;

    use crate::common::{Fixture, as_root_and_as_user, eventually};

    as_root_and_as_user! {
        with_json_an_endless_writer_is_kept_within_a_bound_and_ended_by_a_stop [];
        a_reader_that_does_not_read_delays_no_stop [];
        a_reader_that_does_not_read_delays_the_end_of_a_command_whose_time_is_over_by_seconds [];
    }

    fn with_json_an_endless_writer_is_kept_within_a_bound_and_ended_by_a_stop(world: &Fixture) {
        let line = "head -c 20000000 /dev/zero; touch written; exec yes";
        for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
            let running = world.stockade(&["run", "--json", "-c", line]).spawn();
            let written = world.workspace().join("written");
            eventually("it has written much", || written.exists());
            running.signal(signal);
            let run = running.wait().exits(128 + signal as i32);
            let outcome: Value = serde_json::from_str(&run.out()).unwrap();
            assert_eq!(outcome["status"], "cancelled");
            let kept = outcome["stdout"].as_str().unwrap();
            assert!(kept.len() < (1 << 20) + 100, "{}", kept.len());
            assert!(kept.contains("bytes omitted"));
            assert!(outcome["output_bytes"].as_u64().unwrap() >= 20_000_000);
            std::fs::remove_file(written).unwrap();
        }
    }

    fn a_reader_that_does_not_read_delays_no_stop(world: &Fixture) {
        for (flags, line) in [
            // It is under way; it has ended and its output is not taken; its outcome is not.
            (&[][..], "touch written; exec yes"),
            (&[], "touch written; head -c 200000 /dev/zero"),
            (&["--json"], "touch written; head -c 200000 /dev/zero"),
        ] {
            let head = [&["run"][..], flags, &["-c", line]].concat();
            let mut child = world.stockade(&head).converse();
            let written = world.workspace().join("written");
            eventually("it writes", || written.exists());
            // One that comes too early ends it all the same.
            eventually("it ends", || {
                kill(pid(&child), Signal::SIGTERM).unwrap();
                std::thread::sleep(std::time::Duration::from_millis(50));
                child.try_wait().unwrap().is_some()
            });
            std::fs::remove_file(written).unwrap();
        }
    }

    fn a_reader_that_does_not_read_delays_the_end_of_a_command_whose_time_is_over_by_seconds(world: &Fixture) {
        let text = "extends: [workspace-write]\nshell: {limits: {timeout: 1s}}\n";
        let config = world.write("agent.yaml", text);
        let by_config = ["run", "--config", config.to_str().unwrap(), "-c", "exec yes"];
        let by_flag = ["run", "--timeout", "1s", "-c", "exec yes"];
        for (args, has_own_errors) in [(&by_flag, true), (&by_flag, false), (&by_config, true)] {
            let (unread, output) = std::io::pipe().unwrap();
            let (mut read, errors) = std::io::pipe().unwrap();
            let errors = if has_own_errors {
                errors
            } else {
                output.try_clone().unwrap()
            };
            let mut command = world.stockade(args).into_command();
            let mut child = command
                .stdin(Stdio::null())
                .stdout(output)
                .stderr(errors)
                .spawn()
                .unwrap();
            drop(command);
            let begun = Instant::now();
            let mut status = None;
            eventually("it ends", || {
                status = child.try_wait().unwrap();
                status.is_some()
            });
            assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
            assert_eq!(status.unwrap().code(), Some(124));
            if has_own_errors {
                let mut told = String::new();
                read.read_to_string(&mut told).unwrap();
                let lost = told.split_once("nobody read the last ").map(|(_, rest)| rest);
                let count: u64 = lost
                    .and_then(|lost| lost.split_once(" bytes of the output"))
                    .unwrap()
                    .0
                    .parse()
                    .unwrap();
                assert!(count > 4096, "{told}");
            }
            drop(unread);
        }
    }

    fn pid(child: &Child) -> Pid {
        Pid::from_raw(i32::try_from(child.id()).unwrap())
    }
}

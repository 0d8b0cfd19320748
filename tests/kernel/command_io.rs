//! The parent's side of a command's streams, with real processes that are not confined.
#![allow(
    clippy::disallowed_methods,
    reason = "the tests start the commands that the product would confine"
)]
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::future::{Future, pending, ready};
    use std::io::{Read as _, Write as _};
    use std::os::fd::{AsFd, OwnedFd};
    use std::path::Path;
    use std::process::{Child, Command};
    use std::time::{Duration, Instant};

    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    use nix::pty::{Winsize, openpty};
    use nix::sys::termios::{LocalFlags, tcgetattr};
    use nix::unistd::pipe2;
    use stockade::confine::io::stdio::{Streams, prepare_from};
    use stockade::confine::io::{ChildEnds, Cut, InputKind, OutputMode, Relayed, Stdin};

    use crate::common::{PATIENCE, eventually};

    fn pipe() -> (OwnedFd, OwnedFd) {
        pipe2(OFlag::O_CLOEXEC).unwrap()
    }

    fn null() -> OwnedFd {
        File::options().read(true).write(true).open("/dev/null").unwrap().into()
    }

    fn streams(stdin: &OwnedFd, stdout: &OwnedFd, stderr: &OwnedFd) -> Streams {
        Streams::of(stdin.as_fd(), stdout.as_fd(), stderr.as_fd()).unwrap()
    }

    fn spawn(ends: ChildEnds, line: &str) -> Child {
        let mut command = if ends.input == InputKind::Terminal {
            // As the product does: whoever runs the tests in the background of a script has Ctrl-C ignored, and a
            // shell that starts so ignores it for good.
            let mut command = Command::new("env");
            command.args(["--default-signal", "setsid", "--ctty", "--wait", "sh", "-c", line]);
            command
        } else {
            let mut command = Command::new("sh");
            command.args(["-c", line]);
            command
        };
        command
            .stdin(ends.stdin)
            .stdout(ends.stdout)
            .stderr(ends.stderr)
            .spawn()
            .unwrap()
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime
            .block_on(async { tokio::time::timeout(PATIENCE, future).await })
            .unwrap()
    }

    async fn exited(child: &mut Child) {
        while child.try_wait().unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    #[test]
    fn a_command_that_writes_as_fast_as_it_is_read_leaves_others_their_turn() {
        let own = streams(&null(), &null(), &null());
        let (child, parent) = prepare_from(own, Stdin::Null, OutputMode::Capture).unwrap();
        let mut child = spawn(child, "exec yes");
        let others = async {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            child.kill().unwrap();
            child.wait().unwrap();
        };
        let relayed = block_on(parent.relay(Some(1000), others)).unwrap();
        let kept = relayed.stdout.head.len() + relayed.stdout.tail.len();
        assert!(kept <= 1000, "{kept}");
    }

    /// Runs a line with the given streams; the tree is dead when the line's shell is.
    fn run(own: Streams, stdin: Stdin, mode: OutputMode, limit: Option<u64>, line: &str) -> Relayed {
        let (child, parent) = prepare_from(own, stdin, mode).unwrap();
        let mut child = spawn(child, line);
        let relayed = block_on(parent.relay(limit, exited(&mut child))).unwrap();
        if relayed.cut.is_some() {
            child.kill().unwrap();
        }
        child.wait().unwrap();
        relayed
    }

    fn capture(stdin: Stdin, limit: Option<u64>, line: &str) -> Relayed {
        run(
            streams(&null(), &null(), &null()),
            stdin,
            OutputMode::Capture,
            limit,
            line,
        )
    }

    fn resident() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    #[test]
    fn stdout_and_stderr_are_captured_apart() {
        let relayed = capture(Stdin::Null, None, "echo out; echo err >&2");
        assert_eq!(relayed.stdout.into_bytes(), b"out\n");
        assert_eq!(relayed.stderr.into_bytes(), b"err\n");
    }

    #[test]
    fn binary_data_passes_through_a_command_intact() {
        let data: Vec<u8> = (0..3_000_000_u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        let relayed = capture(Stdin::Bytes(data.clone()), None, "cat");
        assert!(relayed.stdout.into_bytes() == data);
    }

    #[test]
    fn a_command_that_does_not_read_its_input_ends_all_the_same() {
        assert_eq!(
            capture(Stdin::Bytes(vec![b'x'; 1 << 20]), None, "echo done")
                .stdout
                .into_bytes(),
            b"done\n"
        );
    }

    #[test]
    fn no_input_is_end_of_file() {
        assert_eq!(
            capture(Stdin::Null, None, "cat; echo end").stdout.into_bytes(),
            b"end\n"
        );
    }

    #[test]
    fn a_hundred_mebibytes_under_a_cap_are_counted_and_cost_no_memory() {
        let before = resident();
        let relayed = capture(Stdin::Null, Some(1 << 20), "head -c 104857600 /dev/zero");
        assert_eq!(relayed.stdout.total, 100 << 20);
        assert_eq!(relayed.stdout.omitted(), 99 << 20);
        assert!(resident().saturating_sub(before) < 32 << 20);
    }

    #[test]
    fn a_streamed_output_is_cut_with_a_line_that_says_so() {
        let (reader, writer) = pipe();
        let printed = std::thread::spawn(move || {
            let mut text = String::new();
            File::from(reader).read_to_string(&mut text).unwrap();
            text
        });
        let relayed = run(
            streams(&null(), &writer, &null()),
            Stdin::Null,
            OutputMode::Stream,
            Some(6),
            "seq 1 9",
        );
        drop(writer);
        assert_eq!(relayed.stdout.total, 18);
        assert_eq!(printed.join().unwrap(), "1\n2\n… [12 bytes omitted] …\n\n9\n");
    }

    #[test]
    fn a_slow_reader_holds_the_command_up_and_not_memory() {
        let (reader, writer) = pipe();
        let (child, parent) =
            prepare_from(streams(&null(), &writer, &null()), Stdin::Null, OutputMode::Stream).unwrap();
        drop(writer);
        // The command tells how far it got through a file of its own.
        let mark = tempfile::NamedTempFile::new().unwrap();
        let line = format!(
            "i=0; while [ $i -lt 400 ]; do head -c 65536 /dev/zero; i=$((i+1)); echo $i > {}; done",
            mark.path().display()
        );
        let mut child = spawn(child, &line);
        let before = resident();
        let reading = std::thread::spawn({
            let mark = mark.path().to_owned();
            move || {
                let mut at = None;
                let mut look = || {
                    at = std::fs::read_to_string(&mark).unwrap().trim().parse::<u32>().ok();
                    at.is_some()
                };
                eventually("the command writes", &mut look);
                std::thread::sleep(Duration::from_secs(1));
                eventually("it has said how far it got", look);
                let stalled_at = at.unwrap();
                let grown = resident().saturating_sub(before);
                let mut sum = 0;
                let (mut reader, mut piece) = (File::from(reader), vec![0; 1 << 16]);
                loop {
                    match reader.read(&mut piece).unwrap() {
                        0 => return (stalled_at, grown, sum),
                        count => sum += count,
                    }
                }
            }
        });
        let relayed = block_on(parent.relay(None, exited(&mut child))).unwrap();
        let (stalled_at, grown, sum) = reading.join().unwrap();
        assert!(stalled_at < 10, "the command ran ahead to {stalled_at}");
        assert!(grown < 16 << 20, "memory grew by {grown}");
        assert_eq!((relayed.stdout.total, sum), (400 << 16, 400 << 16));
    }

    #[test]
    fn a_closed_reader_ends_the_relay_while_the_command_still_runs() {
        let (reader, writer) = pipe();
        drop(reader);
        let own = streams(&null(), &writer, &null());
        let (child, parent) = prepare_from(own, Stdin::Null, OutputMode::Stream).unwrap();
        let mut child = spawn(child, "exec yes");
        assert_eq!(
            block_on(parent.relay(None, pending())).unwrap().cut,
            Some(Cut::BrokenPipe)
        );
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_pipe_that_stays_open_after_the_tree_is_dead_is_given_up() {
        let (child, parent) =
            prepare_from(streams(&null(), &null(), &null()), Stdin::Null, OutputMode::Capture).unwrap();
        let held = child.stdout.try_clone().unwrap();
        File::from(held.try_clone().unwrap()).write_all(b"last words").unwrap();
        drop(child);
        let relayed = block_on(parent.relay(None, ready(()))).unwrap();
        assert_eq!(relayed.stdout.into_bytes(), b"last words");
        drop(held);
    }

    #[test]
    fn the_relay_outlasts_streams_that_the_command_closed_early() {
        let start = Instant::now();
        capture(Stdin::Null, None, "exec >&- 2>&-; sleep 0.5");
        assert!(start.elapsed() >= Duration::from_millis(500));
    }

    #[test]
    fn a_named_file_is_passed_on_and_keeps_what_the_command_leaves() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"first\nsecond\n").unwrap();
        let reader = OwnedFd::from(File::open(file.path()).unwrap());
        let relayed = run(
            streams(&reader, &null(), &null()),
            Stdin::Inherit,
            OutputMode::Capture,
            None,
            "read line; echo $line",
        );
        let mut rest = String::new();
        File::from(reader).read_to_string(&mut rest).unwrap();
        assert_eq!(relayed.stdout.into_bytes(), b"first\n");
        assert_eq!(rest, "second\n");
    }

    #[test]
    fn what_the_caller_reads_next_from_a_pipe_cannot_be_written_by_the_command() {
        let (reader, writer) = pipe();
        File::from(writer).write_all(b"first\n").unwrap();
        let relayed = run(
            streams(&reader, &null(), &null()),
            Stdin::Inherit,
            OutputMode::Capture,
            None,
            "cat; echo 'rm -rf x' > /proc/self/fd/0",
        );
        let mut rest = String::new();
        File::from(reader).read_to_string(&mut rest).unwrap();
        assert_eq!(relayed.stdout.into_bytes(), b"first\n");
        assert_eq!(rest, "");
    }

    #[test]
    fn an_unnamed_file_is_pumped_and_cannot_be_written_by_the_command() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"content").unwrap();
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
        let reader = OwnedFd::from(File::open(path).unwrap());
        run(
            streams(&reader, &null(), &null()),
            Stdin::Inherit,
            OutputMode::Capture,
            None,
            "cat > /dev/null; echo evil > /proc/self/fd/0",
        );
        let mut content = String::new();
        std::io::Seek::rewind(&mut file).unwrap();
        file.read_to_string(&mut content).unwrap();
        assert_eq!(content, "content");
    }

    #[test]
    fn a_file_open_for_writing_too_is_pumped_and_cannot_be_written_by_the_command() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"content").unwrap();
        let open = || OwnedFd::from(File::options().read(true).write(true).open(file.path()).unwrap());
        let line = "cat; echo evil 1>&0";
        let relayed = run(
            streams(&open(), &null(), &null()),
            Stdin::Inherit,
            OutputMode::Capture,
            None,
            line,
        );
        assert_eq!(relayed.stdout.into_bytes(), b"content");
        assert_eq!(std::fs::read(file.path()).unwrap(), b"content");
        // The twin: with the descriptor itself, the write would have arrived.
        let mut bare = Command::new("sh")
            .args(["-c", "echo evil 1>&0"])
            .stdin(open())
            .spawn()
            .unwrap();
        bare.wait().unwrap();
        assert_eq!(std::fs::read(file.path()).unwrap(), b"evil\nnt");
    }

    #[test]
    fn a_socket_is_pumped() {
        let (mine, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        (&mine).write_all(b"over a socket").unwrap();
        mine.shutdown(std::net::Shutdown::Write).unwrap();
        let own = streams(&theirs.into(), &null(), &null());
        let relayed = run(
            own,
            Stdin::Inherit,
            OutputMode::Capture,
            None,
            "cat; test -p /dev/stdin && echo ' by pipe'",
        );
        assert_eq!(relayed.stdout.into_bytes(), b"over a socket by pipe\n");
    }

    #[test]
    fn a_directory_as_stdin_is_end_of_file() {
        let directory = File::open("/").unwrap().into();
        let own = streams(&directory, &null(), &null());
        assert_eq!(
            run(own, Stdin::Inherit, OutputMode::Capture, None, "cat; echo end")
                .stdout
                .into_bytes(),
            b"end\n"
        );
    }

    #[test]
    fn lines_keep_their_order_where_both_outputs_go_to_one_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let to: OwnedFd = File::options().append(true).open(file.path()).unwrap().into();
        let line = "for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done";
        run(streams(&null(), &to, &to), Stdin::Null, OutputMode::Stream, None, line);
        assert_eq!(
            std::fs::read_to_string(file.path()).unwrap(),
            "o1\ne1\no2\ne2\no3\ne3\no4\ne4\no5\ne5\n"
        );
    }

    /// A person's terminal: what is typed and shown there is done on `person`.
    fn terminal() -> (File, OwnedFd) {
        let size = Winsize {
            ws_row: 33,
            ws_col: 77,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let pair = openpty(&size, None).unwrap();
        (pair.master.into(), pair.slave)
    }

    fn shown_until(person: &mut File, wanted: &str) -> String {
        let (mut text, mut piece) = (Vec::new(), [0; 4096]);
        loop {
            let shown = String::from_utf8(text.clone()).unwrap();
            if shown.contains(wanted) {
                return shown;
            }
            let count = person.read(&mut piece).unwrap();
            text.extend_from_slice(&piece[..count]);
        }
    }

    #[test]
    fn a_command_on_a_terminal_sees_its_size_and_keys_and_the_settings_come_back() {
        let (mut person, user) = terminal();
        let before = tcgetattr(&user).unwrap();
        let (child, parent) = prepare_from(streams(&user, &user, &user), Stdin::Inherit, OutputMode::Stream).unwrap();
        assert_eq!(child.input, InputKind::Terminal);
        let mut child = spawn(
            child,
            "stty size; tty -s && echo is a tty; read name; echo hello $name; read _",
        );
        let watch = user.try_clone().unwrap();
        let typist = std::thread::spawn(move || {
            let first = shown_until(&mut person, "is a tty");
            let raw = !tcgetattr(&watch).unwrap().local_flags.contains(LocalFlags::ICANON);
            person.write_all(b"you\r").unwrap();
            let second = shown_until(&mut person, "hello you");
            // Ctrl-C reaches the command's foreground group through its own terminal.
            person.write_all(b"\x03").unwrap();
            (first, raw, second, person)
        });
        let relayed = block_on(parent.relay(Some(4), exited(&mut child))).unwrap();
        let (first, raw, second, _person) = typist.join().unwrap();
        assert!(first.contains("33 77"), "{first:?}");
        assert!(raw);
        assert!(second.starts_with("\r\n") || second.contains("you"), "{second:?}");
        assert_eq!(relayed.cut, None);
        let after = tcgetattr(&user).unwrap();
        assert_eq!(
            (before.local_flags, before.input_flags),
            (after.local_flags, after.input_flags)
        );
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn a_dropped_relay_gives_the_terminal_back() {
        let (_person, user) = terminal();
        let (child, parent) = prepare_from(streams(&user, &user, &user), Stdin::Inherit, OutputMode::Stream).unwrap();
        let mut child = spawn(child, "sleep 60");
        let cooked = |fd: &OwnedFd| tcgetattr(fd).unwrap().local_flags.contains(LocalFlags::ICANON);
        block_on(async {
            let relay = parent.relay(None, pending());
            assert!(tokio::time::timeout(Duration::from_millis(300), relay).await.is_err());
        });
        assert!(cooked(&user));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_relay_that_is_held_up_shows_nothing_and_leaves_keys_and_settings_to_whoever_asks() {
        let (person, user) = terminal();
        let (child, parent) = prepare_from(streams(&user, &user, &user), Stdin::Inherit, OutputMode::Stream).unwrap();
        let pause = parent.pause();
        let folder = tempfile::tempdir().unwrap();
        let [go, over] = ["go", "over"].map(|name| folder.path().join(name));
        let line = format!(
            "stty -echo; echo begun; until [ -e {} ]; do sleep 0.02; done; for i in 1 2 3 4 5 6 7 8; do echo noise; done; \
             touch {}; read key; echo got $key",
            go.display(),
            over.display()
        );
        let mut child = spawn(child, &line);
        let there = async |file: &Path| {
            while !file.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let cooked = |fd: &OwnedFd| tcgetattr(fd).unwrap().local_flags.contains(LocalFlags::ICANON);
        let asking = async {
            // A thread reads what is shown, so that the relay goes on meanwhile.
            let mut reader = person.try_clone().unwrap();
            let begun = tokio::task::spawn_blocking(move || shown_until(&mut reader, "begun"));
            begun.await.unwrap();
            assert!(!cooked(&user));
            let paused = pause.pause().await;
            assert!(cooked(&user), "the terminal is still raw");
            let shown = || {
                let mut reader = person.try_clone().unwrap();
                fcntl(&reader, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
                let mut text = vec![0; 65_536];
                reader.read(&mut text).unwrap_or(0)
            };
            let _before = shown();
            (&person).write_all(b"answer\n").unwrap();
            std::fs::write(&go, "").unwrap();
            there(&over).await;
            tokio::time::sleep(Duration::from_millis(300)).await;
            // What the terminal itself echoes, and nothing of the command's.
            assert_eq!(shown(), "answer\r\n".len());
            let mut answer = [0; 7];
            File::from(user.try_clone().unwrap()).read_exact(&mut answer).unwrap();
            assert_eq!(&answer, b"answer\n");
            drop(paused);
            // Once the relay has the terminal again, keys are the command's.
            while cooked(&user) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            (&person).write_all(b"key\r").unwrap();
            fcntl(&person, FcntlArg::F_SETFL(OFlag::empty())).unwrap();
            let mut reader = person.try_clone().unwrap();
            tokio::task::spawn_blocking(move || shown_until(&mut reader, "got key"))
                .await
                .unwrap()
        };
        let (relayed, shown) = block_on(async { tokio::join!(parent.relay(None, exited(&mut child)), asking) });
        relayed.unwrap();
        assert!(
            shown.contains("noise"),
            "what was held back is shown afterwards: {shown:?}"
        );
        child.wait().unwrap();
    }

    #[test]
    fn a_terminal_at_the_head_of_a_pipeline_is_read_by_line_and_left_as_it_is() {
        let (mut person, user) = terminal();
        person.write_all(b"typed\n\x04").unwrap();
        let own = streams(&user, &null(), &null());
        let relayed = run(
            own,
            Stdin::Inherit,
            OutputMode::Capture,
            None,
            "cat; tty -s || echo no tty",
        );
        assert_eq!(relayed.stdout.into_bytes(), b"typed\nno tty\n");
    }

    #[test]
    fn keys_are_left_to_a_pager_that_made_the_terminal_raw() {
        let (mut person, user) = terminal();
        let mut settings = tcgetattr(&user).unwrap();
        nix::sys::termios::cfmakeraw(&mut settings);
        nix::sys::termios::tcsetattr(&user, nix::sys::termios::SetArg::TCSANOW, &settings).unwrap();
        person.write_all(b"q").unwrap();
        let own = streams(&user, &null(), &null());
        run(own, Stdin::Inherit, OutputMode::Capture, None, "sleep 0.3");
        let mut key = [0];
        File::from(user).read_exact(&mut key).unwrap();
        assert_eq!(&key, b"q");
    }
}

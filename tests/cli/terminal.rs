//! Interactive programs on Stockade's own terminal, played by a script that sits at a pseudo-terminal.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::common::{Backend, Fixture, in_both_regimes};

    in_both_regimes! {
        a_python_prompt_works ["python3"];
        the_window_size_passes_and_follows ["python3", "stty"];
        ctrl_c_reaches_the_command_and_not_stockade ["python3"];
        the_end_key_ends_a_command_that_ignores_every_other ["python3"];
        text_that_is_pasted_is_no_end_key ["python3"];
        a_terminal_that_nobody_reads_delays_an_end_by_seconds ["python3"];
        a_command_has_a_controlling_terminal_that_is_not_the_caller_s ["python3", "tty"];
        a_full_screen_program_works ["python3", "top"];
        a_terminal_keeps_its_mode ["python3"];
        a_command_at_a_terminal_reads_its_own_process_and_no_other ["python3"];
        an_editor_saves_a_file ["python3", "vi"];
        a_timeout_gives_the_terminal_back ["python3"];
        a_pipeline_keeps_the_terminal_s_settings ["python3", "bash"];
    }

    crate::common::declare! { user_where_it_is_left_open User Namespaces; a_regime_that_turns_out_not_to_be_had_is_said_anew ["python3", "git"]; }

    fn a_python_prompt_works(world: &Fixture) {
        let steps = json!([
            ["expect", ">>> "],
            ["send", "6 * 7\r"],
            ["expect", "42"],
            ["expect", ">>> "],
            ["send", "exit(5)\r"]
        ]);
        let (code, _) = world.play(&steps, &["run", "--", "/usr/bin/python3", "-q"]);
        assert_eq!(code, 5);
    }

    fn the_window_size_passes_and_follows(world: &Fixture) {
        let line = "stty size; trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.1; done";
        let steps = json!([
            ["expect", "24 80"],
            ["expect", "ready"],
            ["resize", 31, 97],
            ["expect", "31 97"]
        ]);
        assert_eq!(world.play(&steps, &["run", "-c", line]).0, 0);
    }

    fn ctrl_c_reaches_the_command_and_not_stockade(world: &Fixture) {
        let line = "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.1; done";
        let steps = json!([["expect", "ready"], ["send", "\u{3}"], ["expect", "caught"]]);
        assert_eq!(world.play(&steps, &["run", "-c", line]).0, 9);
    }

    fn the_end_key_ends_a_command_that_ignores_every_other(world: &Fixture) {
        // One that keeps its keys as signals, and one that takes them as bytes and reads none.
        for line in [
            "trap '' INT QUIT TERM HUP; echo ready; while :; do sleep 0.1; done",
            "trap '' INT QUIT TERM HUP; stty raw -echo; echo ready; while :; do sleep 0.1; done",
        ] {
            let steps = json!([
                ["expect", "ready"],
                ["send", "\u{3}\u{3}\u{3}\u{3}"],
                ["sleep", 0.2],
                ["send", "\u{1c}"],
                ["sleep", 0.2],
                ["send", "\u{1c}"],
                ["sleep", 0.2],
                ["send", "\u{1c}"]
            ]);
            let (code, shown) = world.play(&steps, &["run", "-c", line]);
            assert_eq!(code, 131, "{shown}");
        }
    }

    fn text_that_is_pasted_is_no_end_key(world: &Fixture) {
        let program = "import os, sys, termios, tty\n\
            before = termios.tcgetattr(0)\n\
            tty.setraw(0)\n\
            os.write(1, b'ready')\n\
            keys = b''\n\
            while not keys.endswith(b'q'): keys += os.read(0, 4096)\n\
            termios.tcsetattr(0, termios.TCSANOW, before)\n\
            print('', keys.count(0x1c), 'of them')\n";
        world.write("raw.py", program);
        // As it comes without marks, and as a terminal marks it, however it is cut.
        let steps = json!([
            ["expect", "ready"],
            ["send", "a\u{1c}\u{1c}\u{1c}b"],
            ["sleep", 0.2],
            ["send", "\u{1c}\u{1c}\u{1c}"],
            ["sleep", 0.2],
            ["send", "\u{1b}[200~"],
            ["sleep", 0.1],
            ["send", "\u{1c}"],
            ["sleep", 0.1],
            ["send", "\u{1c}"],
            ["sleep", 0.1],
            ["send", "\u{1c}"],
            ["sleep", 0.1],
            ["send", "\u{1b}[201~q"],
            ["expect", "9 of them"]
        ]);
        let (code, shown) = world.play(&steps, &["run", "--", "/usr/bin/python3", "raw.py"]);
        assert_eq!(code, 0, "{shown}");
    }

    fn a_terminal_that_nobody_reads_delays_an_end_by_seconds(world: &Fixture) {
        let press = |keys: &str| json!([["expect", "ready"], ["unread", 60, keys]]);
        let key = "\u{1c}\u{1c}\u{1c}";
        for line in [
            "echo ready; exec yes",
            "trap '' INT QUIT TERM HUP; stty raw -echo; echo ready; exec yes",
        ] {
            let (code, shown) = world.play(&press(key), &["run", "-c", line]);
            assert_eq!(code, 131, "{}", shown.len());
            let (code, shown) = world.play(&press(""), &["run", "--timeout", "3s", "-c", line]);
            assert_eq!(code, 124, "{}", shown.len());
        }
    }

    fn a_command_has_a_controlling_terminal_that_is_not_the_caller_s(world: &Fixture) {
        let inner = "test -t 0 && test -t 1 && test -t 2 && echo hello > /dev/tty; tty";
        let line = format!("tty; \"$0\" run -c '{inner}'");
        let argv = ["/bin/bash", "-c", &line, world.binary().to_str().unwrap()];
        let (_, shown) = world.play_bare(&json!([["expect", "hello"]]), &argv);
        let lines: Vec<_> = shown.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!(lines.iter().filter(|line| **line == lines[0]).count(), 1, "{shown:?}");
    }

    /// With another mode, another user could read what is typed there.
    fn a_terminal_keeps_its_mode(world: &Fixture) {
        let program = "import os\n\
            for path in (0, '/dev/stdin', '/proc/self/fd/0', '/dev/tty'):\n\
            \u{20}   for change in (lambda: os.chmod(path, 0o666), lambda: os.utime(path, (1, 1))):\n\
            \u{20}       try:\n\
            \u{20}           change(); print('changed', path)\n\
            \u{20}       except OSError: pass\n\
            open('mine', 'w'); os.chmod('mine', 0o666); print('done')\n";
        world.write("change.py", program);
        let (code, shown) = world.play(&json!([]), &["run", "--", "/usr/bin/python3", "change.py"]);
        assert_eq!(code, 0, "{shown}");
        assert!(shown.contains("done") && !shown.contains("changed"), "{shown}");
    }

    fn a_full_screen_program_works(world: &Fixture) {
        // `top` sees the one process whose /proc files its layer names: its own.
        let steps = json!([["expect", "COMMAND"], ["expect", "top"], ["send", "q"]]);
        let (code, shown) = world.play(&steps, &["run", "--", "top"]);
        assert_eq!(code, 0, "{shown}");
        let after_the_head = shown.split("COMMAND").nth(1).unwrap_or_default();
        assert!(after_the_head.contains("top"), "{shown}");
    }

    fn a_command_at_a_terminal_reads_its_own_process_and_no_other(world: &Fixture) {
        let program = "import os\n\
            def tried(path):\n\
            \u{20}   try:\n\
            \u{20}       open(path, 'rb').read(1); return 'read'\n\
            \u{20}   except OSError: return 'denied'\n\
            outside = [tried(f'/proc/{p}/{f}') for p in (1, os.getppid()) for f in ('stat', 'status', 'cmdline', 'maps')]\n\
            own = [tried('/proc/self/' + f) for f in ('environ', 'mem', 'net/unix', 'mountinfo')]\n\
            print('own', tried('/proc/self/stat'), tried('/proc/self/maps'), 'others', set(outside + own))\n";
        world.write("look.py", program);
        let (code, shown) = world.play(&json!([]), &["run", "--", "/usr/bin/python3", "look.py"]);
        assert_eq!(code, 0, "{shown}");
        // In namespaces /proc is the sandbox's own, and open as far as what is in there goes.
        let expected = match world.backend {
            Backend::Landlock => "own read read others {'denied'}",
            Backend::Namespaces | Backend::Bwrap => "own read read",
        };
        assert!(shown.contains(expected), "{shown}");
    }

    fn a_regime_that_turns_out_not_to_be_had_is_said_anew(world: &Fixture) {
        world.bare("/usr/bin/git").args(["init", "-q", "."]).output().exits(0);
        let config = world.workspace().join(".git/config");
        std::fs::hard_link(config, world.outside().join("config")).unwrap();
        let binary = world.binary().to_str().unwrap().to_owned();
        let (code, shown) = world.play_bare(&json!([]), &[&binary, "run", "--", "echo", "ran"]);
        assert_eq!(code, 0, "{shown}");
        let lines: Vec<&str> = shown.lines().filter(|line| line.starts_with("sandbox: ")).collect();
        assert!(
            lines[0].starts_with("sandbox: namespaces ·")
                && lines[1].starts_with("sandbox: landlock (")
                && lines[1].contains("namespaces cannot hold this config"),
            "{shown}"
        );
        assert!(shown.contains("ran"), "{shown}");
    }

    fn an_editor_saves_a_file(world: &Fixture) {
        let steps = json!([
            ["expect", "note.txt"],
            ["send", "ihello from vi"],
            ["expect", "hello from vi"],
            ["send", "\u{1b}:wq\r"]
        ]);
        let (code, shown) = world.play(&steps, &["run", "--", "vi", "note.txt"]);
        assert_eq!(code, 0, "{shown}");
        assert_eq!(
            std::fs::read_to_string(world.workspace().join("note.txt")).unwrap(),
            "hello from vi\n"
        );
    }

    fn a_timeout_gives_the_terminal_back(world: &Fixture) {
        let line = "stty raw -echo; echo ready; sleep infinity";
        // On a busy machine the time may be over before the terminal is raw.
        for time in ["2s", "8s", "32s", "128s"] {
            let (code, shown) = world.play(&json!([]), &["run", "--timeout", time, "-c", line]);
            assert_eq!(code, 124);
            if shown.contains("ready") {
                return;
            }
        }
        panic!("the terminal was never raw in time");
    }

    fn a_pipeline_keeps_the_terminal_s_settings(world: &Fixture) {
        let line = "\"$0\" run -- sh -c 'echo ready; read line; echo got $line' | cat";
        let steps = json!([["expect", "ready"], ["send", "typed\r"], ["expect", "got typed"]]);
        let argv = ["/bin/bash", "-c", line, world.binary().to_str().unwrap()];
        assert_eq!(world.play_bare(&steps, &argv).0, 0);
    }
}

//! Questions on a real terminal, answers in every form, and what an approval opens at the kernel.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use serde_json::{Value, json};

    use crate::common::{
        Fixture, Invocation, Run, SECRET, as_root_and_as_user, assert_no_process_left, marker, wait_until_gone,
    };

    as_root_and_as_user! {
        a_yes_runs_it_and_a_no_does_not ["python3"];
        a_single_command_offers_no_yes_for_the_session ["python3"];
        the_reason_for_a_no_is_told ["python3"];
        why_it_is_asked_is_told_and_it_is_asked_again ["python3"];
        a_long_command_is_leafed_through_on_a_narrow_terminal ["python3"];
        two_questions_on_one_terminal_wait_for_each_other ["python3"];
        a_question_waits_for_the_command_that_another_process_gives_the_keys_to ["python3", "bash"];
        while_another_process_asks_keys_are_answers_alone ["python3", "bash"];
        one_that_is_stopped_in_the_background_holds_up_no_question ["python3", "bash"];
        what_was_typed_before_the_question_is_no_answer ["python3"];
        a_key_that_is_no_answer_is_asked_for_again ["python3"];
        ctrl_c_at_the_question_denies_and_nothing_is_left ["python3"];
        a_signal_withdraws_the_question_and_nothing_runs ["python3"];
        ctrl_d_at_the_question_denies ["python3"];
        the_question_is_asked_while_input_and_output_are_pipes ["python3", "bash"];
        without_a_terminal_it_is_denied ["setsid"];
        control_and_bidi_characters_are_shown_escaped_and_flagged ["python3"];
        strict_denies_and_names_the_rule_that_would_allow_it [];
        every_rule_that_a_denial_names_is_accepted_and_then_allows [];
        a_denial_names_no_rule_that_allows_more_than_the_command [];
        lines_that_only_steer_the_shell_run_unasked ["bash"];
        a_forbidden_command_in_the_line_of_any_shell_is_blocked ["bash"];
        of_what_is_not_understood_a_denial_names_no_rule [];
        approve_all_runs_it_but_nothing_that_is_blocked [];
        a_line_that_is_not_understood_is_never_approved_before [];
        a_root_that_asks_for_writes_is_read_only_until_approved ["python3"];
        a_root_that_asks_for_reads_does_not_exist_until_approved ["python3"];
        a_rule_narrows_writes_to_its_roots [];
    }

    /// A config with three roots: the workspace (no questions), `asked` (asks for writes), `hidden` (asks for reads).
    fn config(world: &Fixture, more: &str) -> String {
        let outside = world.outside();
        for folder in ["asked", "hidden", "cache"] {
            world.write(outside.join(folder).join("there"), folder);
        }
        let text = format!(
            "extends: [system]
sandbox:
  protect_fallback: undo
  paths:
    w: {{root: {w}, mode: rw, execute: true, write_approval: false}}
    asked: {{root: {o}/asked, mode: rw, write_approval: true}}
    hidden: {{root: {o}/hidden, mode: ro, approval: {{read: required}}}}
    cache: {{root: {o}/cache, mode: rw, write_approval: false}}
shell:
  default: {{allowed: true, approval: required}}
  rules:
    - {{pattern: cat, approval: none}}
    - {{pattern: echo, approval: none}}
    - {{pattern: printenv, approval: none}}
    - {{pattern: ls, approval: none}}
    - {{pattern: tee, approval: none, sandbox_paths: [cache]}}
    - {{pattern: mkdir, approval: none}}
    - {{pattern: cp, approval: none}}
    - {{pattern: ./job, approval: none, sandbox_paths: [w]}}
    - {{pattern: rm, allowed: false, reason: delete by hand}}
{more}",
            w = world.workspace().display(),
            o = outside.display(),
        );
        // Outside every root, so that no command could change it.
        let file = world.write(world.base().join("agent.yaml"), text);
        file.to_str().unwrap().to_owned()
    }

    fn run(world: &Fixture, config: &str, flags: &[&str], line: &str) -> Invocation {
        let args = [&["run", "--config", config], flags, &["-c", line]].concat();
        world.stockade(&args)
    }

    /// What was shown, and the exit code.
    #[track_caller]
    fn play(world: &Fixture, steps: &Value, argv: &[&str]) -> (i64, String) {
        world.play_bare(steps, argv)
    }

    /// Runs `line` on a terminal where `steps` are played.
    #[track_caller]
    fn on_terminal(world: &Fixture, config: &str, line: &str, steps: &Value) -> (i64, String) {
        let binary = world.binary().to_str().unwrap();
        play(world, steps, &[binary, "run", "--config", config, "-c", line])
    }

    fn answered(answer: &str) -> Value {
        json!([["expect", "; ?: why"], ["expect", "approve? ["], ["send", answer]])
    }

    #[track_caller]
    fn says(run: &Run, words: &[&str]) {
        for word in words {
            assert!(run.err().contains(word), "`{word}` is not in: {}", run.err());
        }
    }

    fn made(world: &Fixture, name: &str) -> bool {
        world.workspace().join(name).exists()
    }

    /// Where a shell waits until the step `GO` was played.
    const UNTIL_GO: &str = "until [ -e go ]; do sleep 0.05; done";
    const GO: [&str; 2] = ["shell", "touch go"];

    fn forget_go(world: &Fixture) {
        fs::remove_file(world.workspace().join("go")).unwrap();
    }

    fn a_yes_runs_it_and_a_no_does_not(world: &Fixture) {
        let config = config(world, "");
        let (code, shown) = on_terminal(world, &config, "touch no; exit 7", &answered("n\r\r"));
        assert_eq!(code, 126, "{shown}");
        assert!(shown.contains("permission denied: user denied shell"), "{shown}");
        assert!(!made(world, "no"));
        let (code, shown) = on_terminal(world, &config, "touch yes; exit 7", &answered("y"));
        assert_eq!(code, 7, "{shown}");
        assert!(made(world, "yes"));
        // What is asked about is told: the command, where, and what it may do.
        for part in [
            "touch yes; exit 7",
            world.workspace().to_str().unwrap(),
            "write ",
            "reach nothing",
        ] {
            let unbroken = shown.replace("\r\n|            ", "");
            assert!(unbroken.contains(part), "{part}: {shown}");
        }
        // A command that needs no approval asks nothing on the same terminal.
        let (code, shown) = on_terminal(world, &config, "echo free", &json!([["expect", "free"]]));
        assert_eq!(code, 0);
        assert!(!shown.contains("approve?"), "{shown}");
    }

    /// There is no other command that a yes for the session could cover.
    fn a_single_command_offers_no_yes_for_the_session(world: &Fixture) {
        let config = config(world, "");
        let steps = json!([
            ["expect", "approve? [y/n/?] "],
            ["send", "s"],
            ["expect", "Please press y, n or ?."],
            ["send", "y"]
        ]);
        let (code, shown) = on_terminal(world, &config, "touch yes", &steps);
        assert_eq!(code, 0, "{shown}");
        assert!(made(world, "yes"));
    }

    fn the_reason_for_a_no_is_told(world: &Fixture) {
        let config = config(world, "");
        let steps = json!([
            ["expect", "approve? "],
            ["send", "n\r"],
            ["expect", "reason (empty: none): "],
            ["send", "use make\u{1b}[A\u{202e}\r"]
        ]);
        let (code, shown) = on_terminal(world, &config, "touch never", &steps);
        assert_eq!(code, 126, "{shown}");
        let told = "permission denied: user denied shell: use make[A\\u{202e}";
        assert!(shown.contains(told), "{shown}");
        let (_, shown) = on_terminal(world, &config, "touch never", &answered("n not here\r"));
        assert!(shown.contains("user denied shell: not here"), "{shown}");
        // Ctrl-C there takes nothing back.
        let steps = json!([
            ["expect", "approve? "],
            ["send", "n\r"],
            ["expect", "reason"],
            ["send", "\u{3}"]
        ]);
        let (code, shown) = on_terminal(world, &config, "touch never", &steps);
        assert!(code == 126 && shown.contains("user denied shell\r\n"), "{shown}");
        assert!(!made(world, "never"));
    }

    fn why_it_is_asked_is_told_and_it_is_asked_again(world: &Fixture) {
        let config = config(world, "");
        let steps = json!([
            ["expect", "approve? [y/n/?] "],
            ["send", "?"],
            ["expect", "Why this is asked"],
            ["expect", "{pattern: touch told, approval: none}"],
            ["expect", "approve? [y/n/?] "],
            ["send", "y"]
        ]);
        assert_eq!(on_terminal(world, &config, "touch told", &steps).0, 0);
        assert!(made(world, "told"));
    }

    fn a_long_command_is_leafed_through_on_a_narrow_terminal(world: &Fixture) {
        let config = config(world, "");
        let line = format!("{}touch long", ": nothing\n".repeat(200));
        let wait = "stty cols 40 rows 20; exec \"$0\" run --config \"$1\" -c \"$2\"";
        let argv = ["/bin/sh", "-c", wait, world.binary().to_str().unwrap(), &config, &line];
        let steps = json!([
            ["expect", "more lines]"],
            ["expect", "reach"],
            ["expect", "approve? [v/n/?] "],
            ["send", "y"],
            ["expect", "Please press v and see all of it first."],
            ["expect", "approve? [v/n/?] "],
            ["send", "v"],
            ["expect", "line 1-19 of "],
            ["send", "G"],
            ["expect", "touch long"],
            ["expect", "the end; q: back"],
            ["send", "q"],
            ["expect", "approve? [y/n/v/?] "],
            ["send", "y"]
        ]);
        let (code, shown) = play(world, &steps, &argv);
        assert_eq!(code, 0, "{shown}");
        assert!(made(world, "long"));
        let asked = &shown[shown.find("+-- Stockade asks").unwrap()..shown.find("approve?").unwrap()];
        assert!(asked.lines().all(|line| line.chars().count() < 40), "{asked}");
    }

    fn two_questions_on_one_terminal_wait_for_each_other(world: &Fixture) {
        let config = config(world, "");
        let line = "\"$0\" run --config \"$1\" -c 'touch one' & \"$0\" run --config \"$1\" -c 'touch two'; wait";
        let argv = ["/bin/bash", "-c", line, world.binary().to_str().unwrap(), &config];
        let steps = json!([
            ["expect", "Stockade asks"],
            ["expect", "approve? "],
            ["sleep", 1.0],
            ["send", "y"],
            ["expect", "Stockade asks"],
            ["expect", "approve? "],
            ["send", "y"]
        ]);
        let (_, shown) = play(world, &steps, &argv);
        let first = shown.find("approve? ").unwrap();
        assert_eq!(shown[..first].matches("Stockade asks").count(), 1, "{shown}");
        assert!(made(world, "one") && made(world, "two"), "{shown}");
    }

    fn a_question_waits_for_the_command_that_another_process_gives_the_keys_to(world: &Fixture) {
        let config = config(world, "");
        let line = format!(
            "\"$0\" run --config \"$1\" -c 'echo cat-is-up; cat' </dev/tty & {UNTIL_GO}; \
             \"$0\" run --config \"$1\" -c 'touch beside' </dev/null & wait"
        );
        let argv = ["/bin/bash", "-c", &line, world.binary().to_str().unwrap(), &config];
        let steps = json!([
            ["expect", "cat-is-up"],
            GO,
            ["sleep", 2.0],
            ["send", "y\r"],
            ["expect", "y\r\ny\r\n"],
            ["send", "\u{4}"],
            ["expect", "Stockade asks"],
            ["expect", "approve? "],
            ["send", "y"]
        ]);
        let (_, shown) = play(world, &steps, &argv);
        assert!(made(world, "beside"), "{shown}");
    }

    fn while_another_process_asks_keys_are_answers_alone(world: &Fixture) {
        let config = config(world, "");
        // The one is asked about first; the other starts then, with the terminal in a pipeline or for itself.
        for other in ["</dev/tty", "</dev/tty | cat"] {
            let line = format!(
                "\"$0\" run --config \"$1\" -c 'touch asked' </dev/null & {UNTIL_GO}; \
                 \"$0\" run --config \"$1\" -c 'cat -n' {other} & wait"
            );
            let argv = ["/bin/bash", "-c", &line, world.binary().to_str().unwrap(), &config];
            let steps = json!([
                ["expect", "approve? "],
                GO,
                ["sleep", 2.0],
                ["send", "y"],
                // The answer was taken; who has the keys next is not to be seen.
                ["until", "test -e asked"],
                ["offer", "for cat\r", "1\tfor cat\r\n"],
                ["send", "\u{4}"]
            ]);
            let (_, shown) = play(world, &steps, &argv);
            assert!(made(world, "asked"), "{shown}");
            fs::remove_file(world.workspace().join("asked")).unwrap();
            forget_go(world);
        }
    }

    fn one_that_is_stopped_in_the_background_holds_up_no_question(world: &Fixture) {
        let config = config(world, "");
        // With job control: the shell takes the terminal back when the one is stopped. What that one made of its settings, nobody undoes.
        for (stopped, shows) in [("echo cat-is-up; cat", "cat-is-up"), ("touch never", "approve? ")] {
            let line = format!(
                "saved=$(stty -g); set -m; ({UNTIL_GO}; pkill -STOP -P $$ -x stockade) & \"$0\" run --config \"$1\" -c '{stopped}'; \
                 \"$0\" run --config \"$1\" -c 'touch asked'; echo code $?; kill -9 %2; stty $saved"
            );
            let argv = ["/bin/bash", "-c", &line, world.binary().to_str().unwrap(), &config];
            let steps = json!([
                ["expect", shows],
                GO,
                ["expect", "touch asked"],
                ["expect", "approve? "],
                ["send", "y"],
                ["expect", "code 0"]
            ]);
            let (_, shown) = play(world, &steps, &argv);
            assert!(made(world, "asked"), "{shown}");
            assert!(!made(world, "never"), "{shown}");
            fs::remove_file(world.workspace().join("asked")).unwrap();
            forget_go(world);
        }
    }

    fn what_was_typed_before_the_question_is_no_answer(world: &Fixture) {
        let config = config(world, "");
        let line = format!("{UNTIL_GO}; exec \"$0\" run --config \"$1\" -c 'touch early'");
        let binary = world.binary().to_str().unwrap();
        let steps = json!([
            ["send", "y\ry\ry\r"],
            // The terminal has them.
            ["expect", "y\r\ny\r\ny\r\n"],
            GO,
            ["expect", "approve? [y/n/?] "],
            ["sleep", 1.0],
            ["send", "n\r\r"]
        ]);
        let (code, shown) = play(world, &steps, &["/bin/sh", "-c", &line, binary, &config]);
        assert_eq!(code, 126, "{shown}");
        assert!(!made(world, "early"));
    }

    fn a_key_that_is_no_answer_is_asked_for_again(world: &Fixture) {
        let config = config(world, "");
        let steps = json!([
            ["expect", "approve? [y/n/?] "],
            ["send", "maybe\r"],
            ["expect", "Please press y, n or ?."],
            ["expect", "approve? [y/n/?] "],
            ["send", "y"]
        ]);
        assert_eq!(on_terminal(world, &config, "touch second", &steps).0, 0);
    }

    fn ctrl_c_at_the_question_denies_and_nothing_is_left(world: &Fixture) {
        let (config, marker) = (config(world, ""), marker());
        let line = format!("sleep {marker}");
        for key in ["\u{3}", "\u{1c}"] {
            let (code, shown) = on_terminal(world, &config, &line, &answered(key));
            assert_eq!(code, 126, "{shown}");
            assert!(shown.contains("the question was interrupted"), "{shown}");
            wait_until_gone(&marker);
        }
    }

    fn a_signal_withdraws_the_question_and_nothing_runs(world: &Fixture) {
        let config = config(world, "");
        for (signal, code) in [("TERM", 143), ("INT", 130), ("HUP", 129)] {
            let line = format!(
                "({UNTIL_GO}; pkill -{signal} -P $$ -x stockade) & \"$0\" run --config \"$1\" -c 'touch never'; echo code $?"
            );
            let argv = ["/bin/bash", "-c", &line, world.binary().to_str().unwrap(), &config];
            let steps = json!([
                ["expect", "Stockade asks"],
                ["expect", "approve? "],
                GO,
                ["expect", format!("code {code}")]
            ]);
            let (_, shown) = play(world, &steps, &argv);
            assert!(shown.contains(&format!("code {code}")), "{shown}");
            forget_go(world);
            assert!(!made(world, "never"));
        }
    }

    fn ctrl_d_at_the_question_denies(world: &Fixture) {
        let config = config(world, "");
        let (code, shown) = on_terminal(world, &config, "touch never", &answered("\u{4}"));
        assert_eq!(code, 126, "{shown}");
        assert!(!made(world, "never"));
    }

    fn the_question_is_asked_while_input_and_output_are_pipes(world: &Fixture) {
        let config = config(world, "");
        let line = "echo y | \"$0\" run --config \"$1\" -c 'touch made; cat; echo out' > piped 2>&1";
        let binary = world.binary().to_str().unwrap();
        let argv = ["/bin/bash", "-c", line, binary, &config];
        // The `y` on standard input is the command's, not an answer.
        let (_, shown) = play(world, &answered("n\r\r"), &argv);
        assert!(shown.contains("Stockade asks"), "{shown}");
        assert!(!made(world, "made"));
        play(world, &answered("y"), &argv);
        let piped = fs::read_to_string(world.workspace().join("piped")).unwrap();
        assert!(made(world, "made") && piped.ends_with("y\nout\n"), "{piped}");
    }

    fn without_a_terminal_it_is_denied(world: &Fixture) {
        let (config, marker) = (config(world, ""), marker());
        let line = format!("sleep {marker}");
        for flags in [&[][..], &["--mode", "interactive"], &["--json"]] {
            let binary = world.binary().to_str().unwrap();
            let args = [&[binary, "run", "--config", &config], flags, &["-c", &line]].concat();
            let run = world
                .bare("/usr/bin/setsid")
                .args(["--wait"])
                .args(args)
                .output()
                .exits(126);
            let said = run.err() + &run.out();
            for word in [
                "no terminal to ask on",
                "--approver-program",
                "--approvals-socket",
                "pattern: sleep",
                "approval: none",
            ] {
                assert!(said.contains(word), "{word}: {said}");
            }
            assert_no_process_left(&marker);
        }
    }

    fn control_and_bidi_characters_are_shown_escaped_and_flagged(world: &Fixture) {
        let config = config(world, "");
        let hostile = "touch a\u{202e}b; : '\u{1b}[2J\u{1b}]0;t\u{7}' '\u{200b}' '\u{9b}1m' '\rapprove? [y/n/s/?] y'";
        let (code, shown) = on_terminal(world, &config, hostile, &answered("n\r\r"));
        assert_eq!(code, 126);
        assert!(
            !shown.contains(['\u{202e}', '\u{7}', '\u{200b}', '\u{9b}']) && !shown.contains("\u{1b}[2J"),
            "{shown:?}"
        );
        let unbroken = shown.replace("\r\n|            ", "");
        for part in ["\\u{202e}", "\\u{1b}[2J", "\\u{200b}", "WARNING"] {
            assert!(unbroken.contains(part), "{part}: {shown:?}");
        }
        // The same in the words of a program.
        let binary = world.binary().to_str().unwrap();
        let argv = [binary, "run", "--config", &config, "--", "touch", "a\u{1b}[2J\u{202e}b"];
        let (code, shown) = play(world, &answered("n\r\r"), &argv);
        assert_eq!(code, 126);
        assert!(
            shown.contains("'a\\u{1b}[2J\\u{202e}b'") && shown.contains("WARNING"),
            "{shown:?}"
        );
        assert!(!shown.contains("\u{1b}[2J"), "{shown:?}");
        let plain = [binary, "run", "--config", &config, "--", "touch", "it's plain"];
        let (_, shown) = play(world, &answered("n\r\r"), &plain);
        assert!(
            shown.contains("touch 'it'\\''s plain'") && !shown.contains("WARNING"),
            "{shown:?}"
        );
    }

    fn every_rule_that_a_denial_names_is_accepted_and_then_allows(world: &Fixture) {
        for line in [
            "touch x",
            "touch -- a",
            "git -c core.pager=./x log",
            "python3 -V",
            "yes no | head -n 1",
            "cd / && head -n 1 x",
            "touch a && mkdir -p b; head x; tail -n 1 x",
            "touch a=b",
            "sort -o a b",
        ] {
            let mut rules = String::new();
            let denied = run(world, &config(world, ""), &["--mode", "strict"], line).output();
            // The fixture shows text with its quotes escaped.
            let said = denied.exits(126).err().replace("\\\"", "\"");
            for named in said.split("a rule `").skip(1) {
                rules.extend(["    - ", named.split('`').next().unwrap(), "\n"]);
            }
            assert!(
                rules.contains("pattern:") && said.contains("would allow it"),
                "{line}: {said}"
            );
            let run = run(world, &config(world, &rules), &["--mode", "strict"], line).output();
            let code = run.code();
            assert!(code != 125 && code != 126, "{line} ended with {code} by {rules}");
        }
    }

    fn a_denial_names_no_rule_that_allows_more_than_the_command(world: &Fixture) {
        for line in [
            "touch 'a b'",
            "touch \"$HOME\"",
            "sort -o {a,b}",
            "python3 -c 'import os'",
        ] {
            let denied = run(world, &config(world, ""), &["--mode", "strict"], line).output();
            let said = denied.exits(126).err();
            assert!(
                said.contains("no rule can allow") && !said.contains("pattern:"),
                "{line}: {said}"
            );
        }
        // Following one that is named opens nothing beside it.
        let config = config(
            world,
            "    - {pattern: \"git -c core.pager=./x log\", approval: none}\n",
        );
        for line in ["git -c core.pager=./y log", "git -c alias.log=!touch log", "git log"] {
            run(world, &config, &["--mode", "strict"], line).output().exits(126);
        }
    }

    fn lines_that_only_steer_the_shell_run_unasked(world: &Fixture) {
        world.write(world.workspace().join("sub/there"), "x");
        let config = config(world, "");
        let strict = ["--mode", "strict"];
        for (line, code, said) in [
            ("for i in 1 2; do echo $i; done", 0, "1\n2\n"),
            ("ls 2>&1 >/dev/null", 0, ""),
            ("ls &>/dev/null", 0, ""),
            ("cd sub && ls", 0, "there\n"),
            ("cd sub", 0, ""),
            ("exit 3", 3, ""),
            ("test -f sub/there && [ -d sub ] && echo both", 0, "both\n"),
            ("set -e; false; echo not", 1, ""),
            ("export CI=1; printenv CI", 0, "1\n"),
        ] {
            let run = run(world, &config, &strict, line).output();
            assert_eq!(run.exits(code).out(), said, "{line}");
        }
        // A program that is found first in PATH, a redirection, a subscript that bash evaluates, a variable that steers programs.
        for line in [
            "cd sub && touch made",
            "true > made",
            "test -v 'a[$(touch made)]'",
            "[ 'a[$(touch made)]' -eq 0 ]",
            "for i in 'a[$(touch made)]'; do [ $i -eq 0 ]; done",
            "for PATH in sub; do ls; done",
            "export LD_PRELOAD=./sub/there; ls",
            "exit $(touch made)",
            "ls() { touch made; }; ls",
            "env cd sub",
        ] {
            run(world, &config, &strict, line).output().exits(126);
            assert!(!made(world, "made") && !made(world, "sub/made"), "{line}");
        }
        // A rule with a relative path does not follow.
        world.write(world.workspace().join("job"), "#!/bin/sh\necho ran\n");
        world.write(world.workspace().join("sub/job"), "#!/bin/sh\necho another\n");
        for job in ["job", "sub/job"] {
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(world.workspace().join(job), mode).unwrap();
        }
        run(world, &config, &strict, "cd sub && ./job").output().exits(126);
        let there = run(world, &config, &strict, "./job").output();
        assert_eq!(there.exits(0).out(), "ran\n");
    }

    fn a_forbidden_command_in_the_line_of_any_shell_is_blocked(world: &Fixture) {
        let config = config(world, "");
        for line in [
            "zsh -c 'rm x'",
            "bash -lc 'rm x'",
            "env ksh -ic 'echo; rm x'",
            "sudo -n fish -c 'rm x'",
        ] {
            let denied = run(world, &config, &["--mode", "approve_all"], line).output();
            let said = denied.exits(126).err();
            assert!(said.contains("delete by hand"), "{line}: {said}");
        }
        let echo = run(world, &config, &["--mode", "approve_all"], "bash -lc 'echo rm x'");
        assert_eq!(echo.output().exits(0).out(), "rm x\n");
    }

    fn of_what_is_not_understood_a_denial_names_no_rule(world: &Fixture) {
        let config = config(world, "");
        for line in ["strace ls", "eval ls", ". ./x", "env -S 'ls x'", "alias ls=cat", "$CMD"] {
            let denied = run(world, &config, &["--mode", "strict"], line).output().exits(126);
            says(
                &denied,
                &[
                    "no rule can allow what is not understood",
                    "plain commands",
                    "`--mode interactive`",
                ],
            );
            assert!(!denied.err().contains("pattern:"), "{line}: {}", denied.err());
        }
    }

    fn strict_denies_and_names_the_rule_that_would_allow_it(world: &Fixture) {
        let config = config(world, "    - {pattern: make, approval: required}\n");
        let denied = run(world, &config, &["--mode", "strict"], "touch x")
            .output()
            .exits(126);
        says(
            &denied,
            &[
                "strict mode denied",
                "{pattern: touch x, approval: none}",
                "shell.rules",
            ],
        );
        let denied = run(world, &config, &["--mode", "strict"], "make all")
            .output()
            .exits(126);
        says(&denied, &["agent.yaml:", "approval: none"]);
        // What the shell does around a command is no part of a pattern, and the message does not say so.
        let denied = run(world, &config, &["--mode", "strict"], "cat /etc/passwd > copy")
            .output()
            .exits(126);
        says(&denied, &["writes copy by redirection", "sandbox_paths"]);
        let denied = run(world, &config, &["--mode", "strict"], "A=1 cat /etc/passwd")
            .output()
            .exits(126);
        says(&denied, &["the assignment A=1"]);
        run(world, &config, &["--mode", "strict"], "cat /etc/passwd")
            .output()
            .exits(0);
        assert!(!made(world, "copy") && !made(world, "x"));
    }

    fn approve_all_runs_it_but_nothing_that_is_blocked(world: &Fixture) {
        let config = config(world, "");
        run(world, &config, &["--mode", "approve_all"], "touch x")
            .output()
            .exits(0);
        for line in [
            "rm x",
            "echo a; rm x",
            "echo \"$(rm x)\"",
            "env rm x",
            "if true; then rm x; fi",
        ] {
            let blocked = run(world, &config, &["--mode", "approve_all"], line)
                .output()
                .exits(126);
            says(&blocked, &["blocked: the rule `rm` (", "forbids it: delete by hand"]);
        }
        assert!(made(world, "x"));
    }

    fn a_line_that_is_not_understood_is_never_approved_before(world: &Fixture) {
        let config = config(world, "");
        for line in [
            "eval echo x",
            "$0 -c 'echo x'",
            "echo x | sh",
            "cat <(touch y)",
            "echo 'unclosed",
        ] {
            run(world, &config, &["--mode", "strict"], line).output().exits(126);
        }
        run(world, &config, &["--mode", "strict"], "echo x | cat")
            .output()
            .exits(0);
    }

    fn a_root_that_asks_for_writes_is_read_only_until_approved(world: &Fixture) {
        let config = config(world, "");
        let asked = world.outside().join("asked");
        world.write("there", "other");
        let write = |line: &str| run(world, &config, &[], line).output();
        write(&format!("cat {}/there", asked.display())).exits(0);
        write(&format!("cp there {}/new", asked.display())).assert_denied();
        write(&format!("cp there {}/there", asked.display())).assert_denied();
        write(&format!("mkdir {}/folder", asked.display())).assert_denied();
        write("cp there here").exits(0);
        assert_eq!(fs::read_to_string(asked.join("there")).unwrap(), "asked");
        let line = format!("touch {}/new", asked.display());
        let (code, shown) = on_terminal(world, &config, &line, &answered("y"));
        assert_eq!(code, 0, "{shown}");
        assert!(asked.join("new").exists());
        let unbroken = shown.replace("\r\n|            ", " ");
        let listed = unbroken.split(" write ").nth(1).unwrap();
        assert!(listed.contains(asked.to_str().unwrap()), "{shown}");
    }

    fn a_root_that_asks_for_reads_does_not_exist_until_approved(world: &Fixture) {
        let config = config(world, "");
        let hidden = world.outside().join("hidden");
        let read = |line: &str| run(world, &config, &[], line).output();
        read(&format!("cat {}/there", hidden.display())).assert_denied();
        read(&format!("ls {}", hidden.display())).assert_denied();
        let line = format!(
            "head -1 {}/there; head -1 {}/secret",
            hidden.display(),
            world.outside().display()
        );
        let (_, shown) = on_terminal(world, &config, &line, &answered("y"));
        assert!(shown.contains("\nhidden") && !shown.contains(SECRET), "{shown}");
        let unbroken = shown.replace("\r\n|            ", " ");
        let listed = unbroken.split(" read ").nth(1).unwrap();
        assert!(listed.contains(hidden.to_str().unwrap()), "{shown}");
    }

    fn a_rule_narrows_writes_to_its_roots(world: &Fixture) {
        let config = config(world, "");
        let cache = world.outside().join("cache");
        let write = |line: &str| run(world, &config, &["--mode", "strict"], line).stdin("x").output();
        write(&format!("tee {}/new", cache.display())).exits(0);
        assert!(cache.join("new").exists());
        // Outside the named root the rule does not match, though the workspace is writable.
        write("tee here").exits(126);
        write(&format!("tee {}/new > here", cache.display())).exits(126);
        // Where it matches, the rest is out of the kernel's reach, whatever the program has in mind.
        let job = format!(
            "#!/bin/sh\necho x > {w}/by-job; echo x > {c}/by-job; true\n",
            w = world.workspace().display(),
            c = cache.display()
        );
        let file = world.write("job", job);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        let job = write("./job").exits(0);
        assert!(job.err().contains("Permission denied"), "{}", job.err());
        assert!(made(world, "by-job") && !cache.join("by-job").exists());
        write("echo here").exits(0);
    }
}

//! What a command changed of protected names is undone, and offered to the person at the terminal.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    use serde_json::{Value, json};

    use crate::common::{Fixture, in_both_regimes};

    in_both_regimes! {
        a_hook_is_there_again_when_the_person_says_yes ["python3", "git"];
        it_stays_away_when_the_person_says_no_or_nothing ["python3", "git"];
        one_answer_holds_for_all_changes ["python3"];
        what_was_typed_while_the_command_ran_is_no_answer ["python3"];
        it_is_undone_while_the_question_is_open ["python3"];
        nothing_that_the_person_did_meanwhile_is_written_over ["python3"];
        no_mode_puts_it_back ["python3"];
        who_stops_the_command_is_asked_nothing ["python3"];
        a_signal_ends_an_open_question_and_it_stays_undone ["python3"];
        without_a_terminal_it_stays_undone [];
        hostile_contents_do_not_reach_the_terminal ["python3"];
        a_long_change_is_shown_whole_when_asked_for ["python3"];
        a_pipe_comes_back_as_such_and_a_symlink_is_not_offered ["python3"];
        what_is_too_large_is_not_offered ["python3"];
        the_outcome_says_what_was_put_back ["python3"];
        what_was_put_back_is_protected_from_the_next_command ["python3", "git"];
    }

    const PLANT: &str =
        "mkdir -p .git/hooks; printf '#!/bin/sh\\necho hi\\n' > .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit";
    const HOOK: &str = ".git/hooks/pre-commit";

    fn repository(world: &Fixture) {
        world
            .bare("/usr/bin/git")
            .args(["init", "-q", "--template="])
            .output()
            .ok();
    }

    fn there(world: &Fixture, path: &str) -> bool {
        fs::symlink_metadata(world.workspace().join(path)).is_ok()
    }

    /// Runs `line` and answers the first question.
    #[track_caller]
    fn answer(world: &Fixture, line: &str, answer: &str) -> String {
        let steps = json!([["expect", "approve? "], ["send", answer]]);
        let (code, shown) = world.play(&steps, &["run", "-c", line]);
        assert_eq!(code, 0, "{shown}");
        shown
    }

    fn a_hook_is_there_again_when_the_person_says_yes(world: &Fixture) {
        repository(world);
        let shown = answer(world, PLANT, "y\r");
        for part in [
            "+file, 18 bytes, mode 755",
            "+echo hi",
            "as you said",
            "approve? [y/n/?] ",
        ] {
            assert!(shown.contains(part), "{part} is not in {shown}");
        }
        let hook = world.workspace().join(HOOK);
        assert_eq!(fs::read_to_string(&hook).unwrap(), "#!/bin/sh\necho hi\n");
        assert_eq!(fs::metadata(&hook).unwrap().mode() & 0o7777, 0o755);
        assert_eq!(fs::metadata(&hook).unwrap().uid(), world.actor.uid());
    }

    fn it_stays_away_when_the_person_says_no_or_nothing(world: &Fixture) {
        repository(world);
        for keys in ["n\r\r", "\u{3}", "\u{4}"] {
            let shown = answer(world, PLANT, keys);
            assert!(shown.contains("restored; what was there is kept"), "{keys:?}: {shown}");
            assert!(!there(world, HOOK), "{keys:?}");
            // In namespaces a folder that is there is held, and nothing would be asked.
            fs::remove_dir(world.workspace().join(".git/hooks")).unwrap();
        }
    }

    fn one_answer_holds_for_all_changes(world: &Fixture) {
        let line = "echo evil > .bashrc; echo worse > .zshrc";
        for (keys, is_there) in [("n\r\r", false), ("y\r", true)] {
            let shown = answer(world, line, keys);
            assert!(shown.contains("+evil") && shown.contains("+worse"), "{shown}");
            assert_eq!(shown.matches("approve? [y/n/?] ").count(), 1, "{shown}");
            assert_eq!(
                [".bashrc", ".zshrc"].map(|name| there(world, name)),
                [is_there; 2],
                "{shown}"
            );
        }
    }

    fn what_was_typed_while_the_command_ran_is_no_answer(world: &Fixture) {
        let line = "echo ready; until [ -e go ]; do sleep 0.05; done; echo evil > .bashrc";
        let steps = json!([
            ["expect", "ready"],
            ["send", "y\ry\ry\r"],
            // The command's terminal has them.
            ["expect", "y\r\ny\r\ny\r\n"],
            ["shell", "touch go"],
            ["expect", "approve? "],
            ["sleep", 0.5],
            ["send", "n\r\r"]
        ]);
        let (_, shown) = world.play(&steps, &["run", "-c", line]);
        assert!(!there(world, ".bashrc"), "{shown}");
    }

    /// Runs `line`, does `meanwhile` as the actor when the question is open, and says yes.
    #[track_caller]
    fn meanwhile(world: &Fixture, line: &str, meanwhile: &str) -> String {
        let steps = json!([["expect", "approve? "], ["shell", meanwhile], ["send", "y"]]);
        world.play(&steps, &["run", "-c", line]).1
    }

    fn it_is_undone_while_the_question_is_open(world: &Fixture) {
        let look = "test ! -e .bashrc && touch was-away";
        let shown = meanwhile(world, "echo evil > .bashrc", look);
        assert!(there(world, "was-away") && there(world, ".bashrc"), "{shown}");
    }

    fn nothing_that_the_person_did_meanwhile_is_written_over(world: &Fixture) {
        let shown = meanwhile(world, "echo evil > .bashrc", "echo mine > .bashrc");
        assert!(shown.contains("could not be put back"), "{shown}");
        assert_eq!(fs::read_to_string(world.workspace().join(".bashrc")).unwrap(), "mine\n");
    }

    fn no_mode_puts_it_back(world: &Fixture) {
        for mode in ["approve_all", "strict"] {
            let args = ["run", "--mode", mode, "-c", "echo evil > .bashrc"];
            let (_, shown) = world.play(&json!([["expect", "restored"]]), &args);
            assert!(!shown.contains("approve?"), "{shown}");
            assert!(!there(world, ".bashrc"), "{mode}");
        }
    }

    fn who_stops_the_command_is_asked_nothing(world: &Fixture) {
        let line = "echo evil > .bashrc; echo ready; sleep infinity";
        let steps = json!([["expect", "ready"], ["signal", "SIGTERM"], ["expect", "restored"]]);
        let (code, shown) = world.play(&steps, &["run", "-c", line]);
        assert!(code == 143 && !shown.contains("approve?"), "{code}: {shown}");
        assert!(!there(world, ".bashrc"));
    }

    fn a_signal_ends_an_open_question_and_it_stays_undone(world: &Fixture) {
        let steps = json!([
            ["expect", "approve? "],
            ["signal", "SIGTERM"],
            ["expect", "restored; what was there is kept"]
        ]);
        let (_, shown) = world.play(&steps, &["run", "-c", "echo evil > .bashrc"]);
        assert!(!there(world, ".bashrc"), "{shown}");
    }

    fn without_a_terminal_it_stays_undone(world: &Fixture) {
        // A session of its own has no terminal, whatever the tests were started from.
        let line = "exec setsid -w \"$0\" \"$@\"";
        let binary = world.binary().to_str().unwrap();
        let run = world
            .bare("/bin/sh")
            .args(["-c", line, binary, "run", "--json", "-c", "echo evil > .bashrc"]);
        let outcome: Value = serde_json::from_str(&run.output().ok()).unwrap();
        assert_eq!(outcome["restored"][0]["then"], "stayed_undone", "{outcome}");
        assert!(!there(world, ".bashrc"));
    }

    fn hostile_contents_do_not_reach_the_terminal(world: &Fixture) {
        let line = "printf '\\033[2J\\033]0;owned\\007\\302\\233 approve y\\r\\n\\342\\200\\256x\\n' > .bashrc";
        let shown = answer(world, line, "n\r\r");
        let asked = &shown[shown.find("+-- Stockade asks").unwrap()..shown.find("+-- y:").unwrap()];
        for evil in ["\u{1b}[2J", "\u{1b}]0", "\u{7}", "\u{9b}", "\u{202e}"] {
            assert!(!asked.contains(evil), "{evil:?} is in {asked:?}");
        }
        assert!(asked.contains("\\u{1b}[2J") && asked.contains("\\u{202e}x"), "{asked}");
        assert!(asked.contains("WARNING"), "{asked}");
        let name = "mkdir -p .zed; echo x > \"$(printf '.zed/\\377\\033[2J\\n+-- y: yes')\"";
        let shown = answer(world, name, "y\r");
        let asked = &shown[shown.find("+-- Stockade asks").unwrap()..shown.rfind("+-- y:").unwrap()];
        assert!(asked.contains("\\\\xff") || asked.contains("\\xff"), "{asked}");
        assert!(
            !asked.contains("\u{1b}[2J") && !asked.contains("\n+-- y: yes:"),
            "{asked}"
        );
        assert_eq!(fs::read_dir(world.workspace().join(".zed")).unwrap().count(), 1);
    }

    fn a_long_change_is_shown_whole_when_asked_for(world: &Fixture) {
        let steps = json!([
            ["expect", "more lines]"],
            ["expect", "approve? [v/n/?] "],
            ["send", "y"],
            ["expect", "Please press v and see all of it first."],
            ["expect", "approve? [v/n/?] "],
            ["send", "s"],
            ["expect", "Please press v and see all of it first."],
            ["expect", "approve? [v/n/?] "],
            ["send", "v"],
            ["expect", "line 1-23 of "],
            ["send", "q"],
            ["expect", "approve? [v/n/?] "],
            ["send", "y"],
            ["expect", "Please press v and see all of it first."],
            ["expect", "approve? [v/n/?] "],
            ["send", "v"],
            ["expect", "line 1-23 of "],
            ["send", "G"],
            ["expect", "+the-last-line"],
            ["expect", "the end"],
            ["send", "q"],
            ["expect", "approve? [y/n/v/?] "],
            ["send", "y"]
        ]);
        let line = "for i in $(seq 200); do echo line $i; done > .bashrc; echo the-last-line >> .bashrc";
        let (_, shown) = world.play(&steps, &["run", "-c", line]);
        assert!(there(world, ".bashrc"), "{shown}");
    }

    fn a_pipe_comes_back_as_such_and_a_symlink_is_not_offered(world: &Fixture) {
        let line = "echo x > tool; ln -s tool .bashrc";
        let (_, shown) = world.play(&json!([["expect", "restored"]]), &["run", "-c", line]);
        assert!(!shown.contains("approve?"), "{shown}");
        assert!(!there(world, ".bashrc"));
        answer(world, "mkfifo .envrc", "y\r");
        assert!(there(world, ".envrc"));
    }

    fn what_is_too_large_is_not_offered(world: &Fixture) {
        let line = "truncate -s 1T .bashrc";
        let (_, shown) = world.play(&json!([["expect", "restored"]]), &["run", "-c", line]);
        assert!(!shown.contains("approve?"), "{shown}");
        assert!(!there(world, ".bashrc"));
    }

    fn the_outcome_says_what_was_put_back(world: &Fixture) {
        let steps = json!([["expect", "approve? "], ["send", "y"], ["expect", "put_back"]]);
        let (code, _) = world.play(&steps, &["run", "--json", "-c", "echo x > .bashrc"]);
        assert_eq!(code, 0);
        assert!(there(world, ".bashrc"));
    }

    fn what_was_put_back_is_protected_from_the_next_command(world: &Fixture) {
        repository(world);
        answer(world, PLANT, "y\r");
        let change = format!("echo evil > {HOOK}");
        world.shell(&change).output();
        assert_eq!(
            fs::read_to_string(world.workspace().join(HOOK)).unwrap(),
            "#!/bin/sh\necho hi\n"
        );
    }
}

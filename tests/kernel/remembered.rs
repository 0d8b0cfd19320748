//! A yes for the session is a yes to what a command names, as it is: what may be another by the next time is asked about again.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use serde_json::{Value, json};

    use crate::common::{Fixture, in_both_regimes};

    in_both_regimes! {
        what_stays_as_it_is_is_asked_about_once [];
        what_lies_in_a_private_directory_is_asked_about_each_time [];
        what_leads_through_a_process_is_asked_about_each_time [];
        a_link_to_a_directory_that_leads_elsewhere_is_asked_about_again [];
        a_directory_that_an_interpreter_is_given_is_asked_about_each_time [];
        what_a_variable_or_a_document_names_is_part_of_the_yes [];
        what_is_more_than_is_looked_at_is_asked_about_each_time [];
        a_large_file_that_changed_while_the_question_was_open_is_asked_about_again [];
        a_rule_with_a_relative_path_answers_only_from_where_the_session_starts [];
    }

    const RULES: &str = "
  rules:
    - {pattern: cp, approval: none}
    - {pattern: ln, approval: none}
    - {pattern: cd, approval: none}
    - {pattern: env, approval: none}
    - {pattern: ./sdk/tool, approval: none}
    - {pattern: sh sdk/check.sh, approval: none}
    - {pattern: ./sdk/never, allowed: false}
";

    fn prepare(world: &Fixture) {
        world.write("good", "echo good\n");
        world.write("bad", "echo planted\n");
        world.write("x.sh", "echo good\n");
        let text = format!(
            "extends: [system]\nsandbox:\n  protect_fallback: undo\n  paths:\n    w: {{root: {}, mode: rw, execute: true, write_approval: false}}\n\
             shell:\n  default: {{allowed: true, approval: required}}{RULES}",
            world.workspace().display()
        );
        world.write(world.base().join("agent.yaml"), text);
    }

    /// The commands that somebody was asked about among these calls of one session. Whoever is asked says yes, for the session where
    /// that can be said; and does this first.
    fn asked_while(world: &Fixture, calls: &[Value], first: &str) -> Vec<String> {
        let log = world.base().join("asked");
        let _none_yet = fs::remove_file(&log);
        let body = format!(
            "#!/bin/sh\nread -r question\nprintf '%s\\n' \"$question\" >> {}\n{first}\ncase $question in\n\
             *'\"answer\":\"anyone\"'*) echo '{{\"approved\": true, \"remember\": \"session\"}}';;\n\
             *) echo '{{\"approved\": true}}';;\nesac\n",
            log.display()
        );
        let approver = world.program(world.base().join("approver"), body);
        let config = world.base().join("agent.yaml");
        let args = [
            "call",
            "-q",
            "--stream",
            "--config",
            config.to_str().unwrap(),
            "--approver-program",
            approver.to_str().unwrap(),
        ];
        let line = |call: &Value| json!({"call": {"tool": "shell", "args": call}}).to_string() + "\n";
        let calls: String = calls.iter().map(line).collect();
        let run = world.stockade(&args).stdin(calls).output();
        assert!(run.out().contains("\"status\""), "{}{}", run.out(), run.err());
        let questions = fs::read_to_string(&log).unwrap_or_default();
        let command = |line: &str| {
            let question: Value = serde_json::from_str(line).unwrap();
            question["presentation"]["command"]["command"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        questions.lines().map(command).collect()
    }

    fn asked(world: &Fixture, lines: &[&str]) -> Vec<String> {
        let calls: Vec<Value> = lines.iter().map(|line| json!({"command": line})).collect();
        asked_while(world, &calls, ":")
    }

    #[track_caller]
    fn asked_each_time(world: &Fixture, before: &[&str], line: &str) {
        let lines = [before, &[line, line]].concat();
        assert_eq!(asked(world, &lines), [line, line]);
    }

    fn what_stays_as_it_is_is_asked_about_once(world: &Fixture) {
        prepare(world);
        fs::create_dir(world.workspace().join("src")).unwrap();
        for line in [
            "sh x.sh",
            "sh ./src/../x.sh",
            "cd src && sh x.sh; true",
            "ls src",
            "make -C src x=y,z",
            "wc /dev/null x.sh",
            "cat 'a\nb' \"no-such/$(echo)\" x.sh/y 2>&1",
        ] {
            let once: &[&str] = if line.contains('$') { &[line, line] } else { &[line] };
            assert_eq!(asked(world, &[line, line]), once, "{line}");
        }
        // Text that is a program puts names together as it likes.
        for line in [
            "python3 -c 'import os; print(1)'",
            "sed '1esh ?.sh' x.sh",
            "cat x.sh | python3",
            "git -c core.editor='sh ?.sh' status",
            "HOME=src git status",
            "node ./x",
        ] {
            asked_each_time(world, &[], line);
        }
        let again = asked(world, &["sh x.sh", "sh x.sh", "cp bad x.sh", "sh x.sh"]);
        assert_eq!(again, ["sh x.sh", "sh x.sh"]);
    }

    fn what_lies_in_a_private_directory_is_asked_about_each_time(world: &Fixture) {
        prepare(world);
        let links = [
            "ln -s $TMPDIR t",
            "ln -s $HOME h",
            "cp good $TMPDIR/x.sh",
            "cp good $HOME/x.sh",
        ];
        for line in [
            "sh t/x.sh",
            "sh h/x.sh",
            "./t/x.sh",
            "cd t && sh x.sh",
            "sh /tmp/x.sh",
            "sh /dev/shm/x.sh",
        ] {
            asked_each_time(world, &links, line);
            for link in ["t", "h"] {
                let _none_yet = fs::remove_file(world.workspace().join(link));
            }
        }
    }

    fn what_leads_through_a_process_is_asked_about_each_time(world: &Fixture) {
        prepare(world);
        for (link, to) in [
            ("me", "/proc/self/cwd"),
            ("it", "/proc/self/cwd/x.sh"),
            ("in", "/dev/stdin"),
        ] {
            symlink(to, world.workspace().join(link)).unwrap();
        }
        for line in [
            "sh /proc/self/cwd/x.sh",
            "sh me/x.sh",
            "sh it",
            "cd me && sh x.sh",
            "wc in < x.sh",
            "wc /dev/fd/0 < x.sh",
            "sh /proc/thread-self/root/x.sh",
        ] {
            asked_each_time(world, &[], line);
        }
    }

    fn a_link_to_a_directory_that_leads_elsewhere_is_asked_about_again(world: &Fixture) {
        prepare(world);
        for folder in ["one", "other"] {
            fs::create_dir(world.workspace().join(folder)).unwrap();
        }
        for line in ["ls cur", "make -C cur", "make -Ccur", "python3 x.py --in=cur"] {
            let _none_yet = fs::remove_file(world.workspace().join("cur"));
            symlink("/usr/lib", world.workspace().join("cur")).unwrap();
            let lines = [line, line, "ln -sfn /usr/bin cur", line, line, "ln -sfn one cur", line];
            let said = asked(world, &lines);
            assert_eq!(said, [line, line, line], "{line}");
        }
    }

    fn a_directory_that_an_interpreter_is_given_is_asked_about_each_time(world: &Fixture) {
        prepare(world);
        world.write("app/__main__.py", "print('good')\n");
        for line in [
            "python3 app",
            "env python3 -B ./app",
            "node .",
            "ruby -Iapp x.sh",
            "java -cp x:app Main",
        ] {
            asked_each_time(world, &[], line);
        }
        // A yes to what was no directory then does not hold for one that is made since.
        let lines = ["python3 later", "cp -r app later", "python3 later"];
        assert_eq!(asked(world, &lines), ["python3 later", "python3 later"]);
    }

    fn what_a_variable_or_a_document_names_is_part_of_the_yes(world: &Fixture) {
        prepare(world);
        for line in [
            "CC=$PWD/x.sh make",
            "CC=\"$PWD/x.sh\" make",
            "CC=`pwd`/x.sh make",
            "sh -s <<< \"$PWD/x.sh\"",
            "CC='sh x.sh' make",
            "perl <<'E'\ndo './x.sh'\nE\n",
        ] {
            asked_each_time(world, &[], line);
        }
        for line in ["make MAKEFLAGS=-fx.sh", "CI=x.sh make", "sort <<'E'\n./x.sh\nE\n"] {
            let said = asked(world, &["cp good x.sh", line, line, "cp bad x.sh", line]);
            assert_eq!(said, [line, line], "{line}");
        }
    }

    fn what_is_more_than_is_looked_at_is_asked_about_each_time(world: &Fixture) {
        prepare(world);
        for line in [
            format!("/bin/true {}", "a:".repeat(2_000)),
            format!("/bin/true -{}fx.sh", "s".repeat(2_000)),
            format!(
                "/bin/true {}",
                (0..2_000)
                    .map(|number| format!("w{number}"))
                    .collect::<Vec<_>>()
                    .join(" ")
            ),
        ] {
            asked_each_time(world, &[], &line);
        }
        for line in [
            "/bin/true a:b:c:d:e:f:g:h:x.sh",
            "/bin/true -ssssssssssssfx.sh",
            "/bin/true a,x.sh",
            "/bin/true 'a x.sh'",
        ] {
            let said = asked(world, &["cp good x.sh", line, line, "cp bad x.sh", line]);
            assert_eq!(said, [line, line], "{line}");
        }
    }

    fn a_large_file_that_changed_while_the_question_was_open_is_asked_about_again(world: &Fixture) {
        prepare(world);
        let large = |says: &str| format!("echo {says}\nexit\n{}", "#".repeat(17 << 20));
        let file = world.write("big.sh", large("good"));
        let other = world.write("other.sh", large("planted"));
        let (file, other) = (file.display(), other.display());
        world
            .bare("/usr/bin/touch")
            .args(["-d", "@1000", &file.to_string()])
            .output()
            .ok();
        // It is put in its place once, and its time with it.
        let first = format!("[ ! -e {other} ] || {{ cp {other} {file}; rm {other}; touch -d @1000 {file}; }}");
        let calls = [json!({"command": "sh big.sh"})];
        assert_eq!(asked_while(world, &calls, &first), ["sh big.sh", "sh big.sh"]);
    }

    fn a_rule_with_a_relative_path_answers_only_from_where_the_session_starts(world: &Fixture) {
        prepare(world);
        for folder in ["sdk", "ev/sdk"] {
            world.program(format!("{folder}/tool"), "#!/bin/sh\necho ran\n");
            world.write(format!("{folder}/check.sh"), "echo ran\n");
        }
        let here = world.workspace().to_str().unwrap().to_owned();
        let line = |line: &str, directory: &str| json!({"command": line, "directory": directory});
        let free = [
            line("./sdk/tool", "."),
            line("sh sdk/check.sh", "ev/.."),
            line("./sdk/tool", &here),
            json!({"argv": ["./sdk/tool"]}),
        ];
        assert_eq!(asked_while(world, &free, ":"), [""; 0]);
        let elsewhere = [
            line("./sdk/tool", "ev"),
            line("sh sdk/check.sh", "ev"),
            json!({"command": "cd ev && ./sdk/tool"}),
            json!({"command": "env -C ev sh sdk/check.sh"}),
            json!({"argv": ["./sdk/tool"], "directory": "ev"}),
        ];
        assert_eq!(asked_while(world, &elsewhere, ":").len(), elsewhere.len());
        // What a rule forbids is not even asked about.
        let never = [line("./sdk/never", "ev"), json!({"command": "cd ev && ./sdk/never"})];
        assert_eq!(asked_while(world, &never, ":"), [""; 0]);
    }
}

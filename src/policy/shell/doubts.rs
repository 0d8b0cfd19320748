//! Lines that hide a forbidden command, and that no other rule would ask about. Each is not understood; the plain form beside it is.

use super::line_tests::rule;
use super::*;
use crate::policy::{Demand, Requirement};

/// What is demanded where everything is pre-approved but `rm`.
fn requirement(line: &str) -> Requirement {
    let free = rule("", Demand::None);
    judge(line, &[rule("rm", Demand::Deny)], &free, &|_, _| true).requirement
}

fn doubted(lines: &[&str]) {
    let through: Vec<_> = lines
        .iter()
        .filter(|line| requirement(line) == Requirement::PreApproved)
        .collect();
    assert!(through.is_empty(), "{through:#?}");
}

fn free(lines: &[&str]) {
    let refused: Vec<_> = lines
        .iter()
        .filter(|line| requirement(line) != Requirement::PreApproved)
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn builtins_that_evaluate_or_run_an_argument_are_doubted() {
    doubted(&[
        "true & wait -p 'a[$(rm v)]'",
        "true & wait -np 'a[$(rm v)]'",
        "true & wait -n -fp 'a[$(rm v)]'",
        "true & wait -npa[x]",
        "jobs -x rm v",
        "builtin jobs -x rm v",
        "command jobs -lx rm v",
        "jobs $x",
        "y='b[$(rm v)]'; exec {a[y]}>/dev/null",
        "exec {BASH_ENV}>x",
    ]);
    free(&["true & wait", "true & wait -n", "jobs", "jobs -l", "builtin jobs -p"]);
}

#[test]
fn a_document_behind_two_parentheses_is_doubted() {
    doubted(&[
        "((true);true); env <<true rm v\ntrue",
        "((true);true); env <<true rm true\ntrue",
        "((true);true); cat <<true\n$(rm v)\ntrue",
        "((true);true); git <<true push origin\ntrue",
        "((true) ; true); env <<-true rm true\ntrue",
        "((true);true)\nenv 3<<true rm true\ntrue",
        "cat <<E; ((true);true); env <<true rm true\nE\ntrue",
        "((1)); env <<true rm true\ntrue",
    ]);
    free(&[
        "cat <<E\nrm v\nE",
        "cat <<'E'\nrm v\nE",
        "cat <<-E\n\trm v\n\tE\ntrue",
        "cat <<A; cat <<B\n((\nA\nb\nB\n",
        "(true); (true; cat <<E\nx\nE\n)",
    ]);
}

#[test]
fn lines_that_a_shell_joins_or_ends_elsewhere_in_a_document_are_doubted() {
    doubted(&[
        "cat <<E\nfoo \\\nE\ncat <<'F'\nE\nrm\nF\n",
        "cat <<E\nfoo\t\\\nE\ncat <<'F'\nE\nrm\nF\n",
        "cat <<E; cat <(\nrm\nE\ntrue\n)",
        "cat <<E; cat <(true;\nrm\nE\n)",
        "cat <<E | cat <(true\nrm\nE\n)",
        "cat <<E; x=(\nrm\nE\n)",
    ]);
    free(&["cat <<'E'\nfoo \\\nE\ntrue", "cat <<E\nfoo\nE\ntrue", "cat <(true)"]);
}

#[test]
fn two_parentheses_that_touch_are_doubted() {
    doubted(&["((true # )); rm\n);true)", "cat <<'E'; ((\n1)); rm\nE\ntrue);true)"]);
    free(&["(true); (true)"]);
}

#[test]
fn arrays_that_end_elsewhere_to_bash_are_doubted() {
    doubted(&[
        "x=()y rm",
        "x=(a)y rm",
        "x=(a)=b rm",
        "x=([ # ]); rm\n)",
        "x=([); cat <<'E'\n]); rm\nE\n",
        "x+=([ # ]); rm\n)",
        "x=(a\n[ # ]); rm\n)",
        "f=1 x=([ # ]); rm\n)",
    ]);
    free(&["x=(a b)", "x=(a b); true", "x+=(c)"]);
}

#[test]
fn reserved_words_that_are_commands_or_patterns_to_shells_are_doubted() {
    doubted(&[
        "if true; then <<E else case y in\nx\nE\n(rm|cat)\n<<F esac\nx\nF\nfi",
        "if true; then x=(a) else case y in\n(rm|cat)\nz=(a) esac\nfi",
        "if true; then < <(true) else case y in\n(rm|cat)\n< <(true) esac\nfi",
        "(case x in esac | rm )\ntrue;; esac\n)",
        "( case x in a) true;; esac | rm )\ntrue;; esac\n)",
        "if true; then { true; } &>f else case y in\n(rm|cat)\n{ true; } &>f esac\nfi",
        "if true; then { true; } &>>f else case y in\n(rm|cat)\n{ true; } &>>f esac\nfi",
        "dash -c 'if true; then { true; } &>f else case y in\n(rm|cat)\n{ true; } &>f esac\nfi'",
        "dash -c 'time case y in\n(rm|cat)\nesac'",
        "time case y in\n(rm|cat)\nesac",
    ]);
    free(&[
        "if true; then true; else true; fi",
        "case x in a) true;; esac",
        "time true",
        "if true; then { true; } >f; else true; fi",
        "{ true; } &>/dev/null",
        "true &>/dev/null || true",
    ]);
}

#[test]
fn time_behind_a_reserved_word_hides_no_command() {
    doubted(&[
        "! time ! rm v",
        "! time FOO=1 rm v",
        "time time FOO=1 rm v",
        "time time ! rm v",
        "! time -- FOO=1 rm v",
        "! time -p FOO=1 rm v",
        "time time time FOO=1 rm v",
        "! time x[1]=y rm v",
        "! time { rm v; }",
        "! time time ! rm v",
        "! time -p if true",
        "! ! rm v",
        "time ! rm v",
        "! time rm v",
        "if ! time ! rm v; then true; fi",
        "while time time A=1 rm v; do true; done",
    ]);
    free(&["! time true", "! true", "time true", "time -p true", "env time true"]);
}

#[test]
fn numbers_that_are_words_to_a_posix_sh_are_doubted() {
    doubted(&[
        "timeout 12>/dev/null rm true",
        "nice -n 12>&1 rm true",
        "env -u 12>&1 rm true",
    ]);
    free(&["true 2>&1", "true 2>/dev/null"]);
}

#[test]
fn arithmetic_that_is_a_substitution_is_doubted() {
    doubted(&[
        "echo $((1/*) )",
        "echo $((1/*)|1)",
        "cat <<E\n$((1/*)|1)\nE",
        "echo \"${x:-$((1/*)|1)}\"",
        "echo $(( 1/* ) )",
    ]);
    free(&["echo $((1+1))", "echo $(( (1+2)*3 ))"]);
}

#[test]
fn commands_that_xargs_and_find_make_up_are_doubted() {
    doubted(&[
        "echo rm | xargs -I X env X v",
        "echo rm | xargs -I X sh -c X",
        "echo 'env rm' | xargs -I X bash -c X",
        "xargs -IX timeout 5 X",
        "xargs --replace env {}",
        "xargs --replace=Q env Q",
        "xargs -i env {}",
        "find . -maxdepth 0 -name -exec -o -exec rm v \\;",
        "find . -maxdepth 0 ! -name -exec -exec rm v \\;",
        "find . -maxdepth 0 -path -exec , -exec rm \\;",
    ]);
    free(&["xargs -I {} cp {} x", "find . -exec cat {} \\; -exec true \\;"]);
}

#[test]
fn scripts_and_programs_named_by_a_descriptor_are_doubted() {
    doubted(&[
        "echo 'rm v' | bash /dev/stdin",
        "echo 'rm v' | bash /tmp/../dev/stdin",
        "bash /dev/fd/3 3<<<'rm v'",
        "echo 'rm v' | sh /proc/self/fd/0",
        "echo 'rm v' | sh //dev/./fd/0",
        "cd /dev; bash stdin",
        "cd /dev/fd; bash 3 3<<<'rm v'",
        "cd /proc/self; ./exe -c 'rm v'",
        "/proc/self/exe -c 'rm v'",
        "exec 3< /bin/rm; /dev/fd/3 v",
        "bash /dev/tty",
        "busybox sh /dev/stdin",
        "for i in 1 2; do bash 0; cd /dev/fd; done <<< 'rm v'",
        "echo 'rm v' | find /dev/fd/ -maxdepth 1 -name 0 -execdir bash 0 \\;",
        "echo 'rm v' | find /dev/fd/ -maxdepth 1 -name 0 -execdir ./0 \\;",
    ]);
    free(&[
        "bash build.sh",
        "bash dev/setup.sh",
        "cd x; bash 3.sh",
        "cat /dev/stdin",
        "tty",
        "find . -exec cat {} \\; > x",
    ]);
}

#[test]
fn variables_that_shells_act_upon_are_doubted_however_they_are_set() {
    doubted(&[
        "PS4='$(rm v)'; set -x; true",
        "PS4+='$(rm v)'; set -x; true",
        "PS4='$(rm v)' bash -xc true",
        "RANDOM='a[$(rm v)]'; true",
        "OPTIND='a[$(rm v)]'; true",
        "HISTCMD='a[$(rm v)]'; true",
        "SECONDS='a[$(rm v)]'; true",
        "RANDOM=(x)",
        "for RANDOM in 'a[$(rm v)]'; do true; done",
        "for SECONDS in 'a[$(rm v)]'; do true; done",
        "echo ${PS4:=x}",
        "echo ${BASH_ENV=x}",
        "env 'BASH_FUNC_true%%=() { rm v; }' bash -c true",
        "env BASH_ENV=x bash -c true",
        "env \"P\"S4=x bash -xc true",
        "env a=b ENV=x sh -c true",
        "env 'a b=c' true",
        "sudo PATH=. true",
        "LD_PRELOAD=./x true",
        "PATH=.:$PATH true",
        "IFS=x",
        "GLOBIGNORE=x",
        "POSIXLY_CORRECT=1",
        "COMP_WORDBREAKS=x",
        "SHELLOPTS=xtrace bash -c true",
        "LC_ALL=zh_CN.GBK true",
        "LC_CTYPE=$x true",
        "printf -v PS4 x",
        "read PS4",
        "export PS4",
        "mapfile PS4",
        "getopts a PS4",
    ]);
    free(&[
        "RUST_LOG=debug cargo test",
        "x=1; y=$x",
        "x=(a b)",
        "for i in a b; do true; done",
        "echo ${x:=y}",
        "env A=b true",
        "LC_ALL=C sort x",
        "LANG=de_DE.UTF-8 sort x",
        "HOME=/tmp true",
    ]);
}

#[test]
fn options_that_change_what_a_shell_reads_are_doubted() {
    doubted(&[
        "bash -o keyword -c 'nice A=1 rm v'",
        "echo 'rm v' | sh -o stdin -c true",
        "echo 'rm v' | dash -o stdin x",
        "bash -o posix -c true",
        "bash -e -o keyword -c 'env true'",
        "env bash -o keyword -c true",
        "bash -euo keyword -c true",
        "bash -co keyword 'nice A=1 rm v'",
    ]);
    free(&[
        "bash -o pipefail -c true",
        "bash -e -o pipefail -c true",
        "bash -euc true",
        "bash -euo pipefail -c true",
        "bash -ceuo pipefail true",
        "bash -o errexit -o nounset -c true",
    ]);
}

#[test]
fn a_value_that_may_be_several_words_hides_no_command_behind_a_wrapper() {
    doubted(&[
        "x='5 rm'; timeout $x v",
        "x='5 rm'; nice -n $x v",
        "x='1 rm'; env A=$x v",
        "x='errexit -c rm'; bash -o $x v",
        "xargs --replace rm v",
        "xargs --max-lines rm v",
    ]);
    free(&[
        "timeout 5 true",
        "nice -n 5 true",
        "env A=b true",
        "xargs --max-lines=1 cat",
        "xargs --replace cat",
    ]);
}

#[test]
fn what_runs_a_command_in_a_way_that_is_not_followed_is_doubted() {
    let programs = "x86_64 i386 linux32 linux64 setarch ld.so ld-linux-x86-64.so.2 sg newgrp runcon pipesz enosys choom \
                    unshare nsenter chroot setpriv flock taskset chrt script watch parallel entr fakeroot unbuffer \
                    expect dbus-run-session systemd-run at batch crontab ssh su pkexec zsh hush";
    for program in programs.split_whitespace() {
        doubted(&[
            &format!("{program} rm v"),
            &format!("/usr/bin/{program} rm v"),
            &format!("env {program} rm v"),
        ]);
    }
    // These are followed.
    for program in ["setsid", "ionice", "stdbuf", "nohup", "busybox", "toybox"] {
        assert_eq!(
            requirement(&format!("{program} rm v")),
            Requirement::Blocked,
            "{program}"
        );
        free(&[&format!("{program} true")]);
    }
}

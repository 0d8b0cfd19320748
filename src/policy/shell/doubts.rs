//! Lines that hide a forbidden command where nothing else asks: each is a doubt, beside a twin that is none.

use super::sentences::rule;
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
    let asked: Vec<_> = lines
        .iter()
        .filter(|line| requirement(line) != Requirement::PreApproved)
        .collect();
    assert!(asked.is_empty(), "{asked:#?}");
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
    for program in ["setsid", "ionice", "stdbuf", "nohup", "doas", "busybox", "toybox"] {
        assert_eq!(
            requirement(&format!("{program} rm v")),
            Requirement::Blocked,
            "{program}"
        );
        free(&[&format!("{program} true")]);
    }
}

//! What only steers the shell needs no rule, and nothing rides along with it.

use super::line_tests::rule;
use super::*;
use crate::policy::{Demand, HostList, Network, Origin, OwnNetwork, Requirement, ShellRule};
use Requirement::{Blocked, NeedsApproval, PreApproved};

/// `echo` and `ls` are free, `git push` is forbidden, the rest is asked about.
fn judged(line: &str) -> Judgement {
    let rules = [
        rule("echo", Demand::None),
        rule("ls", Demand::None),
        rule("git push", Demand::Deny),
    ];
    judge(line, &rules, &rule("", Demand::Required), &|_, _| true)
}

fn all(expected: Requirement, lines: &[&str]) {
    let judged = lines.iter().map(|line| (line, judged(line)));
    let wrong: Vec<_> = judged
        .filter(|(_, judgement)| judgement.requirement != expected)
        .collect();
    assert!(wrong.is_empty(), "expected {expected}: {wrong:#?}");
}

#[test]
fn builtins_and_loops_that_only_steer_the_shell_need_no_rule() {
    all(
        PreApproved,
        &[
            "cd sub",
            "cd sub && ls",
            "cd \"$HOME\"; ls",
            "\\cd sub",
            "(cd sub; ls)",
            "exit 1",
            "exit $?",
            "exit",
            "ls || exit \"$?\"",
            "true",
            "false || :",
            ": a b",
            "pwd -P",
            "wait",
            "ls & wait",
            "set -e; ls",
            "set -euo pipefail",
            "test -f x",
            "test 1 -eq -1",
            "[ -f x ] && echo y",
            "[ -n \"$CI\" ] || echo y",
            "[ \"$x\" = y ]",
            "[ ! \"$x\" != \"$y\" ]",
            "[ ! -e \"${x:-y}\" ]",
            "[ \"$x\" ]",
            "if [ -d sub ]; then cd sub; fi",
            "for i in 1 2; do echo $i; done",
            "for file in a b; do [ -f \"$file\" ] && ls \"$file\"; done",
            "for i in 1 2; do for k in 3; do echo $i $k; continue 2; done; done",
            "while true; do echo; break; done",
            "shift 2; echo $1",
            "export CI=1; ls",
            "export NO_COLOR=1 LC_ALL=C.UTF-8",
            "CI=1 ls",
            "RUST_LOG=a=debug ls",
            "TZ=UTC; ls",
            ": <<'E'\nrm x\nE\nls",
            "ls 2>&1 >/dev/null",
            "ls 2>&1 >/dev/null 2>&1",
            "ls &>/dev/null",
            "ls &>>/dev/null",
            "cd sub 2>/dev/null || exit 1",
            "{ cd sub; ls; } >/dev/null 2>&1",
            "echo \"$(cd sub; pwd)\"",
        ],
    );
}

#[test]
fn nothing_rides_along_with_what_steers_the_shell() {
    all(
        NeedsApproval,
        &[
            // Other commands, and programs of these names.
            "cd sub; make",
            "cd $(make)",
            "exit $(make)",
            "for i in $(make); do echo; done",
            "for i in 1; do make; done",
            "[ \"$(make)\" = x ]",
            "env cd sub",
            "command test -f x",
            "nice true",
            "xargs true",
            "find . -exec true ;",
            "time cd sub",
            "./cd sub",
            "/bin/true",
            "./test -f x",
            "chdir sub",
            "pushd sub",
            "dirs",
            "umask 0",
            // Files that a redirection writes or reads.
            ": > file",
            "true >> file",
            "cd sub > file",
            "true &> file",
            ": < /dev/tcp/127.0.0.1/80",
            "{ :; } < /dev/tcp/127.0.0.1/80",
            "for i in 1; do echo; done > file",
            "ls 2>&1 >/dev/nullx",
            "ls &>/dev/./null",
            "ls 2>&1>/dev/null",
            "> /dev/null",
            "",
            "# cd sub",
        ],
    );
    all(
        Blocked,
        &[
            "cd sub; git push",
            "for i in 1; do git push; done",
            "cd $(git push)",
            "[ \"$(git push)\" ]",
            "export CI=1; git push",
        ],
    );
}

#[test]
fn what_steers_more_than_the_shell_is_asked_about() {
    all(
        NeedsApproval,
        &[
            // Variables that do more than to hold a text.
            "for PATH in .; do ls; done",
            "for IFS in x; do ls; done",
            "for LD_PRELOAD in ./x.so; do ls; done",
            "for BASH_ENV in x; do ls; done",
            "for CC in ./cc; do ls; done",
            "for http_proxy in x; do ls; done",
            "for histchars in x; do ls; done",
            "for i in 1 $x; do ls; done",
            "for i; do ls; done",
            "for i in a; do $i; done",
            "for i in a; do $i x; done",
            "for i in a; do eval $i; done",
            "for i in 'a[$(make)]'; do [ $i -eq 0 ]; done",
            "for i in '-v a[$(make)]'; do test $i; done",
            "for i in 1; do export $i; done",
            "i=1; ls",
            "PATH=.; ls",
            "NODE_ENV=x ls",
            "CI=$x ls",
            "TZ=/etc/passwd ls",
            "LANG=../x.UTF-8 ls",
            "RUSTFLAGS=x ls",
            "export PATH=.",
            "export PATH",
            "export CI=1 PATH=.",
            "export LD_PRELOAD=x",
            "export BASH_ENV=x",
            "export CI=$x",
            "export $x",
            "export -n CI",
            "export -f ls",
            "export",
            "export LC_ALL=zh_CN.GBK",
            // Subscripts are evaluated.
            "test -v 'a[$(make)]'",
            "[ -v 'a[$(make)]' ]",
            "[ -R 'a[$(make)]' ]",
            "[ 'a[$(make)]' -eq 0 ]",
            "[ 0 -lt 'a[$(make)]' ]",
            "[ x -eq 0 ]",
            "[ \"$x\" -eq 0 ]",
            "[ $x ]",
            "[ -n $x ]",
            "[ \"$x\" \"$y\" ]",
            "[ \"$x\" y ]",
            "[ \"$@\" ]",
            "[ x = \"${y[@]}\" ]",
            "[ a -a \"$x\" b ]",
            "test \"$x\" \"$y\" z",
            "wait -p 'a[$(make)]'",
            "exit 'a[$(make)]'",
            "exit $x",
            "shift $x",
            "break x",
            "return 1 2",
            // What changes how later words are read.
            "set -o posix",
            "set -a",
            "set -- make",
            "set +B",
            "set $x",
            "alias ls=make; ls",
            "ls() { make; }; ls",
            "cd() { make; }; cd",
            "function true { make; }; true",
            "trap make EXIT; exit",
            "enable -n test; test x",
            "unset x",
            "true; eval make",
        ],
    );
}

#[test]
fn a_rule_speaks_for_a_builtin_before_anything_else() {
    let of =
        |line: &str, rules: &[ShellRule]| judge(line, rules, &rule("", Demand::Required), &|_, _| true).requirement;
    assert_eq!(of("cd sub", &[rule("cd", Demand::Deny)]), Blocked);
    assert_eq!(of("cd sub", &[rule("cd", Demand::Required)]), NeedsApproval);
    assert_eq!(of("test -f x", &[rule("test -f", Demand::Required)]), NeedsApproval);
    assert_eq!(of("cd $x", &[rule("cd sub", Demand::Deny)]), NeedsApproval);
    assert_eq!(of("cd $x", &[rule("cd sub", Demand::Required)]), NeedsApproval);
    // Where no command is allowed that no rule names, these are none.
    let nothing = rule("", Demand::Deny);
    let of = |line| judge(line, &[rule("ls", Demand::None)], &nothing, &|_, _| true).requirement;
    assert_eq!((of("cd sub; ls"), of("cd sub; make")), (PreApproved, Blocked));
}

#[test]
fn a_builtin_takes_no_network_from_a_line_and_gives_none() {
    let own = ShellRule {
        network: Some(OwnNetwork {
            network: Network::Full,
            origin: Origin::Builtin("test"),
        }),
        ..rule("curl", Demand::None)
    };
    let reach = |line: &str| {
        let judged = judge(
            line,
            std::slice::from_ref(&own),
            &rule("", Demand::Required),
            &|_, _| true,
        );
        judged.network.override_of(&Network::hosts(HostList::default()))
    };
    assert_eq!(reach("cd sub; CI=1 curl x"), Some(Network::Full));
    assert_eq!(reach("cd sub"), None);
    assert_eq!(reach("{ cd sub; curl x; } < in"), Some(Network::Full));
    for line in [
        "cd sub; make; curl x",
        "{ :; } < /dev/tcp/a.example/80; curl x",
        "{ :; } < \"$x\"; curl x",
        ": < /dev/tcp/a.example/80; curl x",
        "PATH=. curl x",
    ] {
        assert_ne!(reach(line), Some(Network::Full), "{line}");
    }
}

#[test]
fn after_a_builtin_that_leaves_the_directory_relative_paths_of_rules_answer_for_nothing() {
    let within = ShellRule {
        sandbox_paths: Some(vec!["src".to_owned()]),
        ..rule("touch", Demand::None)
    };
    let rules = [within, rule("./check", Demand::None), rule("sh ci.sh", Demand::None)];
    let of = |line: &str| judge(line, &rules, &rule("", Demand::Required), &|_, _| true).requirement;
    for line in ["touch x", "./check", "sh ci.sh"] {
        assert_eq!(of(line), PreApproved, "{line}");
        for before in ["cd sub", "cd sub || true", "true && (cd sub)", "echo $(cd x)", "cd ."] {
            assert_eq!(of(&format!("{before}; {line}")), NeedsApproval, "{before}; {line}");
        }
    }
}

#[test]
fn an_example_is_covered_with_what_needs_no_rule_beside_it() {
    let status = rule("git status", Demand::None);
    assert!(rule_covers(&status, "cd sub && CI=1 git status"));
    assert!(!rule_covers(&status, "cd sub"));
    assert!(!rule_covers(&status, "cd sub && git status > x"));
    assert!(!rule_matches(&status, "cd sub"));
}

#[test]
fn what_a_rule_forbids_is_blocked_in_the_line_that_any_shell_is_given() {
    let shells = "sh bash dash ash zsh ksh mksh fish csh tcsh yash rbash posh";
    for shell in shells.split_whitespace() {
        for line in [
            format!("{shell} -c 'git push'"),
            format!("/usr/bin/{shell} -c 'ls; git push'"),
            format!("{shell} -lc 'git push'"),
            format!("{shell} -l -c 'git push origin'"),
            format!("{shell} -ic 'git push'"),
            format!("{shell} -o x -c 'git push'"),
            format!("{shell} -c -o x 'git push'"),
            format!("env {shell} -c 'git push'"),
            format!("env -i A=b {shell} -lc 'git push'"),
            format!("sudo -u x {shell} -c 'git push'"),
            format!("nice {shell} -c 'nice {shell} -c \"git push\"'"),
            format!("echo | xargs {shell} -c 'git push'"),
            format!("find . -exec {shell} -c 'git push' \\;"),
            format!("cd x && {shell} -c \"git push\""),
        ] {
            assert_eq!(judged(&line).requirement, Blocked, "{line}");
        }
    }
    all(
        Blocked,
        &[
            "su -c 'git push'",
            "su x -c 'git push'",
            "su --command='git push' x",
            "su --command 'git push'",
            "runuser -u x -c 'git push'",
            "script -qc 'git push' f",
            "flock f -c 'git push'",
            "fish --command 'git push'",
            "pwsh -NoProfile -Command 'git push'",
            "zsh -c 'zsh -c \"git push\"'",
            "bash -c \"$x\" || zsh -c 'git push'",
        ],
    );
    all(
        NeedsApproval,
        &[
            "zsh -c 'ls'",
            "zsh -c 'echo git push'",
            "zsh -c ls 'git push'",
            "bash -lc ls",
            "zsh push.sh",
            "zsh -c \"$x\"",
            "su -c 'ls'",
        ],
    );
}

//! Sentences and what they are judged to be.

use std::os::unix::ffi::OsStrExt as _;

use super::laws::spent;
use super::*;
use crate::policy::{Demand, Destination, HostList, HostRule, Network, Origin, OwnNetwork, Requirement, ShellRule};
use Requirement::{Blocked, NeedsApproval, PreApproved};

pub(super) fn rule(pattern: &str, demand: Demand) -> ShellRule {
    let words = pattern.split_whitespace().map(str::to_owned).collect();
    let plain = ShellRule::plain(words, demand, Origin::Builtin("test"));
    ShellRule {
        approval: demand.min(Demand::Required),
        ..plain
    }
}

fn within(pattern: &str, demand: Demand, roots: &[&str]) -> ShellRule {
    ShellRule {
        sandbox_paths: Some(roots.iter().map(|&r| r.to_owned()).collect()),
        ..rule(pattern, demand)
    }
}

/// `git status`, `echo`, `cat`, `wrappers` are pre-approved; `rm` and `git push` are forbidden.
pub(super) fn rules() -> Vec<ShellRule> {
    let free = [
        "git status",
        "echo",
        "cat",
        "env",
        "nice",
        "xargs",
        "find",
        "timeout",
        "command",
        "exec",
        "sh",
        "bash",
        "busybox",
        "sudo",
        "git",
        "time",
        "nohup",
        "cd",
        "printf",
        "test",
        "[",
        "true",
        "tee",
        "su",
        "eval",
        "set",
    ];
    let mut rules: Vec<ShellRule> = free.iter().map(|pattern| rule(pattern, Demand::None)).collect();
    rules.push(rule("rm", Demand::Deny));
    rules.push(rule("git push", Demand::Deny));
    rules
}

pub(super) fn ask() -> ShellRule {
    rule("", Demand::Required)
}

/// Roots by name: a path lies in `cache` when it starts with `cache`.
pub(super) fn roots(path: &str, names: &[String]) -> bool {
    names.iter().any(|name| path.starts_with(name.as_str()))
}

fn judged(line: &str) -> Judgement {
    judge(line, &rules(), &ask(), &roots)
}

fn all(expected: Requirement, lines: &[&str]) {
    let judged = lines.iter().map(|line| (line, judged(line)));
    let wrong: Vec<_> = judged
        .filter(|(_, judgement)| judgement.requirement != expected)
        .collect();
    assert!(wrong.is_empty(), "expected {expected}: {wrong:#?}");
}

#[test]
fn what_the_rules_allow_is_pre_approved() {
    all(
        PreApproved,
        &[
            "git status",
            "git status -s",
            "git  status",
            "'git' \"status\"",
            "gi\\t status",
            "echo a && echo b",
            "echo a | cat",
            "echo a; echo b &",
            "(echo a)",
            "{ echo a; }",
            "if echo a; then cat b; else cat c; fi",
            "while echo a; do cat b; done",
            "until echo a; do cat b; done",
            "case x in a) echo;; esac",
            "echo \"$(git status)\"",
            "echo `git status`",
            "cat <(git status)",
            "echo $x ${x} ${x:-$(echo a)} $((1 + 2))",
            "cat <<E\n$(git status)\nE",
            "cat <<'E'\n$(rm x)\nE",
            "echo 'rm x' \"rm x\"",
            "echo rm",
            "echo a 2>&1",
            "echo a > /dev/null",
            "echo a >/dev/null 2>&1",
            "cat < a",
            "cat <<< a",
            "echo a # rm x",
            "env git status",
            "nice -n 5 git status",
            "nice -5 git status",
            "timeout -k 5 10 git status",
            "find . -exec cat {} \\;",
            "xargs -0 -n 1 cat",
            "sh -c 'git status'",
            "bash -ec \"git status; echo\"",
            "exec git status",
            "command -v rm",
            "time git status",
            "! git status",
            "echo *.rs {a,b} ~ ",
            "echo a \\\n b",
            "set -euo pipefail; git status",
            "[ -f x ] && echo y",
            "bash -e build.sh x",
            "echo 'x$' \"x$\"",
            "echo a=b HEAD~1",
        ],
    );
}

#[test]
fn a_forbidden_command_blocks_the_line_wherever_it_stands() {
    all(
        Blocked,
        &[
            "rm x",
            "rm",
            "git status; rm x",
            "git status && rm x",
            "git status || rm x",
            "git status | rm x",
            "git status & rm x",
            "git status\nrm x",
            "(rm x)",
            "{ rm x; }",
            "( (rm x) )",
            "((rm x))",
            "( (echo) ; (rm x) )",
            "if rm x; then echo; fi",
            "if echo; then rm x; fi",
            "if echo; then echo; else rm x; fi",
            "if echo; then echo; elif rm; then echo; fi",
            "while rm; do echo; done",
            "until echo; do rm; done",
            "for i in a; do rm $i; done",
            "for i in $(rm x); do echo; done",
            "case $(rm x) in a) echo;; esac",
            "case x in $(rm x)) echo;; esac",
            "case x in a) rm;; esac",
            "echo $(rm x)",
            "echo \"$(rm x)\"",
            "echo `rm x`",
            "echo \"`rm x`\"",
            "echo ${x:-$(rm x)}",
            "echo \"${x:-$(rm x)}\"",
            "echo $(echo $(rm x))",
            "echo $(echo \"$(rm)\")",
            "echo $(echo \"${x}\"; rm)",
            "echo $(echo ${x:-a)}; rm)",
            "echo $(echo \")\"; rm)",
            "echo $(echo ')'; rm)",
            "echo $(echo \\); rm)",
            "cat <(rm x)",
            "echo > >(rm x)",
            "cat <<E\n$(rm x)\nE",
            "cat <<E\n`rm x`\nE",
            "cat <<< $(rm x)",
            "x=$(rm x)",
            "x=$(rm x) git status",
            "x=(a $(rm x))",
            "echo > $(rm x)",
            "echo a > b$(rm x)",
            "{ echo; } > $(rm x)",
            "f() { rm x; }",
            "[[ $(rm x) ]]",
            "! rm x",
            "time rm x",
        ],
    );
}

#[test]
fn a_forbidden_command_blocks_however_it_is_spelled_and_wrapped() {
    all(
        Blocked,
        &[
            "/bin/rm x",
            "./rm x",
            "//bin//rm x",
            "\\rm x",
            "\"rm\" x",
            "r''m x",
            "'r'\"m\" x",
            "r\\m x",
            "command rm x",
            "command -p rm x",
            "env rm x",
            "env -i A=b rm x",
            "env -u A -- rm x",
            "/usr/bin/env rm",
            "nice rm x",
            "nohup rm x",
            "timeout 5 rm x",
            "timeout -s KILL 5 rm x",
            "sudo -u root rm x",
            "sudo A=b rm x",
            "exec rm x",
            "exec -a git rm x",
            "builtin rm x",
            "busybox rm x",
            "xargs rm",
            "xargs -I{} rm {}",
            "xargs -n1 -P 4 rm",
            "find . -exec rm {} \\;",
            "find . -execdir rm {} +",
            "find . -exec cat {} \\; -exec rm {} +",
            "sh -c 'rm x'",
            "bash -c \"rm x\"",
            "bash -ec 'git status; rm x'",
            "/bin/sh -c 'rm x'",
            "env nice sh -c 'exec rm x'",
            "sh -c 'sh -c \"rm x\"'",
            "git push",
            "git push origin main",
            "git status; git push",
            "rm $x",
            "rm *",
            "eval x; rm y",
            "> out rm x",
            "2>&1 rm x",
            "<in rm x",
            "A=b rm x",
            "echo a \\\n | rm",
            "su -c 'rm x'",
            "setsid -f rm x",
            "stdbuf -oL rm x",
            "toybox rm",
            "sh rm",
            "bash -e ./bin/rm x",
        ],
    );
}

#[test]
fn what_is_not_understood_needs_approval() {
    let lines = [
        "eval 'rm x'",
        "eval git status",
        "$x",
        "$x git status",
        "`echo rm` x",
        "$(echo rm) x",
        "r* x",
        "/bin/r? x",
        "{rm,x}",
        "~/rm",
        "\"$x\" y",
        "git $x",
        "git $(echo push)",
        "git -C . push",
        "git {push,x}",
        ". ./x",
        "source x",
        "trap 'rm x' EXIT; git status",
        "alias git=rm; git status",
        "git() { echo; }; git status",
        "function git { echo; }",
        "[[ a ]]",
        "((1))",
        "for ((;;)); do echo; done",
        "echo $((a[0]))",
        "echo $((x))",
        "echo $[1]",
        "echo $'a'",
        "echo $\"a\"",
        "echo ${!x}",
        "echo ${x@P}",
        "echo ${x[0]}",
        "echo ${x//a/b}",
        "a[0]=1",
        "env -S 'rm x'",
        "env --unknown rm",
        "xargs $x",
        "xargs sh -c",
        "sh",
        "sh -s",
        "echo rm | sh",
        "sh -c $x",
        "sh -c \"$x\"",
        "bash -ic 'x'",
        "bash $x",
        "zsh -c 'git status'",
        "su -c 'ls x'",
        "git status '",
        "git status &&",
        "if",
        "echo $(",
        "echo a)b",
        "printf -v 'a[$(x)]' b",
        "test -v x",
        "read x",
        "export PATH=/tmp",
        "unset x",
        "set -a",
        "sudo -i",
        "sudo -s rm",
        "a[$x]=1",
        "echo ${x:-<(rm)}",
        "echo ${x%>(rm)}",
        "if echo; then echo; x= fi; fi",
        "echo > ( rm )",
        ">&-rm",
        "echo <&-'rm'",
        "echo > 1>&2",
        "time &",
        "! &",
        "echo $(cat <<E\na\nE\n)",
        "echo &> out rm",
        "&> out echo",
        "ls a[$(x)]",
        "echo \u{a0} a",
        "echo a\r",
        "echo \0",
        "timeout 5",
        "echo $(case x in a) echo;; esac)",
        "g\\\nit status",
        "cat <<\"a b\"\nx\na b",
        "time -o x git status",
        "99999999999>x",
        "echo 99999999999>x",
        "find $x",
        "find . -exec $x \\;",
        "xargs -I{} $x {}",
        "command $x",
        "export x",
        "coproc git status",
        "select x in a; do echo; done",
    ];
    all(NeedsApproval, &lines);
    let understood: Vec<_> = lines
        .iter()
        .filter(|line| judged(line).not_understood.is_none())
        .collect();
    assert!(understood.is_empty(), "{understood:#?}");
}

#[test]
fn what_no_rule_names_is_left_to_the_default() {
    all(
        NeedsApproval,
        &[
            "make",
            "./git status",
            "git status; make",
            "echo $(make)",
            "env make",
            "PATH=/tmp git status",
            "LD_PRELOAD=x git status",
            "x=1",
            "echo a > file",
            "echo a >> file",
            "echo a >| file",
            "echo a &> file",
            "echo <> file",
            "> file",
            "{ echo; } > file",
            "(echo) > file",
            "for i in a $x; do echo; done",
            "env A=b git status",
            "echo ${x:=y}",
            "/usr/bin/cat x",
            "",
            "# only a comment",
            "./echo",
        ],
    );
    let forbid = rule("", Demand::Deny);
    assert_eq!(judge("make", &rules(), &forbid, &roots).requirement, Blocked);
    assert_eq!(judge("eval x", &rules(), &forbid, &roots).requirement, Blocked);
    assert_eq!(judge("git status", &rules(), &forbid, &roots).requirement, PreApproved);
}

#[test]
fn without_rules_a_default_that_asks_nothing_pre_approves_even_what_is_not_understood() {
    let free = rule("", Demand::None);
    for line in ["eval x", "'", "echo a > b", "make"] {
        assert_eq!(judge(line, &[], &free, &roots).requirement, PreApproved);
    }
    let one = [rule("rm", Demand::Deny)];
    assert_eq!(judge("eval x", &one, &free, &roots).requirement, NeedsApproval);
    assert_eq!(judge("make", &one, &free, &roots).requirement, PreApproved);
}

#[test]
fn the_first_matching_rule_decides_and_a_forbidding_one_wins_from_anywhere() {
    let rules = [
        rule("git push", Demand::Required),
        rule("git", Demand::None),
        rule("git gc", Demand::Deny),
    ];
    let of = |line| judge(line, &rules, &ask(), &roots);
    assert_eq!(of("git push").parts[0].rule, RuleRef::Rule(0));
    assert_eq!(of("git log").requirement, PreApproved);
    assert_eq!(of("git gc").requirement, Blocked);
    assert_eq!(of("git -C x push").requirement, NeedsApproval);
    assert_eq!(of("git $x").requirement, NeedsApproval);
}

#[test]
fn sandbox_paths_are_a_condition_and_a_narrowing() {
    let rules = [within("pytest", Demand::None, &["cache"])];
    let of = |line| judge(line, &rules, &ask(), &roots);
    for line in [
        "pytest",
        "pytest cache/a",
        "pytest --out=cache/x",
        "pytest -q cache/a > cache/log",
        "pytest < cache/in",
    ] {
        assert_eq!(of(line).requirement, PreApproved, "{line}");
        assert_eq!(of(line).narrow, Some(vec!["cache".to_owned()]), "{line}");
    }
    for line in [
        "pytest src",
        "pytest --out=src/x",
        "pytest cache/a src/b",
        "pytest $x",
        "pytest cache/* src",
        "pytest cache/*",
        "pytest > src/x",
        "pytest < src/x",
        "pytest -o../src/x",
        "pytest -- -cache",
        "pytest of=/etc/x",
        "cd x; pytest cache/a",
        "pytest > $x",
    ] {
        assert_eq!(of(line).requirement, NeedsApproval, "{line}");
    }
}

#[test]
fn a_line_reaches_what_each_command_in_it_may_reach() {
    let hosts = |text: &str| Network::hosts(HostList::new([host(text)]));
    let own = |pattern: &str, network: Network| ShellRule {
        network: Some(OwnNetwork {
            network,
            origin: Origin::Builtin("a test"),
        }),
        ..rule(pattern, Demand::None)
    };
    let rules = [
        own("npm ci", hosts("*.npmjs.org:443")),
        own("npm", hosts("registry.npmjs.org:443")),
        own("ls", Network::Off),
        own("curl", Network::Full),
        rule("cat", Demand::None),
    ];
    let all = hosts("a.example:443");
    let of = |line: &str| {
        let network = judge(line, &rules, &ask(), &roots).network.override_of(&all);
        network.unwrap_or_else(|| all.clone()).to_string()
    };
    for (line, reached) in [
        // The first rule that matches says it, in both directions.
        ("npm ci", "*.npmjs.org:443"),
        ("npm install", "registry.npmjs.org:443"),
        ("curl x", "full"),
        ("ls", "off"),
        // One sandbox for the whole line.
        ("npm ci; npm run", "registry.npmjs.org:443"),
        ("curl x | npm ci", "*.npmjs.org:443"),
        ("curl x && ls", "off"),
        ("echo $(curl x)", "a.example:443"),
        ("curl x | cat", "a.example:443"),
        ("npm ci | cat", "off"),
        ("curl x; true", "full"),
        ("curl x; make", "a.example:443"),
        // What no rule speaks for.
        ("cat x", "a.example:443"),
        ("make", "a.example:443"),
        ("A=1 curl x", "a.example:443"),
        ("env curl x", "a.example:443"),
        ("eval x; curl y", "a.example:443"),
        // What only may match takes away as if it did.
        ("npm -g ci", "registry.npmjs.org:443"),
        ("$x; curl x", "off"),
    ] {
        assert_eq!(of(line), reached, "{line}");
    }
}

fn host(text: &str) -> HostRule {
    HostRule::free(Destination::parse(text).unwrap(), Origin::Builtin("a test"))
}

#[test]
fn rules_that_narrow_together_leave_what_all_of_them_name() {
    let rules = [
        within("a", Demand::None, &["x", "y"]),
        within("b", Demand::None, &["y", "z"]),
        rule("c", Demand::None),
    ];
    let of = |line| judge(line, &rules, &ask(), &roots).narrow;
    assert_eq!(of("a; b"), Some(vec!["y".to_owned()]));
    assert_eq!(of("a; c"), Some(vec!["x".to_owned(), "y".to_owned()]));
    assert_eq!(of("c"), None);
}

#[test]
fn a_forbidding_rule_with_sandbox_paths_blocks_as_soon_as_one_path_lies_there() {
    let rules = [within("rm", Demand::Deny, &["src"]), rule("rm", Demand::None)];
    let of = |line| judge(line, &rules, &ask(), &roots).requirement;
    assert_eq!(of("rm src/a"), Blocked);
    assert_eq!(of("rm cache/a src/b"), Blocked);
    assert_eq!(of("rm cache/a"), PreApproved);
    assert_eq!(of("rm $x"), NeedsApproval);
}

#[test]
fn words_without_a_shell_are_one_command() {
    let of = |argv: &[&str]| judge_argv(argv, &rules(), &ask(), &roots).requirement;
    assert_eq!(of(&["git", "status", "; rm x", "$(rm x)"]), PreApproved);
    assert_eq!(of(&["rm", "x"]), Blocked);
    assert_eq!(of(&["sh", "-c", "rm x"]), Blocked);
    assert_eq!(of(&["env", "A=b", "rm"]), Blocked);
    assert_eq!(of(&[]), NeedsApproval);
    let hostile = [std::ffi::OsStr::from_bytes(b"r\xffm")];
    assert_eq!(
        judge_argv(&hostile, &rules(), &ask(), &roots).requirement,
        NeedsApproval
    );
}

#[test]
fn a_block_says_why() {
    let mut forbid = rule("rm", Demand::Deny);
    forbid.reason = Some("delete through delete_file".to_owned());
    assert_eq!(
        judge("echo; rm", &[forbid], &ask(), &roots).reason.as_deref(),
        Some("the rule `rm` (built in: test) forbids it: delete through delete_file")
    );
    assert_eq!(
        judged("git push").reason.as_deref(),
        Some("the rule `git push` (built in: test) forbids it")
    );
    assert_eq!(judged("make").reason, None);
}

#[test]
fn examples_are_held_against_the_rule_alone() {
    let status = rule("git status", Demand::None);
    assert!(rule_matches(&status, "git status -s"));
    assert!(rule_covers(&status, "git status -s"));
    for line in [
        "git status; rm x",
        "git status > x",
        "A=b git status",
        "git status $(rm x)",
        "git stat",
        "git status; eval x",
    ] {
        assert!(!rule_covers(&status, line), "{line}");
    }
    let rm = rule("rm", Demand::Deny);
    assert!(rule_matches(&rm, "git status; rm x") && rule_covers(&rm, "git status; rm x"));
    assert!(!rule_matches(&rm, "git rm x") && !rule_covers(&rm, "git rm x"));
}

#[test]
fn words_without_a_shell_are_judged_quickly_however_many_they_are() {
    let free = rule("", Demand::None);
    let judged = |argv: &[String]| {
        let before = spent();
        let requirement = judge_argv(argv, &[rule("rm", Demand::Deny)], &free, &|_, _| true).requirement;
        let took = spent().saturating_sub(before);
        assert!(took < std::time::Duration::from_secs(10), "{took:?}");
        requirement
    };
    let words = |before: &[&str], word: &str, count: usize| -> Vec<String> {
        let before = before.iter().map(|word| (*word).to_owned());
        before.chain(std::iter::repeat_n(word.to_owned(), count)).collect()
    };
    let holes = [words(&["xargs"], "-Iab", 5_000), words(&["bb"], "bb", 5_000)].concat();
    assert_eq!(judged(&holes), Requirement::NeedsApproval);
    let holes = [words(&["xargs"], "-Iab", 60_000), words(&["bb"], "bb", 60_000)].concat();
    assert_eq!(judged(&holes), Requirement::NeedsApproval);
    let deep = words(&["xargs"; 8], &"x".repeat(100), 100_000);
    assert_eq!(judged(&deep), Requirement::NeedsApproval);
    assert_eq!(
        judged(&words(&["git", "add"], "a/file", 100_000)),
        Requirement::PreApproved
    );
    assert_eq!(judged(&words(&["rm"], "a/file", 100_000)), Requirement::Blocked);
    assert_eq!(judged(&words(&["xargs"], "cat", 1_000)), Requirement::PreApproved);
}

#[test]
fn a_forbidding_rule_with_sandbox_paths_asks_where_it_cannot_be_told_whether_a_path_lies_there() {
    let free = rule("", Demand::None);
    let narrow = ShellRule {
        sandbox_paths: Some(vec!["src".to_owned()]),
        ..rule("rm", Demand::Deny)
    };
    let lies = |path: &str, _: &[String]| path.starts_with("/src/");
    let requirement = |line: &str| judge(line, std::slice::from_ref(&narrow), &free, &lies).requirement;
    for line in [
        "rm ../src/a",
        "rm /work/../src/a",
        "env -iC /src rm a",
        "env -C /src rm a",
        "env -vC/src rm a",
        "env --chdir=/src rm a",
        "sudo -D /src rm a",
        "find /src -name a -execdir rm a \\;",
    ] {
        assert_ne!(requirement(line), Requirement::PreApproved, "{line}");
    }
    assert_eq!(requirement("rm /src/a"), Requirement::Blocked);
    assert_eq!(requirement("rm /work/a..b"), Requirement::PreApproved);
    assert_eq!(requirement("rm ../x"), Requirement::NeedsApproval);
}

#[test]
fn a_forbidding_rule_that_names_a_path_asks_about_other_paths_to_a_program_of_that_name() {
    let free = rule("", Demand::None);
    let requirement = |line: &str| judge(line, &[rule("/bin/rm", Demand::Deny)], &free, &|_, _| true).requirement;
    for line in ["/bin/rm v", "rm v"] {
        assert_eq!(requirement(line), Requirement::Blocked, "{line}");
    }
    for line in [
        "/bin//rm v",
        "//bin/rm v",
        "/bin/../bin/rm v",
        "/usr/bin/rm v",
        "env /usr/bin/rm v",
    ] {
        assert_eq!(requirement(line), Requirement::NeedsApproval, "{line}");
    }
    assert_eq!(requirement("/bin/rmdir v"), Requirement::PreApproved);
}

#[test]
fn a_relative_path_in_a_pattern_answers_only_where_the_session_starts() {
    let patterns = [
        "./sdk/tool",
        "sdk/bin/tool",
        "sh sdk/check.sh",
        "sh -e check",
        "python3 manage.py runserver",
        "make -f build.mk",
        "tool --config=./x",
        "tool -Isub/x",
        "pip install .",
    ];
    for pattern in patterns {
        let rules = [
            rule(pattern, Demand::None),
            rule("env", Demand::None),
            rule("cd", Demand::None),
            rule("find", Demand::None),
        ];
        let of = |directory, line: &str| judge_in(directory, line, &rules, &ask(), &|_, _| true).requirement;
        assert_eq!(of(Directory::Start, pattern), PreApproved, "{pattern}");
        assert_eq!(of(Directory::Other, pattern), NeedsApproval, "{pattern}");
        for line in [
            format!("cd ev && {pattern}"),
            format!("env -C ev {pattern}"),
            format!("find . -execdir {pattern} \\;"),
        ] {
            assert_eq!(of(Directory::Start, &line), NeedsApproval, "{line}");
        }
        let words: Vec<&str> = pattern.split(' ').collect();
        let argv = judge_argv_in(Directory::Other, &words, &rules, &ask(), &|_, _| true);
        assert_eq!(argv.requirement, NeedsApproval, "{pattern}");
        // What is forbidden stays so wherever it is.
        let forbidden = [rule(pattern, Demand::Deny)];
        let of =
            |directory, line: &str| judge_in(directory, line, &forbidden, &rule("", Demand::None), &roots).requirement;
        assert_eq!(of(Directory::Other, pattern), Blocked, "{pattern}");
        assert_eq!(
            of(Directory::Start, &format!("cd ev && {pattern}")),
            Blocked,
            "{pattern}"
        );
        assert!(!rule_covers(&rules[0], &format!("cd ev && {pattern}")), "{pattern}");
    }
    // These name no file from there.
    for pattern in [
        "git status",
        "/opt/sdk/tool",
        "python3 -m pytest",
        "sh /opt/check.sh",
        "cargo test",
        "tool --x=/a.b",
    ] {
        let rules = [rule(pattern, Demand::None)];
        let other = judge_in(Directory::Other, pattern, &rules, &ask(), &roots);
        assert_eq!(other.requirement, PreApproved, "{pattern}");
    }
}

#[test]
fn a_relative_path_in_a_pattern_gives_no_network_elsewhere() {
    let tool = ShellRule {
        network: Some(OwnNetwork {
            network: Network::Full,
            origin: Origin::Builtin("test"),
        }),
        ..rule("./sdk/tool", Demand::None)
    };
    let reach = |directory| {
        let free = rule("", Demand::None);
        judge_in(directory, "./sdk/tool", std::slice::from_ref(&tool), &free, &roots).network
    };
    assert_eq!(reach(Directory::Start).override_of(&Network::Off), Some(Network::Full));
    assert_eq!(reach(Directory::Other).override_of(&Network::Off), Some(Network::Off));
}

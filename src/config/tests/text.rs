//! Each way the text itself can be wrong, as a person sees it.

use super::Fixture;
use insta::assert_snapshot;
use nix::time::{ClockId, clock_gettime};
use std::fmt::Write as _;
use std::time::Duration;

/// The processor time that this thread has taken, which says nothing of what runs beside it.
fn spent() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap().into()
}

#[test]
fn an_unknown_key_is_shown_with_the_nearest_known_one() {
    assert_snapshot!(Fixture::new().error("sandbox:\n  paths:\n    notes: {root: ., mode: rw, sufixes: [.md]}\n"), @r#"
    error: unknown key `sufixes`
     --> /dir/project/stockade.yaml:3:32
      |
    3 |     notes: {root: ., mode: rw, sufixes: [.md]}
      |                                ^^^^^^^ not a key here
      |
      = help: did you mean `suffixes`?
    "#);
}

#[test]
fn an_unknown_key_unlike_any_other_lists_the_known_ones() {
    assert_snapshot!(Fixture::new().error("sandbox: {}\nblah: 1\n"), @r#"
    error: unknown key `blah`
     --> /dir/project/stockade.yaml:2:1
      |
    2 | blah: 1
      | ^^^^ not a key here
      |
      = help: known here: extends, sandbox, shell, tools, custom_tools, approval, audit
    "#);
}

#[test]
fn a_duplicate_key_is_an_error() {
    assert_snapshot!(Fixture::new().error("shell:\n  network: false\n  network: true\n"), @r#"
    error: duplicate key `network`
     --> /dir/project/stockade.yaml:3:3
      |
    3 |   network: true
      |   ^^^^^^^ stands a second time
      |
      = help: each key may stand once: merge the two, or drop one
    "#);
}

#[test]
fn yes_is_not_a_boolean() {
    assert_snapshot!(Fixture::new().error("sandbox:\n  require_os_sandbox: yes\n"), @r#"
    error: not a boolean
     --> /dir/project/stockade.yaml:2:23
      |
    2 |   require_os_sandbox: yes
      |                       ^^^ expected `true` or `false`
      |
      = help: write `true` or `false`: `yes`, `no`, `on` and `off` are plain words in YAML 1.2
    "#);
    assert_snapshot!(Fixture::new().error("shell:\n  network: no\n"), @r#"
    error: unknown value `no`
     --> /dir/project/stockade.yaml:2:12
      |
    2 |   network: no
      |            ^^ not a value here
      |
      = help: write `true` or `false`: `yes`, `no`, `on` and `off` are plain words in YAML 1.2
      = help: network is `true`, `false` or `{allow: [HOST:PORTS]}`
    "#);
}

#[test]
fn an_alias_bomb_is_refused() {
    let aliases: Vec<String> = (0..70).map(|n| format!("  t{n}: *a")).collect();
    let many = format!("tools:\n  shell: &a {{approval: none}}\n{}\n", aliases.join("\n"));
    assert_snapshot!(Fixture::new().error(&many), @r#"
    error: too many aliases: refused as an alias bomb
      --> /dir/project/stockade.yaml:67:8
       |
    67 |   t64: *a
       |        ^^ here
    "#);
}

#[test]
fn aliases_that_multiply_never_unfold() {
    let mut text = "x0: &a0 [A, B, C, D, E, F, G, H, I]\n".to_owned();
    for level in 1..30 {
        let refs = vec![format!("*a{}", level - 1); 9].join(", ");
        let _infallible = writeln!(text, "x{level}: &a{level} [{refs}]");
    }
    let before = spent();
    for wrapped in [
        text.clone(),
        format!("tools: {{shell: &a0 {{}}}}\n{text}"),
        text.replace("x0", "extends"),
    ] {
        assert!(Fixture::new().error(&wrapped).starts_with("error: "));
    }
    assert!(spent().saturating_sub(before).as_secs() < 10);
}

#[test]
fn deep_nesting_is_refused() {
    for depth in [300, 5000, 200_000] {
        let text = format!("shell: {{rules: {}{}}}\n", "[".repeat(depth), "]".repeat(depth));
        let error = Fixture::new().error(&text);
        assert!(
            error.starts_with("error: nested too deep\n --> /dir/project/stockade.yaml:1:"),
            "{error}"
        );
        let text: Vec<String> = (0..depth.min(1000)).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
        let text = text.concat();
        assert!(Fixture::new().error(text).starts_with("error: "));
    }
}

#[test]
fn merge_keys_and_tags_are_not_read() {
    assert_snapshot!(Fixture::new().error("shell: &s {network: false}\nsandbox:\n  <<: *s\n"), @r#"
    error: merge keys (`<<`) are not read
     --> /dir/project/stockade.yaml:3:3
      |
    3 |   <<: *s
      |   ^^ here
      |
      = help: write the keys out: what a line grants must stand on that line
    "#);
    assert_snapshot!(Fixture::new().error("shell: !foo {network: true}\n"), @r#"
    error: unsupported tag `!foo`
     --> /dir/project/stockade.yaml:1:13
      |
    1 | shell: !foo {network: true}
      |             ^ here
    "#);
}

#[test]
fn a_wildcard_without_quotes_is_told_to_be_quoted() {
    let world = Fixture::new();
    assert_snapshot!(world.error("shell:\n  network:\n    allow: [ok.example, *.example.org:443]\n"), @r#"
    error: a reference to nothing
     --> /dir/project/stockade.yaml:3:25
      |
    3 |     allow: [ok.example, *.example.org:443]
      |                         ^ nothing has this name
      |
      = help: to YAML, `*` begins a reference; a text is quoted: `"*.example.org:443"`
    "#);
    assert_snapshot!(world.error("shell:\n  network:\n    allow:\n      - *.example.org:80,443 # the mirrors\n"), @r#"
    error: a reference to nothing
     --> /dir/project/stockade.yaml:4:9
      |
    4 |       - *.example.org:80,443 # the mirrors
      |         ^ nothing has this name
      |
      = help: to YAML, `*` begins a reference; a text is quoted: `"*.example.org:80,443"`
    "#);
    assert_snapshot!(world.error("shell: {network: {allow: [*]}}\n"), @r#"
    error: while scanning an anchor or alias, did not find expected alphabetic or numeric character
     --> /dir/project/stockade.yaml:1:27
      |
    1 | shell: {network: {allow: [*]}}
      |                           ^ here
      |
      = help: to YAML, `*` begins a reference; a text is quoted: `"*"`
    "#);
    for (text, quoted) in [
        ("sandbox: {paths: {a: {root: ., deny: [*.pem]}}}\n", "`\"*.pem\"`"),
        (
            "shell:\n  network:\n    allow: [\n      *.example.org,\n    ]\n",
            "`\"*.example.org\"`",
        ),
        ("shell: {env: {set: {A: *\"\\x}}}\n", "`'*\"\\x'`"),
    ] {
        let message = world.error(text);
        assert!(
            message.contains(&format!("a text is quoted: {quoted}")),
            "{text}: {message}"
        );
    }
}

#[test]
fn an_address_in_brackets_without_quotes_is_told_to_be_quoted() {
    let world = Fixture::new();
    assert_snapshot!(world.error("shell:\n  network:\n    allow: [ok.example, [2001:db8::1]:443]\n"), @r#"
    error: expected text
     --> /dir/project/stockade.yaml:3:25
      |
    3 |     allow: [ok.example, [2001:db8::1]:443]
      |                         ^ here
      |
      = help: to YAML, `[` begins a list; a text is quoted: `"[2001:db8::1]:443"`
    "#);
    assert_snapshot!(world.error("shell:\n  network:\n    allow:\n      - [fd00::/8]:22,80\n"), @r#"
    error: expected text
     --> /dir/project/stockade.yaml:4:9
      |
    4 |       - [fd00::/8]:22,80
      |         ^ here
      |
      = help: to YAML, `[` begins a list; a text is quoted: `"[fd00::/8]:22,80"`
    "#);
    assert_snapshot!(world.error("shell:\n  network:\n    allow: [::1]:443\n"), @r#"
    error: while parsing a block mapping, did not find expected key
     --> /dir/project/stockade.yaml:3:17
      |
    3 |     allow: [::1]:443
      |                 ^ here
      |
      = help: to YAML, `[` begins a list; a text is quoted: `"[::1]:443"`
    "#);
}

#[test]
fn what_is_a_list_or_a_broken_one_is_not_told_to_be_quoted() {
    let world = Fixture::new();
    for text in [
        "shell: {network: {allow: [[a.example, b.example]]}}\n",
        "shell: {network: {allow: [[a]]}}\n",
        "shell: {network: {allow: [{a: b}]}}\n",
        "shell: {rules: [{pattern: [ -f, approval: none}]}\n",
        "shell: {env: {set: {A: *'\"}}}\n",
        "shell: {network: {allow: [a.example]}",
    ] {
        let message = world.error(text);
        assert!(!message.contains("quoted"), "{text}: {message}");
    }
}

#[test]
fn an_empty_file_is_an_error() {
    assert_snapshot!(Fixture::new().error(""), @r#"
    error: the config is empty
     --> /dir/project/stockade.yaml:1:1
      |
    1 |
      | ^ nothing is granted here
      |
      = help: `stockade init` writes a commented one to start from
    "#);
    assert!(
        Fixture::new()
            .error("# nothing\n---\n")
            .starts_with("error: the config is empty")
    );
}

#[test]
fn bytes_that_are_not_text_are_an_error_with_a_place() {
    assert_snapshot!(Fixture::new().error(b"shell:\n  network: \xff\n"), @r#"
    error: the config is not UTF-8 text
     --> /dir/project/stockade.yaml:2:12
      |
    2 |   network: �
      |            ^ not UTF-8 from here
    "#);
}

#[test]
fn a_file_larger_than_any_config_is_not_read() {
    let world = Fixture::new();
    assert_snapshot!(world.error("#".repeat((1 << 20) + 1)), @"/dir/project/stockade.yaml is larger than 1 MiB: not read");
    assert!(
        world
            .load(format!("shell: {{network: false}}\n{}", "#".repeat(1 << 19)))
            .is_ok()
    );
}

#[test]
fn a_hostile_line_is_shown_harmless() {
    let error = Fixture::new().error("shell: {network: false}\n\"bad\\e[2J\u{202e}key\": 1 # \u{200b}\u{2066}\n");
    assert!(
        !error
            .chars()
            .any(|c| c != '\n' && (c.is_control() || "\u{202e}\u{200b}\u{2066}".contains(c))),
        "{error:?}"
    );
}

#[test]
fn line_endings_and_a_byte_order_mark_change_nothing() {
    let world = Fixture::new();
    let plain = "shell:\n  network: true\n  env: {set: {A: b}}\n";
    let policy = world.ok(plain).policy;
    for other in [
        plain.replace('\n', "\r\n"),
        format!("\u{feff}{plain}"),
        format!("---\n{plain}...\n").replace("---\n", "%YAML 1.2\n---\n"),
    ] {
        assert_eq!(world.ok(&other).policy.environment, policy.environment, "{other:?}");
    }
    let error = world.error("shell:\r\n  netwrk: true\r\n");
    assert!(error.contains(":2:3") && !error.contains('\r'), "{error}");
}

#[test]
fn an_error_points_inside_the_text_whatever_ends_its_lines() {
    for text in [
        "# a\r\r\rshell: {network: false}\r# b\rshel: {}",
        "shell: {network: false}\r\r\rshel: {}\n",
        "# a\r# b\nshel: {}",
    ] {
        let error = Fixture::new().error(text);
        assert!(
            error.contains("unknown key `shel`") && error.contains(" shel: {}"),
            "{error}"
        );
    }
    let error = Fixture::new().error(b"# a\r\r# b\xff\n");
    assert!(error.contains("stockade.yaml:3:4"), "{error}");
}

#[test]
fn a_word_as_long_as_the_file_may_be_is_told_quickly() {
    let world = Fixture::new();
    let before = spent();
    let error = world.error(format!("sandbox: {{backend: {}}}\n", "x".repeat(1_000_000)));
    assert!(
        error.starts_with("error: unknown value") && error.len() < 5000,
        "{}",
        error.len()
    );
    assert!(spent().saturating_sub(before).as_secs() < 40);
}

#[test]
fn a_key_without_a_value_is_an_error_wherever_it_stands() {
    let world = Fixture::new();
    for (key, text) in [
        ("suffixes", "sandbox: {paths: {a: {root: ., suffixes: }}}\n"),
        (
            "max_file_bytes",
            "sandbox: {paths: {a: {root: ., max_file_bytes: ~}}}\n",
        ),
        ("deny", "sandbox:\n  paths:\n    a:\n      root: .\n      deny:\n"),
        (
            "sandbox_paths",
            "shell: {rules: [{pattern: ls, sandbox_paths: null}]}\n",
        ),
        ("allowed", "shell: {rules: [{pattern: ls, allowed: }]}\n"),
        ("memory", "shell: {limits: {memory: }}\n"),
        ("default", "shell:\n  default:\n"),
        ("paths", "sandbox: {paths: }\n"),
        ("shell", "sandbox: {protect: none}\nshell:\n"),
        ("extends", "extends:\nshell: {network: false}\n"),
    ] {
        let error = world.error(text);
        assert!(error.contains(&format!("`{key}` has no value")), "{error}");
    }
    world.ok(
        "sandbox: {paths: {a: {root: ., suffixes: [.md], deny: []}}}\nshell: {rules: [], default: {reason: 'null'}}\n",
    );
}

#[test]
fn a_key_without_a_value_in_a_long_config_is_an_error_before_any_other() {
    let world = Fixture::new();
    let long = format!("# {}\n", "x".repeat(80)).repeat(500);
    world.ok(&format!("{long}sandbox: {{paths: {{a: {{root: ., deny: []}}}}}}\n"));
    for text in [
        "sandbox: {paths: {a: {root: ., suffixes: }}}\n",
        "sandbox: {paths: {a: {root: ./not-there, suffixes: }}}\n",
    ] {
        let error = world.error(format!("{long}{text}"));
        assert!(error.contains("`suffixes` has no value"), "{error}");
    }
    let error = world.error(format!("{long}sandbox: {{paths: {{a: {{root: ./not-there}}}}}}\n"));
    assert!(error.contains("does not exist"), "{error}");
}

#[test]
fn two_documents_are_told_as_two_documents() {
    let error = Fixture::new().error("shell: {network: false}\n---\nshell: {network: true}\n");
    assert!(
        error.contains("more than one YAML document") && error.contains("one document"),
        "{error}"
    );
}

//! What a person sees of each kind of question.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use super::*;
use crate::approval::{CommandView, Content, FileView, RemovalView, Removed};

pub(super) fn layout(columns: u16, charset: Charset) -> Layout {
    Layout::new(Some((columns, 60)), Colour::Off, charset)
}

fn request(answer: AnswerOf) -> ApprovalRequest {
    ApprovalRequest {
        answer,
        ..ApprovalRequest::new("shell", "$ make")
    }
}

fn command(line: &[u8]) -> Presentation {
    Presentation::Command(CommandView {
        command: line.to_vec(),
        directory: "/work/p".into(),
        programs: vec!["/usr/bin/make".into()],
        writable_programs: vec!["/work/p/.venv/bin/pytest".into()],
        notes: vec![("make".to_owned(), "builds it".to_owned())],
        regime: "landlock".to_owned(),
        weaker: None,
        may_read: vec!["/work/asked".into()],
        may_write: vec!["/work/p".into(), OsStr::from_bytes(b"/a b").into()],
        may_reach: "no network".to_owned(),
    })
}

fn ask(presentation: &Presentation, layout: Layout) -> Question {
    question(&request(AnswerOf::Anyone), presentation, layout, Overflow::Unseen)
}

fn text_of(presentation: &Presentation, columns: u16) -> String {
    ask(presentation, layout(columns, Charset::Unicode))
        .text
        .replace('│', "|")
}

fn shown(line: &[u8], columns: u16) -> String {
    text_of(&command(line), columns)
}

fn all_of(presentation: &Presentation, columns: u16) -> String {
    let layout = layout(columns, Charset::Unicode);
    all_lines(&request(AnswerOf::Anyone), presentation, layout)
        .concat()
        .replace('│', "|")
}

fn diff(text: &str) -> Presentation {
    Presentation::Diff(text.to_owned())
}

fn file(content: Content, size: u64) -> Presentation {
    Presentation::FileContent(FileView {
        path: "/work/p/new".into(),
        content,
        size,
    })
}

#[test]
fn a_command_is_shown_with_its_reach() {
    let text = shown(b"make -j2", 80);
    for part in [
        "| $ make -j2\n| note       `make`: builds it\n| in         /work/p\n",
        "| may        write /work/p, /a b; read /work/asked; reach no network\n",
        "| program    /usr/bin/make\n",
        "| writable   /work/p/.venv/bin/pytest\n",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert!(!text.contains("WARNING"), "{text}");
    assert!(!text.contains('\x1b'), "{text}");
    // What confines it goes without saying, unless it is less than usual.
    assert!(!text.contains("landlock") && !text.contains("tool "), "{text}");
    let Presentation::Command(view) = command(b"make") else {
        unreachable!()
    };
    let weaker = Presentation::Command(CommandView {
        weaker: Some("landlock only: no namespaces here".to_owned()),
        ..view
    });
    assert!(text_of(&weaker, 80).contains("| sandbox    landlock only: no namespaces here\n"));
}

#[test]
fn what_changed_since_the_last_yes_is_named() {
    let mut request = request(AnswerOf::Anyone);
    request.changed = vec!["/w/test.sh changed since you said yes at 14:02".to_owned()];
    let layout = layout(80, Charset::Unicode);
    let text = question(&request, &command(b"sh test.sh"), layout, Overflow::Unseen).text;
    assert!(
        text.contains("│ changed    /w/test.sh changed since you said yes at 14:02\n"),
        "{text}"
    );
}

#[test]
fn what_a_yes_for_the_session_can_cover_is_listed_narrowest_first_and_cannot_move_the_cursor() {
    let mut request = request(AnswerOf::Anyone);
    let scope = |covers: &str| crate::approval::SessionScope {
        covers: covers.to_owned(),
        key: Vec::new(),
    };
    request.scopes = vec![scope("write_file of /w/a\u{1b}[2J"), scope("write_file anywhere in w")];
    let text = scopes(&request, layout(80, Charset::Unicode));
    let lines = [
        "│ 1          exactly this\n",
        "│ 2          write_file of /w/a\\u{1b}[2J\n",
        "│ 3          write_file anywhere in w\n",
    ];
    assert!(
        lines.iter().all(|line| text.contains(line)) && text.contains("WARNING"),
        "{text}"
    );
    assert_eq!(scope_prompt(&request), "which? [1/2/3] ");
}

#[test]
fn the_frame_is_drawn_in_letters_that_the_terminal_knows() {
    let unicode = ask(&command(b"make"), layout(80, Charset::Unicode)).text;
    assert!(unicode.starts_with("╭─ Stockade asks ─") && unicode.contains("\n│ $ make\n"));
    assert!(unicode.contains("\n╰─ y: yes, once; n: no"), "{unicode}");
    let ascii = ask(&command("echo é …".as_bytes()), layout(80, Charset::Ascii)).text;
    assert!(ascii.starts_with("+-- Stockade asks -") && ascii.contains("\n| $ echo "));
    assert!(
        ascii.contains("echo \\u{e9} \\u{2026}") && ascii.contains("WARNING"),
        "{ascii}"
    );
    assert!(ascii.is_ascii(), "{ascii}");
}

#[test]
fn only_stockade_s_own_signs_are_coloured() {
    let layout = Layout::new(Some((80, 24)), Colour::On, Charset::Ascii);
    let text = ask(&diff("@@ -1 +1 @@\n-old\n+new\n same\n"), layout).text;
    let bar = "\x1b[2m| \x1b[0m";
    for (line, code) in [("@@ -1 +1 @@", "\x1b[36m"), ("-old", "\x1b[31m"), ("+new", "\x1b[32m")] {
        assert!(text.contains(&format!("{bar}{code}{line}\x1b[0m\n")), "{text:?}");
    }
    assert!(text.contains(&format!("{bar} same\n")), "{text:?}");
    let hostile = ask(&diff("+\x1b[31mred\n"), layout).text;
    assert!(hostile.contains("+\\u{1b}[31mred\x1b[0m\n"), "{hostile:?}");
}

#[test]
fn characters_that_do_not_print_are_flagged() {
    assert!(shown("rm \u{202e}txt".as_bytes(), 80).contains("WARNING"));
    assert!(shown("rm \u{202e}txt".as_bytes(), 80).contains("\\u{202e}"));
    assert!(shown(b"a\xff", 80).contains("\\xff"));
    assert!(!shown("echo é\t日本\nls".as_bytes(), 80).contains("WARNING"));
}

#[test]
fn wide_characters_do_not_reach_the_margin() {
    let text = shown("日".repeat(100).as_bytes(), 40);
    assert!(
        text.lines()
            .filter(|line| line.contains('日'))
            .all(|line| line.matches('日').count() <= 18),
        "{text}"
    );
}

#[test]
fn a_new_line_of_the_command_looks_like_no_other_text() {
    let real = shown(b"bash -c 'echo ok #\nrm -rf w'", 80);
    let typed_out = shown(b"bash -c 'echo ok #\\nrm -rf w'", 80);
    assert!(real.contains("echo ok #\n| > rm -rf w'\n"), "{real}");
    assert!(typed_out.contains("echo ok #\\nrm -rf w'\n"), "{typed_out}");
    // A comment that fills its line does not look as if it went on in the next.
    let room = Edge::Side.room(layout(40, Charset::Unicode)) - 2;
    let filled = shown(format!("#{}\nrm -rf w", "-".repeat(room - 1)).as_bytes(), 40);
    let break_lines = shown(format!("#{}rm -rf w", "-".repeat(room - 1)).as_bytes(), 40);
    assert!(filled.contains("\n| > rm -rf w\n"), "{filled}");
    assert!(break_lines.contains("\n|   rm -rf w\n"), "{break_lines}");
}

#[test]
fn an_escape_looks_like_no_letters_typed_out() {
    for (hidden, charset) in [
        ("a\u{202e}b".as_bytes(), "a\\u{202e}b".as_bytes()),
        (b"a\xffb", b"a\\xffb"),
        (b"a\x1bb", b"a\\u{1b}b"),
        ("\u{301}b".as_bytes(), b"\\u{301}b"),
    ] {
        let (alone, typed_out) = (shown(hidden, 80), shown(charset, 80));
        assert!(alone.contains("WARNING") && !typed_out.contains("WARNING"), "{alone}");
        let both = shown(&[hidden, b" ", charset].concat(), 80);
        let typed = String::from_utf8_lossy(charset).replace('\\', "\\\\");
        assert!(both.contains(&format!(" {typed}\n")), "{both}");
    }
}

#[test]
fn a_long_change_is_cut_at_fifty_lines_and_shown_whole_when_asked_for() {
    let long = diff(&"+line\n".repeat(70));
    let head = ask(&long, layout(200, Charset::Unicode));
    assert_eq!(head.overflow, Overflow::Unseen);
    assert!(head.text.contains("… [20 more lines]") && head.text.contains("v: show all of it"));
    assert_eq!(head.text.matches("│ +line\n").count(), 50);
    let all_lines = all_of(&long, 80);
    assert!(!all_lines.contains("more lines"));
    assert_eq!(all_lines.matches("| +line\n").count(), 70);
    let short = ask(&diff(&"+line\n".repeat(50)), layout(80, Charset::Unicode));
    assert_eq!(short.overflow, Overflow::None);
    assert!(!short.text.contains("v:"), "{}", short.text);
    // One endless line is many.
    assert_eq!(
        ask(&diff(&"+".repeat(10_000)), layout(80, Charset::Ascii)).overflow,
        Overflow::Unseen
    );
}

#[test]
fn what_passes_the_screen_must_be_looked_at_to_its_end() {
    let text = diff(&"+line\n".repeat(20));
    for (rows, rest) in [(24, Overflow::Unseen), (26, Overflow::None)] {
        let layout = Layout::new(Some((200, rows)), Colour::Off, Charset::Ascii);
        let write_request = question(&request(AnswerOf::ApproverOnly), &text, layout, Overflow::Unseen);
        assert_eq!(write_request.overflow, rest, "{rows}");
        assert!(!write_request.text.contains("more lines") && write_request.text.lines().count() < 26);
    }
}

#[test]
fn a_long_command_is_cut_and_what_it_may_do_is_not() {
    let line = "echo\n".repeat(300);
    let text = shown(line.as_bytes(), 40);
    assert!(
        text.contains("more lines]") && text.contains("| may        write"),
        "{text}"
    );
    assert!(text.lines().count() < 80, "{text}");
}

#[test]
fn a_long_line_of_a_change_cannot_pass_for_two() {
    for columns in [24, 40, 80] {
        for pad in 0..100 {
            let text = format!("+{}-rm -rf\n", "x".repeat(pad));
            assert!(!text_of(&diff(&text), columns).contains("\n| -"), "{text}");
        }
    }
    assert!(text_of(&diff("+a\n-rm -rf\n"), 80).contains("\n| -rm -rf\n"));
}

#[test]
fn nothing_that_is_no_line_of_a_change_stands_where_a_label_could() {
    let text = text_of(&diff("+a\nregime     none\nWARNING\n\n… [1 more lines]\n"), 80);
    for line in ["|   regime     none\n", "|   WARNING\n", "|   … [1 more lines]\n"] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn a_mark_does_not_change_the_sign_of_a_line() {
    let text = text_of(&diff("-\u{20d2}rm\n"), 80);
    assert!(text.contains("| -\\u{20d2}rm\n") && text.contains("WARNING"), "{text}");
}

#[test]
fn a_new_file_is_shown_with_its_size_and_numbered_lines() {
    let text = text_of(&file(Content::Text("a\n\n\tc\n".to_owned()), 5), 80);
    for line in [
        "| file       /work/p/new\n",
        "| new        3 lines, 5 bytes\n",
        "|   1 a\n|   2 \n|   3     c\n",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    let empty = text_of(&file(Content::Text(String::new()), 0), 80);
    assert!(empty.contains("0 lines, 0 bytes") && !empty.contains("  1 "), "{empty}");
}

fn removal(size: u64, what: Removed) -> Presentation {
    Presentation::Removal(RemovalView {
        path: "/work/p/old".into(),
        size,
        what,
    })
}

#[test]
fn a_file_that_is_removed_is_shown_by_its_size_and_first_lines() {
    let begins = "a\nb\n".to_owned();
    let text = text_of(&removal(12_345, Removed::Text { begins, lines: 100 }), 80);
    for line in [
        "| removes    100 lines, 12.3 KB\n",
        "|   1 a\n|   2 b\n| and 98 more lines that are not shown\n",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    let binary = text_of(&removal(12_000, Removed::Binary("PNG image".to_owned())), 80);
    assert!(binary.contains("| removes    PNG image, 12.0 KB\n"), "{binary}");
    let link = text_of(&removal(0, Removed::Symlink("/etc/passwd".into())), 80);
    assert!(link.contains("| points to  /etc/passwd\n"), "{link}");
}

#[test]
fn a_directory_that_is_removed_is_counted_and_listed() {
    let tree = |complete, count: usize| Removed::Tree {
        directories: 1,
        files: 1000,
        complete,
        entries: (1..=count).map(|number| format!("f{number}").into()).collect(),
    };
    let text = text_of(&removal(2_500_000, tree(true, 3)), 80);
    for line in [
        "| removes    1000 files, 1 directory, 2.5 MB\n",
        "f1\n",
        "and 998 more names that are not shown\n",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    // The twins: what is not all of it, and what is behind the pager.
    let part = text_of(&removal(2_500_000, tree(false, 3)), 120);
    assert!(
        part.contains("more than 1000 files, 1 directory, 2.5 MB: more than is looked through"),
        "{part}"
    );
    let long = text_of(&removal(0, tree(true, 100)), 80);
    assert!(long.contains("… [50 more lines]") && !long.contains("f51\n"), "{long}");
    assert!(all_of(&removal(0, tree(true, 100)), 80).contains("f100\n"));
}

#[test]
fn the_content_of_a_file_is_coloured_by_its_language() {
    let shown = |name: &str, colour| {
        let content = Content::Text("fn main() { // \u{1b}[2J why\n".to_owned());
        let presentation = Presentation::FileContent(FileView {
            path: name.into(),
            content,
            size: 30,
        });
        let layout = Layout::new(Some((80, 24)), colour, Charset::Unicode);
        all_lines(&request(AnswerOf::Anyone), &presentation, layout).concat()
    };
    let coloured = shown("/w/a.rs", Colour::On);
    assert!(coloured.contains("\x1b[35mfn\x1b[0m main"), "{coloured:?}");
    assert!(coloured.contains("\x1b[36m// \\u{1b}[2J why\x1b[0m"), "{coloured:?}");
    // The twins: without a language, and without colour.
    assert!(shown("/w/a", Colour::On).contains("fn main() { // \\u{1b}[2J why\n"));
    assert!(!shown("/w/a.rs", Colour::Off).contains('\x1b'));
}

#[test]
fn a_large_new_file_is_shown_by_its_beginning_and_counts() {
    let content: String = (1..=2000).fold(String::new(), |all, number| format!("{all}text {number}\n"));
    let text = text_of(&file(Content::Text(content), 21_893), 80);
    for part in [
        "2000 lines, 21.8 KB",
        "|    1 text 1\n",
        "|   50 text 50\n",
        "… [1950 more lines]",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert!(!text.contains("text 51"), "{text}");
}

#[test]
fn a_long_line_of_a_file_goes_on_without_a_number() {
    let text = text_of(
        &file(Content::Text(format!("{}  2 forged\nb\n", "x".repeat(32))), 45),
        40,
    );
    assert!(text.contains("|   >   2 forged\n|   2 b\n"), "{text}");
}

#[test]
fn what_is_no_text_is_shown_as_type_and_size() {
    let text = text_of(&file(Content::Binary("PNG image".to_owned()), 1), 80);
    assert!(text.contains("| new        1 byte\n| binary     PNG image\n"), "{text}");
}

#[test]
fn each_argument_has_its_name_and_value_behind_labels() {
    let fields = vec![
        ("path".to_owned(), "a\nvalue  b".to_owned()),
        ("empty".to_owned(), String::new()),
    ];
    let text = text_of(&Presentation::Structured(fields), 80);
    let lines = "| argument   path\n|   value    a\n| (new line) value  b\n| argument   empty\n|   value    \n";
    assert!(text.contains(lines), "{text}");
    assert!(text_of(&Presentation::Structured(Vec::new()), 80).contains("| no arguments\n"));
    let many = Presentation::Structured(vec![("x".repeat(5000), "y\n".repeat(5000)); 100]);
    let text = text_of(&many, 80);
    assert!(text.contains("more arguments]") && text.lines().count() < 300, "{text}");
    assert_eq!(all_of(&many, 80).matches("argument ").count(), 100);
}

#[test]
fn parts_stand_under_their_titles_and_each_is_seen() {
    let parts = vec![
        ("one".to_owned(), diff(&"+a\n".repeat(1000))),
        ("two".to_owned(), diff(&"+b\n".repeat(1000))),
        ("three".to_owned(), command(b"make")),
    ];
    let text = text_of(&Presentation::Several(parts), 80);
    for part in [
        "| part 1     one\n| +a\n",
        "… [984 more lines]\n| part 2     two\n| +b\n",
        "| part 3     three\n| $ make\n",
        "| One answer holds for all 3 parts.\n",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let many = vec![("t".to_owned(), diff("+a\n")); 1000];
    let text = text_of(&Presentation::Several(many), 80);
    assert!(text.contains("more parts]") && text.lines().count() < 100, "{text}");
}

#[test]
fn who_asks_is_shown_if_it_is_not_the_agent_itself() {
    let mut request = request(AnswerOf::Anyone);
    let layout = layout(80, Charset::Ascii);
    assert!(
        !question(&request, &diff("+a"), layout, Overflow::Unseen)
            .text
            .contains("| for ")
    );
    request.caller = Some("helper\u{7}\n+-- y".to_owned());
    let text = question(&request, &diff("+a"), layout, Overflow::Unseen).text;
    assert!(
        text.contains("| for        helper\\u{7}\n| (new line) +-- y\n"),
        "{text}"
    );
    assert!(text.contains("WARNING"));
}

#[test]
fn the_answers_that_are_offered_are_those_that_count() {
    for (answer, rest, keys) in [
        (AnswerOf::Anyone, Overflow::None, "approve? [y/n/s/?] "),
        (AnswerOf::Anyone, Overflow::Unseen, "approve? [v/n/?] "),
        (AnswerOf::Anyone, Overflow::Seen, "approve? [y/n/s/v/?] "),
        (AnswerOf::AnyoneOnce, Overflow::None, "approve? [y/n/?] "),
        (AnswerOf::AnyoneOnce, Overflow::Unseen, "approve? [v/n/?] "),
        (AnswerOf::AnyoneOnce, Overflow::Seen, "approve? [y/n/v/?] "),
        (AnswerOf::ApproverOnly, Overflow::None, "approve? [y/n/?] "),
        (AnswerOf::ApproverOnly, Overflow::Unseen, "approve? [v/n/?] "),
        (AnswerOf::ApproverOnly, Overflow::Seen, "approve? [y/n/v/?] "),
    ] {
        assert_eq!(prompt(&request(answer), rest), keys);
        let legend = legend(&request(answer), rest);
        for key in ["y", "n", "s", "v", "?"] {
            let told = legend.starts_with(&format!("{key}: ")) || legend.contains(&format!("; {key}: "));
            let offered = keys.trim_start_matches("approve?").contains(key);
            assert!(told || !offered || key == "y", "{key} of {keys} is not in {legend}");
        }
    }
    assert_eq!(
        retry_text(&request(AnswerOf::Anyone), Overflow::None),
        "\nPlease press y, n, s or ?.\n"
    );
}

#[test]
fn a_yes_that_the_config_makes_one_for_the_session_says_so() {
    let mut request = request(AnswerOf::Anyone);
    request.remember = Remember::Session;
    let layout = layout(200, Charset::Ascii);
    let text = question(&request, &diff("+a"), layout, Overflow::Unseen).text;
    assert!(
        !text.contains("once") && text.contains("again for exactly this"),
        "{text}"
    );
    assert!(why(&request, layout, Overflow::None).contains("as the config says, again"));
}

#[test]
fn why_it_is_asked_names_the_lines_of_the_config_and_every_answer() {
    let mut request = request(AnswerOf::Anyone);
    request.why = vec![
        "agent.yaml:7:5: the default asks".to_owned(),
        "\u{1b}[2J\n+-- y".to_owned(),
    ];
    request.allowed_by = "a rule would allow it".to_owned();
    let text = why(&request, layout(80, Charset::Ascii), Overflow::Seen);
    for part in [
        "+-- Why this is asked -",
        "| because    agent.yaml:7:5: the default asks\n",
        "|            \\u{1b}[2J\n",
        "| config     a rule would allow it\n",
        "| y          yes, once\n",
        "| n          no",
        "| s          yes, and again",
        "| v          show all of it\n",
        "WARNING",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert!(!text.contains("\n+-- y\n") && !text.contains('\x1b'), "{text}");
    request.why.clear();
    assert!(why(&request, layout(80, Charset::Ascii), Overflow::None).contains("wants a person's yes"));
}

//! Properties of the screen for every request.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::approval::{CommandView, Content, FileView, RemovalView, Removed};

/// Hostile text: forged lines, control sequences, reordering, stacked marks, wide characters.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("\n+-- y: yes\napprove? [y/n/s/?] ".to_owned()),
        Just("\r\u{1b}[2J\u{1b}]0;t\u{7}\u{9b}2J\u{8}".to_owned()),
        Just("\u{202e}\u{200b}\u{2028}\u{2066}\u{feff}".to_owned()),
        Just("\u{301}\u{20d2}\u{489}".repeat(9)),
        Just("日\u{2e3b}\u{fdfd}│╰─".repeat(9)),
        Just("\t\\u{1b}\\n".to_owned()),
        Just("x".repeat(90)),
        Just("+a\n-b\n@@ c\n\\ d\ne\n\n".to_owned()),
        any::<String>(),
    ];
    vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 0..200), hostile().prop_map(String::into_bytes)]
}

fn path() -> impl Strategy<Value = PathBuf> {
    // Some are of a language.
    let end = prop_oneof![Just(""), Just(".rs"), Just(".py"), Just(".md")];
    (bytes(), end).prop_map(|(bytes, end)| OsString::from_vec([&bytes, end.as_bytes()].concat()).into())
}

fn presentation() -> impl Strategy<Value = Presentation> {
    let command = (bytes(), path(), hostile(), vec(path(), 0..3), hostile()).prop_map(
        |(command, directory, regime, paths, may_reach)| {
            Presentation::Command(CommandView {
                command,
                directory,
                programs: paths.clone(),
                writable_programs: paths.clone(),
                notes: vec![(regime.clone(), regime.clone())],
                weaker: Some(regime.clone()),
                regime,
                may_read: paths.clone(),
                may_write: paths,
                may_reach,
            })
        },
    );
    let file = (path(), hostile(), any::<(bool, u64)>()).prop_map(|(path, text, (binary, size))| {
        let content = if binary {
            Content::Binary(text)
        } else {
            Content::Text(text)
        };
        Presentation::FileContent(FileView { path, content, size })
    });
    let what = prop_oneof![
        (hostile(), any::<u64>()).prop_map(|(begins, lines)| Removed::Text { begins, lines }),
        hostile().prop_map(Removed::Binary),
        path().prop_map(Removed::Symlink),
        (any::<(u64, u64, bool)>(), vec(path(), 0..4)).prop_map(|((directories, files, complete), entries)| {
            Removed::Tree {
                directories,
                files,
                complete,
                entries,
            }
        }),
    ];
    let removal = (path(), any::<u64>(), what)
        .prop_map(|(path, size, what)| Presentation::Removal(RemovalView { path, size, what }));
    let one = prop_oneof![
        hostile().prop_map(Presentation::Text),
        hostile().prop_map(Presentation::Diff),
        vec((hostile(), hostile()), 0..4).prop_map(Presentation::Structured),
        command,
        file,
        removal,
    ];
    one.prop_recursive(2, 8, 3, |inner| {
        vec((hostile(), inner), 0..3).prop_map(Presentation::Several)
    })
}

fn request() -> impl Strategy<Value = ApprovalRequest> {
    let texts = (hostile(), hostile(), hostile(), vec(hostile(), 0..3));
    (
        texts,
        option::of(hostile()),
        option::of(hostile()),
        any::<(bool, bool)>(),
    )
        .prop_map(
            |((tool_name, description, allowed_by, why), group_id, caller, (only, session))| ApprovalRequest {
                answer: if only { AnswerOf::ApproverOnly } else { AnswerOf::Anyone },
                group_id,
                changed: why.clone(),
                remember: if session { Remember::Session } else { Remember::None },
                allowed_by,
                why,
                caller,
                ..ApprovalRequest::new(tool_name, description)
            },
        )
}

/// What is wrong with the text, which has an edge at each line, and a legend at its end if it has one.
fn wrong(text: &str, layout: Layout) -> Option<String> {
    let (top, bar, bottom, below) = match layout.charset {
        Charset::Ascii => ("+-- ", "| ", "+-- ", "    "),
        Charset::Unicode => ("╭─ ", "│ ", "╰─ ", "   "),
    };
    let lines: Vec<&str> = text.strip_suffix('\n')?.split('\n').collect();
    let legend = lines
        .iter()
        .rposition(|line| line.starts_with(bottom))
        .filter(|at| *at > 0);
    for (at, line) in lines.iter().enumerate() {
        let unprintable = line
            .chars()
            .any(|c| crate::policy::path::is_escaped(c.to_string().as_bytes()));
        if unprintable || (layout.charset == Charset::Ascii && !line.is_ascii()) {
            return Some(format!("unescaped: {line:?}"));
        }
        if text::width(line) >= layout.columns {
            return Some(format!("too wide for {}: {line:?}", layout.columns));
        }
        let edged = match legend {
            _ if at == 0 => line.starts_with(top),
            Some(legend) if at == legend => true,
            Some(legend) if at > legend => line.starts_with(below),
            Some(_) | None => line.starts_with(bar),
        };
        if !edged {
            return Some(format!("line {at} stands in front of its edge: {line:?}"));
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn nothing_leaves_its_line_or_its_place(
        request in request(),
        presentation in presentation(),
        columns in prop_oneof![Just(1_u16), Just(24), Just(40), Just(80), Just(200), 24..120_u16],
        unicode in any::<bool>(),
    ) {
        let charset = if unicode { Charset::Unicode } else { Charset::Ascii };
        let layout = Layout::new(Some((columns, 24)), Colour::Off, charset);
        let write_request = question(&request, &presentation, layout, Overflow::Unseen);
        prop_assert_eq!(wrong(&write_request.text, layout), None);
        prop_assert_eq!(wrong(&why(&request, layout, write_request.overflow), layout), None);
        let all_lines = all_lines(&request, &presentation, layout);
        prop_assert_eq!(wrong(&all_lines.concat(), layout), None);
        prop_assert!(all_lines.iter().all(|line| line.matches('\n').count() == 1));
        // What is not cut is all there is.
        if write_request.overflow != Overflow::Unseen {
            prop_assert!(write_request.text.starts_with(&all_lines.concat()));
        }
    }

    #[test]
    fn colours_change_nothing_but_colour(request in request(), presentation in presentation()) {
        let layout = |colour| Layout::new(Some((80, 24)), colour, Charset::Unicode);
        let plain = question(&request, &presentation, layout(Colour::Off), Overflow::Unseen).text;
        let mut coloured = question(&request, &presentation, layout(Colour::On), Overflow::Unseen).text;
        for code in ["0", "1", "2", "31", "32", "33", "35", "36", "1;33"] {
            coloured = coloured.replace(&format!("\x1b[{code}m"), "");
        }
        prop_assert_eq!(plain, coloured);
    }
}

#[test]
fn the_laws_are_broken_by_what_breaks_them() {
    let layout = Layout::new(Some((24, 24)), Colour::Off, Charset::Ascii);
    assert_eq!(wrong("+-- a\n| b\n+-- y\n    n\n", layout), None);
    for text in [
        "+-- a\nb\n+-- y\n",
        "+-- a\n| \x1b[2J\n",
        "+-- a\n| bbbbbbbbbbbbbbbbbbbbbbbb\n",
        "+-- a\n| é\n",
    ] {
        assert!(wrong(text, layout).is_some(), "{text:?}");
    }
}

//! Whatever bytes come in: a policy, or an error with a place. Never a panic.

use proptest::prelude::*;

use super::Fixture;
use crate::config::{ConfigError, TEMPLATE};

const SEED: &str = r#"extends: [system]
sandbox:
  paths:
    a: {root: ., mode: rw, suffixes: [.md], max_file_bytes: 1MiB, approval: {write: required}, deny: [.env, x/]}
shell:
  network: false
  env: {pass: [LANG], set: {CI: "1"}}
  limits: {timeout: 120s, memory: 2GiB}
  rules:
    - {pattern: git status, approval: none, match: ["git status -s"], not_match: ["git status; rm x"]}
tools: {delete_file: {approval: required}}
custom_tools: {t: {description: d, command: [a, "{p}"], args: {p: {type: path, root: a}}}}
"#;

/// Pieces that mean something to YAML or to this schema.
const PIECES: &[&str] = &[
    ":", "- ", "{", "}", "[", "]", "&a ", "*a", "<<: ", "!x ", "'", "\"", "\\", "#", "|", ">", "%", "---\n", "~",
    "null", "\t", "\r", "\u{feff}", "\u{85}", "yes", "0x1", "1e999", ".nan", "../", "/", "$HOME", "*", "\u{202e}",
    "\0", "\n", "  ", "root: ", "paths:",
];

fn holds(world: &Fixture, bytes: &[u8]) -> Result<(), TestCaseError> {
    match world.load(bytes) {
        Ok(_) => Ok(()),
        Err(ConfigError::Invalid(diagnostic)) => {
            let none = || TestCaseError::fail(format!("no place: {diagnostic}"));
            let span = &diagnostic.mark.as_ref().ok_or_else(none)?.span;
            let (line, column) = (
                usize::try_from(span.line).unwrap(),
                usize::try_from(span.column).unwrap(),
            );
            let there = span.source.shown().split('\n').nth(line - 1);
            prop_assert!(
                column >= 1 && there.is_some_and(|there| column <= there.chars().count() + 1),
                "{}",
                span
            );
            let shown = diagnostic.to_string();
            prop_assert!(!shown.chars().any(|c| c != '\n' && c.is_control()), "{:?}", shown);
            Ok(())
        }
        Err(other) => Err(TestCaseError::fail(other.to_string())),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        holds(&Fixture::new(), &bytes)?;
    }

    #[test]
    fn arbitrary_pieces_never_panic(pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..40)) {
        holds(&Fixture::new(), pieces.concat().as_bytes())?;
    }

    #[test]
    fn a_valid_config_with_a_few_edits_never_panics(
        edits in proptest::collection::vec((any::<proptest::sample::Index>(), 0..8_usize, proptest::sample::select(PIECES)), 1..6),
        template in any::<bool>(),
    ) {
        let mut bytes = if template { TEMPLATE } else { SEED }.as_bytes().to_vec();
        for (index, cut, piece) in edits {
            let at = index.index(bytes.len());
            let end = (at + cut).min(bytes.len());
            bytes.splice(at..end, piece.bytes());
        }
        holds(&Fixture::new(), &bytes)?;
    }
}

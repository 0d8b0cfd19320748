//! The settings of a git config, read as git reads them and a little more generously.
//!
//! What comes of it protects names, so too much found costs nothing, and too little would. Where git would refuse the
//! file, the rest of the line is skipped and reading goes on: another git may see it otherwise.
//!
//! Source: git's config.c (`git_parse_source`, `parse_value`) and git-config(1), "Syntax".

use std::iter::Peekable;
use std::slice::Iter;

/// One setting that has a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    /// In lower case, without the subsection.
    pub(crate) section: Vec<u8>,
    /// In lower case.
    pub(crate) key: Vec<u8>,
    /// Without quotes, escapes and comment.
    pub(crate) value: Vec<u8>,
}

/// Every setting with a value, in the order of the file.
pub(crate) fn settings(text: &[u8]) -> Vec<Setting> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut lexer = Lexer {
        rest: text.iter().peekable(),
    };
    let (mut all, mut section) = (Vec::new(), Vec::new());
    while let Some(byte) = lexer.next() {
        match byte {
            b'#' | b';' => lexer.skip_line(),
            b'[' => section = lexer.section(),
            _ if byte.is_ascii_alphabetic() => {
                let key = lexer.key(byte);
                if let Some(value) = lexer.assigned() {
                    let section = section.clone();
                    all.push(Setting { section, key, value });
                }
            }
            _ if byte.is_ascii_whitespace() => {}
            _ => lexer.skip_line(),
        }
    }
    all
}

struct Lexer<'a> {
    rest: Peekable<Iter<'a, u8>>,
}

impl Lexer<'_> {
    /// The next byte; the end of a line is one, however it is written.
    fn next(&mut self) -> Option<u8> {
        let byte = *self.rest.next()?;
        if byte == b'\r' && self.rest.peek() == Some(&&b'\n') {
            self.rest.next();
            return Some(b'\n');
        }
        Some(byte)
    }

    fn skip_line(&mut self) {
        while !matches!(self.next(), None | Some(b'\n')) {}
    }

    /// The name of a section, up to its bracket; what is in quotes there is the subsection.
    fn section(&mut self) -> Vec<u8> {
        let (mut name, mut quoted, mut named) = (Vec::new(), false, false);
        while let Some(byte) = self.next() {
            match byte {
                b'\n' => break,
                b'\\' if quoted => {
                    self.next();
                }
                b'"' => (quoted, named) = (!quoted, true),
                _ if quoted => {}
                b']' => break,
                // `[section.sub]` is an old way to write a subsection.
                b'.' => named = true,
                _ if byte.is_ascii_whitespace() => named = named || !name.is_empty(),
                _ if !named => name.push(byte.to_ascii_lowercase()),
                _ => {}
            }
        }
        name
    }

    fn key(&mut self, first: u8) -> Vec<u8> {
        let mut key = vec![first.to_ascii_lowercase()];
        while let Some(&&byte) = self.rest.peek() {
            if !byte.is_ascii_alphanumeric() && byte != b'-' {
                break;
            }
            key.push(byte.to_ascii_lowercase());
            self.rest.next();
        }
        key
    }

    /// What is behind the equals sign, if there is one.
    fn assigned(&mut self) -> Option<Vec<u8>> {
        loop {
            match self.next()? {
                b' ' | b'\t' => {}
                b'=' => return Some(self.value()),
                b'\n' => return None,
                _ => {
                    self.skip_line();
                    return None;
                }
            }
        }
    }

    fn value(&mut self) -> Vec<u8> {
        let (mut value, mut quoted) = (Vec::new(), false);
        // What of it stays when blanks at its end are taken off.
        let mut kept = 0;
        while let Some(byte) = self.next() {
            match byte {
                b'\n' => break,
                b'#' | b';' if !quoted => {
                    self.skip_line();
                    break;
                }
                b'"' => quoted = !quoted,
                b'\\' => match self.next() {
                    // Goes on in the next line.
                    None | Some(b'\n') => continue,
                    Some(b't') => value.push(b'\t'),
                    Some(b'n') => value.push(b'\n'),
                    Some(b'b') => value.push(8),
                    Some(other) => value.push(other),
                },
                _ if byte.is_ascii_whitespace() && !quoted => {
                    if !value.is_empty() {
                        value.push(byte);
                    }
                    continue;
                }
                _ => value.push(byte),
            }
            kept = value.len();
        }
        value.truncate(kept);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, String, String)> {
        let text_of = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        settings(text.as_bytes())
            .into_iter()
            .map(|one| (text_of(one.section), text_of(one.key), text_of(one.value)))
            .collect()
    }

    #[test]
    fn a_setting_is_found_however_it_is_written() {
        for text in [
            "[core]\n\thooksPath = tools/x",
            "[CORE] HooksPath=\"tools/x\" ; why",
            "[core]\nhookspath = \"tools\"/x # why",
            "[core] hooksPath = tools/x # see [1]\n",
            "[core]\r\nhooksPath = tools/x\r\n",
            "\u{feff}[core]\nhooksPath = tools/x",
            "[core]\nhooksPath = tools\\\n/x",
            "[core]\nhooksPath = \\\n  tools/x  \n",
            "[core]\nhooksPath = tools/x\\\n\n",
            "[core]\n?\nhooksPath = tools/x",
            "# [other]\n[core]hooksPath=tools/x",
        ] {
            let expected = ("core".to_owned(), "hookspath".to_owned(), "tools/x".to_owned());
            assert_eq!(read(text), [expected], "{text}");
        }
    }

    #[test]
    fn a_line_that_goes_on_begins_no_section() {
        let all = read("[core]\n editor = x \\\n[a]\n hooksPath = tools/h\n");
        assert_eq!(
            all[1],
            ("core".to_owned(), "hookspath".to_owned(), "tools/h".to_owned())
        );
        assert_eq!(all[0].2, "x [a]");
    }

    #[test]
    fn a_bracket_in_a_subsection_does_not_end_it() {
        let all = read("[includeIf \"gitdir:~/a]b\\\"/\"]\n\tpath = ../x\n[a \"b\"] c = \" d \"\n[e]\nf\ng = h;\n");
        let of = |s: &str, k: &str, v: &str| (s.to_owned(), k.to_owned(), v.to_owned());
        assert_eq!(
            all,
            [of("includeif", "path", "../x"), of("a", "c", " d "), of("e", "g", "h")]
        );
    }

    #[test]
    fn escapes_are_what_git_makes_of_them() {
        assert_eq!(read("[a]\nb = x\\ty\\nz\\\\\\\"")[0].2, "x\ty\nz\\\"");
    }
}

//! The text of a git config: its headers and settings, and where each stands.
//!
//! Read as git reads it (config.c, `git_parse_source` and `parse_value`; git-config(1), "Syntax"), but for what git takes
//! and no git writes: control characters, a byte-order mark, a comment that ends in a backslash. Of such a text nothing is
//! known. Other programs read these files too and each a little differently, so what stands as git writes it is told
//! apart as *plain*: there they all agree.

use std::ops::Range;

/// A section's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    /// In lower case.
    pub(crate) section: Vec<u8>,
    pub(crate) subsection: Option<Vec<u8>>,
    /// Whether it stands alone on its line, as git writes it.
    pub(crate) plain: bool,
    /// From bracket to bracket.
    pub(crate) range: Range<usize>,
}

/// One setting as it stands in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    /// The number of its header.
    pub(crate) header: usize,
    /// In lower case.
    pub(crate) key: Vec<u8>,
    /// Without quotes, escapes and comment; none where there is no equals sign.
    pub(crate) value: Option<Vec<u8>>,
    /// Whether it stands below a plain header, as git writes it.
    pub(crate) plain: bool,
    /// From the key to the end of its last line, without that.
    pub(crate) range: Range<usize>,
}

/// A config that is understood.
#[derive(Debug)]
pub(crate) struct Config<'a> {
    pub(crate) text: &'a [u8],
    pub(crate) headers: Vec<Header>,
    pub(crate) settings: Vec<Setting>,
}

impl<'a> Config<'a> {
    /// Reads a text; `None` where git would refuse it, or not all of it is understood.
    pub(crate) fn read(text: &'a [u8]) -> Option<Self> {
        let is_odd = |b: &u8| b.is_ascii_control() && !matches!(b, b'\t' | b'\n');
        if text.iter().any(is_odd) {
            return None;
        }
        let mut reader = Reader { text, at: 0 };
        let mut config = Self {
            text,
            headers: Vec::new(),
            settings: Vec::new(),
        };
        while let Some(byte) = reader.peek() {
            match byte {
                b' ' | b'\t' | b'\n' => reader.at += 1,
                b'#' | b';' => reader.comment()?,
                b'[' => config.headers.push(reader.header()?),
                _ if byte.is_ascii_alphabetic() => {
                    let header = config.headers.len().checked_sub(1)?;
                    let mut setting = reader.setting(header)?;
                    setting.plain &= config.headers.get(header)?.plain;
                    config.settings.push(setting);
                }
                _ => return None,
            }
        }
        Some(config)
    }

    /// The lines that a setting or header takes, where nothing else stands on them; else the thing alone.
    pub(crate) fn lines(&self, range: &Range<usize>) -> Range<usize> {
        let start = line_start(self.text, range.start);
        let end = line_end(self.text, range.end);
        let is_blank = |range: Range<usize>| self.text[range].iter().all(|b| matches!(b, b' ' | b'\t'));
        if is_blank(start..range.start) && is_blank(range.end..end) {
            start..(end + 1).min(self.text.len())
        } else {
            range.clone()
        }
    }
}

/// A value as git writes it.
pub fn written(value: &[u8]) -> Vec<u8> {
    let quoted = value.starts_with(b" ") || value.ends_with(b" ") || value.iter().any(|b| matches!(b, b';' | b'#'));
    let mut text = Vec::with_capacity(value.len() + 2);
    text.extend(quoted.then_some(b'"'));
    for byte in value {
        match byte {
            b'\n' => text.extend(b"\\n"),
            b'\t' => text.extend(b"\\t"),
            b'"' | b'\\' => text.extend([b'\\', *byte]),
            other => text.push(*other),
        }
    }
    text.extend(quoted.then_some(b'"'));
    text
}

/// Where the line of a place begins.
fn line_start(text: &[u8], at: usize) -> usize {
    text[..at].iter().rposition(|&b| b == b'\n').map_or(0, |end| end + 1)
}

/// Where the line of a place ends: at the line feed, or at the end of the text.
pub(crate) fn line_end(text: &[u8], at: usize) -> usize {
    text[at..]
        .iter()
        .position(|&b| b == b'\n')
        .map_or(text.len(), |length| at + length)
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// The next byte; the end of the text ends a line.
    fn next(&mut self) -> u8 {
        let byte = self.peek().unwrap_or(b'\n');
        self.at = (self.at + 1).min(self.text.len());
        byte
    }

    /// Goes to the end of a comment's line.
    fn comment(&mut self) -> Option<()> {
        let end = line_end(self.text, self.at);
        let comment = &self.text[self.at..end];
        self.at = end;
        (!comment.ends_with(b"\\")).then_some(())
    }

    fn header(&mut self) -> Option<Header> {
        let start = self.at;
        self.at += 1;
        let mut name = Vec::new();
        let mut quoted = None;
        loop {
            match self.next() {
                b']' => break,
                b' ' | b'\t' => {
                    quoted = Some(self.subsection()?);
                    break;
                }
                byte if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.') => {
                    name.push(byte.to_ascii_lowercase());
                }
                _ => return None,
            }
        }
        let range = start..self.at;
        // `[section.sub]` is an old way to write a subsection.
        let dot = name.iter().position(|&b| b == b'.');
        let old = dot.map(|dot| name.split_off(dot)[1..].to_vec());
        let plain = old.is_none()
            && quoted.as_ref().is_none_or(|name| {
                !name.is_empty()
                    && !name.iter().any(|b| matches!(b, b'"' | b'\\' | b'\t'))
                    && self.is_spelled(&range, name)
            })
            && self.is_alone(&range);
        let subsection = match (old, quoted) {
            (Some(old), Some(quoted)) => Some([old, quoted].join(&b'.')),
            (old, quoted) => old.or(quoted),
        };
        (!name.is_empty()).then_some(Header {
            section: name,
            subsection,
            plain,
            range,
        })
    }

    /// What is in the quotes, and the bracket behind them.
    fn subsection(&mut self) -> Option<Vec<u8>> {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        if self.next() != b'"' {
            return None;
        }
        let mut name = Vec::new();
        loop {
            match self.next() {
                b'\n' => return None,
                b'"' => break,
                b'\\' => match self.next() {
                    b'\n' => return None,
                    byte => name.push(byte),
                },
                byte => name.push(byte),
            }
        }
        (self.next() == b']').then_some(name)
    }

    /// Whether a header ends in one blank and the subsection, with nothing to be unescaped.
    fn is_spelled(&self, range: &Range<usize>, subsection: &[u8]) -> bool {
        let ending = [b" \"", subsection, b"\"]"].concat();
        let header = &self.text[range.clone()];
        header
            .strip_suffix(ending.as_slice())
            .is_some_and(|name| !name.ends_with(b" ") && !name.ends_with(b"\t"))
    }

    /// Whether nothing but blanks stands beside it on its line.
    fn is_alone(&self, range: &Range<usize>) -> bool {
        let line = line_start(self.text, range.start)..line_end(self.text, range.end);
        let beside = [&self.text[line.start..range.start], &self.text[range.end..line.end]];
        beside.concat().iter().all(|b| matches!(b, b' ' | b'\t'))
    }

    fn setting(&mut self, header: usize) -> Option<Setting> {
        let start = self.at;
        let mut key = Vec::new();
        while let Some(byte) = self.peek().filter(|b| b.is_ascii_alphanumeric() || *b == b'-') {
            key.push(byte.to_ascii_lowercase());
            self.at += 1;
        }
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        let value = match self.next() {
            b'\n' => None,
            b'=' => Some(self.value()?),
            _ => return None,
        };
        // Behind the line feed now, or at the end of the text.
        let behind = self.text[..self.at].ends_with(b"\n");
        let end = self.at - usize::from(behind);
        self.at = end;
        let range = start..end;
        let raw = &self.text[range.clone()];
        let plain = value.as_ref().is_some_and(|value| {
            let equals = raw.iter().position(|&b| b == b'=').unwrap_or_default();
            self.is_alone(&range) && raw[equals + 1..].trim_ascii() == written(value)
        });
        Some(Setting {
            header,
            key,
            value,
            plain,
            range,
        })
    }

    /// The value, up to and with the end of its last line.
    fn value(&mut self) -> Option<Vec<u8>> {
        let (mut value, mut quoted, mut kept) = (Vec::new(), false, 0);
        loop {
            match self.next() {
                b'\n' if quoted => return None,
                b'\n' => break,
                b'#' | b';' if !quoted => {
                    self.at -= 1;
                    self.comment()?;
                    self.next();
                    break;
                }
                b' ' | b'\t' if !quoted && value.is_empty() => continue,
                byte @ (b' ' | b'\t') if !quoted => {
                    value.push(byte);
                    continue;
                }
                b'"' => quoted = !quoted,
                b'\\' => match self.next() {
                    // Goes on in the next line; at the end of the text nothing does.
                    b'\n' if self.at < self.text.len() => continue,
                    b't' => value.push(b'\t'),
                    b'n' => value.push(b'\n'),
                    b'b' => value.push(8),
                    byte @ (b'\\' | b'"') => value.push(byte),
                    _ => return None,
                },
                byte => value.push(byte),
            }
            kept = value.len();
        }
        value.truncate(kept);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each setting as git names it, its value, and whether it is plain.
    fn read(text: &str) -> Option<Vec<(String, Option<String>, bool)>> {
        let text_of = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let config = Config::read(text.as_bytes())?;
        let named = config.settings.iter().map(|setting| {
            let header = &config.headers[setting.header];
            let parts = [Some(&header.section), header.subsection.as_ref(), Some(&setting.key)];
            let parts: Vec<String> = parts.into_iter().flatten().map(|part| text_of(part)).collect();
            (parts.join("."), setting.value.as_deref().map(text_of), setting.plain)
        });
        Some(named.collect())
    }

    #[test]
    fn settings_are_named_as_git_names_them() {
        for (text, name, value, plain) in [
            ("[core]\n\tbare = true\n", "core.bare", Some("true"), true),
            ("[core]\n\tbare = true", "core.bare", Some("true"), true),
            ("[CORE]\nBare=true\n", "core.bare", Some("true"), true),
            ("[a \"B c\"]\n\td = e\n", "a.B c.d", Some("e"), true),
            ("[a \"b\\\"\\c\"]\n\td = e\n", "a.b\"c.d", Some("e"), false),
            ("[A.B]\n\td = e\n", "a.b.d", Some("e"), false),
            ("[a.B \"C\"]\n\td = e\n", "a.b.C.d", Some("e"), false),
            ("[a  \"b\"]\n\td = e\n", "a.b.d", Some("e"), false),
            ("[a] b = c\n", "a.b", Some("c"), false),
            ("[a][b] c = d\n", "b.c", Some("d"), false),
            ("[a] # x\nb = c\n", "a.b", Some("c"), false),
            ("[a]\nb\n", "a.b", None, false),
            ("[a]\nb", "a.b", None, false),
            ("[a]\nb =\n", "a.b", Some(""), true),
            ("[a]\nb = c # d\n", "a.b", Some("c"), false),
            ("[a]\nb = \"c # d\"\n", "a.b", Some("c # d"), true),
            ("[a]\nb = \"c\"\n", "a.b", Some("c"), false),
            ("[a]\nb = c\\\"d\\\\\\n\n", "a.b", Some("c\"d\\\n"), true),
            ("[a]\nb = c \\\n  d\n", "a.b", Some("c   d"), false),
            ("[a]\nb = \"c \\\n[d]\"\n", "a.b", Some("c [d]"), false),
            ("[a]\nb = \" c\"\n", "a.b", Some(" c"), true),
        ] {
            let expected = (name.to_owned(), value.map(str::to_owned), plain);
            assert_eq!(read(text), Some(vec![expected]), "{text}");
        }
    }

    #[test]
    fn what_git_refuses_or_nobody_writes_is_not_understood() {
        for text in [
            "a = b\n",
            "[a\nb = c\n",
            "[a b]\nc = d\n",
            "[a \"b]\nc = d\n",
            "[a \"b\" ]\nc = d\n",
            "[]\nb = c\n",
            "[a]\nb c\n",
            "[a]\nb = \"c\n",
            "[a]\nb = \\x\n",
            "[a]\nb = c\\",
            "[a]\n= c\n",
            "[a]\r\nb = c\r\n",
            "[a]\nb = c\0\n",
            "[a]\nb = c\u{7f}\n",
            "[a]\n# b \\\nc = d\n",
            "[a]\nb = c # d \\\n",
            "\u{feff}[a]\nb = c\n",
        ] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }

    #[test]
    fn it_is_read_as_git_reads_it() {
        // Each piece may stand beside any other.
        let pieces = [
            "[a]",
            "[B \"c\"]",
            "[d.e]",
            " ",
            "\n",
            "\t",
            "k = v",
            "K=",
            "l",
            "# x",
            "; y",
            "\\",
            "\"",
            "m = \"n\\\n o\" p",
            "=",
            "q = r \\\n s",
        ];
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        let mut seed = 7_u64;
        let mut agreed = 0;
        for _ in 0..400 {
            let mut text = "[z]\n".to_owned();
            for _ in 0..7 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                text.push_str(pieces[usize::try_from(seed >> 33).unwrap() % pieces.len()]);
            }
            std::fs::write(&file, &text).unwrap();
            let Some(ours) = read(&text) else { continue };
            agreed += 1;
            assert_eq!(
                classify(&file),
                Some(ours.into_iter().map(|(n, v, _)| (n, v)).collect()),
                "{text:?}"
            );
        }
        assert!(agreed > 50, "{agreed}");
    }

    /// What git says a config holds.
    #[expect(clippy::disallowed_methods, reason = "git is asked what it reads")]
    fn classify(file: &std::path::Path) -> Option<Vec<(String, Option<String>)>> {
        let listed = std::process::Command::new("git")
            .args(["config", "--list", "-z", "--file"])
            .arg(file)
            .output();
        let listed = listed.unwrap();
        let text = String::from_utf8(listed.stdout).unwrap();
        let split = |one: &str| match one.split_once('\n') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (one.to_owned(), None),
        };
        listed
            .status
            .success()
            .then(|| text.split_terminator('\0').map(split).collect())
    }
}

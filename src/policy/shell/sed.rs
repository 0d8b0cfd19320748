//! Scripts of sed that certainly run nothing. GNU sed can run programs: with the command `e`, and with a flag of `s`.

use std::iter::Peekable;
use std::str::Chars;

/// Long options without a value that do not change which words are scripts.
const LONG: &str = "quiet silent regexp-extended in-place null-data separate unbuffered posix sandbox follow-symlinks";

/// Whether sed with these words runs nothing. A script file of `-f` is not read: it is bound like other scripts.
pub(super) fn runs_nothing(words: &[&str]) -> bool {
    let mut words = words.iter().copied();
    let mut has_script = false;
    let mut are_options = true;
    while let Some(word) = words.next() {
        let is_option = are_options && word.len() > 1 && word.starts_with('-');
        let of_option = if word == "--" && are_options {
            are_options = false;
            OptionValue::Nothing
        } else if is_option {
            parse_option(word)
        } else if has_script {
            OptionValue::Nothing
        } else {
            OptionValue::Script(Some(word))
        };
        let is_plain = match of_option {
            OptionValue::Nothing => continue,
            OptionValue::Script(script) => script.or_else(|| words.next()).is_some_and(is_plain),
            OptionValue::File(file) => file.or_else(|| words.next()).is_some_and(|file| file != "-"),
            OptionValue::Unknown => false,
        };
        if !is_plain {
            return false;
        }
        has_script = true;
    }
    true
}

/// The value of an option. An inner `None` means that it is the next word.
enum OptionValue<'a> {
    Nothing,
    Script(Option<&'a str>),
    File(Option<&'a str>),
    Unknown,
}

fn parse_option(word: &str) -> OptionValue<'_> {
    if let Some(long) = word.strip_prefix("--") {
        return match long.split_once('=') {
            None if long == "expression" => OptionValue::Script(None),
            None if long == "file" => OptionValue::File(None),
            None if LONG.split(' ').any(|known| known == long) => OptionValue::Nothing,
            Some(("expression", script)) => OptionValue::Script(Some(script)),
            Some(("file", file)) => OptionValue::File(Some(file)),
            Some(("in-place", _)) => OptionValue::Nothing,
            _ => OptionValue::Unknown,
        };
    }
    for (at, letter) in word.char_indices().skip(1) {
        let attached = word.get(at + 1..).filter(|rest| !rest.is_empty());
        match letter {
            'n' | 'E' | 'r' | 's' | 'u' | 'z' => {}
            // An attached value is the suffix of backups.
            'i' => return OptionValue::Nothing,
            'e' => return OptionValue::Script(attached),
            'f' => return OptionValue::File(attached),
            _ => return OptionValue::Unknown,
        }
    }
    OptionValue::Nothing
}

/// Whether a script has only known addresses and commands.
fn is_plain(script: &str) -> bool {
    // GNU sed expands the number of a character to that character.
    let spells = |rest: &str| rest.starts_with(['x', 'd', 'o', 'c']);
    if script.split('\\').skip(1).any(spells) {
        return false;
    }
    let mut script = Script(script.chars().peekable());
    while script.0.peek().is_some() {
        if script.command().is_none() {
            return false;
        }
    }
    true
}

/// The rest of a script. Methods return `None` for what is not known.
struct Script<'a>(Peekable<Chars<'a>>);

impl Script<'_> {
    fn command(&mut self) -> Option<()> {
        self.skip(|c| c.is_ascii_whitespace() || c == ';');
        if self.0.peek().is_none() {
            return Some(());
        }
        self.address()?;
        self.blanks();
        if self.0.next_if_eq(&',').is_some() {
            self.blanks();
            self.0.next_if(|c| matches!(c, '+' | '~'));
            self.address()?;
        }
        self.skip(|c| matches!(c, ' ' | '\t' | '!'));
        match self.0.next()? {
            '{' => return Some(()),
            '}' | 'p' | 'd' | '=' | 'n' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x' | 'D' | 'P' | 'l' => {}
            'q' => {
                self.blanks();
                self.skip(|c| c.is_ascii_digit());
            }
            'y' => self.between_delimiters()?,
            's' => {
                self.between_delimiters()?;
                self.skip(|c| c.is_ascii_digit() || "gpiImM".contains(c));
                if self.0.next_if_eq(&'w').is_some() {
                    self.skip(|c| c != '\n');
                }
            }
            // The rest of the line is a file name.
            'r' | 'w' => self.skip(|c| c != '\n'),
            _ => return None,
        }
        self.blanks();
        match self.0.peek() {
            None | Some(';' | '\n' | '}') => Some(()),
            Some(_) => None,
        }
    }

    fn address(&mut self) -> Option<()> {
        match self.0.peek()? {
            '$' => {
                self.0.next();
            }
            '/' => {
                self.0.next();
                self.regex('/')?;
                self.skip(|c| matches!(c, 'I' | 'M'));
            }
            _ => self.skip(|c| c.is_ascii_digit() || c == '~'),
        }
        Some(())
    }

    fn between_delimiters(&mut self) -> Option<()> {
        let delimiter = self.0.next().filter(|c| c.is_ascii_graphic() && *c != '\\')?;
        self.regex(delimiter)?;
        self.until(delimiter)
    }

    /// Skips a regular expression. Implementations disagree whether a delimiter in brackets ends it, so that is not known.
    fn regex(&mut self, delimiter: char) -> Option<()> {
        let mut bracket = false;
        loop {
            match self.0.next()? {
                '\n' => return None,
                c if c == delimiter => return (!bracket).then_some(()),
                '\\' => {
                    let escaped = self.0.next()?;
                    if escaped == '\n' || bracket && (matches!(escaped, ']' | '[') || escaped == delimiter) {
                        return None;
                    }
                }
                '[' if bracket => {
                    // A class (`[:alpha:]`) ends with two characters.
                    if let Some(kind) = self.0.next_if(|c| matches!(c, ':' | '.' | '=')) {
                        self.skip(|c| c.is_ascii_alphabetic() && c != delimiter);
                        (self.0.next()? == kind && self.0.next()? == ']').then_some(())?;
                    }
                }
                '[' => {
                    bracket = true;
                    self.0.next_if_eq(&'^');
                    self.0.next_if_eq(&']');
                }
                ']' => bracket = false,
                _ => {}
            }
        }
    }

    fn until(&mut self, delimiter: char) -> Option<()> {
        loop {
            match self.0.next()? {
                '\n' => return None,
                c if c == delimiter => return Some(()),
                '\\' if self.0.next()? == '\n' => return None,
                _ => {}
            }
        }
    }

    fn blanks(&mut self) {
        self.skip(|c| matches!(c, ' ' | '\t'));
    }

    fn skip(&mut self, is_skipped: impl Fn(char) -> bool) {
        while self.0.next_if(|c| is_skipped(*c)).is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_may_run_something_is_not_plain() {
        for script in [
            "1esh ?.sh",
            "1e sh ?.sh",
            "esh ?.sh",
            "e",
            "/a/esh ?.sh",
            "/a/Iesh ?.sh",
            "$esh x",
            "$!e sh x",
            "1,2{esh x\n}",
            "p;esh x",
            "p\nesh x",
            "pesh x",
            "1~2esh x",
            "\\,a,esh x",
            "s/.*/sh ?.sh/e",
            "s/.*/sh ?.sh/ge",
            "s/.*/sh ?.sh/Ie",
            "s/.*/sh ?.sh/me",
            "s/.*/sh ?.sh/pe",
            "s/.*/sh ?.sh/2e",
            "s_.*_sh ?.sh_e",
            "s-.*-sh ?.sh-e",
            "sa.*ash ?.shae",
            "s/[/]/x/e;s/a/]/",
            "s/[[:alpha:]/]/x/e",
            "s/[]/]/x/e",
            "s/[\\]/x/e#/",
            "s/a/b",
            "y/a/b/e",
            "a\\\nesh x",
            "b x",
            ":a",
            "# e",
            "v",
            "z",
            "s/\\x78/y/",
        ] {
            assert!(!is_plain(script), "{script}");
        }
    }

    #[test]
    fn a_script_of_known_commands_is_plain() {
        for script in [
            "",
            "p",
            "1,5p",
            "$d",
            "1!d",
            "/a/,/b/d",
            "/^$/d",
            "/a/I,+3 p",
            "0~3p",
            "$!{N;P;D}",
            "/x/{s/e/é/g;p;}",
            "10q",
            "q 5",
            "s/a$/b/",
            "s/\\./,/",
            "s|/usr|/opt|g",
            "s,a,b,2gp",
            "sexeye",
            "s/[^a-z]/e/gI",
            "s/[[:space:]]*$//",
            "s/a/b/; s/c/d/\ny/abc/xyz/",
            "s/e/\\n/w out",
            "r header",
        ] {
            assert!(is_plain(script), "{script}");
        }
    }

    #[test]
    fn each_script_among_the_words_is_looked_at() {
        for words in [
            &["1esh x", "f"][..],
            &["-n", "-e", "p", "-e", "1esh x", "f"],
            &["-ne1esh x", "f"],
            &["--expression=1esh x", "f"],
            &["--expression", "1esh x", "f"],
            &["--expr=1esh x", "f"],
            &["-i.bak", "1esh x", "f"],
            &["-s", "--", "1esh x"],
            &["p", "f", "-e", "1esh x"],
            &["-f", "-", "f"],
            &["-f-", "f"],
            &["--file=-", "f"],
            &["-f"],
            &["-l", "5", "p"],
        ] {
            assert!(!runs_nothing(words), "{words:?}");
        }
        for words in [
            &["-n", "1,5p", "e"][..],
            &["-e", "s/\\./,/", "-e", "s/a$/b/", "e"],
            &["-i", "s/one/three/g", "x"],
            &["-Ei.bak", "s/(a|b)/x/", "x"],
            &["--expression=p", "e"],
            &["-f", "x.sed", "e"],
            &["--in-place=.bak", "--quiet", "p", "--", "e"],
        ] {
            assert!(runs_nothing(words), "{words:?}");
        }
    }
}

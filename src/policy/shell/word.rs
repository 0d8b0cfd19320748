//! Raw words → what they will be once quotes are gone, and the commands hidden inside them.
//!
//! Written by hand and small, because it only has to know what bash and a POSIX sh agree on;
//! anything else is a doubt, and a doubt costs a question.

use super::walk::Reading;

/// A word of a simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Word {
    /// The word is this text.
    Literal(String),
    /// The word depends on something that is known only when it runs; the raw text.
    Dynamic(String),
}

impl Word {
    /// The text, if it is known.
    pub(super) fn literal(&self) -> Option<&str> {
        match self {
            Self::Literal(text) => Some(text),
            Self::Dynamic(_) => None,
        }
    }

    /// The text for a person.
    pub(super) fn shown(&self) -> &str {
        match self {
            Self::Literal(text) | Self::Dynamic(text) => text,
        }
    }
}

/// What surrounds the characters being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    /// Nothing: quotes quote, blanks are impossible, `*?[` and `{` expand.
    Word,
    /// Double quotes.
    Quotes,
    /// A here-document whose delimiter is not quoted: `'` and `"` are ordinary.
    Document,
    /// `${name-…}`, up to the closing brace.
    Braces,
}

/// Reads one raw word; commands inside it go to `reading`.
pub(super) fn read(raw: &str, reading: &mut Reading, depth: usize) -> Word {
    scan(raw, Within::Word, reading, depth)
}

/// Reads the body of a here-document that is expanded.
pub(super) fn read_document(raw: &str, reading: &mut Reading, depth: usize) {
    let _text = scan(raw, Within::Document, reading, depth);
}

fn scan(raw: &str, within: Within, reading: &mut Reading, depth: usize) -> Word {
    let mut scanner = Scanner {
        chars: raw.chars().collect(),
        at: 0,
        text: String::new(),
        dynamic: false,
        reading,
        depth,
    };
    match scanner.run(within) {
        Ok(()) if !scanner.dynamic => Word::Literal(scanner.text),
        Ok(()) => Word::Dynamic(raw.to_owned()),
        Err(doubt) => {
            scanner.reading.doubt(doubt);
            Word::Dynamic(raw.to_owned())
        }
    }
}

struct Scanner<'a> {
    chars: Vec<char>,
    at: usize,
    text: String,
    dynamic: bool,
    reading: &'a mut Reading,
    depth: usize,
}

/// Why a word is not understood.
type Doubt = &'static str;

const DIFFERENT: Doubt = "$'…', $\"…\" and $[…] mean different things to different shells";
const UNFINISHED: Doubt = "a quotation or substitution has no end";

impl Scanner<'_> {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }

    fn run(&mut self, within: Within) -> Result<(), Doubt> {
        let lone_bracket = within == Within::Word && self.chars == ['['];
        let mut previous = None;
        while let Some(c) = self.next() {
            match c {
                '\'' if within == Within::Word => self.single_quotes()?,
                '"' if within == Within::Word => self.double_quotes()?,
                '"' if within == Within::Quotes => return Ok(()),
                '}' if within == Within::Braces => return Ok(()),
                '\'' | '"' | '\\' if within == Within::Braces => return Err("quotes inside ${…}"),
                '\\' => self.backslash(within)?,
                '$' => self.dollar(within)?,
                '`' => self.backquotes()?,
                _ if within != Within::Word => self.text.push(c),
                '*' | '?' | '[' if !lone_bracket => self.expands(c),
                '{' if self.peek() == Some('}') => {
                    self.at += 1;
                    self.text.push_str("{}");
                }
                '{' => self.expands(c),
                '~' if previous.is_none_or(|p| matches!(p, '=' | ':')) => self.expands(c),
                '(' | ')' | '<' | '>' | '|' | '&' | ';' | '\n' | ' ' | '\t' => {
                    return Err("a word has an unquoted operator inside");
                }
                _ => self.text.push(c),
            }
            previous = Some(c);
        }
        match within {
            Within::Word | Within::Document => Ok(()),
            Within::Quotes | Within::Braces => Err(UNFINISHED),
        }
    }

    fn expands(&mut self, c: char) {
        self.dynamic = true;
        self.text.push(c);
    }

    fn single_quotes(&mut self) -> Result<(), Doubt> {
        loop {
            match self.next() {
                Some('\'') => return Ok(()),
                Some(c) => self.text.push(c),
                None => return Err(UNFINISHED),
            }
        }
    }

    fn double_quotes(&mut self) -> Result<(), Doubt> {
        self.run(Within::Quotes)
    }

    fn backslash(&mut self, within: Within) -> Result<(), Doubt> {
        let Some(c) = self.next() else { return Err(UNFINISHED) };
        let special = match within {
            Within::Word => true,
            Within::Quotes => matches!(c, '$' | '`' | '"' | '\\' | '\n'),
            Within::Document | Within::Braces => matches!(c, '$' | '`' | '\\' | '\n'),
        };
        if !special {
            self.text.push('\\');
        }
        if c != '\n' || !special {
            self.text.push(c);
        }
        Ok(())
    }

    fn backquotes(&mut self) -> Result<(), Doubt> {
        let start = self.at;
        while let Some(c) = self.next() {
            match c {
                '\\' => return Err("a backslash inside backquotes"),
                '`' => {
                    let line: String = self.chars[start..self.at - 1].iter().collect();
                    self.substitution(&line);
                    return Ok(());
                }
                _ => {}
            }
        }
        Err(UNFINISHED)
    }

    fn substitution(&mut self, line: &str) {
        self.dynamic = true;
        self.reading.line(line, self.depth + 1);
    }

    fn dollar(&mut self, within: Within) -> Result<(), Doubt> {
        match self.peek() {
            Some('(') if self.chars.get(self.at + 1) == Some(&'(') => {
                let start = self.at + 1;
                self.arithmetic().or_else(|doubt| {
                    // It may be a subshell in a substitution: then what stands in it runs.
                    self.reading.doubt(doubt);
                    self.at = start;
                    let line = self.until_parenthesis()?;
                    self.substitution(&line);
                    Ok(())
                })
            }
            Some('(') => {
                self.at += 1;
                let line = self.until_parenthesis()?;
                self.substitution(&line);
                Ok(())
            }
            Some('{') => {
                self.at += 1;
                self.parameter()
            }
            Some(c) if c.is_ascii_alphanumeric() || "_@*#?-$!".contains(c) => {
                self.dynamic = true;
                self.at += 1;
                if c == '_' || c.is_ascii_alphabetic() {
                    self.name();
                }
                Ok(())
            }
            Some('[') => Err(DIFFERENT),
            Some('\'' | '"') if within == Within::Word => Err(DIFFERENT),
            Some(_) | None => {
                self.text.push('$');
                Ok(())
            }
        }
    }

    fn name(&mut self) {
        while self.peek().is_some_and(|c| c == '_' || c.is_ascii_alphanumeric()) {
            self.at += 1;
        }
    }

    /// `$((…))` of numbers only: variables in it are evaluated again, and may hold commands.
    fn arithmetic(&mut self) -> Result<(), Doubt> {
        self.dynamic = true;
        self.at += 2;
        let mut open = 2_usize;
        while open > 0 {
            match self.next() {
                Some('(') => open += 1,
                Some(')') => open -= 1,
                Some(c) if c.is_ascii_digit() || " \t+-*/%<>=&|^~!?:".contains(c) => {}
                Some(_) => return Err("arithmetic with more than numbers"),
                None => return Err(UNFINISHED),
            }
        }
        Ok(())
    }

    /// `${…}`, after the brace.
    fn parameter(&mut self) -> Result<(), Doubt> {
        self.dynamic = true;
        if self.peek() == Some('#') && self.chars.get(self.at + 1) != Some(&'}') {
            self.at += 1;
        }
        match self.next() {
            Some(c) if c == '_' || c.is_ascii_alphabetic() => self.name(),
            Some(c) if c.is_ascii_digit() => {
                while self.peek().is_some_and(|c| c.is_ascii_digit()) {
                    self.at += 1;
                }
            }
            Some('@' | '*' | '#' | '?' | '-' | '$') => {}
            Some(_) => return Err("a parameter expansion that is not understood"),
            None => return Err(UNFINISHED),
        }
        let colon = self.peek() == Some(':');
        if colon {
            self.at += 1;
        }
        match self.next() {
            Some('}') if !colon => Ok(()),
            Some('-' | '+' | '?') => self.run(Within::Braces),
            Some('%' | '#') if !colon => self.run(Within::Braces),
            Some('=') => {
                self.reading.assign("${…=…}".to_owned());
                self.run(Within::Braces)
            }
            Some(_) => Err("a parameter expansion that is not understood"),
            None => Err(UNFINISHED),
        }
    }

    /// The text up to the parenthesis that closes `$(`, which is stepped over.
    ///
    /// Comments, here-documents and `case` patterns may hold a parenthesis that closes nothing.
    fn until_parenthesis(&mut self) -> Result<String, Doubt> {
        let start = self.at;
        let mut open = 1_usize;
        while let Some(c) = self.next() {
            match c {
                '\\' => {
                    self.next().ok_or(UNFINISHED)?;
                }
                '"' => self.skip_quotes()?,
                '`' => return Err("backquotes inside $(…)"),
                '$' if self.peek() == Some('{') => self.skip_braces()?,
                '\'' => while self.next().ok_or(UNFINISHED)? != '\'' {},
                '#' if !self.chars[start..self.at - 1]
                    .last()
                    .is_some_and(|p| p.is_ascii_alphanumeric() || *p == '$') =>
                {
                    return Err("a comment inside a substitution");
                }
                '<' if self.peek() == Some('<') && self.chars.get(self.at + 1) == Some(&'<') => self.at += 2,
                '<' if self.peek() == Some('<') => return Err("a here-document inside a substitution"),
                '(' => open += 1,
                ')' => {
                    open -= 1;
                    if open == 0 {
                        let line: String = self.chars[start..self.at - 1].iter().collect();
                        if line.contains("esac") {
                            return Err("a case statement inside a substitution");
                        }
                        return Ok(line);
                    }
                }
                _ => {}
            }
        }
        Err(UNFINISHED)
    }

    /// Steps over the rest of double quotes inside a substitution.
    fn skip_quotes(&mut self) -> Result<(), Doubt> {
        loop {
            match self.next().ok_or(UNFINISHED)? {
                '"' => return Ok(()),
                '`' => return Err("backquotes inside $(…)"),
                '\\' => {
                    self.next().ok_or(UNFINISHED)?;
                }
                '$' if self.peek() == Some('{') => self.skip_braces()?,
                '$' if self.peek() == Some('(') => {
                    self.at += 1;
                    let _inner = self.until_parenthesis()?;
                }
                _ => {}
            }
        }
    }

    /// Steps over a plain `${…}` inside a substitution.
    fn skip_braces(&mut self) -> Result<(), Doubt> {
        self.at += 1;
        loop {
            match self.next().ok_or(UNFINISHED)? {
                '}' => return Ok(()),
                '"' | '\'' | '`' | '$' | '\\' | '{' => return Err("${…} with more than text inside a substitution"),
                _ => {}
            }
        }
    }
}

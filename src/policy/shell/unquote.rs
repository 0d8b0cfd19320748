//! Raw words → words without quotes, and the commands inside them.
//!
//! It understands only what means the same to bash and to a POSIX sh. Anything else makes the line not understood, which costs a
//! question.

use super::analysis::Analysis;
use super::word::Word;

/// The context of the characters that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Within {
    /// No quotes: quotes have their meaning, there are no blanks, and `*?[` and `{` expand.
    Word,
    /// Double quotes.
    Quotes,
    /// A here-document whose mark is not quoted: `'` and `"` are ordinary characters.
    Document,
    /// The text after `-` in `${name-…}`, up to the brace.
    Braces,
}

/// Reads one raw word, and adds the commands inside it to `analysis`.
pub(super) fn read(raw: &str, analysis: &mut Analysis, depth: usize) -> Word {
    scan(raw, Within::Word, analysis, depth)
}

/// Reads the body of a here-document that is expanded.
pub(super) fn read_document(raw: &str, analysis: &mut Analysis, depth: usize) -> Word {
    scan(raw, Within::Document, analysis, depth)
}

fn scan(raw: &str, within: Within, analysis: &mut Analysis, depth: usize) -> Word {
    let mut scanner = Scanner {
        chars: raw.chars().collect(),
        at: 0,
        text: String::new(),
        dynamic: false,
        analysis,
        depth,
    };
    match scanner.run(within) {
        Ok(()) if !scanner.dynamic => Word::Literal(scanner.text),
        Ok(()) => Word::Dynamic(raw.to_owned()),
        Err(doubt) => {
            scanner.analysis.doubt(doubt);
            Word::Dynamic(raw.to_owned())
        }
    }
}

pub(super) struct Scanner<'a> {
    pub(super) chars: Vec<char>,
    pub(super) at: usize,
    pub(super) text: String,
    pub(super) dynamic: bool,
    pub(super) analysis: &'a mut Analysis,
    pub(super) depth: usize,
}

/// Why a word is not understood.
pub(super) type Doubt = &'static str;

pub(super) const DIFFERENT: Doubt = "$'…', $\"…\" and $[…] mean different things to different shells";
pub(super) const UNFINISHED: Doubt = "a quotation or substitution has no end";

impl Scanner<'_> {
    pub(super) fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }

    pub(super) fn run(&mut self, within: Within) -> Result<(), Doubt> {
        let lone_bracket = within == Within::Word && self.chars == ['['];
        let mut previous = None;
        while let Some(c) = self.next() {
            match c {
                '\'' if within == Within::Word => self.single_quotes()?,
                '"' if within == Within::Word => self.run(Within::Quotes)?,
                '"' if within == Within::Quotes => return Ok(()),
                '}' if within == Within::Braces => return Ok(()),
                '\'' | '"' | '\\' if within == Within::Braces => return Err("quotes inside ${…}"),
                '<' | '>' if within == Within::Braces && self.peek() == Some('(') => {
                    return Err("a process substitution inside ${…}");
                }
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
}

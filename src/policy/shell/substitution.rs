//! Substitutions, with `$` or backquotes: commands that run, and values that are known only then.

use super::unquote::{DIFFERENT, Doubt, Scanner, UNFINISHED, Within};

impl Scanner<'_> {
    pub(super) fn backquotes(&mut self) -> Result<(), Doubt> {
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
        self.analysis.line(line, self.depth + 1);
    }

    pub(super) fn dollar(&mut self, within: Within) -> Result<(), Doubt> {
        match self.peek() {
            Some('(') if self.chars.get(self.at + 1) == Some(&'(') => {
                let start = self.at + 1;
                self.arithmetic().or_else(|doubt| {
                    // It may be a substitution that begins with a subshell, whose commands run.
                    self.analysis.doubt(doubt);
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

    /// Reads `$((…))` with numbers only. Shells evaluate a variable in it, whose value may run commands.
    fn arithmetic(&mut self) -> Result<(), Doubt> {
        self.dynamic = true;
        self.at += 2;
        let mut open = 2_usize;
        while open > 0 {
            match self.next() {
                Some('(') => open += 1,
                Some(')') => {
                    open -= 1;
                    // Otherwise it is a substitution that begins with a subshell.
                    if open == 1 && self.peek() != Some(')') {
                        return Err("arithmetic that ends in the middle");
                    }
                }
                Some(c) if c.is_ascii_digit() || " \t+-*/%<>=&|^~!?:".contains(c) => {}
                Some(_) => return Err("arithmetic with more than numbers"),
                None => return Err(UNFINISHED),
            }
        }
        Ok(())
    }

    /// Reads `${…}`, from after the brace.
    fn parameter(&mut self) -> Result<(), Doubt> {
        self.dynamic = true;
        if self.peek() == Some('#') && self.chars.get(self.at + 1) != Some(&'}') {
            self.at += 1;
        }
        let start = self.at;
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
        let name: String = self.chars[start..self.at].iter().collect();
        let colon = self.peek() == Some(':');
        if colon {
            self.at += 1;
        }
        match self.next() {
            Some('}') if !colon => Ok(()),
            Some('-' | '+' | '?') => self.run(Within::Braces),
            Some('%' | '#') if !colon => self.run(Within::Braces),
            Some('=') => {
                self.analysis.assign("${…=…}".to_owned(), &name, None);
                self.run(Within::Braces)
            }
            Some(_) => Err("a parameter expansion that is not understood"),
            None => Err(UNFINISHED),
        }
    }

    /// The text up to the parenthesis that closes `$(`. That is skipped.
    ///
    /// A parenthesis in a comment, a here-document or a `case` pattern closes nothing.
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

    /// Skips the rest of double quotes inside a substitution.
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

    /// Skips a plain `${…}` inside a substitution.
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

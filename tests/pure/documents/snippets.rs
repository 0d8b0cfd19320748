//! A document, taken apart: its fenced and indented blocks, the words of the command lines in them.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;

/// A block of a document that is set apart.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    /// What stands after the fence; nothing for one that is indented.
    pub(crate) language: String,
    /// Where it begins, for whoever has to find it.
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// The fenced and indented blocks, in order.
pub(crate) fn blocks(document: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut open: Option<Block> = None;
    let mut is_indented = false;
    for (number, line) in document.lines().enumerate() {
        let place = number + 1;
        if let Some(mut block) = open.take() {
            if line.trim_start().starts_with("```") {
                found.push(block);
            } else {
                block.text.push_str(line);
                block.text.push('\n');
                open = Some(block);
            }
            is_indented = false;
        } else if let Some(language) = line.trim_start().strip_prefix("```") {
            open = Some(Block {
                language: language.trim().to_owned(),
                line: place,
                text: String::new(),
            });
        } else if let Some(text) = line.strip_prefix("    ") {
            if !is_indented {
                found.push(Block {
                    language: String::new(),
                    line: place,
                    text: String::new(),
                });
            }
            let block = found.last_mut().unwrap();
            block.text.push_str(text);
            block.text.push('\n');
            is_indented = true;
        } else {
            is_indented = false;
        }
    }
    assert!(open.is_none(), "a fence is not closed");
    found
}

/// Those of the language.
pub(crate) fn in_language<'a>(blocks: &'a [Block], language: &str) -> Vec<&'a Block> {
    blocks.iter().filter(|block| block.language == language).collect()
}

/// The lines of the block, those that end with a backslash joined.
pub(crate) fn lines(text: &str) -> Vec<String> {
    let joined = text.replace("\\\n", " ");
    joined.lines().map(str::to_owned).collect()
}

/// What stands between backquotes in the running text.
pub(crate) fn inline(document: &str) -> Vec<String> {
    let mut text = String::new();
    let mut is_fenced = false;
    for line in document.lines() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced && !line.starts_with("    ") {
            text.push_str(line);
            text.push(' ');
        }
    }
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The words of a line as a shell takes it apart, up to what is no argument any more: a pipe, a redirection, a comment.
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' | '"' => {
                let quoted: String = letters.by_ref().take_while(|next| *next != letter).collect();
                word.get_or_insert_default().push_str(&quoted);
            }
            ' ' | '\t' => found.extend(word.take()),
            '|' | '<' | '>' | ';' | '&' => break,
            '#' if word.is_none() => break,
            other => word.get_or_insert_default().push(other),
        }
    }
    found.extend(word);
    found
}

/// What Python's own reader of the language makes of the text, as JSON.
pub(crate) fn read_by_python(language: &str, text: &str) -> Result<Value, String> {
    const READERS: &str = r#"
import ast, json, sys
text = sys.stdin.read()
if sys.argv[1] == "toml":
    import tomllib
    print(json.dumps(tomllib.loads(text)))
else:
    compile(text, "snippet", "exec")
    lists = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.List)]
    print(json.dumps([[item.value for item in node.elts if isinstance(item, ast.Constant)] for node in lists]))
"#;
    let mut python = Command::new("/usr/bin/python3")
        .args(["-c", READERS, language])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    python.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = python.wait_with_output().unwrap();
    if output.status.success() {
        Ok(serde_json::from_slice(&output.stdout).unwrap())
    } else {
        Err(String::from_utf8(output.stderr).unwrap())
    }
}

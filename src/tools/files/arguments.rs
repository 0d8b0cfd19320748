//! The arguments of the file tools, as JSON has them.

use schemars::JsonSchema;
use schemars::transform::{RecursiveTransform, Transform as _};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::tools::call::ToolError;

/// Which file tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// `read_file`.
    Read,
    /// `list_files`.
    List,
    /// `search_files`.
    Search,
    /// `write_file`.
    Write,
    /// `edit_file`.
    Edit,
    /// `patch_file`.
    Patch,
    /// `delete_file`.
    Delete,
    /// `move_file`.
    Move,
    /// `make_directory`.
    MakeDirectory,
}

impl FileKind {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Self; 9] = [
        Self::Read,
        Self::List,
        Self::Search,
        Self::Write,
        Self::Edit,
        Self::Patch,
        Self::Delete,
        Self::Move,
        Self::MakeDirectory,
    ];

    /// The name of the tool.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read_file",
            Self::List => "list_files",
            Self::Search => "search_files",
            Self::Write => "write_file",
            Self::Edit => "edit_file",
            Self::Patch => "patch_file",
            Self::Delete => "delete_file",
            Self::Move => "move_file",
            Self::MakeDirectory => "make_directory",
        }
    }

    /// Whether it changes anything.
    pub const fn changes(self) -> bool {
        match self {
            Self::Read | Self::List | Self::Search => false,
            Self::Write | Self::Edit | Self::Patch | Self::Delete | Self::Move | Self::MakeDirectory => true,
        }
    }

    /// What an agent is told of it.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Read => {
                "Read a text file, or some lines of it. Tells how many lines there are, so that the rest can be asked for."
            }
            Self::List => {
                "List the files below a directory, sorted; files that .gitignore names are left out unless asked for. \
                 Without a path: the working directory."
            }
            Self::Search => {
                "Search files for lines that match a regular expression, with their numbers. Binary files and what \
                 .gitignore names are left out."
            }
            Self::Write => {
                "Write a whole file: a new one, or in place of what is there. Missing directories are made. To change \
                 a part of a file, edit_file is safer."
            }
            Self::Edit => {
                "Replace exact pieces of text in a file. Each `old` must be there exactly once (or set `all`); either \
                 every replacement is made or none."
            }
            Self::Patch => {
                "Apply a unified diff (as `git diff` prints it) to one or more files: all of it, or nothing."
            }
            Self::Delete => {
                "Delete a file, a symlink, or an empty directory; with `recursive` a directory with everything in it."
            }
            Self::Move => "Rename or move a file or directory. Nothing may be at the new path.",
            Self::MakeDirectory => "Make a directory, and missing ones on the way to it.",
        }
    }

    /// JSON Schema of its arguments.
    pub fn schema(self) -> Value {
        let schema = match self {
            Self::Read => schemars::schema_for!(ReadFile),
            Self::List => schemars::schema_for!(ListFiles),
            Self::Search => schemars::schema_for!(SearchFiles),
            Self::Write => schemars::schema_for!(WriteFile),
            Self::Edit => schemars::schema_for!(EditFile),
            Self::Patch => schemars::schema_for!(PatchFile),
            Self::Delete => schemars::schema_for!(DeleteFile),
            Self::Move => schemars::schema_for!(MoveFile),
            Self::MakeDirectory => schemars::schema_for!(MakeDirectory),
        };
        bare(schema)
    }
}

/// A schema without what says nothing about the arguments, and without the formats that name types of Rust (`uint64`): no
/// standard knows them, and clients warn of each.
pub(crate) fn bare(mut schema: schemars::Schema) -> Value {
    RecursiveTransform(|schema: &mut schemars::Schema| {
        schema.remove("format");
    })
    .transform(&mut schema);
    let mut schema = schema.to_value();
    if let Value::Object(members) = &mut schema {
        members.retain(|name, _| !["$schema", "title", "description"].contains(&name.as_str()));
    }
    schema
}

/// The arguments of a call, for the tool of that name.
pub(crate) fn parse<T: DeserializeOwned>(tool: &str, args: &Value) -> Result<T, ToolError> {
    let args = match args {
        Value::Null => Value::Object(serde_json::Map::new()),
        args => args.clone(),
    };
    serde_path_to_error::deserialize(args).map_err(|error| {
        let what = error
            .inner()
            .to_string()
            .replace("expected u64", "expected a whole number");
        let why = match error.path().to_string().as_str() {
            "." | "?" => what,
            argument => format!("`{argument}`: {what}"),
        };
        ToolError::Arguments {
            tool: tool.to_owned(),
            why: crate::policy::path::escape(why.as_bytes()),
        }
    })
}

/// `read_file`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadFile {
    /// The file: `root:path`, absolute, or relative to the working directory.
    pub(crate) path: String,
    /// The first line to give, from 1.
    pub(crate) first_line: Option<u64>,
    /// How many bytes of that line to leave out: the rest of one that is too long for one answer. Default: none.
    pub(crate) skip_bytes: Option<u64>,
    /// How many lines to give. Default: as many as fit.
    pub(crate) lines: Option<u64>,
}

/// `list_files`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListFiles {
    /// The directory. Default: the working directory.
    pub(crate) path: Option<String>,
    /// A glob that paths below it must match: `*.rs`, `src/**/*.md`.
    pub(crate) glob: Option<String>,
    /// How many levels down. Default: 1 without a glob, all with one.
    pub(crate) depth: Option<u32>,
    /// Whether names that begin with a dot are listed.
    #[serde(default)]
    pub(crate) hidden: bool,
    /// Whether what .gitignore names is listed.
    #[serde(default)]
    pub(crate) ignored: bool,
    /// The most entries to give. Default 500.
    pub(crate) limit: Option<u64>,
}

/// `search_files`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchFiles {
    /// A regular expression that a line must match.
    pub(crate) pattern: String,
    /// The directory or file to search. Default: the working directory.
    pub(crate) path: Option<String>,
    /// A glob that paths below it must match: `*.rs`, `src/**/*.md`.
    pub(crate) glob: Option<String>,
    /// Whether letters match in either case.
    #[serde(default)]
    pub(crate) ignore_case: bool,
    /// Whether files whose names begin with a dot are searched.
    #[serde(default)]
    pub(crate) hidden: bool,
    /// Whether what .gitignore names is searched.
    #[serde(default)]
    pub(crate) ignored: bool,
    /// How many lines around a match to give with it. Default 0.
    pub(crate) context: Option<u32>,
    /// The most matches to give. Default 100.
    pub(crate) limit: Option<u64>,
}

/// `write_file`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteFile {
    /// The file: `root:path`, absolute, or relative to the working directory.
    pub(crate) path: String,
    /// Its whole content.
    pub(crate) content: String,
}

/// `edit_file`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditFile {
    /// The file: `root:path`, absolute, or relative to the working directory.
    pub(crate) path: String,
    /// The replacements, made one after the other.
    pub(crate) edits: Vec<EditText>,
}

/// One replacement.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditText {
    /// The text that must be there, exactly.
    pub(crate) old: String,
    /// The text that takes its place.
    pub(crate) new: String,
    /// Whether every occurrence is replaced; else there must be only one.
    #[serde(default)]
    pub(crate) all: bool,
}

/// `patch_file`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PatchFile {
    /// The unified diff, of one file or of several.
    pub(crate) patch: String,
    /// The directory that the paths in it are relative to. Default: the working directory.
    pub(crate) directory: Option<String>,
}

/// `delete_file`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeleteFile {
    /// What to delete: `root:path`, absolute, or relative to the working directory.
    pub(crate) path: String,
    /// Whether a directory goes with everything in it.
    #[serde(default)]
    pub(crate) recursive: bool,
}

/// `move_file`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MoveFile {
    /// What to move.
    pub(crate) from: String,
    /// Its new path; nothing may be there.
    pub(crate) to: String,
}

/// `make_directory`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MakeDirectory {
    /// The directory.
    pub(crate) path: String,
}

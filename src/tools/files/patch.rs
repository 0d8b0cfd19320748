//! A unified diff of several files → one change for each.

use diffy::patch_set::{FileMode, FileOperation, ParseOptions, PatchKind, PatchSet};

const MOST_FILES: usize = 500;

/// What a patch does to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FilePatch {
    /// The file, as the patch names it, its `a/` or `b/` taken off.
    pub(super) path: String,
    pub(super) change: PatchChange,
}

/// What a patch does to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PatchChange {
    /// Changes or makes it, by these hunks.
    Hunks(String),
    /// Removes it, which these hunks must empty.
    Delete(String),
}

/// Reads a patch; why it cannot be read, or does what `patch_file` does not.
pub(super) fn read(text: &str) -> Result<Vec<FilePatch>, String> {
    let git = text.starts_with("diff --git ") || text.contains("\ndiff --git ");
    let options = if git {
        ParseOptions::gitdiff()
    } else {
        ParseOptions::unidiff()
    };
    let mut files: Vec<FilePatch> = Vec::new();
    for file in PatchSet::parse(text, options) {
        let file = file.map_err(|error| {
            format!("the patch cannot be read ({error}); a unified diff has `---`, `+++` and `@@` lines for each file")
        })?;
        let one = one(&file)?;
        if files.iter().any(|other| other.path == one.path) {
            return Err(format!("the patch changes {} twice", one.path));
        }
        files.push(one);
        if files.len() > MOST_FILES {
            return Err(format!("the patch changes more than {MOST_FILES} files"));
        }
    }
    if files.is_empty() {
        return Err("the patch is empty".to_owned());
    }
    Ok(files)
}

fn one(file: &diffy::patch_set::FilePatch<'_, str>) -> Result<FilePatch, String> {
    let (path, deletes) = match file.operation() {
        FileOperation::Modify { original, modified } => {
            let (from, to) = (stripped(original, "a/"), stripped(modified, "b/"));
            if from != to {
                return Err(format!("the patch renames {from} to {to}; move_file does that"));
            }
            (to, false)
        }
        FileOperation::Create(path) => (stripped(path, "b/"), false),
        FileOperation::Delete(path) => (stripped(path, "a/"), true),
        FileOperation::Rename { from, to } => {
            return Err(format!("the patch renames {from} to {to}; move_file does that"));
        }
        FileOperation::Copy { from, to } => {
            return Err(format!("the patch copies {from} to {to}; write_file does that"));
        }
    };
    if [file.old_mode(), file.new_mode()]
        .into_iter()
        .flatten()
        .any(|mode| matches!(mode, FileMode::Symlink | FileMode::Gitlink))
    {
        return Err(format!("the patch makes or changes {path}, which is no file"));
    }
    let PatchKind::Text(hunks) = file.patch() else {
        return Err(format!("the patch changes {path}, which is binary"));
    };
    let text = hunks.to_string();
    let hunks = text.find("@@ ").map(|at| text[at..].to_owned()).unwrap_or_default();
    Ok(FilePatch {
        path,
        change: if deletes {
            PatchChange::Delete(hunks)
        } else {
            PatchChange::Hunks(hunks)
        },
    })
}

fn stripped(path: &str, prefix: &str) -> String {
    path.strip_prefix(prefix).unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_of_a_patch_is_one_change() {
        let text = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n--- /dev/null\n+++ b/made\n@@ -0,0 +1 @@\n+line\n";
        let files = read(text).unwrap();
        assert_eq!(files.len(), 2);
        assert_eq!(files[0].path, "x");
        assert_eq!(
            files[0].change,
            PatchChange::Hunks("@@ -1 +1 @@\n-old\n+new\n".to_owned())
        );
        assert_eq!(files[1].path, "made");
    }

    #[test]
    fn what_it_does_not_do_is_refused_with_what_does() {
        let rename = "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n";
        assert!(read(rename).unwrap_err().contains("move_file"));
        let link = "diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+target\n\\ No newline at end of file\n";
        assert!(read(link).unwrap_err().contains("no file"));
        assert!(read("hello").is_err());
        let twice = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-b\n+c\n";
        assert!(read(twice).unwrap_err().contains("twice"));
    }
}

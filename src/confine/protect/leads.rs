//! Where the kernel would come to on a path, also where not all of it is there yet.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// How many links are followed, as the kernel does.
const MOST_LINKS: usize = 40;

enum Step {
    Up,
    Down(OsString),
}

/// Where an absolute path leads: links are followed as they come, those in what they lead to as well, and `..` is taken
/// from there. What is not there, or cannot be looked at, is no link.
///
/// `None` where that goes on and on, which the kernel refuses.
pub(super) fn leads_to(path: &Path) -> Option<PathBuf> {
    follow(path, |_| ())
}

/// The same, with every link on the way, each by where it is itself.
pub(super) fn links_on(path: &Path) -> (Vec<PathBuf>, Option<PathBuf>) {
    let mut links = Vec::new();
    let end = follow(path, |link| links.push(link.to_owned()));
    (links, end)
}

fn follow(path: &Path, mut passing: impl FnMut(&Path)) -> Option<PathBuf> {
    let mut left: VecDeque<Step> = steps(path).collect();
    let (mut at, mut links) = (PathBuf::from("/"), 0);
    while let Some(step) = left.pop_front() {
        let name = match step {
            Step::Up => {
                at.pop();
                continue;
            }
            Step::Down(name) => name,
        };
        at.push(name);
        let Ok(target) = std::fs::read_link(&at) else { continue };
        links += 1;
        passing(&at);
        if links > MOST_LINKS {
            return None;
        }
        if target.is_absolute() {
            at = PathBuf::from("/");
        } else {
            at.pop();
        }
        for step in steps(&target).rev() {
            left.push_front(step);
        }
    }
    Some(at)
}

fn steps(path: &Path) -> impl DoubleEndedIterator<Item = Step> + '_ {
    path.components().filter_map(|component| match component {
        Component::ParentDir => Some(Step::Up),
        Component::Normal(name) => Some(Step::Down(name.to_owned())),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed_to_what_is_not_there_yet() {
        let scratch = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(scratch.path()).unwrap();
        fs::create_dir_all(top.join("tools/sub")).unwrap();
        for (name, target) in [
            ("lnk", "tools"),
            ("deep", "lnk/sub"),
            ("dangling", "tools/none"),
            ("round", "round"),
        ] {
            symlink(target, top.join(name)).unwrap();
        }
        symlink(top.join("lnk"), top.join("whole")).unwrap();
        for (path, leads) in [
            ("tools/x", "tools/x"),
            ("lnk/h/x", "tools/h/x"),
            ("deep/../h", "tools/h"),
            ("dangling", "tools/none"),
            ("dangling/x", "tools/none/x"),
            ("whole/sub/./y", "tools/sub/y"),
            ("none/../lnk", "tools"),
        ] {
            assert_eq!(leads_to(&top.join(path)), Some(top.join(leads)), "{path}");
        }
        assert_eq!(leads_to(&top.join("round/x")), None);
    }
}

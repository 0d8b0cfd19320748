//! Path resolution as the kernel does it, also for paths that do not exist yet.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

/// How many links are followed, as the kernel does.
const MOST_LINKS: usize = 40;

enum Step {
    /// `..`, written in what lies in this directory.
    Up(Rc<Path>),
    Down(OsString),
}

/// A resolved path.
#[derive(Debug, Default)]
pub(crate) struct Resolution {
    /// Every link that was followed, by its own path.
    pub(crate) links: Vec<PathBuf>,
    /// The directories that it enters and leaves by `..`: a link in the place of one leads elsewhere. Not those that hold what
    /// the `..` is written in.
    pub(crate) detours: Vec<PathBuf>,
    /// The target; `None` for a loop, which the kernel refuses.
    pub(crate) end: Option<PathBuf>,
}

/// Where an absolute path leads: links are followed as they come, those in what they lead to as well, and `..` is taken
/// from there. What is not there, or cannot be looked at, is no link.
pub(crate) fn resolve(path: &Path) -> Option<PathBuf> {
    resolve_from(Path::new("/"), path).end
}

/// Resolves a path that is written in a file of `base`, an absolute path.
pub(crate) fn resolve_from(base: &Path, path: &Path) -> Resolution {
    let mut resolution = Resolution::default();
    let origin: Rc<Path> = match base.parent() {
        Some(_) => resolve(base).unwrap_or_else(|| base.to_owned()).into(),
        None => base.into(),
    };
    // The base is no part of what is written in it.
    let mut current = if path.is_absolute() {
        PathBuf::from("/")
    } else {
        origin.to_path_buf()
    };
    let mut detours: VecDeque<Step> = steps(path, &origin).collect();
    while let Some(step) = detours.pop_front() {
        let name = match step {
            Step::Up(origin) => {
                if !origin.starts_with(&current) {
                    resolution.detours.push(current.clone());
                }
                current.pop();
                continue;
            }
            Step::Down(name) => name,
        };
        current.push(name);
        let Ok(target) = std::fs::read_link(&current) else {
            continue;
        };
        resolution.links.push(current.clone());
        if resolution.links.len() > MOST_LINKS {
            return resolution;
        }
        current.pop();
        let origin: Rc<Path> = current.as_path().into();
        if target.is_absolute() {
            current = PathBuf::from("/");
        }
        let steps: Vec<Step> = steps(&target, &origin).collect();
        for step in steps.into_iter().rev() {
            detours.push_front(step);
        }
    }
    resolution.end = Some(current);
    resolution
}

fn steps<'a>(path: &'a Path, origin: &'a Rc<Path>) -> impl Iterator<Item = Step> + 'a {
    path.components().filter_map(|component| match component {
        Component::ParentDir => Some(Step::Up(Rc::clone(origin))),
        Component::Normal(name) => Some(Step::Down(name.to_owned())),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    })
}

/// The path without `.` and `..`.
pub(crate) fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            Component::RootDir | Component::Normal(_) | Component::Prefix(_) => normal.push(component),
        }
    }
    normal
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
            assert_eq!(resolve(&top.join(path)), Some(top.join(leads)), "{path}");
        }
        assert_eq!(resolve(&top.join("round/x")), None);
    }

    #[test]
    fn a_directory_is_left_where_it_holds_nothing_of_what_leaves_it() {
        let scratch = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(scratch.path()).unwrap();
        fs::create_dir_all(top.join("a/b/c")).unwrap();
        symlink("../x", top.join("a/b/up")).unwrap();
        symlink("../b/../y", top.join("a/b/round")).unwrap();
        symlink("b/c", top.join("a/in")).unwrap();
        for (base, path, detours) in [
            ("a/b", "../../x", &[][..]),
            ("a/b", "up", &[]),
            ("a", "../a/b", &[]),
            ("a", "b/../x", &["a/b"]),
            ("a", "none/../x", &["a/none"]),
            ("a/b", "round", &["a/b"][..0]),
            (".", "a/in/../x", &["a/b/c"]),
            (".", "a/b/round", &[]),
        ] {
            let found = resolve_from(&top.join(base), Path::new(path)).detours;
            let detours: Vec<PathBuf> = detours.iter().map(|path| top.join(path)).collect();
            assert_eq!(found, detours, "{path} in {base}");
        }
    }
}

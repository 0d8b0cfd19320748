//! Text → policy → profile. Whatever is accepted derives profiles that are never weaker than it, and its roots are
//! where they say they are; whatever is refused is refused with a place inside the text.

use std::os::unix::fs::{MetadataExt, symlink};
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use crate::bounds::{Bounds, bounded, workplace};
use stockade::config::{ConfigError, Context, Diagnostic, Loaded, Mark, examine};
use stockade::policy::AbsPath;
use stockade::profile::{ApprovedRoots, Call, derive, within};
use stockade::tools::plan::check_against;

const BOUNDS: Bounds = Bounds {
    bytes: 16 << 20,
    per_byte: 4096,
    time: Duration::from_secs(2),
};

struct Fixture {
    config: PathBuf,
    context: Context,
}

/// A home and a project with something of everything in it.
static FIXTURE: LazyLock<Fixture> = LazyLock::new(|| {
    let place = workplace();
    let (home, project) = (place.join("home"), place.join("project"));
    for folder in ["src/deep", "notes", "cache", ".git/hooks", "-rf", "q'\"x"] {
        std::fs::create_dir_all(project.join(folder)).unwrap();
    }
    for file in ["src/a.rs", "notes/a.md", ".env", ".git/config", "k.pem"] {
        std::fs::write(project.join(file), "x").unwrap();
    }
    std::fs::create_dir(&home).unwrap();
    symlink("src", project.join("link")).unwrap();
    symlink("nowhere", project.join("dangling")).unwrap();
    symlink("/etc", project.join("out")).unwrap();
    symlink(&project, home.join("work")).unwrap();
    let mut context = Context::host();
    context.variables = [
        ("HOME", home.clone()),
        ("CARGO_HOME", home.join(".cargo")),
        ("EMPTY", PathBuf::new()),
    ]
    .map(|(name, value)| (name.into(), value.into()))
    .into();
    context.home = Some(AbsPath::new(home).unwrap());
    Fixture {
        config: project.join("stockade.yaml"),
        context,
    }
});

pub(crate) fn run(text: &[u8]) {
    let world = &*FIXTURE;
    std::fs::write(&world.config, text).unwrap();
    bounded(text, BOUNDS, || match examine(&world.config, &world.context) {
        Ok(loaded) => accepted(&loaded),
        Err(ConfigError::Invalid(diagnostic)) => {
            assert!(diagnostic.mark.is_some(), "no place: {diagnostic}");
            tells(&diagnostic);
        }
        // What `os_profile` names is no ceiling, or not there.
        Err(ConfigError::Ceiling { .. }) => {}
        Err(other) => panic!("{other}"),
    });
}

fn accepted(loaded: &Loaded) {
    loaded.warnings.iter().for_each(tells);
    let policy = &loaded.policy;
    for root in &policy.roots {
        if loaded.missing.iter().any(|missing| missing.name == root.name) {
            continue;
        }
        let real = std::fs::canonicalize(&root.path).unwrap();
        assert_eq!(real, root.path.as_path(), "a root leads through a link");
        let there = std::fs::metadata(real).unwrap();
        let found = (there.dev(), there.ino());
        assert_eq!(found, (root.identity.device, root.identity.inode), "{}", root.path);
    }
    let some: Vec<String> = policy.roots.iter().step_by(2).map(|root| root.name.clone()).collect();
    let by = |asked: &ApprovedRoots, narrow: Option<Vec<String>>| {
        let asked = asked.clone();
        let call = Call {
            narrow,
            ..Call::of(asked)
        };
        let profile = derive(policy, &call);
        check_against(policy, &call, &profile).unwrap();
        profile
    };
    let asked = [
        ApprovedRoots::None,
        ApprovedRoots::Named(some.iter().cloned().collect()),
        ApprovedRoots::All,
    ];
    let wide = asked.each_ref().map(|asked| by(asked, None));
    for pair in wide.windows(2) {
        within(&pair[0], &pair[1]).unwrap();
    }
    for (asked, wide) in asked.iter().zip(&wide) {
        within(&by(asked, Some(some.clone())), wide).unwrap();
        within(&by(asked, Some(Vec::new())), wide).unwrap();
    }
}

fn tells(diagnostic: &Diagnostic) {
    diagnostic.mark.iter().chain(&diagnostic.related).for_each(is_inside);
    let shown = diagnostic.to_string();
    assert!(!shown.chars().any(|c| c != '\n' && c.is_control()), "{shown:?}");
}

fn is_inside(mark: &Mark) {
    let span = &mark.span;
    let text = span.source.shown();
    let index = usize::try_from(span.line).unwrap() - 1;
    let line = text.split('\n').nth(index);
    let characters = line.map(|line| line.chars().count());
    let column = usize::try_from(span.column).unwrap() - 1;
    assert!(
        characters.is_some_and(|most| column <= most),
        "{span} is not in {text:?}"
    );
    assert!(
        text.get(span.range()).is_some(),
        "{span}: {:?} of {text:?}",
        span.range()
    );
}

//! Changes of every kind that get in each other's way.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use super::*;

/// A change of any kind among few names, so that they get in each other's way.
fn any_change(world: &Fixture) -> impl Strategy<Value = Change> + use<> {
    let names = ["a", "b", "d", "d/c", "e", "new/x", "new/y/z"].map(|name| world.os(name));
    let name = || proptest::sample::select(names.to_vec());
    prop_oneof![
        (name(), "[a-c]{0,3}").prop_map(|(path, content)| write(&path, content)),
        name().prop_map(|path| edit(&path, &[("old", "new")])),
        (name(), name()).prop_map(|(from, to)| rename(&from, &to)),
        name().prop_map(|path| delete(&path, Tree::Empty)),
        name().prop_map(|path| delete(&path, Tree::Recursive)),
        name().prop_map(|path| Change::MakeDirectory { path }),
    ]
}

/// Makes a change with the plainest means.
fn make_plainly(change: &Change) {
    let above = |path: &OsStr| fs::create_dir_all(Path::new(path).parent().unwrap()).unwrap();
    match change {
        Change::Write { path, content, .. } => {
            above(path);
            fs::write(path, content).unwrap();
        }
        Change::Edit { path, .. } => {
            let content = fs::read_to_string(path).unwrap();
            fs::write(path, content.replace("old", "new")).unwrap();
        }
        Change::Move { from, to } => {
            above(to);
            fs::rename(from, to).unwrap();
        }
        Change::Delete { path, .. } if Path::new(path).is_dir() => fs::remove_dir_all(path).unwrap(),
        Change::Delete { path, .. } => fs::remove_file(path).unwrap(),
        Change::MakeDirectory { path } => fs::create_dir_all(path).unwrap(),
        Change::Patch { .. } => unreachable!("not among them"),
    }
}

/// A world with a few files and an empty directory in it.
fn furnished() -> Fixture {
    let world = Fixture::new();
    for name in ["a", "b", "d/c"] {
        world.file(name, format!("{name} old"));
    }
    fs::create_dir(world.path("e")).unwrap();
    world
}

fn below(world: &Fixture) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let top = world.path("");
    let each = world.snapshot().into_iter();
    each.map(|(path, content)| (Path::new(&path).strip_prefix(&top).unwrap().to_owned(), content))
        .collect()
}

#[test]
fn any_changes_are_made_together_as_one_by_one_or_not_at_all() {
    let (made, refused) = (Cell::new(0), Cell::new(0));
    let mut runner = TestRunner::new(ProptestConfig::with_cases(300));
    let cases = proptest::collection::vec(any::<u64>(), 1..5);
    runner
        .run(&cases, |seeds| {
            let (world, plain) = (furnished(), furnished());
            let pick = |world: &Fixture, seed: u64| {
                let mut bytes = [0; 32];
                bytes[..8].copy_from_slice(&seed.to_le_bytes());
                let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
                let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), rng);
                any_change(world).new_tree(&mut runner).unwrap().current()
            };
            let changes: Vec<Change> = seeds.iter().map(|seed| pick(&world, *seed)).collect();
            let possible: Vec<usize> = (0..changes.len())
                .filter(|at| world.prepare(&changes[*at]).is_ok())
                .collect();
            let bounds = possible.iter().map(|at| world.bound(changes[*at].clone())).collect();
            let before = below(&world);
            if world.apply(bounds).is_ok() {
                let is_removal = |at: &&usize| matches!(changes[**at], Change::Delete { .. });
                let (removals, others): (Vec<&usize>, Vec<&usize>) = possible.iter().partition(is_removal);
                for at in others.into_iter().chain(removals) {
                    make_plainly(&pick(&plain, seeds[*at]));
                }
                made.set(made.get() + 1);
                prop_assert_eq!(below(&world), below(&plain), "{:?}", changes);
            } else {
                refused.set(refused.get() + 1);
                prop_assert_eq!(below(&world), before, "{:?}", changes);
            }
            Ok(())
        })
        .unwrap();
    assert!(made.get() > 20 && refused.get() > 20, "{made:?} {refused:?}");
}

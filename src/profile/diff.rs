//! How two reaches differ: all the places where they do, not only the first.

use std::collections::BTreeMap;

use super::order::{FileReach, Landmarks, Permission};
use super::profile::Profile;
use crate::policy::{AbsPath, Access, Operation};

/// What one side permits and the other does not, one witness for each operation and named place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Excess {
    /// The witnesses: files sorted by path, then network, sockets, limits, environment.
    pub witnesses: Vec<Permission>,
    /// How many more file witnesses there are.
    pub more: usize,
}

impl Excess {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.witnesses.is_empty()
    }
}

/// What `a` permits and `b` does not, and the reverse. At most `most` file witnesses a side.
///
/// Both are empty iff the profiles permit exactly the same.
pub fn diff(a: &Profile, b: &Profile, most: usize) -> (Excess, Excess) {
    let mut both = files(a, b, most);
    for (excess, wide, tight) in [(&mut both.0, a, b), (&mut both.1, b, a)] {
        let network = wide.network.beyond(&tight.network).into_iter();
        let network = network.map(|(reached, _)| Permission::Network(reached));
        let sockets = (wide.unix_sockets > tight.unix_sockets).then_some(Permission::UnixSockets(wide.unix_sockets));
        excess.witnesses.extend(network.chain(sockets));
        excess.witnesses.dedup();
        let limits = wide.limits.all_wider_than(&tight.limits).map(Permission::Limit);
        excess.witnesses.extend(limits);
        let variables = wide.environment.all_wider_than(&tight.environment);
        excess.witnesses.extend(variables.cloned().map(Permission::Variable));
    }
    both
}

/// One way in which a place differs; a place below it that differs in the same way says nothing new.
type Difference = (Operation, Access, Access);

#[derive(Default)]
struct Side {
    found: BTreeMap<(AbsPath, Operation), Permission>,
    /// The ways that hold at the landmarks on the way down, with the landmark.
    on_path: Vec<(AbsPath, Difference)>,
    more: usize,
}

impl Side {
    fn add(&mut self, landmark: &AbsPath, path: &AbsPath, difference: Difference, most: usize) {
        self.on_path.retain(|(above, _)| landmark.is_within(above));
        if self.on_path.iter().any(|(_, known)| *known == difference) {
            return;
        }
        self.on_path.push((landmark.clone(), difference));
        let (operation, access, _) = difference;
        if self.found.len() >= most {
            self.more += 1;
            return;
        }
        let permission = Permission::File {
            operation,
            path: path.clone(),
            access,
        };
        self.found.entry((path.clone(), operation)).or_insert(permission);
    }

    fn into_excess(self) -> Excess {
        Excess {
            witnesses: self.found.into_values().collect(),
            more: self.more,
        }
    }
}

fn files(a: &dyn FileReach, b: &dyn FileReach, most: usize) -> (Excess, Excess) {
    let mut landmarks = Landmarks::default();
    a.landmarks(&mut landmarks);
    b.landmarks(&mut landmarks);
    let (in_a, in_b) = (a.prepared(), b.prepared());
    let (mut only_a, mut only_b) = (Side::default(), Side::default());
    landmarks.visit(|landmark, path| {
        let (says_a, says_b) = (in_a(path), in_b(path));
        for operation in Operation::ALL {
            let (x, y) = (says_a.get(operation), says_b.get(operation));
            match x.cmp(&y) {
                std::cmp::Ordering::Greater => only_a.add(landmark, path, (operation, x, y), most),
                std::cmp::Ordering::Less => only_b.add(landmark, path, (operation, y, x), most),
                std::cmp::Ordering::Equal => {}
            }
        }
    });
    (only_a.into_excess(), only_b.into_excess())
}

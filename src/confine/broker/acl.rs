//! Which access lists (acl(5)) a command may give a file.
//!
//! A list can let other users in without a trace in the mode, also to what is made later in a directory. Only protected names
//! have theirs put back.
//! So a new list names only whom the list that is there names, with no more rights: what `cp -p` and `tar` need below a
//! directory with a default list. What shows in the mode is free, as with chmod.
//! An entry may also keep somebody out, whom the others or a group would let in. It is dropped only where whoever it names gets no
//! more from what remains. Nobody knows here who is in a group: a user counts as in each that remains, the members of one as in no other.

use std::ffi::CStr;

use nix::errno::Errno;

/// What a list starts with: the version that the kernel knows.
const VERSION: u32 = 2;
const GROUP_OBJ: u16 = 0x04;
const MASK: u16 = 0x10;
const OTHER: u16 = 0x20;
const USER: u16 = 0x02;
const GROUP: u16 = 0x08;
/// To read, write and execute.
const ALL: u16 = 7;
/// What numbers are shown as that a user namespace does not have: whose entry it is cannot be told.
const UNKNOWN: u32 = u32::MAX;

/// Which of its two lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Who may use the file.
    Access,
    /// What new files in the directory get.
    Default,
}

/// One entry, as `struct posix_acl_xattr_entry` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    tag: u16,
    rights: u16,
    id: u32,
}

/// A list as the kernel hands it out; no entries where there is none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct List(Vec<Entry>);

/// What somebody gets whom a list does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Remains {
    /// The most that being in groups gives.
    group: u16,
    /// What everybody has.
    other: u16,
}

impl Kind {
    /// The list that an extended attribute is.
    pub(super) fn of(name: &CStr) -> Option<Self> {
        match name.to_bytes() {
            b"system.posix_acl_access" => Some(Self::Access),
            b"system.posix_acl_default" => Some(Self::Default),
            _ => None,
        }
    }

    /// `EPERM` where the new list would let in somebody whom the mode and the present list do not show. An empty one removes it.
    pub(super) fn judge(self, present: &List, new: &List) -> Result<(), Errno> {
        let remains = match self {
            // Of a removed list the mode keeps the mask, as the group's, and the others.
            Self::Access if new.0.is_empty() => Remains {
                group: present.mask(),
                other: present.rights(OTHER, None),
            },
            // What new files have is then for each program that makes one to say.
            Self::Default if new.0.is_empty() => Remains { group: ALL, other: ALL },
            Self::Access | Self::Default => new.remains(),
        };
        let permitted = match self {
            Self::Access if new.0.is_empty() => present.mask() & !present.rights(GROUP_OBJ, None) == 0,
            Self::Access => {
                let group = present.0.is_empty() || new.is_within(present, GROUP_OBJ);
                group && new.names_within(present)
            }
            Self::Default => {
                let unnamed = [GROUP_OBJ, OTHER].into_iter().all(|tag| new.is_within(present, tag));
                unnamed && new.mask() & !present.mask() == 0 && new.names_within(present)
            }
        };
        if permitted && present.drops_nobody(new, remains) {
            Ok(())
        } else {
            Err(Errno::EPERM)
        }
    }
}

impl List {
    /// Reads one; the kernel's error where it would not take it.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Errno> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let (version, entries) = bytes.split_first_chunk::<4>().ok_or(Errno::EINVAL)?;
        if u32::from_le_bytes(*version) != VERSION {
            return Err(Errno::EOPNOTSUPP);
        }
        let (entries, rest) = entries.as_chunks::<8>();
        if !rest.is_empty() {
            return Err(Errno::EINVAL);
        }
        let entry = |[a, b, c, d, e, f, g, h]: &[u8; 8]| Entry {
            tag: u16::from_le_bytes([*a, *b]),
            rights: u16::from_le_bytes([*c, *d]),
            id: u32::from_le_bytes([*e, *f, *g, *h]),
        };
        Ok(Self(entries.iter().map(entry).collect()))
    }

    fn has(&self, tag: u16) -> bool {
        self.0.iter().any(|entry| entry.tag == tag)
    }

    /// The rights of an entry, none where it is not there. Only users and groups have a number.
    fn rights(&self, tag: u16, id: Option<u32>) -> u16 {
        let is_it = |entry: &&Entry| entry.tag == tag && id.is_none_or(|id| entry.id == id);
        self.0.iter().find(is_it).map_or(0, |entry| entry.rights)
    }

    /// The most that named users and groups and the owning group get.
    fn mask(&self) -> u16 {
        let tag = if self.has(MASK) { MASK } else { GROUP_OBJ };
        self.rights(tag, None)
    }

    fn is_within(&self, present: &Self, tag: u16) -> bool {
        self.rights(tag, None) & !present.rights(tag, None) == 0
    }

    /// What it gives those whom it does not name.
    fn remains(&self) -> Remains {
        let of_groups = self.0.iter().filter(|entry| matches!(entry.tag, GROUP | GROUP_OBJ));
        Remains {
            group: of_groups.fold(0, |all, entry| all | entry.rights) & self.mask(),
            other: self.rights(OTHER, None),
        }
    }

    /// Whether whoever it names, and the new one does not, gets no more from what remains.
    fn drops_nobody(&self, new: &Self, remains: Remains) -> bool {
        let is_kept = |entry: &&Entry| {
            let same = |kept: &Entry| kept.tag == entry.tag && kept.id == entry.id;
            entry.id != UNKNOWN && new.0.iter().any(same)
        };
        let named = self.0.iter().filter(|entry| matches!(entry.tag, USER | GROUP));
        named.filter(|entry| !is_kept(entry)).all(|entry| {
            let gets = match entry.tag {
                USER => remains.group | remains.other,
                // Whoever is in another group as well had its rights all along.
                _ => remains.other,
            };
            gets & !(entry.rights & self.mask()) == 0
        })
    }

    /// Whether everybody whom it names is named by the other, with no less rights.
    fn names_within(&self, present: &Self) -> bool {
        let named = self.0.iter().filter(|entry| matches!(entry.tag, USER | GROUP));
        named
            .map(|entry| (entry.rights, present.rights(entry.tag, Some(entry.id))))
            .all(|(new, old)| new & !old == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list in few words: `u` and `g` name somebody, `G` is the owning group, `m` the mask, `o` everybody.
    fn list(entries: &[(char, u32, u16)]) -> List {
        let owner = [1_u16, 7, 0xffff, 0xffff].map(u16::to_le_bytes).concat();
        let mut bytes = [2_u32.to_le_bytes().to_vec(), owner].concat();
        for (tag, id, rights) in entries {
            let tag = match tag {
                'u' => USER,
                'g' => GROUP,
                'G' => GROUP_OBJ,
                'm' => MASK,
                _ => OTHER,
            };
            bytes.extend([tag, *rights].map(u16::to_le_bytes).concat());
            bytes.extend(id.to_le_bytes());
        }
        List::parse(&bytes).unwrap()
    }

    #[test]
    fn an_access_list_names_only_whom_the_present_one_names_with_no_more_rights() {
        let none = List::default();
        let bob_reads = list(&[('u', 7, 4), ('G', 0, 4), ('m', 0, 4), ('o', 0, 0)]);
        let rows = [
            (&none, &list(&[('G', 0, 6), ('o', 0, 6)]), true),
            // Without a mask, what the mask showed is the group's.
            (&bob_reads, &list(&[('G', 0, 6), ('o', 0, 0)]), false),
            (&none, &bob_reads, false),
            (&bob_reads, &bob_reads, true),
            (
                &bob_reads,
                &list(&[('u', 7, 6), ('G', 0, 4), ('m', 0, 6), ('o', 0, 0)]),
                false,
            ),
            (
                &bob_reads,
                &list(&[('u', 8, 4), ('G', 0, 4), ('m', 0, 4), ('o', 0, 0)]),
                false,
            ),
            (
                &bob_reads,
                &list(&[('g', 7, 4), ('G', 0, 4), ('m', 0, 4), ('o', 0, 0)]),
                false,
            ),
            // The mask is what the mode shows of it.
            (
                &bob_reads,
                &list(&[('u', 7, 4), ('G', 0, 4), ('m', 0, 7), ('o', 0, 7)]),
                true,
            ),
            (
                &bob_reads,
                &list(&[('u', 7, 4), ('G', 0, 6), ('m', 0, 4), ('o', 0, 0)]),
                false,
            ),
        ];
        for (present, new, permitted) in rows {
            assert_eq!(
                Kind::Access.judge(present, new).is_ok(),
                permitted,
                "{present:?} → {new:?}"
            );
        }
    }

    #[test]
    fn an_access_list_goes_only_where_the_owning_group_gains_nothing() {
        let open = list(&[('u', 7, 6), ('G', 0, 6), ('m', 0, 6), ('o', 0, 0)]);
        let shut = list(&[('u', 7, 6), ('G', 0, 0), ('m', 0, 6), ('o', 0, 0)]);
        assert_eq!(Kind::Access.judge(&open, &List::default()), Ok(()));
        assert_eq!(Kind::Access.judge(&shut, &List::default()), Err(Errno::EPERM));
    }

    #[test]
    fn an_entry_goes_only_where_whoever_it_names_gets_no_more_from_what_remains() {
        let [none, plain] = [List::default(), list(&[('G', 0, 4), ('o', 0, 4)])];
        let of = |named: (char, u32, u16), mask: u16, other: u16| {
            list(&[named, ('G', 0, 4), ('m', 0, mask), ('o', 0, other)])
        };
        let rows = [
            // Kept out: everybody else reads.
            (of(('u', 7, 0), 4, 4), &none, false),
            (of(('g', 7, 0), 4, 4), &none, false),
            (of(('g', 7, 0), 4, 4), &plain, false),
            // The mask keeps out, too.
            (of(('u', 7, 4), 0, 4), &plain, false),
            (of(('u', 7, 4), 4, 4), &none, true),
            (of(('g', 7, 4), 4, 4), &plain, true),
            (of(('u', 7, 6), 6, 0), &plain, true),
            // A user may be in the group; who is in another group had its rights before.
            (of(('u', 7, 0), 4, 0), &none, false),
            (of(('g', 7, 0), 4, 0), &none, true),
            // Nobody can tell who is meant.
            (of(('u', UNKNOWN, 0), 4, 4), &plain, false),
        ];
        for (present, new, permitted) in &rows {
            assert_eq!(
                Kind::Access.judge(present, new).is_ok(),
                *permitted,
                "{present:?} → {new:?}"
            );
        }
        // Narrowed is not dropped.
        let [wide, narrow] = [of(('g', 7, 4), 4, 4), of(('g', 7, 0), 4, 4)];
        assert_eq!(Kind::Access.judge(&wide, &narrow), Ok(()));
        for (named, to) in [(('u', 7, 5), &none), (('g', 7, 0), &none), (('g', 7, 0), &plain)] {
            assert_eq!(
                Kind::Default.judge(&of(named, 5, 4), to),
                Err(Errno::EPERM),
                "{named:?}"
            );
        }
    }

    #[test]
    fn a_default_list_gives_new_files_no_more_than_the_present_one() {
        let none = List::default();
        let team = list(&[('g', 7, 7), ('G', 0, 5), ('m', 0, 7), ('o', 0, 0)]);
        let rows = [
            (&none, &list(&[('G', 0, 5), ('o', 0, 7)]), false),
            (&none, &list(&[('G', 0, 7), ('o', 0, 0)]), false),
            (&none, &list(&[('G', 0, 0), ('o', 0, 0)]), true),
            (&team, &team, true),
            (&team, &none, true),
            (&team, &list(&[('G', 0, 5), ('o', 0, 1)]), false),
            (
                &team,
                &list(&[('u', 9, 7), ('G', 0, 5), ('m', 0, 7), ('o', 0, 0)]),
                false,
            ),
        ];
        for (present, new, permitted) in rows {
            assert_eq!(
                Kind::Default.judge(present, new).is_ok(),
                permitted,
                "{present:?} → {new:?}"
            );
        }
    }

    #[test]
    fn what_is_no_list_is_not_taken() {
        for (bytes, error) in [
            (&b"\x02"[..], Errno::EINVAL),
            (b"\x02\0\0\0\x01", Errno::EINVAL),
            (b"\x03\0\0\0", Errno::EOPNOTSUPP),
        ] {
            assert_eq!(List::parse(bytes), Err(error), "{bytes:?}");
        }
    }
}

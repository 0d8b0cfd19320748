//! Random profiles × random operations × a real confined child: the kernel against the model.
//!
//! Each case makes a scratch [`tree`], a random policy over it ([`policies`]), lowers it with the code that every start
//! uses, and starts a real worker ([`confined`]) in which one small program really performs [`operations`] by system
//! call. The [`oracle`] says what the profile permits. What the kernel permits beyond it fails the run; what it refuses
//! beyond it must be for a reason on the declared list, and a declared reason must really hold.
//!
//! Paths are judged as the child spells them, after links and `..`. One thing is judged by the object: a rule for a
//! single file is tied to its inode, so where files are ruled one by one, each name that such a file had when the
//! command started reaches it. What it gives is what one of its names gives.
//!
//! A second kind of world has two unrelated profiles, one layer after the other, beside a twin under their intersection:
//! the answers must be the same. In namespaces the first of the two is mounts and a layer, the second one more layer of
//! Landlock inside them, as every layer inside another one is: nobody may mount there. The twin is mounts and a layer of
//! the intersection.
//!
//! In namespaces there is one thing more to be told apart: what is not granted is not there at all, so what lies on the
//! way to a path matters. Where mounts begin and end is read from the plan; which denies they leave to the layer inside
//! is said once more by `left`.
//!
//! `STOCKADE_DIFFERENTIAL_OPS` says how many operations each user tries (of each kind 5,000 by default, in namespaces 2,500);
//! `STOCKADE_DIFFERENTIAL_SEED` which ones (the default is fixed; `random` takes another each time, and prints it).

mod cases;
mod confined;
mod judge;
mod left;
mod mounted;
mod operations;
mod oracle;
mod places;
mod policies;
mod random;
mod report;
mod tools;
mod tree;
pub(crate) mod trials;

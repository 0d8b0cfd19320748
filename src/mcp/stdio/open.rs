//! The requests whose answers are not written yet.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;

use super::outbox::Rank;

/// The most calls that are not answered yet; others are told to come again. So a client that does not read its answers does not
/// make Stockade grow.
pub(super) const MOST_CALLS: usize = 1_024;
/// The most bytes of calls that are not answered yet. One may have 16 MiB, and is kept several times over.
pub(super) const MOST_BYTES: usize = 64 << 20;
/// The most other requests. Each has its answer soon, and none waits for calls.
const MOST_OTHERS: usize = 256;
/// The most requests that were given up and whose names are known.
const MOST_GIVEN_UP: usize = 4_096;

/// One that bears the name of another could not be told from it: neither its answer nor its cancellation would find it.
#[derive(Debug, Default)]
pub(super) struct Open(Mutex<Ids>);

#[derive(Debug, Default)]
struct Ids {
    open: HashMap<RequestId, (Rank, usize)>,
    calls: usize,
    /// Bytes of these.
    bytes: usize,
    /// Those that were given up: nothing says when what they began has ended, so their names are not free again.
    given_up: HashSet<RequestId>,
    /// The same, oldest first; the oldest is forgotten when there are too many.
    oldest: VecDeque<RequestId>,
}

/// Whether a request begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begins {
    Yes,
    /// There are as many as there may be.
    Busy,
    /// There was another of this name.
    Twice,
}

impl Ids {
    fn remove(&mut self, id: &RequestId) -> Option<Rank> {
        let (rank, length) = self.open.remove(id)?;
        if rank == Rank::Data {
            self.calls -= 1;
            self.bytes -= length;
        }
        Some(rank)
    }
}

impl Open {
    fn ids(&self) -> MutexGuard<'_, Ids> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a request of this name and length in bytes may begin; `Data` is the rank of calls.
    pub(super) fn begin(&self, id: &RequestId, rank: Rank, length: usize) -> Begins {
        let mut ids = self.ids();
        if ids.given_up.contains(id) || ids.open.contains_key(id) {
            return Begins::Twice;
        }
        let others = ids.open.len() - ids.calls;
        match rank {
            Rank::Data if ids.calls >= MOST_CALLS || ids.bytes + length > MOST_BYTES => return Begins::Busy,
            Rank::Control if others >= MOST_OTHERS => return Begins::Busy,
            Rank::Data => {
                ids.calls += 1;
                ids.bytes += length;
            }
            Rank::Control => {}
        }
        ids.open.insert(id.clone(), (rank, length));
        Begins::Yes
    }

    /// The rank of the answer to it.
    pub(super) fn rank(&self, id: &RequestId) -> Rank {
        self.ids().open.get(id).map_or(Rank::Data, |(rank, _)| *rank)
    }

    /// It is answered.
    pub(super) fn close(&self, id: &RequestId) {
        self.ids().remove(id);
    }

    /// It was cancelled, and is not answered.
    pub(super) fn give_up(&self, id: &RequestId) {
        let mut ids = self.ids();
        if ids.remove(id).is_some() && ids.given_up.insert(id.clone()) {
            ids.oldest.push_back(id.clone());
        }
        if ids.oldest.len() > MOST_GIVEN_UP
            && let Some(oldest) = ids.oldest.pop_front()
        {
            ids.given_up.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_other_requests_have_room_of_their_own() {
        let open = Open::default();
        let id = |number: usize| RequestId::Number(i64::try_from(number).unwrap());
        for number in 0..MOST_CALLS {
            assert_eq!(open.begin(&id(number), Rank::Data, 10), Begins::Yes);
        }
        assert_eq!(open.begin(&id(MOST_CALLS), Rank::Data, 10), Begins::Busy);
        assert_eq!(open.begin(&id(0), Rank::Control, 10), Begins::Twice);
        for number in 0..MOST_OTHERS {
            assert_eq!(open.begin(&id(2_000 + number), Rank::Control, 10), Begins::Yes);
        }
        assert_eq!(open.begin(&id(5_000), Rank::Control, 10), Begins::Busy);
        open.give_up(&id(0));
        assert_eq!(open.begin(&id(0), Rank::Data, 10), Begins::Twice);
        assert_eq!(open.begin(&id(MOST_CALLS), Rank::Data, 10), Begins::Yes);
        open.close(&id(1));
        assert_eq!(open.begin(&id(1), Rank::Data, 10), Begins::Yes);
    }
    #[test]
    fn calls_have_room_for_so_many_bytes_and_get_it_back() {
        let open = Open::default();
        let id = RequestId::Number;
        assert_eq!(open.begin(&id(0), Rank::Data, MOST_BYTES - 1), Begins::Yes);
        assert_eq!(open.begin(&id(1), Rank::Data, 2), Begins::Busy);
        assert_eq!(open.begin(&id(2), Rank::Data, 1), Begins::Yes);
        assert_eq!(open.begin(&id(3), Rank::Control, 2), Begins::Yes);
        open.close(&id(0));
        assert_eq!(open.begin(&id(4), Rank::Data, MOST_BYTES - 1), Begins::Yes);
        open.give_up(&id(4));
        assert_eq!(open.begin(&id(5), Rank::Data, MOST_BYTES - 1), Begins::Yes);
    }
}

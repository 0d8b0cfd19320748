//! The requests without a written answer.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;

use super::outbox::Priority;

/// The most open calls; others are refused as busy. It bounds the memory for a client that does not read.
pub(super) const MAX_CALLS: usize = 1_024;
/// The most bytes of open calls. One may have 16 MiB, and exists several times in memory.
pub(super) const MAX_BYTES: usize = 64 << 20;
/// The most other open requests.
const MAX_OTHERS: usize = 256;
/// The most ids of cancelled requests that are remembered.
const MAX_CANCELLED: usize = 4_096;

/// The open requests by id. An id that is used twice is refused: answers and cancellations would be ambiguous.
#[derive(Debug, Default)]
pub(super) struct OpenRequests(Mutex<Ids>);

#[derive(Debug, Default)]
struct Ids {
    open: HashMap<RequestId, (Priority, usize)>,
    calls: usize,
    /// The bytes of the calls.
    bytes: usize,
    /// The cancelled ids. They stay reserved: it is unknown when their work ends.
    cancelled: HashSet<RequestId>,
    /// The same, oldest first.
    oldest: VecDeque<RequestId>,
}

/// Whether a request is admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    Yes,
    /// There are too many.
    Busy,
    /// The id is in use.
    Duplicate,
}

impl Ids {
    fn remove(&mut self, id: &RequestId) -> Option<Priority> {
        let (priority, length) = self.open.remove(id)?;
        if priority == Priority::Data {
            self.calls -= 1;
            self.bytes -= length;
        }
        Some(priority)
    }
}

impl OpenRequests {
    fn ids(&self) -> MutexGuard<'_, Ids> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a request with this id and length in bytes, or not; `Data` is the priority of calls.
    pub(super) fn begin(&self, id: &RequestId, priority: Priority, length: usize) -> Admission {
        let mut ids = self.ids();
        if ids.cancelled.contains(id) || ids.open.contains_key(id) {
            return Admission::Duplicate;
        }
        let others = ids.open.len() - ids.calls;
        match priority {
            Priority::Data if ids.calls >= MAX_CALLS || ids.bytes + length > MAX_BYTES => return Admission::Busy,
            Priority::Control if others >= MAX_OTHERS => return Admission::Busy,
            Priority::Data => {
                ids.calls += 1;
                ids.bytes += length;
            }
            Priority::Control => {}
        }
        ids.open.insert(id.clone(), (priority, length));
        Admission::Yes
    }

    /// The priority of its answer.
    pub(super) fn priority(&self, id: &RequestId) -> Priority {
        self.ids()
            .open
            .get(id)
            .map_or(Priority::Data, |(priority, _)| *priority)
    }

    /// Removes an answered request.
    pub(super) fn close(&self, id: &RequestId) {
        self.ids().remove(id);
    }

    /// Removes a cancelled request, which is not answered.
    pub(super) fn cancel(&self, id: &RequestId) {
        let mut ids = self.ids();
        if ids.remove(id).is_some() && ids.cancelled.insert(id.clone()) {
            ids.oldest.push_back(id.clone());
        }
        if ids.oldest.len() > MAX_CANCELLED
            && let Some(oldest) = ids.oldest.pop_front()
        {
            ids.cancelled.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_other_requests_have_room_of_their_own() {
        let requests = OpenRequests::default();
        let id = |number: usize| RequestId::Number(i64::try_from(number).unwrap());
        for number in 0..MAX_CALLS {
            assert_eq!(requests.begin(&id(number), Priority::Data, 10), Admission::Yes);
        }
        assert_eq!(requests.begin(&id(MAX_CALLS), Priority::Data, 10), Admission::Busy);
        assert_eq!(requests.begin(&id(0), Priority::Control, 10), Admission::Duplicate);
        for number in 0..MAX_OTHERS {
            assert_eq!(
                requests.begin(&id(2_000 + number), Priority::Control, 10),
                Admission::Yes
            );
        }
        assert_eq!(requests.begin(&id(5_000), Priority::Control, 10), Admission::Busy);
        requests.cancel(&id(0));
        assert_eq!(requests.begin(&id(0), Priority::Data, 10), Admission::Duplicate);
        assert_eq!(requests.begin(&id(MAX_CALLS), Priority::Data, 10), Admission::Yes);
        requests.close(&id(1));
        assert_eq!(requests.begin(&id(1), Priority::Data, 10), Admission::Yes);
    }
    #[test]
    fn calls_have_room_for_so_many_bytes_and_get_it_back() {
        let requests = OpenRequests::default();
        let id = RequestId::Number;
        assert_eq!(requests.begin(&id(0), Priority::Data, MAX_BYTES - 1), Admission::Yes);
        assert_eq!(requests.begin(&id(1), Priority::Data, 2), Admission::Busy);
        assert_eq!(requests.begin(&id(2), Priority::Data, 1), Admission::Yes);
        assert_eq!(requests.begin(&id(3), Priority::Control, 2), Admission::Yes);
        requests.close(&id(0));
        assert_eq!(requests.begin(&id(4), Priority::Data, MAX_BYTES - 1), Admission::Yes);
        requests.cancel(&id(4));
        assert_eq!(requests.begin(&id(5), Priority::Data, MAX_BYTES - 1), Admission::Yes);
    }
}

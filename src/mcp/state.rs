//! Questions that were returned to a client with its call, and the sealed state that comes back with the answer.
//!
//! The client is untrusted. A state is sealed with a key of this process, bound to its call, and valid once and for a limited time.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rmcp::model::{RequestStateCodec, RequestStateError, SealOptions};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::approval::random;
use crate::tools::serving::ServeError;

/// The most open questions; beyond it the oldest expires.
const MAX_OPEN: usize = 10_000;

type Nonce = [u8; 16];

/// The open questions.
#[derive(Debug)]
pub(super) struct States {
    codec: RequestStateCodec,
    timeout: Duration,
    open: Mutex<BTreeMap<Nonce, OpenQuestion>>,
}

/// An open question, and when it expires.
#[derive(Debug)]
struct OpenQuestion {
    fingerprint: String,
    until: Instant,
}

/// Why a state is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StateError {
    /// It was made elsewhere, for another call, or was changed.
    Forged,
    /// It was used before, or has expired.
    Expired,
}

impl States {
    /// No questions, under a random key.
    pub(super) fn new(timeout: Duration) -> Result<Self, ServeError> {
        let key = random::<32>().map_err(ServeError::Random)?;
        let codec = RequestStateCodec::try_new(key).map_err(|error| ServeError::Client(error.to_string()))?;
        Ok(Self {
            codec,
            timeout,
            open: Mutex::default(),
        })
    }

    /// Seals a question with this fingerprint, for this call.
    pub(super) fn seal(&self, call: &[u8], fingerprint: &str) -> std::io::Result<String> {
        let nonce: Nonce = random()?;
        let mut open = self.open();
        let now = Instant::now();
        open.retain(|_, open| open.until > now);
        if open.len() >= MAX_OPEN
            && let Some(oldest) = open.iter().min_by_key(|(_, open)| open.until).map(|(nonce, _)| *nonce)
        {
            open.remove(&oldest);
        }
        open.insert(
            nonce,
            OpenQuestion {
                fingerprint: fingerprint.to_owned(),
                until: now + self.timeout,
            },
        );
        drop(open);
        let options = SealOptions::new().associated_data(call).ttl(self.timeout);
        Ok(self.codec.seal_with(&nonce, &options))
    }

    /// Uses a state: returns the fingerprint of its question, if it was sealed for this call, has not expired, and was not used before.
    pub(super) fn open_once(&self, call: &[u8], sealed: &str) -> Result<String, StateError> {
        let nonce = self.nonce(call, sealed)?;
        let open = self.open().remove(&nonce).ok_or(StateError::Expired)?;
        if open.until > Instant::now() {
            Ok(open.fingerprint)
        } else {
            Err(StateError::Expired)
        }
    }

    /// Whether this process sealed the state for this call. It is not used.
    pub(super) fn verify(&self, call: &[u8], sealed: &str) -> Result<(), StateError> {
        self.nonce(call, sealed).map(|_nonce| ())
    }

    fn nonce(&self, call: &[u8], sealed: &str) -> Result<Nonce, StateError> {
        let nonce = self.codec.open_with(sealed, call).map_err(|error| match error {
            RequestStateError::Expired => StateError::Expired,
            _ => StateError::Forged,
        })?;
        Nonce::try_from(nonce.as_slice()).map_err(|_| StateError::Forged)
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<Nonce, OpenQuestion>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a state is bound to: the tool and its arguments.
pub(super) fn binding(tool: &str, arguments: &Value) -> Vec<u8> {
    let mut hash = Sha256::new();
    for field in [tool.as_bytes(), arguments.to_string().as_bytes()] {
        hash.update(u64::try_from(field.len()).unwrap_or(u64::MAX).to_le_bytes());
        hash.update(field);
    }
    hash.finalize().to_vec()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn states() -> States {
        States::new(Duration::from_mins(1)).unwrap()
    }

    #[test]
    fn a_state_opens_once_for_the_call_it_was_sealed_for() {
        let states = states();
        let call = binding("write_file", &json!({"path": "a"}));
        let sealed = states.seal(&call, "f").unwrap();
        assert_eq!(states.open_once(&call, &sealed).as_deref(), Ok("f"));
        assert_eq!(states.open_once(&call, &sealed), Err(StateError::Expired));
    }

    #[test]
    fn a_state_opens_for_no_other_call_and_in_no_other_process() {
        let (states, others) = (states(), self::states());
        let call = binding("write_file", &json!({"path": "a"}));
        let sealed = states.seal(&call, "f").unwrap();
        for other in [
            binding("write_file", &json!({"path": "b"})),
            binding("edit_file", &json!({"path": "a"})),
        ] {
            assert_eq!(states.open_once(&other, &sealed), Err(StateError::Forged));
        }
        assert_eq!(others.open_once(&call, &sealed), Err(StateError::Forged));
        assert_eq!(states.open_once(&call, &sealed).as_deref(), Ok("f"));
    }

    #[test]
    fn a_state_that_was_touched_does_not_open() {
        let states = states();
        let call = binding("shell", &json!({}));
        let sealed = states.seal(&call, "f").unwrap();
        for index in 0..sealed.len() {
            let mut touched = sealed.clone().into_bytes();
            touched[index] ^= 1;
            let touched = String::from_utf8_lossy(&touched).into_owned();
            assert_eq!(states.open_once(&call, &touched), Err(StateError::Forged), "{index}");
        }
        assert_eq!(states.open_once(&call, ""), Err(StateError::Forged));
        assert!(states.open_once(&call, &sealed).is_ok());
    }

    #[test]
    fn a_state_expires() {
        let states = States::new(Duration::from_millis(20)).unwrap();
        let call = binding("shell", &json!({}));
        let sealed = states.seal(&call, "f").unwrap();
        std::thread::sleep(Duration::from_millis(40));
        assert_eq!(states.open_once(&call, &sealed), Err(StateError::Expired));
    }

    #[test]
    fn the_questions_that_are_out_are_bounded() {
        let states = states();
        let call = binding("shell", &json!({}));
        let first = states.seal(&call, "first").unwrap();
        for _ in 0..MAX_OPEN {
            states.seal(&call, "f").unwrap();
        }
        assert_eq!(states.open().len(), MAX_OPEN);
        assert_eq!(states.open_once(&call, &first), Err(StateError::Expired));
    }
}

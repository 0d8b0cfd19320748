//! Several profiles in one executor: each has a worker of its own, and what one's commands did is left alone by the
//! others.

pub(crate) mod trials;

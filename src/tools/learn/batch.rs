//! Many that would each be tried, tried together as far as they stand together.
//!
//! Each trial derives and lowers a whole config, so four hundred places tried one by one take as many times as long as one.

/// How many are tried together at most: as many as there are.
pub(super) const ALL: usize = usize::MAX;

/// Which of these stand by being tried together, `most` at a time; each of the others is to be tried by itself. What stands
/// together must stand alone as well.
///
/// Where a batch does not stand, one half as large is tried, and where one does, one twice as large. So a few that do not stand
/// cost a few trials each, and where none does half as many again as if each were tried alone.
pub(super) fn standing<T>(all: &[T], most: usize, mut stand: impl FnMut(&[T]) -> bool) -> Vec<bool> {
    let mut stood = Vec::with_capacity(all.len());
    let mut size = all.len();
    while let Some(rest) = all.get(stood.len()..).filter(|rest| !rest.is_empty()) {
        let (batch, _) = rest.split_at(size.max(2).min(most).min(rest.len()));
        let is_standing = batch.len() > 1 && stand(batch);
        match (is_standing, batch.len()) {
            (true, length) => {
                stood.resize(stood.len() + length, true);
                size = length.saturating_mul(2);
            }
            // A pair is as soon tried one by one.
            (false, length @ 0..=2) => {
                stood.resize(stood.len() + length.max(1), false);
                size = 2;
            }
            (false, length) => size = length.div_ceil(2),
        }
    }
    stood
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Some do not stand at all, and some do not stand beside others.
        #[test]
        fn what_is_said_to_stand_does_and_nothing_is_tried_in_vain_too_often(
            all in prop::collection::vec((0_u8..8, 0_u8..40), 0..200),
            bad in 0_u8..9,
            most in prop_oneof![Just(ALL), 1_usize..9],
        ) {
            let mut trials = 0;
            let stands = |batch: &[(u8, u8)]| {
                let alone = batch.iter().all(|(kind, _)| *kind >= bad);
                // Whatever has the number 7 stands by itself only.
                alone && (batch.len() == 1 || batch.iter().all(|(_, number)| *number != 7))
            };
            let stood = standing(&all, most, |batch| {
                assert!(batch.len() > 1 && batch.len() <= most);
                trials += 1;
                stands(batch)
            });
            prop_assert_eq!(stood.len(), all.len());
            for (one, stood) in all.iter().zip(&stood) {
                prop_assert!(!*stood || stands(&[*one]));
            }
            let alone = stood.iter().filter(|stood| !**stood).count();
            let halvings = usize::try_from(all.len().next_power_of_two().trailing_zeros()).unwrap();
            let batches = all.len().div_ceil(most.min(all.len()).max(1));
            prop_assert!(trials <= (halvings + 1) * 2 * (alone + 1) + batches, "{} trials, {} alone", trials, alone);
            if bad == 8 && most == ALL {
                prop_assert!(trials <= halvings + all.len().div_ceil(2), "{} trials", trials);
            }
        }
    }

    #[test]
    fn what_stands_together_is_tried_once() {
        let mut trials = 0;
        let stood = standing(&[0; 400], ALL, |_| {
            trials += 1;
            true
        });
        assert_eq!((trials, stood), (1, vec![true; 400]));
        // One by one nothing is tried together.
        assert_eq!(standing(&[0; 3], 1, |_| unreachable!()), [false; 3]);
    }

    #[test]
    fn one_that_does_not_stand_costs_a_few_trials() {
        let all: Vec<usize> = (0..400).collect();
        let mut trials = 0;
        let stood = standing(&all, ALL, |batch| {
            trials += 1;
            !batch.contains(&137)
        });
        assert!(trials < 30, "{trials}");
        let alone: Vec<usize> = (0..400).filter(|at| !stood[*at]).collect();
        assert!(alone.contains(&137) && alone.len() <= 2, "{alone:?}");
    }
}

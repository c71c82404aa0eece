// SPDX-License-Identifier: GPL-2.0-or-later
//! The plan's watches by their places, since the follower looks them up while the guest runs. Only the host knows the
//! meaning of a watch.

use std::collections::BTreeMap;
use wire::plan::{Place, Plan, Watch};

/// A watch with its number. Events name a watch by this number.
type Numbered = (u8, Watch);

/// All watches of a plan.
pub struct Watches {
    /// The watches by the address of their place.
    pub places: BTreeMap<u64, Vec<Numbered>>,
    /// The watch for a rise of the running task's counter.
    pub rises: Option<Numbered>,
    /// The watch for a fall of this counter.
    pub falls: Option<Numbered>,
}

impl Watches {
    /// The watches of `plan`.
    pub fn of(plan: &Plan) -> Watches {
        let mut watches = Watches { places: BTreeMap::new(), rises: None, falls: None };
        for (number, watch) in (0..).zip(&plan.watches) {
            let numbered = (number, *watch);
            match watch.place {
                Place::Address(at) => watches.places.entry(at).or_default().push(numbered),
                Place::Rises => watches.rises = Some(numbered),
                Place::Falls => watches.falls = Some(numbered),
            }
        }
        watches
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Take;
    use wire::plan::Stack;

    #[test]
    fn watches_of_one_place_keep_their_numbers_among_all() {
        let watch = |place| Watch { place, take: Take::First, stack: Stack::Never };
        let (here, there) = (watch(Place::Address(0x10)), watch(Place::Address(0x20)));
        let falls = watch(Place::Falls);
        let plan = Plan { watches: vec![here, falls, there, here], ..Plan::default() };
        let watches = Watches::of(&plan);
        assert_eq!(watches.places[&0x10], [(0, here), (3, here)]);
        assert_eq!(watches.places[&0x20], [(2, there)]);
        assert_eq!((watches.rises, watches.falls), (None, Some((1, falls))));
    }
}

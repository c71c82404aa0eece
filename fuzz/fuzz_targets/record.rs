// SPDX-License-Identifier: GPL-2.0-or-later
//! Any bytes are records or refused without loss, and any sequence of records ends with each trigger
//! accounted for exactly once per responder. The first two bytes are the active responders and the pins.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sample::{Answers, Kind, Loss, Observation, Record, ResponderSet, Stamp};

fuzz_target!(|bytes: &[u8]| {
    let Some((&[active, pins], rest)) = bytes.split_first_chunk() else { return };
    let active = ResponderSet::from_mask(active);
    let mut answers = Answers::new(active, Stamp::from_ns(0), pins);
    let mut accounted = [0u64; 8];
    let mut account = |observation| match observation {
        Observation::Sample(sample) => accounted[sample.series.index()] += 1,
        Observation::Loss(_, Loss::Spurious, _) => {}
        Observation::Loss(series, _, n) => accounted[series.index()] += n,
    };
    let mut raised = 0;
    for bytes in rest.chunks_exact(Record::BYTES) {
        let bytes: &[u8; Record::BYTES] = bytes.try_into().expect("chunks of this size");
        let Ok(record) = Record::decode(bytes) else { continue };
        assert_eq!(&record.encode(), bytes);
        raised += u64::from(record.kind == Kind::Trigger);
        answers.observe(&record, &mut account);
    }
    answers.finish(&mut account);
    for responder in active.iter() {
        assert_eq!(accounted[active.rank(responder).index()], raised, "{responder}");
    }
});

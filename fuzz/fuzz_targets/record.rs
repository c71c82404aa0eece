// SPDX-License-Identifier: GPL-2.0-or-later
//! Any bytes are events or refused without loss, and any sequence of events ends with each trigger
//! accounted for exactly once per responder. The first four bytes are the active responders and the pins. A follower's
//! reader takes any sequence, too.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sample::{Answers, Loss, Observation, ResponderSet, Stamp};
use trace::Reader;
use wire::Event;

fuzz_target!(|bytes: &[u8]| {
    let Some((&[a, b, c, d], rest)) = bytes.split_first_chunk() else { return };
    let [active, pins] = [[a, b], [c, d]].map(u16::from_le_bytes);
    let active = ResponderSet::ALL.at(active);
    let mut answers = Answers::new(active, Stamp::from_ns(0), pins);
    let mut accounted = [0u64; 11];
    let mut account = |observation| match observation {
        Observation::Sample(sample) => accounted[sample.series.index()] += 1,
        Observation::Loss(_, Loss::Spurious, _) => {}
        Observation::Loss(series, _, n) => accounted[series.index()] += n,
    };
    let (mut raised, mut reader) = (0, Reader::new(&[]));
    for bytes in rest.chunks_exact(Event::BYTES) {
        let bytes: &[u8; Event::BYTES] = bytes.try_into().expect("chunks of this size");
        let Ok(event) = Event::decode(bytes) else { continue };
        assert_eq!(&event.encode(), bytes);
        raised += u64::from(matches!(event, Event::Trigger { .. }));
        event.tell(&mut answers, &mut account);
        let _ = reader.read(&event);
    }
    answers.finish(&mut account);
    for responder in active.iter() {
        assert_eq!(accounted[active.rank(responder).index()], raised, "{responder}");
    }
});

// SPDX-License-Identifier: GPL-2.0-or-later
//! A host that hears any bytes, in pieces of any size, reads messages that are written to the same bytes again, and
//! counts no more than the generator says. The first byte is the size of a piece.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::generator::*;

/// What is known of a run stays possible.
fn check(receipt: &Receipt, tallies: &Tallies) {
    for (responder, tally) in tallies.iter() {
        let losses = receipt.losses(responder).expect("it is measured");
        assert!(losses.dropped >= tally.losses.dropped);
        assert_eq!(receipt.received(responder) + losses.dropped, tally.measured);
        assert!(tally.accounted().expect("it fits") <= receipt.triggers());
    }
}

fn hear(receipt: &mut Option<Receipt>, report: &Report<'_>) {
    match report {
        Report::Started(started) => {
            *receipt = Some(Receipt::new(started.run, started.settings.responders()));
        }
        Report::Batch(batch) => {
            // A host that comes while a run goes on.
            let run = || Receipt::new(batch.run, batch.tallies.responders());
            let receipt = receipt.get_or_insert_with(run);
            if receipt.take(batch).is_ok() {
                check(receipt, &batch.tallies);
            }
        }
        Report::Stopped(stopped) => {
            if let Some(receipt) = receipt
                && receipt.stop(stopped).is_ok()
            {
                check(receipt, &stopped.tallies);
                assert!(receipt.is_whole());
            }
        }
        Report::Identity(identity) => {
            let _ = identity.tick.nanos(Ticks(u64::MAX));
            let _ = identity.tick.ticks(sample::Nanos(u64::MAX));
            let _ = identity.tick.period(std::num::NonZeroU32::MAX, std::num::NonZeroU32::MAX);
        }
        _ => {}
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((piece, rest)) = bytes.split_first() else { return };
    let (mut deframer, mut receipt) = (Deframer::new(), None);
    for mut bytes in rest.chunks(usize::from(*piece).max(1)) {
        while let Some(frame) = deframer.next(&mut bytes) {
            let Ok(frame) = frame else { continue };
            let Ok(report) = Report::decode(&frame) else { continue };
            let (mut out, mut again) = ([0; STUFFED_MAX], [0; STUFFED_MAX]);
            if frame.version == VERSION {
                assert_eq!(report.encode(frame.number, &mut out), frame.encode(&mut again));
            }
            hear(&mut receipt, &report);
        }
    }
});

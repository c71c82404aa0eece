// SPDX-License-Identifier: GPL-2.0-or-later
use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::vec::Vec;

/// The stuffing as the paper defines it, without the last zero.
fn stuffed(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let ended = [body, &[0]].concat();
    let mut rest = ended.as_slice();
    while !rest.is_empty() {
        let zero = rest.iter().position(|byte| *byte == 0).expect("the end");
        let block = zero.min(BLOCK);
        out.push(block as u8 + 1);
        out.extend(&rest[..block]);
        rest = &rest[if block == BLOCK { block } else { block + 1 }..];
    }
    out
}

fn bytes_of(frame: &Frame<'_>) -> Vec<u8> {
    let mut out = [0; STUFFED_MAX];
    frame.encode(&mut out).to_vec()
}

fn frame(payload: &[u8]) -> Frame<'_> {
    Frame { version: 1, kind: 7, number: 0x0102, payload }
}

/// Kinds, numbers and payloads of the frames in a stream that comes in such pieces, and how often it was damaged.
fn read(stream: &[u8], piece: usize) -> (Vec<(u8, u16, Vec<u8>)>, u64) {
    let (mut deframer, mut all) = (Deframer::new(), Vec::new());
    for mut bytes in stream.chunks(piece) {
        while let Some(frame) = deframer.next(&mut bytes) {
            if let Ok(Frame { kind, number, payload, .. }) = frame {
                all.push((kind, number, payload.to_vec()));
            }
        }
    }
    (all, deframer.damaged())
}

#[test]
fn the_checksum_is_that_of_ethernet() {
    assert_eq!(checksum(b"123456789"), 0xcbf4_3926);
}

#[test]
fn bytes_are_stuffed_as_the_paper_says() {
    assert_eq!(stuffed(&[0x11, 0x22, 0, 0x33]), [3, 0x11, 0x22, 2, 0x33]);
    assert_eq!(stuffed(&[0, 0]), [1, 1, 1]);
    for length in [0, 1, 245, 246, 247, 248, 500, 501, 502, PAYLOAD_MAX] {
        for byte in [0, 1, 0xff] {
            let payload = [byte; PAYLOAD_MAX];
            let bytes = bytes_of(&frame(&payload[..length]));
            let mut body = [&[1, 7, 2, 1], &payload[..length]].concat();
            body.extend(checksum(&body).to_le_bytes());
            assert_eq!(bytes, [stuffed(&body), [0].into()].concat(), "{length} of {byte}");
            assert!(bytes.len() <= STUFFED_MAX);
            assert_eq!(read(&bytes, 7).0, [(7, 0x0102, payload[..length].to_vec())]);
        }
    }
}

#[test]
fn one_flipped_bit_makes_no_other_frame() {
    let payload: Vec<u8> = (0..300u16).map(|n| (n % 9 * 31) as u8).collect();
    let bytes = bytes_of(&frame(&payload));
    for bit in 0..8 * bytes.len() {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        // One that flips the delimiter is told at the next.
        flipped.push(DELIMITER);
        let (frames, damaged) = read(&flipped, flipped.len());
        assert!(frames.is_empty() && damaged > 0, "bit {bit}: {frames:?}");
    }
}

#[test]
fn what_a_torn_frame_costs_is_the_one_that_follows_it_without_a_delimiter() {
    let whole = bytes_of(&frame(&[5; 40]));
    let torn = &whole[..20];
    let (frames, damaged) = read(&[torn, &whole, &whole].concat(), 3);
    assert_eq!((frames.len(), damaged), (1, 1));
    let (frames, damaged) = read(&[torn, &[DELIMITER], &whole, &whole].concat(), 3);
    assert_eq!((frames.len(), damaged), (2, 1));
}

#[test]
fn a_frame_that_is_too_long_or_too_short_is_none_and_the_next_one_is_read() {
    let mut stream = Vec::new();
    for length in [FRAME_MAX + 1, 100 * FRAME_MAX, 1, HEADER + CHECKSUM - 1] {
        stream.extend(stuffed(&std::vec![9; length]));
        stream.push(DELIMITER);
    }
    stream.extend(bytes_of(&frame(&[])));
    let mut deframer = Deframer::new();
    let mut why = Vec::new();
    let mut bytes = stream.as_slice();
    while let Some(read) = deframer.next(&mut bytes) {
        why.push(read.map(|frame| frame.payload.len()));
    }
    use Damaged::{TooLong, TooShort};
    assert_eq!(why, [Err(TooLong), Err(TooLong), Err(TooShort), Err(TooShort), Ok(0)]);
}

fn a_frame() -> impl Strategy<Value = (u8, u16, Vec<u8>)> {
    let payload = prop_oneof![vec(any::<u8>(), 0..80), vec(0u8..2, 0..=PAYLOAD_MAX)];
    (any::<u8>(), any::<u16>(), payload)
}

proptest! {
    #[test]
    fn frames_are_found_however_the_stream_is_cut_and_whatever_lies_between(
        parts in vec((a_frame(), vec(1u8.., 0..40)), 0..8), piece in 1usize..200
    ) {
        let (mut stream, mut expected, mut garbage) = (Vec::new(), Vec::new(), 0);
        for ((kind, number, payload), between) in &parts {
            stream.extend(bytes_of(&Frame { version: 1, kind: *kind, number: *number, payload }));
            expected.push((*kind, *number, payload.clone()));
            stream.extend(between);
            stream.push(DELIMITER);
            garbage += u64::from(!between.is_empty());
        }
        let (frames, damaged) = read(&stream, piece);
        prop_assert_eq!(frames, expected);
        prop_assert_eq!(damaged, garbage);
    }

    #[test]
    fn any_frame_that_is_read_can_be_written_and_is_read_again(stream in vec(0u8..9, 0..600)) {
        let mut deframer = Deframer::new();
        let mut bytes = stream.as_slice();
        while let Some(read) = deframer.next(&mut bytes) {
            let Ok(frame) = read else { continue };
            let again = bytes_of(&frame);
            let mut other = Deframer::new();
            prop_assert_eq!(other.next(&mut again.as_slice()), Some(Ok(frame)));
        }
    }

    #[test]
    fn some_flipped_bits_make_no_other_frame(
        (kind, number, payload) in a_frame(), places in vec(any::<prop::sample::Index>(), 1..6)
    ) {
        let bytes = bytes_of(&Frame { version: 1, kind, number, payload: &payload });
        let mut flipped = bytes.clone();
        for place in places {
            let bit = place.index(8 * bytes.len());
            flipped[bit / 8] ^= 1 << (bit % 8);
        }
        flipped.push(DELIMITER);
        let (frames, damaged) = read(&flipped, 11);
        if flipped[..bytes.len()] != bytes {
            prop_assert!(frames.is_empty() && damaged > 0);
        }
    }
}

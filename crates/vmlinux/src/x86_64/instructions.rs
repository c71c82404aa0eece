// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads from the instructions of a function what no table of the kernel says: which functions it calls, and with which
//! constant.
//!
//! The code searches bytes, and does not decode a function from its start on. A find has to be an instruction whose
//! target is exactly the wanted function. No other bytes look like this by chance.

use crate::Image;

/// `call` and `jmp` by a distance of 32 bits from the next instruction (Intel SDM, volume 2).
const CALL: u8 = 0xe8;
const JUMP: u8 = 0xe9;
/// `mov` of a constant of 32 bits to `esi`, which is the second argument (System V ABI for amd64, 3.2.3).
const TO_SECOND: u8 = 0xbe;

/// For each place in `caller` that calls `callee` or jumps to it: the bytes of `caller` before that instruction.
fn calls<'a>(image: &Image<'a>, caller: &str, callee: &str) -> Vec<&'a [u8]> {
    let (Some((start, code)), Some(target)) = (image.function(caller), image.address(callee))
    else {
        return Vec::new();
    };
    let is_call = |at: &usize| {
        let Some([CALL | JUMP, distance @ ..]) = code.get(*at..*at + 5) else { return false };
        let distance = i32::from_le_bytes([distance[0], distance[1], distance[2], distance[3]]);
        let next = start.wrapping_add(*at as u64 + 5);
        next.wrapping_add_signed(distance.into()) == target
    };
    (0..code.len()).filter(is_call).map(|at| &code[..at]).collect()
}

/// The constant that `caller` gives `callee` as its second argument, right before its call.
pub(crate) fn second_argument(image: &Image, caller: &str, callee: &str) -> Option<u32> {
    calls(image, caller, callee).into_iter().find_map(|before| match *before.last_chunk()? {
        [TO_SECOND, a, b, c, d] => Some(u32::from_le_bytes([a, b, c, d])),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Symbol;

    const CODE: u64 = 0xffff_ffff_8100_0000;

    /// An image with `caller` at 0, `other` at 16 and `callee` at 32. `code` is the caller's bytes.
    fn image(code: &[u8]) -> Image<'_> {
        let symbols = [(0, "caller"), (16, "other"), (32, "callee")];
        let symbol =
            |(at, name): (u64, &str)| Symbol { address: CODE + at, kind: b't', name: name.into() };
        Image {
            symbols: symbols.map(symbol).into(),
            btf: Err("there are no types"),
            orc: Err("there is no table"),
            code: std::iter::once(CODE..CODE + 48).collect(),
            instructions: vec![(CODE, code)],
        }
    }

    #[test]
    fn a_call_is_one_of_just_that_function_and_its_constant_stands_before_it() {
        // mov $4,%esi; jmp callee: the address 32 is 22 behind the end of the jump.
        let mut code = vec![TO_SECOND, 4, 0, 0, 0, JUMP, 22, 0, 0, 0];
        code.resize(48, 0x90);
        let with = image(&code);
        assert_eq!(second_argument(&with, "caller", "callee"), Some(4));
        assert_eq!(second_argument(&with, "caller", "other"), None);
        assert_eq!(second_argument(&with, "caller", "nobody"), None);
        code[6] = 21;
        assert_eq!(second_argument(&image(&code), "caller", "callee"), None);
        (code[0], code[6]) = (0x90, 22);
        assert_eq!(second_argument(&image(&code), "caller", "callee"), None);
    }

    #[test]
    fn a_function_whose_instructions_end_early_has_none() {
        assert_eq!(second_argument(&image(&[TO_SECOND, 4, 0]), "caller", "callee"), None);
    }
}

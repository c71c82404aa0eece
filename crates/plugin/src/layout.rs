// SPDX-License-Identifier: GPL-2.0-or-later
//! Finds two things in QEMU's structure of a vCPU: the registers, and the flag that says whether the clock may be read.
//! The content of the structure tells their places, and not QEMU's version.
//!
//! The structure is `CPUState` (include/hw/core/cpu.h). Behind it lies the processor's own state (`CPUX86State`,
//! target/i386/cpu.h), whose first members are the registers. The flag is `neg.can_do_io`, one of the last members of
//! `CPUState`. These members stand there because translated code reaches them from the registers by short negative
//! offsets.

use crate::checks::{Check, Failed};
use crate::x86_64::GENERAL;

/// QEMU puts the processor's state at a multiple of this many bytes.
const ALIGNED: usize = 16;
/// The number of bytes before the registers in which the flag is searched.
const BEFORE: usize = 64;

/// The place of the registers in `structure`. `values` are the values that they hold.
///
/// # Errors
/// If the registers are nowhere, or in more than one place.
pub fn find_registers(structure: &[u8], values: &[u64; GENERAL]) -> Result<usize, Failed> {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let ends = structure.len().saturating_sub(bytes.len());
    let mut found = (0..=ends).step_by(ALIGNED).filter(|at| structure[*at..].starts_with(&bytes));
    let at = found.next().ok_or_else(|| {
        Check::Registers.fails(format!(
            "the vCPU's structure of {} bytes does not hold them one after the other",
            structure.len()
        ))
    })?;
    match found.next() {
        None => Ok(at),
        Some(other) => Err(Check::Registers
            .fails(format!("they are found at {at:#x} and at {other:#x} of the vCPU's structure"))),
    }
}

/// The search for the byte that says whether the clock may be read. That byte is 1 before the last instruction of a
/// block and between blocks, and 0 before the other instructions.
#[derive(Debug)]
pub struct ClockFlag {
    candidates: Vec<usize>,
}

impl ClockFlag {
    /// Begins to search for the flag before the `registers`. `structure` is the structure between two blocks.
    pub fn new(structure: &[u8], registers: usize) -> ClockFlag {
        let range = registers.saturating_sub(BEFORE)..registers.min(structure.len());
        ClockFlag { candidates: range.filter(|at| structure[*at] == 1).collect() }
    }

    /// Learns from a vCPU that is at an instruction of a block. `last` says whether it is the block's last instruction,
    /// and `byte` reads the vCPU's structure. Returns the flag's place once it is known: after the first instruction
    /// that is not the last of its block. If another byte was 1 and is 0 by chance, as a byte of the count of
    /// instructions may be, the byte nearest to the registers is the flag. It is the last of these members, and every
    /// later instruction holds it against what it has to be.
    ///
    /// # Errors
    /// If the flag is nowhere.
    pub fn narrow(
        &mut self,
        last: bool,
        byte: impl Fn(usize) -> u8,
    ) -> Result<Option<usize>, Failed> {
        self.candidates.retain(|at| byte(*at) == u8::from(last));
        match self.candidates[..] {
            [] => Err(Check::ClockFlag
                .fails(format!("none of the {BEFORE} bytes before the registers behaves like it"))),
            [.., nearest] if !last => Ok(Some(nearest)),
            [..] => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const VALUES: [u64; GENERAL] = [3, 0, 9, 0, 0x7fff_ffff_e000, 0, 1, 2, 5, 8, 0, 0, 1, 0, 0, 7];

    /// A structure whose registers are at `at` and whose flag is `before` bytes before them.
    fn structure(at: usize, before: usize) -> Vec<u8> {
        let mut bytes = vec![0u8; 12_000];
        for (place, value) in bytes[at..].chunks_mut(8).zip(VALUES) {
            place.copy_from_slice(&value.to_le_bytes());
        }
        bytes[at - before] = 1;
        bytes
    }

    proptest! {
        #[test]
        fn a_vcpu_that_is_laid_out_otherwise_is_found_by_what_is_in_it(
            at in (BEFORE / ALIGNED..700).prop_map(|n| n * ALIGNED), before in 1..=BEFORE,
        ) {
            let mut bytes = structure(at, before);
            prop_assert_eq!(find_registers(&bytes, &VALUES), Ok(at));
            let mut flag = ClockFlag::new(&bytes, at);
            prop_assert_eq!(flag.narrow(true, |place| bytes[place]), Ok(None));
            bytes[at - before] = 0;
            prop_assert_eq!(flag.narrow(false, |place| bytes[place]), Ok(Some(at - before)));
        }
    }

    #[test]
    fn registers_that_are_nowhere_or_twice_fail_their_check() {
        let mut bytes = structure(0x2bc0, 4);
        let elsewhere = find_registers(&bytes[..0x2bc0 + 64], &VALUES).unwrap_err();
        assert_eq!(elsewhere.check, Check::Registers);
        assert!(elsewhere.why.contains("does not hold them"), "{elsewhere}");
        let copy: Vec<u8> = bytes[0x2bc0..0x2bc0 + 8 * GENERAL].to_vec();
        bytes[0x1000..0x1000 + copy.len()].copy_from_slice(&copy);
        let twice = find_registers(&bytes, &VALUES).unwrap_err();
        assert!(twice.why.contains("0x1000 and at 0x2bc0"), "{twice}");
        assert!(find_registers(&[0; 8], &VALUES).is_err());
    }

    #[test]
    fn a_flag_that_does_not_behave_like_one_fails_its_check() {
        let bytes = structure(0x2bc0, 4);
        let mut stuck = ClockFlag::new(&bytes, 0x2bc0);
        let failed = stuck.narrow(false, |place| bytes[place]).unwrap_err();
        assert_eq!(failed.check, Check::ClockFlag);
        assert!(failed.why.contains("none of"), "{failed}");
        let mut without = ClockFlag::new(&structure(0x2bc0, 100), 0x2bc0);
        assert!(without.narrow(true, |place| bytes[place]).is_err());
    }

    #[test]
    fn of_bytes_that_behave_alike_so_far_the_nearest_to_the_registers_is_the_flag() {
        let mut bytes = structure(0x2bc0, 4);
        bytes[0x2bc0 - 9] = 1;
        let mut flag = ClockFlag::new(&bytes, 0x2bc0);
        assert_eq!(flag.narrow(true, |place| bytes[place]), Ok(None));
        assert_eq!(flag.narrow(false, |_| 0), Ok(Some(0x2bc0 - 4)));
    }

    #[test]
    fn one_of_two_bytes_is_the_flag_if_the_other_does_not_change_with_the_place() {
        let mut bytes = structure(0x2bc0, 4);
        bytes[0x2bc0 - 9] = 1;
        let mut flag = ClockFlag::new(&bytes, 0x2bc0);
        bytes[0x2bc0 - 4] = 0;
        assert_eq!(flag.narrow(false, |place| bytes[place]), Ok(Some(0x2bc0 - 4)));
    }
}

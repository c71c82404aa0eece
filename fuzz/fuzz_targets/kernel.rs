// SPDX-License-Identifier: GPL-2.0-or-later
//! Any bytes are a kernel's image, an ELF, a map, or refused; and a map made of them can be asked anything.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmlinux::{Image, Map, Memory, Regs, payload, unwind};

/// The memory of a guest: the input, again and again.
struct Repeated<'a>(&'a [u8]);

impl Memory for Repeated<'_> {
    fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        let from = (address % (self.0.len() as u64 + 1)) as usize;
        let endless = self.0.iter().cycle().skip(from);
        bytes.iter_mut().zip(endless).for_each(|(byte, of_input)| *byte = *of_input);
        !self.0.is_empty()
    }
}

fn ask<B: AsRef<[u8]>>(map: &Map<B>, memory: &Repeated) {
    let _ = (map.layout(), map.missing().count(), map.modules().count());
    for (name, address, _) in map.symbols().take(16) {
        let _ = (map.address(name), map.resolve(address), map.resolve_return(address));
        let regs = Regs { ip: address, sp: address, ..Regs::default() };
        unwind(map, &regs, memory, &mut [0; 8]);
    }
}

fuzz_target!(|bytes: &[u8]| {
    let _ = payload(bytes);
    let memory = Repeated(bytes);
    if let Ok(image) = Image::parse(bytes) {
        ask(&Map::of(&image, &memory).expect("an input is never too large"), &memory);
    }
    if let Ok(map) = Map::from_bytes(bytes) {
        ask(&map, &memory);
    }
});

// SPDX-License-Identifier: GPL-2.0-or-later
//! The generator's ports, as the guest reads and writes them.

use super::{Generator, with};
use crate::qemu::{Ports, Width};
use wire::ports;

/// The status register at rest: not busy, acknowledge high, selected, no error.
const STATUS_AT_REST: u8 = 0xd8;

/// The first pin of the second data register.
const HIGHER_FROM: u32 = 8;

pub(super) struct ParallelPort;

impl Ports for ParallelPort {
    const WIDTH: Width = Width::Byte;

    fn read(&mut self, offset: u64) -> u32 {
        with(|g| match offset {
            0 => g.pins as u8,
            1 => STATUS_AT_REST,
            // Nothing drives the upper bits of the control register, so they read as ones.
            _ => g.control | 0xc0,
        })
        .into()
    }

    fn write(&mut self, offset: u64, value: u32) {
        let value = value as u8;
        with(|g| match offset {
            0 => g.write_data(0, value),
            1 => {}
            _ => g.control = value & 0x3f,
        });
    }
}

/// The second data register.
pub(super) struct HigherPins;

impl Ports for HigherPins {
    const WIDTH: Width = Width::Byte;

    fn read(&mut self, _offset: u64) -> u32 {
        with(|g| g.pins >> HIGHER_FROM).into()
    }

    fn write(&mut self, _offset: u64, value: u32) {
        with(|g| g.write_data(HIGHER_FROM, value as u8));
    }
}

pub(super) struct MarkPort;

impl Ports for MarkPort {
    const WIDTH: Width = Width::Byte;

    fn read(&mut self, _offset: u64) -> u32 {
        ports::PRESENT.into()
    }

    fn write(&mut self, _offset: u64, value: u32) {
        with(|g| g.write_mark(value as u8));
    }
}

pub(super) struct DisturbancePort;

impl Ports for DisturbancePort {
    const WIDTH: Width = Width::Byte;

    fn read(&mut self, _offset: u64) -> u32 {
        with(Generator::serve_disturbance).into()
    }

    fn write(&mut self, _offset: u64, _value: u32) {}
}

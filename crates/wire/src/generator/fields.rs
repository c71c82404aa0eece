// SPDX-License-Identifier: GPL-2.0-or-later
//! The fields of messages, little endian, as `encoding.rs` puts them together.

use super::frame::Writer;
use super::{Range, Run, Setting, Settings, Ticks, Timing};
use core::num::NonZeroU32;
use sample::ResponderSet;

/// Takes fields.
#[doc(hidden)]
pub trait Put {
    fn bytes(&mut self, bytes: &[u8]);

    fn u8(&mut self, value: u8) {
        self.bytes(&[value]);
    }

    fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }
}

impl Put for Writer<'_> {
    fn bytes(&mut self, bytes: &[u8]) {
        self.put(bytes);
    }
}

/// Gives fields, as long as there are any.
#[doc(hidden)]
pub struct Take<'a>(&'a [u8]);

impl<'a> Take<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Take<'a> {
        Take(bytes)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn ticks(&mut self) -> Option<Ticks> {
        self.u64().map(Ticks)
    }

    /// Bytes that mean nothing.
    pub(super) fn zeros<const N: usize>(&mut self) -> Option<()> {
        (self.array()? == [0; N]).then_some(())
    }

    pub(super) fn run(&mut self) -> Option<Run> {
        self.u32().and_then(NonZeroU32::new).map(Run)
    }

    pub(super) fn above_0(&mut self) -> Option<NonZeroU32> {
        self.u32().and_then(NonZeroU32::new)
    }

    pub(super) fn responders(&mut self) -> Option<ResponderSet> {
        self.u16().and_then(ResponderSet::from_mask)
    }

    pub(super) fn setting(&mut self) -> Option<Option<Setting>> {
        match self.u8()? {
            0 => Some(None),
            number => Setting::of(number).map(Some),
        }
    }

    pub(super) fn timing(&mut self) -> Option<Timing> {
        [Timing::Periodic, Timing::Train].get(usize::from(self.u8()?)).copied()
    }

    pub(super) fn settings(&mut self) -> Option<Settings> {
        let mut settings = Settings::new([0; Setting::COUNT]);
        for setting in Setting::ALL {
            settings.set(setting, self.u64()?);
        }
        Some(settings)
    }

    pub(super) fn range(&mut self) -> Option<Range> {
        Some(Range { least: self.u64()?, most: self.u64()?, step: self.u64()? })
    }

    pub(super) fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.0)
    }

    /// Nothing is left.
    pub(super) fn end(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

pub(super) fn put_setting(setting: Option<Setting>, to: &mut impl Put) {
    to.u8(setting.map_or(0, |setting| setting as u8));
}

pub(super) fn put_range(range: Range, to: &mut impl Put) {
    [range.least, range.most, range.step].into_iter().for_each(|n| to.u64(n));
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! How messages are written: fields one after the other, little endian, without gaps other than those named `zero`.
//! `docs/generator-protocol.md` has the tables.

use super::fields::{Put, Take, put_range, put_setting};
use super::frame::Writer;
use super::{
    Accepted, Batch, Clock, Command, Ended, Frame, Identity, Kind, Limits, List, PINS, Range,
    Refused, Report, Run, STUFFED_MAX, SelfTest, Setting, Settings, Started, Stopped, Tallies,
    Tick, Train, VERSION, Why,
};
use core::num::NonZeroU32;
use sample::{ALL_RESPONDERS, Responder, ResponderSet};

/// Stands for "nobody" where a responder's number could be.
const NOBODY: u8 = 0xff;
/// Stands for an accuracy that nobody knows.
const UNKNOWN: u32 = u32::MAX;

/// A frame that says nothing that is understood here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It is of another version of the protocol.
    Version(u8),
    /// A kind that is not known, and must not be passed over.
    Unknown(Kind),
    /// A kind that is passed over: it is not known and nobody needs it, or the line echoes what was said here.
    Optional(Kind),
    /// A setting of this number is not known.
    Setting(u8),
    /// The payload is none of its kind.
    Malformed(Kind),
}

impl core::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Unreadable::Version(version) => {
                write!(f, "version {version} of the generator protocol; {VERSION} is known")
            }
            Unreadable::Unknown(kind) => write!(f, "frames of kind {:#04x} are not known", kind.0),
            Unreadable::Optional(kind) => {
                write!(f, "a frame of kind {:#04x} is passed over", kind.0)
            }
            Unreadable::Setting(number) => write!(f, "there is no setting {number}"),
            Unreadable::Malformed(kind) => write!(f, "a malformed frame of kind {:#04x}", kind.0),
        }
    }
}

impl core::error::Error for Unreadable {}

impl Unreadable {
    /// The answer of a generator; `None` where it says nothing.
    pub fn refusal(self, kind: u8) -> Option<Refused> {
        let command = Kind(kind);
        let why = match self {
            Unreadable::Optional(_) => return None,
            Unreadable::Version(_) => Why::Unidentified,
            Unreadable::Unknown(_) => Why::UnknownCommand,
            Unreadable::Malformed(_) => Why::Malformed,
            Unreadable::Setting(number) => {
                let range = Range::new(1, Setting::COUNT as u64);
                let refused = Refused::new(Why::UnknownSetting, command);
                return Some(Refused { value: number.into(), range, ..refused });
            }
        };
        Some(Refused::new(why, command))
    }
}

impl<'a> Command<'a> {
    /// What its payload is.
    pub fn kind(&self) -> Kind {
        match self {
            Command::Identify { .. } => Kind::IDENTIFY,
            Command::Set { .. } => Kind::SET,
            Command::Train(_) => Kind::TRAIN,
            Command::Start(_) => Kind::START,
            Command::Stop => Kind::STOP,
            Command::Test => Kind::TEST,
        }
    }

    /// The frame as it goes into the stream; its answer repeats the `number`.
    pub fn encode<'o>(&self, number: u16, out: &'o mut [u8; STUFFED_MAX]) -> &'o [u8] {
        let mut to = Writer::new(out, VERSION, self.kind().0, number);
        match self {
            Command::Identify { oldest, newest } => to.bytes(&[*oldest, *newest]),
            Command::Set { setting, value } => {
                to.bytes(&[*setting as u8, 0, 0, 0, 0, 0, 0, 0]);
                to.u64(*value);
            }
            Command::Train(Train { first, times }) => {
                to.u32(*first);
                to.u32(0);
                times.put(&mut to);
            }
            Command::Start(timing) => to.u8(*timing as u8),
            Command::Stop | Command::Test => {}
        }
        to.finish()
    }

    /// The command in a frame. One that asks for the version is read in every version.
    ///
    /// # Errors
    /// Why there is none; [`Unreadable::refusal`] is the answer.
    pub fn decode(frame: &Frame<'a>) -> Result<Command<'a>, Unreadable> {
        let kind = Kind(frame.kind);
        if kind.is_of_generator() {
            return Err(Unreadable::Optional(kind));
        }
        if frame.version != VERSION && kind != Kind::IDENTIFY {
            return Err(Unreadable::Version(frame.version));
        }
        let mut from = Take::new(frame.payload);
        let command = match kind {
            Kind::IDENTIFY => identify(&mut from),
            Kind::SET => match from.u8().map(|number| (number, Setting::of(number))) {
                Some((number, None)) if frame.payload.len() == 16 => {
                    return Err(Unreadable::Setting(number));
                }
                Some((_, Some(setting))) => set(setting, &mut from),
                _ => None,
            },
            Kind::TRAIN => train(&mut from),
            Kind::START => from.timing().map(Command::Start),
            Kind::STOP => Some(Command::Stop),
            Kind::TEST => Some(Command::Test),
            _ => return Err(unknown(kind)),
        };
        command.zip(from.end()).map(|(command, ())| command).ok_or(Unreadable::Malformed(kind))
    }
}

fn unknown(kind: Kind) -> Unreadable {
    if kind.is_optional() { Unreadable::Optional(kind) } else { Unreadable::Unknown(kind) }
}

fn identify<'a>(from: &mut Take<'a>) -> Option<Command<'a>> {
    Some(Command::Identify { oldest: from.u8()?, newest: from.u8()? })
}

fn set<'a>(setting: Setting, from: &mut Take<'a>) -> Option<Command<'a>> {
    from.zeros::<7>()?;
    Some(Command::Set { setting, value: from.u64()? })
}

fn train<'a>(from: &mut Take<'a>) -> Option<Command<'a>> {
    let first = from.u32()?;
    from.zeros::<4>()?;
    Some(Command::Train(Train { first, times: List::of(from.rest())? }))
}

impl<'a> Report<'a> {
    /// What its payload is.
    pub fn kind(&self) -> Kind {
        match self {
            Report::Identity(_) => Kind::IDENTITY,
            Report::Accepted(_) => Kind::ACCEPTED,
            Report::Refused(_) => Kind::REFUSED,
            Report::Started(_) => Kind::STARTED,
            Report::Stopped(_) => Kind::STOPPED,
            Report::SelfTest(_) => Kind::SELF_TEST,
            Report::Batch(_) => Kind::BATCH,
        }
    }

    /// The frame as it goes into the stream; `number` is that of the command which it answers.
    pub fn encode<'o>(&self, number: u16, out: &'o mut [u8; STUFFED_MAX]) -> &'o [u8] {
        let mut to = Writer::new(out, VERSION, self.kind().0, number);
        match self {
            Report::Identity(identity) => put_identity(identity, &mut to),
            Report::Accepted(Accepted { command, setting, value }) => {
                to.u8(command.0);
                put_setting(*setting, &mut to);
                to.bytes(&[0; 6]);
                to.u64(*value);
            }
            Report::Refused(Refused { why, command, setting, value, range }) => {
                to.bytes(&[*why as u8, command.0]);
                put_setting(*setting, &mut to);
                to.bytes(&[0; 5]);
                to.u64(*value);
                put_range(*range, &mut to);
            }
            Report::Started(started) => put_started(started, &mut to),
            Report::Stopped(stopped) => put_stopped(stopped, &mut to),
            Report::SelfTest(SelfTest { triggers, offset, jitter, late }) => {
                [*triggers, offset.0, jitter.0, late.0].into_iter().for_each(|n| to.u64(n));
            }
            Report::Batch(batch) => put_batch(batch, &mut to),
        }
        to.finish()
    }

    /// What the generator says in a frame. A refusal is read in every version.
    ///
    /// # Errors
    /// Why it says nothing that is understood.
    pub fn decode(frame: &Frame<'a>) -> Result<Report<'a>, Unreadable> {
        let kind = Kind(frame.kind);
        if !kind.is_of_generator() {
            return Err(Unreadable::Optional(kind));
        }
        if frame.version != VERSION && kind != Kind::REFUSED {
            return Err(Unreadable::Version(frame.version));
        }
        let mut from = Take::new(frame.payload);
        let report = match kind {
            Kind::IDENTITY => identity(&mut from).map(Report::Identity),
            Kind::ACCEPTED => accepted(&mut from).map(Report::Accepted),
            Kind::REFUSED => refused(&mut from).map(Report::Refused),
            Kind::STARTED => started(&mut from).map(Report::Started),
            Kind::STOPPED => stopped(&mut from).map(Report::Stopped),
            Kind::SELF_TEST => self_test(&mut from).map(Report::SelfTest),
            Kind::BATCH => batch(&mut from).map(Report::Batch),
            _ => return Err(unknown(kind)),
        };
        report.zip(from.end()).map(|(report, ())| report).ok_or(Unreadable::Malformed(kind))
    }
}

fn put_identity(identity: &Identity, to: &mut impl Put) {
    to.bytes(&[identity.clock as u8, 0, 0, 0]);
    to.u32(identity.running.map_or(0, |run| run.0.get()));
    to.u32(identity.tick.nanos.get());
    to.u32(identity.tick.per.get());
    to.u32(identity.accuracy_ppb.unwrap_or(UNKNOWN));
    to.u32(identity.held);
    to.u64(identity.resolution.0);
    to.bytes(&identity.pins.map(|pin| pin.map_or(NOBODY, Responder::pin)));
    to.u64(identity.limits.gap.0);
    to.u32(identity.limits.train);
    to.u32(0);
    to.bytes(&identity.name);
    for setting in Setting::ALL {
        to.u64(identity.settings.get(setting));
        put_range(identity.limits.range(setting), to);
    }
}

fn identity(from: &mut Take<'_>) -> Option<Identity> {
    let clock = match from.u8()? {
        1 => Clock::Virtual,
        2 => Clock::Counter,
        _ => return None,
    };
    from.zeros::<3>()?;
    let running = NonZeroU32::new(from.u32()?).map(Run);
    let tick = Tick { nanos: from.above_0()?, per: from.above_0()? };
    let accuracy_ppb = Some(from.u32()?).filter(|ppb| *ppb != UNKNOWN);
    let (held, resolution) = (from.u32()?, from.ticks()?);
    let pins = pins(from.array()?)?;
    let (gap, train) = (from.ticks()?, from.u32()?);
    from.zeros::<4>()?;
    let name = from.array()?;
    let mut limits = Limits { ranges: [Range::default(); Setting::COUNT], train, gap };
    let mut settings = Settings::new([0; Setting::COUNT]);
    for (setting, range) in Setting::ALL.into_iter().zip(&mut limits.ranges) {
        settings.set(setting, from.u64()?);
        *range = from.range()?;
    }
    let in_force = Setting::ALL.into_iter().all(|s| limits.check(s, settings.get(s)).is_ok());
    let all = pins.into_iter().flatten().collect::<ResponderSet>().mask();
    let own = limits.range(Setting::Responders).most == u64::from(all) && held <= limits.train;
    let sound = resolution.0 > 0 && is_a_name(&name) && limits.is_sound() && in_force && own;
    let identity = Identity {
        clock,
        running,
        tick,
        accuracy_ppb,
        resolution,
        pins,
        held,
        limits,
        settings,
        name,
    };
    sound.then_some(identity)
}

fn pins(numbers: [u8; PINS]) -> Option<[Option<Responder>; PINS]> {
    let mut pins = [None; PINS];
    let mut seen = 0u16;
    for (pin, number) in pins.iter_mut().zip(numbers).filter(|(_, number)| *number != NOBODY) {
        let responder = *ALL_RESPONDERS.get(usize::from(number))?;
        let again = seen >> number & 1 == 1;
        seen |= 1 << number;
        *pin = (!again).then_some(Some(responder))?;
    }
    Some(pins)
}

/// Printable ASCII, then zeros; what a terminal would obey is none.
fn is_a_name(name: &[u8]) -> bool {
    let length = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    let (text, zeros) = name.split_at(length);
    text.iter().all(|byte| (b' '..=b'~').contains(byte)) && zeros.iter().all(|byte| *byte == 0)
}

fn accepted(from: &mut Take<'_>) -> Option<Accepted> {
    let (command, setting) = (Kind(from.u8()?), from.setting()?);
    from.zeros::<6>()?;
    Some(Accepted { command, setting, value: from.u64()? })
}

fn refused(from: &mut Take<'_>) -> Option<Refused> {
    let why = from.u8()?;
    let why = Why::ALL.into_iter().find(|known| *known as u8 == why)?;
    let (command, setting) = (Kind(from.u8()?), from.setting()?);
    from.zeros::<5>()?;
    Some(Refused { why, command, setting, value: from.u64()?, range: from.range()? })
}

fn put_started(started: &Started, to: &mut impl Put) {
    to.u32(started.run.0.get());
    to.bytes(&[started.timing as u8, 0, 0, 0]);
    to.u32(started.train);
    to.u32(0);
    Setting::ALL.into_iter().for_each(|setting| to.u64(started.settings.get(setting)));
}

fn started(from: &mut Take<'_>) -> Option<Started> {
    let (run, timing) = (from.run()?, from.timing()?);
    from.zeros::<3>()?;
    let train = from.u32()?;
    from.zeros::<4>()?;
    Some(Started { run, timing, train, settings: from.settings()? })
}

fn put_stopped(stopped: &Stopped, to: &mut impl Put) {
    let (ended, fault) = match stopped.ended {
        Ended::Asked => (1, 0),
        Ended::Complete => (2, 0),
        Ended::Fault(number) => (3, number),
        Ended::ClockEnds => (4, 0),
    };
    to.u32(stopped.run.0.get());
    to.bytes(&[ended, 0]);
    to.u16(stopped.tallies.responders().mask());
    to.u16(fault);
    to.bytes(&[0; 6]);
    to.u64(stopped.triggers);
    to.u64(stopped.at.0);
    stopped.tallies.put(to);
}

fn stopped(from: &mut Take<'_>) -> Option<Stopped> {
    let (run, ended) = (from.run()?, from.u8()?);
    from.zeros::<1>()?;
    let (responders, fault) = (from.responders()?, from.u16()?);
    from.zeros::<6>()?;
    let ended = match (ended, fault) {
        (1, 0) => Ended::Asked,
        (2, 0) => Ended::Complete,
        (3, number) => Ended::Fault(number),
        (4, 0) => Ended::ClockEnds,
        _ => return None,
    };
    let (triggers, at) = (from.u64()?, from.ticks()?);
    let tallies = Tallies::take(responders, from)?;
    Some(Stopped { run, ended, triggers, at, tallies })
}

fn self_test(from: &mut Take<'_>) -> Option<SelfTest> {
    let (triggers, offset) = (from.u64()?, from.ticks()?);
    Some(SelfTest { triggers, offset, jitter: from.ticks()?, late: from.ticks()? })
}

fn put_batch(batch: &Batch<'_>, to: &mut impl Put) {
    to.u32(batch.run.0.get());
    to.u16(batch.tallies.responders().mask());
    to.bytes(&[batch.measurements.len() as u8, 0]);
    [batch.first, batch.triggers, batch.at.0].into_iter().for_each(|n| to.u64(n));
    batch.tallies.put(to);
    batch.measurements.put(to);
}

fn batch<'a>(from: &mut Take<'a>) -> Option<Batch<'a>> {
    let (run, responders, count) = (from.run()?, from.responders()?, from.u8()?);
    from.zeros::<1>()?;
    let (first, triggers, at) = (from.u64()?, from.u64()?, from.ticks()?);
    let tallies = Tallies::take(responders, from)?;
    let measurements = List::of(from.rest())?;
    let whole = measurements.len() == usize::from(count);
    let batch = Batch { run, first, triggers, at, tallies, measurements };
    let own = batch.measurements.iter().all(|m| batch.tallies.responders().contains(m.responder));
    (whole && own).then_some(batch)
}

#[cfg(test)]
#[path = "tests/encoding.rs"]
mod tests;

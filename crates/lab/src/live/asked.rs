// SPDX-License-Identifier: GPL-2.0-or-later
//! What a user asks a generator for, in a user's words, and what that is in the ticks of a generator. Nothing is
//! rounded without being told.

use super::Live;
use crate::Error;
use sample::{Nanos, Responder, ResponderSet};
use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};
use std::str::FromStr;
use wire::generator::{Inexact, Setting, Tick, Ticks};

/// What a user asks of a generator. What is absent stays as the generator has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// How often triggers come.
    pub frequency: Option<Frequency>,
    /// The time from one trigger to the next; a frequency goes before it.
    pub period: Option<Nanos>,
    /// The share of a period during which the line is high; with a frequency or a period a tenth, if absent.
    pub duty: Option<Duty>,
    /// The largest displacement of a trigger.
    pub jitter: Option<Nanos>,
    /// Measurements in a batch.
    pub batch: Option<u64>,
    /// Who is measured; with none all.
    pub responders: Vec<Responder>,
    /// How many triggers; absent: until the user stops it.
    pub count: Option<NonZeroU64>,
}

impl Wanted {
    /// Sets the generator, for its next run. Returns what the user is to know, if the line is high for another share
    /// than the user asked for.
    ///
    /// # Errors
    /// [`Error::Unfit`] for what is no whole number of ticks, and for what the generator refuses.
    pub fn apply(&self, live: &mut Live) -> Result<Option<String>, Error> {
        let tick = live.tick();
        let time = |time| period(time, tick).map_err(Error::Unfit);
        let asked = match (self.frequency, self.period) {
            (Some(frequency), _) => Some(frequency.period(tick).map_err(Error::Unfit)?),
            (None, asked) => asked.map(time).transpose()?,
        };
        if let Some(period) = asked {
            live.set(Setting::Period, period.0)?;
        }
        let mut note = None;
        if let Some(duty) = self.duty.or(asked.map(|_| Duty::TENTH)) {
            let period = Ticks(live.settings().get(Setting::Period));
            let (high, exact) = duty.high(period);
            note = (!exact).then(|| {
                format!(
                    "{duty} of the period is no whole number of ticks: the line is high for {} of {} ticks",
                    high.0, period.0
                )
            });
            live.set(Setting::High, high.0)?;
        }
        if let Some(jitter) = self.jitter.map(time).transpose()? {
            live.set(Setting::Jitter, jitter.0)?;
        }
        if let Some(batch) = self.batch {
            live.set(Setting::Batch, batch)?;
        }
        let measured = self.measured(live.identity().responders()).map_err(Error::Unfit)?;
        live.set(Setting::Responders, measured.mask().into())?;
        live.set(Setting::Count, self.count.map_or(u64::MAX, u64::from))?;
        Ok(note)
    }

    /// Whom to measure, of those for whom the generator has a pin.
    fn measured(&self, there: ResponderSet) -> Result<ResponderSet, String> {
        let asked: ResponderSet = self.responders.iter().copied().collect();
        if there.contains_all(asked) {
            return Ok(if self.responders.is_empty() { there } else { asked });
        }
        let names = |of: &mut dyn Iterator<Item = Responder>| {
            of.map(Responder::name).collect::<Vec<_>>().join(", ")
        };
        let absent = names(&mut asked.iter().filter(|r| !there.contains(*r)));
        let there = names(&mut there.iter());
        Err(format!("the generator has no pin for {absent}; it has pins for {there}"))
    }
}

/// How often triggers come: `hertz`/`per` Hz.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frequency {
    hertz: NonZeroU32,
    per: NonZeroU32,
}

/// The part of a period during which the line is high: `part`/`whole`, above 0 and below 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duty {
    part: u32,
    whole: u32,
}

/// A number with up to six decimals, as a fraction.
fn fraction(text: &str) -> Option<(u64, u64)> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let are_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !are_digits(whole) || !are_digits(decimals) || decimals.len() > 6 {
        return None;
    }
    let per = 10u64.pow(decimals.len() as u32);
    let part: u64 = if decimals.is_empty() { 0 } else { decimals.parse().ok()? };
    let all = whole.parse::<u64>().ok()?.checked_mul(per)?.checked_add(part)?;
    Some((all, per))
}

impl FromStr for Frequency {
    type Err = String;

    fn from_str(text: &str) -> Result<Frequency, String> {
        let wrong = || {
            format!(
                "{text:?} is no frequency: write a number and its unit, as in 16Hz, 2kHz or 0.5Hz"
            )
        };
        let (number, scale) = match text.trim() {
            t if t.ends_with("MHz") => (&t[..t.len() - 3], 1_000_000),
            t if t.ends_with("kHz") => (&t[..t.len() - 3], 1_000),
            t if t.ends_with("Hz") => (&t[..t.len() - 2], 1),
            _ => return Err(wrong()),
        };
        let (hertz, per) = fraction(number.trim()).ok_or_else(wrong)?;
        let hertz = hertz.checked_mul(scale).ok_or_else(wrong)?;
        let common = divisor(hertz, per);
        let whole = |n: u64| u32::try_from(n / common).ok().and_then(NonZeroU32::new);
        Ok(Frequency { hertz: whole(hertz).ok_or_else(wrong)?, per: whole(per).ok_or_else(wrong)? })
    }
}

fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a.max(1) } else { divisor(b, a % b) }
}

impl Duty {
    /// 10 %.
    pub const TENTH: Duty = Duty { part: 10, whole: 100 };
}

impl FromStr for Duty {
    type Err = String;

    fn from_str(text: &str) -> Result<Duty, String> {
        let wrong =
            || format!("{text:?} is no duty cycle: write a share between 0% and 100%, as in 10%");
        let number = text.trim().strip_suffix('%').ok_or_else(wrong)?;
        let (part, per) = fraction(number.trim()).ok_or_else(wrong)?;
        let (part, whole) = (u32::try_from(part), u32::try_from(per * 100));
        match (part, whole) {
            (Ok(part), Ok(whole)) if part > 0 && part < whole => Ok(Duty { part, whole }),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Duty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", f64::from(self.part) * 100.0 / f64::from(self.whole))
    }
}

impl Frequency {
    /// The period in ticks.
    ///
    /// # Errors
    /// The text names the periods around a frequency whose period is no whole number of ticks.
    pub fn period(self, tick: Tick) -> Result<Ticks, String> {
        let between = |inexact| around("the period of this frequency", inexact, tick);
        tick.period(self.hertz, self.per).map_err(between)
    }
}

/// A period in ticks.
///
/// # Errors
/// As [`Frequency::period`].
fn period(time: Nanos, tick: Tick) -> Result<Ticks, String> {
    tick.ticks(time).map_err(|inexact| around("this period", inexact, tick))
}

fn around(what: &str, Inexact { below, above }: Inexact, tick: Tick) -> String {
    let shown = |ticks: Ticks| match tick.nanos(ticks) {
        Some((time, true)) => format!("--period {}ns", time.0),
        _ => format!("{} ticks", ticks.0),
    };
    let nearest: Vec<String> = [below, above].into_iter().flatten().map(shown).collect();
    format!(
        "{what} is no whole number of the generator's ticks ({}/{} ns each), and nothing is rounded: take {}",
        tick.nanos,
        tick.per,
        if nearest.is_empty() { "a shorter one".into() } else { nearest.join(" or ") }
    )
}

impl Duty {
    /// How long the line is high in a period, and whether that is exactly the share that was asked for. A tick at the
    /// least.
    pub fn high(self, period: Ticks) -> (Ticks, bool) {
        let all = u128::from(period.0) * u128::from(self.part);
        let whole = u128::from(self.whole);
        let high = u64::try_from(all / whole).expect("less than the period").max(1);
        (Ticks(high), all.is_multiple_of(whole) && high > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EIGHT: Tick = Tick { nanos: NonZeroU32::new(8).expect("above 0"), per: NonZeroU32::MIN };

    #[test]
    fn a_frequency_is_read_exactly_or_not_at_all() {
        let period =
            |text: &str| text.parse::<Frequency>().and_then(|f| f.period(Tick::NANOSECOND));
        assert_eq!(period("2kHz"), Ok(Ticks(500_000)));
        assert_eq!(period("0.5 Hz"), Ok(Ticks(2_000_000_000)));
        assert_eq!(period("62.5Hz"), Ok(Ticks(16_000_000)));
        assert_eq!(period("1MHz"), Ok(Ticks(1_000)));
        for wrong in ["", "2", "kHz", "0Hz", "1.0000001Hz", "-1Hz", "1.Hz.2", "99999999999MHz"] {
            let refused = period(wrong).expect_err(wrong);
            assert!(refused.contains("as in 16Hz"), "{refused}");
        }
    }

    #[test]
    fn what_is_no_whole_number_of_ticks_is_told_with_its_neighbours() {
        let three: Frequency = "3Hz".parse().expect("a frequency");
        let refused = three.period(EIGHT).expect_err("a third of a second");
        assert!(
            refused.ends_with("take --period 333333328ns or --period 333333336ns"),
            "{refused}"
        );
        assert_eq!(period(Nanos(80), EIGHT), Ok(Ticks(10)));
        assert!(period(Nanos(81), EIGHT).is_err());
    }

    #[test]
    fn who_has_no_pin_at_the_generator_is_named_with_those_who_have() {
        let asked = |responders: &[Responder]| {
            Wanted { responders: responders.to_vec(), ..Wanted::default() }
                .measured(ResponderSet::OF_PORT)
        };
        assert_eq!(asked(&[]), Ok(ResponderSet::OF_PORT));
        assert_eq!(asked(&[Responder::Task]).map(ResponderSet::mask), Ok(0x80));
        let refused = asked(&[Responder::Task, Responder::Waitqueue]).expect_err("pin 10");
        assert!(refused.contains("no pin for waitqueue; it has pins for hardirq,"), "{refused}");
    }

    #[test]
    fn a_duty_cycle_is_a_share_of_the_period() {
        let duty: Duty = "10%".parse().expect("a share");
        assert_eq!(duty.high(Ticks(1_000)), (Ticks(100), true));
        assert_eq!(duty.high(Ticks(1_005)), (Ticks(100), false));
        assert_eq!(duty.high(Ticks(3)), (Ticks(1), false));
        assert_eq!("0.5%".parse::<Duty>().map(|d| d.to_string()), Ok("0.5 %".into()));
        for wrong in ["10", "0%", "100%", "101%", "x%", "%"] {
            assert!(wrong.parse::<Duty>().is_err(), "{wrong}");
        }
    }
}

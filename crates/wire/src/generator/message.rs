// SPDX-License-Identifier: GPL-2.0-or-later
//! What a host and a generator say to each other. `encoding.rs` says how it is written.

use super::{
    Batch, Limits, List, PINS, Range, Setting, Settings, TRAIN_MAX, Tallies, Tick, Ticks, VERSION,
};
use sample::{Responder, ResponderSet};

/// What a frame's payload is. Bit 7 says that a generator sent it. Bit 6 says that a reader which does not know the
/// kind passes the frame over; without that bit it refuses the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind(pub u8);

impl Kind {
    /// [`Command::Identify`].
    pub const IDENTIFY: Kind = Kind(0x01);
    /// [`Command::Set`].
    pub const SET: Kind = Kind(0x02);
    /// [`Command::Train`].
    pub const TRAIN: Kind = Kind(0x03);
    /// [`Command::Start`].
    pub const START: Kind = Kind(0x04);
    /// [`Command::Stop`].
    pub const STOP: Kind = Kind(0x05);
    /// [`Command::Test`].
    pub const TEST: Kind = Kind(0x06);
    /// [`Report::Identity`].
    pub const IDENTITY: Kind = Kind(0x81);
    /// [`Report::Accepted`].
    pub const ACCEPTED: Kind = Kind(0x82);
    /// [`Report::Refused`].
    pub const REFUSED: Kind = Kind(0x83);
    /// [`Report::Started`].
    pub const STARTED: Kind = Kind(0x84);
    /// [`Report::Stopped`].
    pub const STOPPED: Kind = Kind(0x85);
    /// [`Report::SelfTest`].
    pub const SELF_TEST: Kind = Kind(0x86);
    /// [`Report::Batch`].
    pub const BATCH: Kind = Kind(0x87);

    /// Whether a generator sent it. Whoever hears a frame of its own side passes it over: a line may echo.
    pub const fn is_of_generator(self) -> bool {
        self.0 & 0x80 != 0
    }

    /// Whether a reader that does not know this kind passes it over.
    pub const fn is_optional(self) -> bool {
        self.0 & 0x40 != 0
    }
}

/// What a host asks of a generator. Each command has one answer, which repeats its number: [`Report::Identity`],
/// [`Report::Started`] or [`Report::SelfTest`] where the command asks for it, otherwise [`Report::Accepted`]; or
/// [`Report::Refused`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// Who are you? The first command of a connection. The host speaks all versions from `oldest` to `newest`.
    Identify {
        /// The oldest version that the host speaks.
        oldest: u8,
        /// The newest one.
        newest: u8,
    },
    /// Give a setting this value, from the next run on.
    Set {
        /// Which.
        setting: Setting,
        /// The value.
        value: u64,
    },
    /// Take these times of a train.
    Train(Train<'a>),
    /// Start a run.
    Start(Timing),
    /// Raise nothing more, and end the run.
    Stop,
    /// Measure your own jitter and offset.
    Test,
}

/// Times of a train, since the start and rising.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Train<'a> {
    /// The place of the first of them in the train. 0 begins a new one; any other has to be as many as are held.
    pub first: u32,
    /// At most [`TRAIN_MAX`]; with none and the place 0 the train is forgotten.
    pub times: List<'a, Ticks>,
}

/// Where the instants of a run's triggers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Timing {
    /// From the settings, as those of `sample::Schedule::Periodic`.
    Periodic = 0,
    /// From the train.
    Train = 1,
}

/// What a generator's ticks are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Clock {
    /// The virtual time of a guest.
    Virtual = 1,
    /// A counter of the device.
    Counter = 2,
}

/// A run's number, from 1 on, since the generator was switched on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Run(pub core::num::NonZeroU32);

/// Who a generator is, and what it can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// What it counts ticks by.
    pub clock: Clock,
    /// The run that goes on.
    pub running: Option<Run>,
    /// How long a tick is.
    pub tick: Tick,
    /// By how much a tick may be shorter or longer than announced, in parts of 10⁹; `None` where nobody knows.
    pub accuracy_ppb: Option<u32>,
    /// Instants are told to within so many ticks; above 0.
    pub resolution: Ticks,
    /// Who answers at each pin; a responder has one pin.
    pub pins: [Option<Responder>; PINS],
    /// Times of a train that it holds.
    pub held: u32,
    /// What it can be set to.
    pub limits: Limits,
    /// What it is set to.
    pub settings: Settings,
    /// What it calls itself: printable ASCII, then zeros.
    pub name: [u8; Identity::NAME],
}

impl Identity {
    /// The most characters of a name.
    pub const NAME: usize = 32;

    /// All who answer.
    pub fn responders(&self) -> ResponderSet {
        self.pins.into_iter().flatten().collect()
    }
}

/// A command was carried out. What it set is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Of which kind the command was.
    pub command: Kind,
    /// What it set.
    pub setting: Option<Setting>,
    /// To which value; of a train how many times are held; otherwise 0.
    pub value: u64,
}

/// Why a command is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Why {
    /// No version is spoken by both; the limits are the versions that the generator speaks.
    Version = 1,
    /// No version has been agreed upon: the generator may have been switched off and on.
    Unidentified = 2,
    /// The generator knows no such kind.
    UnknownCommand = 3,
    /// The payload has another length than its kind, or a byte that means nothing.
    Malformed = 4,
    /// There is no setting of this number, which is the value.
    UnknownSetting = 5,
    /// The value is outside the limits.
    OutsideLimits = 6,
    /// The value is between two steps.
    NotAStep = 7,
    /// A run goes on, whose number is the value.
    Running = 8,
    /// No run goes on.
    NotRunning = 9,
    /// There is no train to start.
    NoTrain = 10,
    /// A piece of a train does not follow what is held, which is the limit.
    Place = 11,
    /// A time of a train is earlier than the gap allows.
    Order = 12,
    /// The generator cannot do this.
    Unsupported = 13,
    /// The generator is at fault; the value is a number of its own.
    Fault = 14,
}

impl Why {
    /// All, in the order of their numbers, which begin with 1.
    pub const ALL: [Why; 14] = [
        Why::Version,
        Why::Unidentified,
        Why::UnknownCommand,
        Why::Malformed,
        Why::UnknownSetting,
        Why::OutsideLimits,
        Why::NotAStep,
        Why::Running,
        Why::NotRunning,
        Why::NoTrain,
        Why::Place,
        Why::Order,
        Why::Unsupported,
        Why::Fault,
    ];
}

/// A command was refused: nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Why.
    pub why: Why,
    /// Of which kind the command was.
    pub command: Kind,
    /// Which setting is wrong.
    pub setting: Option<Setting>,
    /// The value that was asked for.
    pub value: u64,
    /// What would have been taken.
    pub range: Range,
}

impl Refused {
    /// One that names no value.
    pub fn new(why: Why, command: Kind) -> Refused {
        Refused { why, command, setting: None, value: 0, range: Range::default() }
    }

    pub(super) fn of_setting(
        why: Why,
        command: Kind,
        setting: Setting,
        value: u64,
        range: Range,
    ) -> Refused {
        Refused { why, command, setting: Some(setting), value, range }
    }

    pub(super) fn of_train(why: Why, command: Kind, value: u64, most: u32) -> Refused {
        let most = most.into();
        let least = match why {
            Why::Place => most,
            Why::NoTrain => 1,
            _ => 0,
        };
        Refused { value, range: Range::new(least, most), ..Refused::new(why, command) }
    }
}

impl core::fmt::Display for Refused {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Refused { why, command, setting, value, range } = *self;
        let Range { least, most, step } = range;
        match (setting, command) {
            (Some(setting), _) => write!(f, "the generator refuses {} {value}: ", setting.name())?,
            (None, Kind(kind)) => {
                write!(f, "the generator refuses a command (kind {kind:#04x}): ")?
            }
        }
        match why {
            Why::Version => write!(f, "it speaks the versions {least} to {most} of the protocol"),
            Why::Unidentified => f.write_str("it has to be identified first"),
            Why::UnknownCommand => f.write_str("it does not know this kind"),
            Why::Malformed => f.write_str("its bytes are none of such a command"),
            Why::UnknownSetting => {
                write!(f, "there is no setting {value}, but those from {least} to {most}")
            }
            Why::OutsideLimits => write!(f, "the limits are {least} to {most}"),
            Why::NotAStep => write!(f, "from {least} on it takes steps of {step}, up to {most}"),
            Why::Running => write!(f, "run {value} goes on; stop it first"),
            Why::NotRunning => f.write_str("no run goes on"),
            Why::NoTrain => write!(f, "it holds no train; send one of up to {most} times"),
            Why::Place => {
                write!(f, "place {value} of the train does not follow the {most} times held")
            }
            Why::Order => write!(f, "the time {value} of the train is before {least}"),
            Why::Unsupported => f.write_str("it cannot do this"),
            Why::Fault => write!(f, "it is at fault ({value})"),
        }
    }
}

impl core::error::Error for Refused {}

/// The version that both speak; the generator speaks [`VERSION`] alone.
///
/// # Errors
/// The refusal that is to be sent.
pub fn negotiate(oldest: u8, newest: u8) -> Result<u8, Refused> {
    if (oldest..=newest).contains(&VERSION) {
        return Ok(VERSION);
    }
    let range = Range::new(VERSION.into(), VERSION.into());
    let value = newest.into();
    Err(Refused { value, range, ..Refused::new(Why::Version, Kind::IDENTIFY) })
}

/// A run has started, with these settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// Which.
    pub run: Run,
    /// Where its instants come from.
    pub timing: Timing,
    /// How many times the train has; 0 where it is periodic.
    pub train: u32,
    /// What is in force.
    pub settings: Settings,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The host stopped it.
    Asked,
    /// All triggers came, and the last answers or the end of the grace.
    Complete,
    /// The generator is at fault; the number is its own.
    Fault(u16),
    /// The next trigger would come after 2⁶⁴−1 ticks.
    ClockEnds,
}

/// A run has ended. Everything it measured has been sent before, or is counted here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Which.
    pub run: Run,
    /// Why.
    pub ended: Ended,
    /// Instants of the schedule that came, also those at which nothing was raised.
    pub triggers: u64,
    /// When, since the start.
    pub at: Ticks,
    /// Of the whole run.
    pub tallies: Tallies,
}

/// What a generator measured of itself, with its line connected to an answer pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelfTest {
    /// How often it raised the line.
    pub triggers: u64,
    /// The shortest time from raising the line to its own edge. No latency is corrected by it.
    pub offset: Ticks,
    /// By how much the longest was longer.
    pub jitter: Ticks,
    /// How long after its instant the line was raised, at most.
    pub late: Ticks,
}

/// What a generator says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "nothing here allocates, and one lives at a time")]
pub enum Report<'a> {
    /// The answer to [`Command::Identify`].
    Identity(Identity),
    /// The answer to a command that was carried out, and that has no other.
    Accepted(Accepted),
    /// The answer to a command that was not.
    Refused(Refused),
    /// The answer to [`Command::Start`].
    Started(Started),
    /// A run has ended.
    Stopped(Stopped),
    /// The answer to [`Command::Test`].
    SelfTest(SelfTest),
    /// Measurements, or what has been lost.
    Batch(Batch<'a>),
}

const _: () = assert!(TRAIN_MAX * 8 + 8 <= super::PAYLOAD_MAX, "a piece of a train is a frame");

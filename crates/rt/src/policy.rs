// SPDX-License-Identifier: GPL-2.0-or-later
//! Scheduling policies, by the names that users write.

use sample::Nanos;
use std::fmt;
use std::str::FromStr;

/// How the kernel schedules a thread (sched(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// `SCHED_OTHER` with a nice value, −20 … 19.
    Other(i8),
    /// `SCHED_FIFO` with a priority, 1 … 99.
    Fifo(u8),
    /// `SCHED_RR` with a priority, 1 … 99.
    RoundRobin(u8),
    /// `SCHED_DEADLINE`: up to `runtime` in every `period`, done within `deadline` of the period's beginning.
    Deadline {
        /// At least 1024 ns.
        runtime: Nanos,
        /// Not below `runtime`.
        deadline: Nanos,
        /// Not below `deadline`.
        period: Nanos,
    },
}

/// The error that no policy is written in this way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsePolicyError;

impl fmt::Display for ParsePolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "write other, other:NICE (-20 … 19), fifo:PRIORITY or rr:PRIORITY (1 … 99), \
             or deadline:RUNTIME,DEADLINE,PERIOD (as in deadline:100us,1ms,1ms)",
        )
    }
}

impl std::error::Error for ParsePolicyError {}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::Other(0) => f.write_str("other"),
            Policy::Other(nice) => write!(f, "other:{nice}"),
            Policy::Fifo(priority) => write!(f, "fifo:{priority}"),
            Policy::RoundRobin(priority) => write!(f, "rr:{priority}"),
            Policy::Deadline { runtime, deadline, period } => {
                write!(f, "deadline:{}ns,{}ns,{}ns", runtime.0, deadline.0, period.0)
            }
        }
    }
}

impl FromStr for Policy {
    type Err = ParsePolicyError;

    fn from_str(text: &str) -> Result<Policy, ParsePolicyError> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let priority = || {
            let priority = rest.parse().map_err(|_| ParsePolicyError)?;
            if (1..=99).contains(&priority) { Ok(priority) } else { Err(ParsePolicyError) }
        };
        match name {
            "other" if rest.is_empty() && !text.ends_with(':') => Ok(Policy::Other(0)),
            "other" => match rest.parse() {
                Ok(nice) if (-20..=19).contains(&nice) => Ok(Policy::Other(nice)),
                _ => Err(ParsePolicyError),
            },
            "fifo" => priority().map(Policy::Fifo),
            "rr" => priority().map(Policy::RoundRobin),
            "deadline" => deadline(rest),
            _ => Err(ParsePolicyError),
        }
    }
}

fn deadline(text: &str) -> Result<Policy, ParsePolicyError> {
    let times: Vec<Nanos> =
        text.split(',').map(str::parse).collect::<Result<_, _>>().map_err(|_| ParsePolicyError)?;
    let [runtime, deadline, period] = times[..] else { return Err(ParsePolicyError) };
    // The kernel takes no time below 1024 ns, and wants the three times in order (sched_setattr(2)).
    if runtime.0 < 1024 || runtime > deadline || deadline > period {
        return Err(ParsePolicyError);
    }
    Ok(Policy::Deadline { runtime, deadline, period })
}

#[cfg(feature = "serde")]
impl serde::Serialize for Policy {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Policy {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_reads_back_as_written() {
        for text in
            ["other", "other:-5", "fifo:90", "rr:1", "deadline:100000ns,1000000ns,1000000ns"]
        {
            assert_eq!(text.parse::<Policy>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_the_kernel_would_refuse_is_refused() {
        for text in [
            "",
            "fifo",
            "fifo:",
            "fifo:0",
            "fifo:100",
            "fifo:-1",
            "rr",
            "other:",
            "other:20",
            "batch",
            "FIFO:3",
            "deadline:",
            "deadline:1ms",
            "deadline:1us,1ms,1ms",
            "deadline:2ms,1ms,3ms",
            "deadline:1ms,3ms,2ms",
        ] {
            assert_eq!(text.parse::<Policy>(), Err(ParsePolicyError), "{text}");
        }
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! How long a hunt goes on, as the command line says.

use sample::{Nanos, ParseDurationError};
use std::str::FromStr;
use std::time::Duration;

/// How long a hunt goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// Wall time. When it is over, the hunt gives up the trials that are running, except in the first round. So there
    /// is always a trial.
    Time(Duration),
    /// This many trials at the most. The last round ends with the last of them.
    Trials(u64),
}

/// In a form that the command line takes.
impl std::fmt::Display for Budget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Budget::Time(time) => write!(f, "{time:?}"),
            Budget::Trials(trials) => write!(f, "{trials}trials"),
        }
    }
}

/// The error that a text is no budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotABudget {
    /// The hunt would end before it begins.
    Zero,
    /// The text is neither a duration nor a number of trials.
    Malformed(ParseDurationError),
}

impl std::fmt::Display for NotABudget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NotABudget::Zero => {
                f.write_str("a hunt needs some budget; write 5min, 30s or 200trials")
            }
            NotABudget::Malformed(e) => write!(f, "{e}; write 5min, 30s or 200trials"),
        }
    }
}

impl std::error::Error for NotABudget {}

impl FromStr for Budget {
    type Err = NotABudget;

    fn from_str(text: &str) -> Result<Budget, NotABudget> {
        if let Some(Ok(trials)) = text.strip_suffix("trials").map(|n| n.trim().parse()) {
            return if trials == 0 { Err(NotABudget::Zero) } else { Ok(Budget::Trials(trials)) };
        }
        let time: Nanos = text.parse().map_err(NotABudget::Malformed)?;
        match time.0 {
            0 => Err(NotABudget::Zero),
            ns => Ok(Budget::Time(Duration::from_nanos(ns))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_times_or_trials_and_never_zero() {
        assert_eq!("5min".parse(), Ok(Budget::Time(Duration::from_secs(300))));
        assert_eq!("30s".parse(), Ok(Budget::Time(Duration::from_secs(30))));
        assert_eq!("200trials".parse(), Ok(Budget::Trials(200)));
        for text in ["300s", "1.5s", "200trials"] {
            assert_eq!(text.parse().map(|budget: Budget| budget.to_string()), Ok(text.into()));
        }
        for zero in ["0s", "0min", "0trials"] {
            assert_eq!(zero.parse::<Budget>(), Err(NotABudget::Zero));
        }
        let error = "soon".parse::<Budget>().unwrap_err().to_string();
        assert!(error.contains("5min"), "{error}");
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! Flavours: a kernel and its boot options.

use std::fmt;
use std::str::FromStr;

/// A kernel of the cache, by name, and words for its command line.
///
/// Its `Display` is the flavour's name everywhere: single spaces, kernel first, as in
/// `6.12 preempt=none`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flavour {
    /// Name in the kernel cache, as in `onset kernels list`: letters, digits and `. - _ + ~`.
    pub kernel: String,
    /// Words for the kernel's command line, printable ASCII without spaces.
    pub parameters: Vec<String>,
}

impl Flavour {
    /// What this machine runs.
    pub fn local() -> Flavour {
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        Flavour { kernel: release, parameters: Vec::new() }
    }
}

impl fmt::Display for Flavour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kernel)?;
        self.parameters.iter().try_for_each(|p| write!(f, " {p}"))
    }
}

/// Why a text is not a flavour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseFlavourError {
    /// Nothing but space.
    Empty,
    /// The first word is no name of a kernel; it would not be a name of a file either.
    KernelName,
    /// A parameter holds something other than printable ASCII, or a quotation mark (the words would
    /// not be those that the kernel reads).
    Parameter,
}

impl fmt::Display for ParseFlavourError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "a flavour needs the name of a kernel",
            Self::KernelName => {
                "the name of a kernel starts with a letter or digit and has letters, digits and .-_+~"
            }
            Self::Parameter => "a kernel parameter is printable ASCII without quotation marks",
        })
    }
}

impl std::error::Error for ParseFlavourError {}

impl FromStr for Flavour {
    type Err = ParseFlavourError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut words = text.split_whitespace().map(str::to_owned);
        let kernel = words.next().ok_or(ParseFlavourError::Empty)?;
        if !rig::is_kernel_name(&kernel) {
            return Err(ParseFlavourError::KernelName);
        }
        let parameters: Vec<String> = words.collect();
        let plain = |c: char| c.is_ascii_graphic() && c != '"';
        if !parameters.iter().all(|p| p.chars().all(plain)) {
            return Err(ParseFlavourError::Parameter);
        }
        Ok(Flavour { kernel, parameters })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_flavour_shows_as_kernel_and_parameters_with_single_spaces() {
        let flavour: Flavour = "  6.12  preempt=none\thighres=off ".parse().unwrap();
        assert_eq!(flavour.kernel, "6.12");
        assert_eq!(flavour.parameters, ["preempt=none", "highres=off"]);
        assert_eq!(flavour.to_string(), "6.12 preempt=none highres=off");
    }

    #[test]
    fn a_kernel_name_cannot_lead_out_of_the_cache() {
        for (text, why) in [
            (" ", ParseFlavourError::Empty),
            ("../6.12", ParseFlavourError::KernelName),
            ("a/b", ParseFlavourError::KernelName),
            ("6.12 a=\"b", ParseFlavourError::Parameter),
            ("6.12 a=\u{1}", ParseFlavourError::Parameter),
        ] {
            assert_eq!(text.parse::<Flavour>(), Err(why), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_a_flavour_shows_reads_back_as_itself(text in "\\PC*") {
            if let Ok(flavour) = text.parse::<Flavour>() {
                prop_assert_eq!(flavour.to_string().parse(), Ok(flavour));
            }
        }
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The stressors: those that the machine's stress-ng has, without those that can tell nothing in a guest.

use crate::Error;
use rig::tool;
use std::process::Command;
use std::time::Duration;

/// The programs that the guest gets.
pub const PROGRAMS: [&str; 3] = ["ip", "sh", "stress-ng"];

/// The stressors that are not tried, and why.
const LEFT_OUT: [(&str, &str); 1] = [(
    "softlockup",
    "it keeps every processor at the highest real-time priority, so that the guest's init cannot end its time",
)];

const PROGRAM: &str = "stress-ng";
const DEADLINE: Duration = Duration::from_secs(60);

/// The stressors of an atlas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The names of those that are tried, in order.
    pub tried: Vec<String>,
    /// Those that are not, and why.
    pub left_out: Vec<(String, String)>,
}

/// The stressors with these names, or all that this machine's stress-ng has.
///
/// # Errors
/// If the machine has no stress-ng. If there is no stressor of a name, with the names that there are.
pub fn chosen(asked: &[String]) -> Result<Chosen, Error> {
    choose(&known()?, asked)
}

fn choose(known: &[String], asked: &[String]) -> Result<Chosen, Error> {
    if let Some(unknown) = asked.iter().find(|name| !known.contains(name)) {
        let known = experiment::known_words(unknown, known.iter().map(String::as_str));
        return Err(Error::Unfit(format!("stress-ng has no stressor {unknown:?}: {known}")));
    }
    let is_wanted = |name: &&String| asked.is_empty() || asked.contains(name);
    let reason = |name: &str| LEFT_OUT.iter().find(|(of, _)| *of == name).map(|(_, why)| *why);
    let mut chosen = Chosen { tried: Vec::new(), left_out: Vec::new() };
    for name in known.iter().filter(is_wanted) {
        match reason(name) {
            Some(why) => chosen.left_out.push((name.clone(), why.into())),
            None => chosen.tried.push(name.clone()),
        }
    }
    Ok(chosen)
}

/// The names of all stressors, in order.
fn known() -> Result<Vec<String>, Error> {
    let text = printed("--stressors")?;
    let mut names: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    names.sort();
    Ok(names)
}

/// The version of this machine's stress-ng.
///
/// # Errors
/// If the machine has no stress-ng, or if it fails.
pub fn version() -> Result<String, Error> {
    // stress-ng, version 0.15.06 (gcc 12.2.0, x86_64 Linux 6.18.44)
    let text = printed("--version")?;
    let mut words = text.split_whitespace().skip_while(|word| *word != "version").skip(1);
    Ok(words.next().unwrap_or_default().to_owned())
}

fn printed(option: &str) -> Result<String, Error> {
    Ok(tool::run(Command::new(PROGRAM).arg(option), PROGRAM, DEADLINE)?)
}

/// The script of a stressor: one instance, with all that it draws from `seed`, with its files in memory, and with the
/// loopback interface. It works until it is interrupted.
pub fn script(name: &str, seed: u32) -> String {
    format!(
        "ip link set lo up && exec stress-ng --{name} 1 --seed {seed} --timeout 1h --temp-path /tmp --metrics-brief"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(of: &[&str]) -> Vec<String> {
        of.iter().map(|name| name.to_string()).collect()
    }

    #[test]
    fn all_are_tried_but_those_that_have_a_reason() {
        let known = names(&["fork", "mmap", "softlockup"]);
        let all = choose(&known, &[]).unwrap();
        assert_eq!(all.tried, ["fork", "mmap"]);
        assert_eq!(all.left_out[0].0, "softlockup");
        let one = choose(&known, &names(&["mmap", "mmap"])).unwrap();
        assert_eq!((one.tried, one.left_out), (names(&["mmap"]), vec![]));
    }

    #[test]
    fn a_name_that_no_stressor_has_is_refused() {
        let refused = choose(&names(&["fork", "mmap"]), &names(&["fork", "nmap"])).unwrap_err();
        let expected =
            "stress-ng has no stressor \"nmap\": did you mean \"mmap\"? known are fork, mmap";
        assert_eq!(refused.to_string(), expected);
    }
}

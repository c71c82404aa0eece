// SPDX-License-Identifier: GPL-2.0-or-later
//! The loads: shell scripts around existing tools, the same scripts for every target.
//!
//! A script's header names what the script needs. Its body sets up, starts workers in the background and returns. A
//! worker is `repeat NAME COMMAND…`, which counts how often the command succeeded, or `play NAME FILE`, a media player,
//! which counts the blocks that it played.

use std::fmt;
use std::str::FromStr;

macro_rules! loads {
    ($($load:ident $name:literal $(of [$($part:ident)*])?: $what:literal;)+) => {
        /// Background work that makes the target busy.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Load {
            $(#[doc = $what] $load,)+
        }

        /// All loads, mildest first.
        pub const ALL_LOADS: [Load; [$($name),+].len()] = [$(Load::$load),+];

        impl Load {
            /// The load's word in files, JSON and pages.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Load::$load => $name,)+
                }
            }

            /// The loads whose scripts make up this load.
            pub fn parts(self) -> &'static [Load] {
                match self {
                    $(Load::$load => loads!(@parts $load $([$($part)*])?),)+
                }
            }

            fn text(self) -> &'static str {
                match self {
                    $(Load::$load => loads!(@text $name $([$($part)*])?),)+
                }
            }
        }
    };
    (@parts $load:ident) => { &[Load::$load] };
    (@parts $load:ident [$($part:ident)*]) => { &[$(Load::$part),*] };
    (@text $name:literal) => { include_str!(concat!("../loads/", $name, ".sh")) };
    (@text $name:literal [$($part:ident)*]) => { "" };
}

// A load is one script, `loads/NAME.sh`, or several other loads together. Each load has one line here.
loads! {
    Idle "idle" of []: "Nothing.";
    Disk "disk": "Writing to an ext4 file system and syncing it (2001 paper, §2: dd and sync).";
    Net "net": "Flood ping, TCP and UDP streams between two network namespaces (2001 paper, §2: ping flood).";
    TcpStream "tcp_stream": "One TCP stream between two network namespaces (2002 slides: netperf).";
    UdpStream "udp_stream": "One UDP stream between two network namespaces (2002 slides: netperf).";
    TcpRr "tcp_rr": "Requests and responses by TCP between two network namespaces (2002 slides: netperf).";
    Fork "fork": "Short-lived processes.";
    Fs "fs": "find, tar, cat (2007 assessment, §2: untar and find /).";
    Compile "compile": "A C compiler under make -j4 (2007 assessment, §2).";
    Ipc "ipc": "hackbench: processes that talk through sockets.";
    Memory "memory": "stress-ng's virtual-memory stressors.";
    Media "media": "A media player: a reader that keeps a pace (2006 thesis, §5.6.2).";
    Build "build" of [Compile Fs]: "compile and fs together (2007 assessment, §2: make, untar and find / at once).";
    Desktop "desktop" of [Compile TcpStream Media]: "compile, tcp_stream and media together (2006 thesis, §5.6.2: a compiler, a copy over the network and a media player).";
    Mixed "mixed" of [Disk Net Fork Fs Ipc]: "Disk, net, fork, fs and ipc together.";
}

/// The two network namespaces, for the loads whose header has the line `# network: namespaces`.
const NAMESPACES: &str = include_str!("../loads/namespaces.sh");

/// The error that no load has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownLoad;

impl fmt::Display for UnknownLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown load; known are")?;
        ALL_LOADS.iter().try_for_each(|l| write!(f, " {l}"))
    }
}

impl std::error::Error for UnknownLoad {}

impl Load {
    /// The whole script, or an empty one for `idle`.
    pub fn script(self) -> String {
        let mut script = String::from("set -eu\n");
        for part in self.parts() {
            // Each load has a subshell, so that no load sees the variables of another.
            script += &format!("(\n{}\n)\n", part.texts().concat());
        }
        script
    }

    /// The script of a load that has no parts, with what has to come before it.
    fn texts(self) -> Vec<&'static str> {
        let text = self.text();
        let is_network = !lines_of(text, "network").is_empty();
        is_network.then_some(NAMESPACES).into_iter().chain([text]).collect()
    }

    /// The values of a key in the headers of all its scripts.
    fn values(self, key: &str) -> Vec<&'static str> {
        let texts = self.parts().iter().flat_map(|part| part.texts());
        texts.flat_map(|text| lines_of(text, key)).collect()
    }

    /// The programs that the script runs in the guest, whose image has no other programs.
    pub fn programs(self) -> Vec<&'static str> {
        let mut programs = self.programs_on_machine();
        programs.extend(self.header("programs of the guest"));
        programs.sort_unstable();
        programs.dedup();
        programs
    }

    /// The programs that the script runs on a machine that has a system of its own.
    pub fn programs_on_machine(self) -> Vec<&'static str> {
        self.header("programs")
    }

    /// Whether the script makes network namespaces.
    pub fn needs_network(self) -> bool {
        !self.values("network").is_empty()
    }

    /// The kernel modules that the script's set-up needs, each with its parameters.
    pub fn modules(self) -> Vec<(&'static str, String)> {
        let mut modules = Vec::new();
        for line in self.values("module") {
            let (name, parameters) = line.split_once(' ').unwrap_or((line, ""));
            if !modules.iter().any(|(known, _)| *known == name) {
                modules.push((name, parameters.to_string()));
            }
        }
        modules
    }

    /// The names of the counters that must move while the load runs.
    pub fn counters(self) -> Vec<&'static str> {
        self.header("counters")
    }

    fn header(self, key: &str) -> Vec<&'static str> {
        let mut words: Vec<&str> =
            self.values(key).into_iter().flat_map(str::split_whitespace).collect();
        words.sort_unstable();
        words.dedup();
        words
    }
}

/// The Debian packages of those programs of loads that a system may lack.
const PACKAGES: [(&str, &str); 13] = [
    ("mount", "mount"),
    ("umount", "mount"),
    ("mke2fs", "e2fsprogs"),
    ("ip", "iproute2"),
    ("ping", "iputils-ping"),
    ("iperf3", "iperf3"),
    ("NPtcp", "netpipe-tcp"),
    ("hackbench", "rt-tests"),
    ("cyclictest", "rt-tests"),
    ("stress-ng", "stress-ng"),
    ("gcc", "gcc"),
    ("as", "binutils"),
    ("make", "make"),
];

/// The Debian package of a program that a load runs. Absent if every system has the program.
pub fn package_of(program: &str) -> Option<&'static str> {
    PACKAGES.iter().find(|(p, _)| *p == program).map(|(_, package)| *package)
}

/// The values of the lines `# key: value` in a script's header.
fn lines_of(text: &'static str, key: &str) -> Vec<&'static str> {
    text.lines()
        .filter_map(|l| l.strip_prefix("# ")?.strip_prefix(key)?.strip_prefix(": "))
        .collect()
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Load {
    type Err = UnknownLoad;
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        ALL_LOADS.into_iter().find(|l| l.name() == name).ok_or(UnknownLoad)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_load_but_idle_counts_its_work_with_the_counters_it_declares() {
        for load in ALL_LOADS.into_iter().filter(|l| *l != Load::Idle) {
            let script = load.script();
            assert!(!load.counters().is_empty(), "{load}");
            for counter in load.counters() {
                let counts = |worker: &str| script.contains(&format!("{worker} {counter} "));
                assert!(counts("repeat") || counts("play"), "{load}: {counter}");
            }
        }
    }

    #[test]
    fn idle_needs_nothing() {
        assert!(Load::Idle.programs().is_empty() && Load::Idle.modules().is_empty());
        assert_eq!(Load::Idle.script(), "set -eu\n");
    }

    #[test]
    fn mixed_needs_what_its_parts_need_once() {
        let programs = Load::Mixed.programs();
        for part in Load::Mixed.parts() {
            assert!(part.programs().iter().all(|p| programs.contains(p)), "{part}");
        }
        assert!(programs.windows(2).all(|w| w[0] < w[1]));
    }

    #[test]
    fn a_machine_needs_no_file_system_made_for_it() {
        assert!(Load::Disk.programs().contains(&"mke2fs"));
        assert!(!Load::Disk.programs_on_machine().contains(&"mke2fs"));
        for load in
            [Load::Net, Load::TcpStream, Load::UdpStream, Load::TcpRr, Load::Desktop, Load::Mixed]
        {
            assert!(load.needs_network(), "{load}");
            assert_eq!(load.script().matches("ip netns add east").count(), 1, "{load}");
            assert!(load.programs_on_machine().contains(&"ip"), "{load}");
            assert!(load.modules().iter().any(|(name, _)| *name == "veth"), "{load}");
        }
        assert!(!Load::Disk.needs_network());
        assert_eq!((package_of("ping"), package_of("sh")), (Some("iputils-ping"), None));
    }

    #[test]
    fn a_module_comes_with_its_parameters() {
        let modules = Load::Disk.modules();
        let null_blk = modules.iter().find(|(name, _)| *name == "null_blk").unwrap();
        assert!(null_blk.1.contains("memory_backed=1"), "{null_blk:?}");
    }

    #[test]
    fn names_read_back() {
        for load in ALL_LOADS {
            assert_eq!(load.name().parse(), Ok(load));
        }
        assert_eq!("busy".parse::<Load>(), Err(UnknownLoad));
    }
}

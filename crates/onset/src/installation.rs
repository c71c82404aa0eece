// SPDX-License-Identifier: GPL-2.0-or-later
//! Where the command finds the other parts of onset, which run beside it. They are in `lib/onset`, one or two
//! directories up from the command: in a build tree (`target/release/onset`, `target/lib/onset`), and where onset is
//! installed (`bin/onset`, `lib/onset`).

use crate::failure::Failure;
use rig::Parts;
use std::path::{Path, PathBuf};

/// The installed parts.
#[derive(Clone, Debug)]
pub struct Installation {
    directory: PathBuf,
}

impl Installation {
    /// Finds the parts that belong to this program.
    ///
    /// # Errors
    /// When they are not there; the message names the remedy.
    pub fn find() -> Result<Installation, Failure> {
        let program = std::env::current_exe().map_err(Failure::unavailable)?;
        Installation::find_near(&program)
    }

    /// Finds the parts that belong to `program`.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub fn find_near(program: &Path) -> Result<Installation, Failure> {
        let program = program.canonicalize().unwrap_or(program.into());
        let mut places = program.ancestors().skip(2).take(2).map(|d| d.join("lib/onset"));
        match places.find(|d| d.join("onset-agent").is_file()) {
            Some(directory) => Ok(Installation { directory }),
            None => Err(Failure::unavailable(format!(
                "onset does not find its plugin, agent and report page in ../lib/onset, seen from {}; run `make build`, or `make install`",
                program.display()
            ))),
        }
    }

    /// The parts that the rig needs.
    pub fn parts(&self) -> Parts {
        Parts {
            plugin: self.directory.join("libonset_plugin.so"),
            agent: self.directory.join("onset-agent"),
        }
    }

    /// The script of `onset patch`, with the patches beside it.
    pub fn patches(&self) -> PathBuf {
        self.directory.join("patches/patches.sh")
    }

    /// The directory of the patches of a series.
    pub fn patches_of(&self, series: &str) -> PathBuf {
        self.directory.join("patches").join(series)
    }

    /// The report's page.
    ///
    /// # Errors
    /// When it is missing.
    pub fn viewer(&self) -> Result<String, Failure> {
        self.page("report.html")
    }

    /// The page that `onset serve` shows.
    ///
    /// # Errors
    /// When it is missing.
    pub fn site(&self) -> Result<String, Failure> {
        self.page("site.html")
    }

    fn page(&self, name: &str) -> Result<String, Failure> {
        let path = self.directory.join(name);
        std::fs::read_to_string(&path).map_err(|e| {
            Failure::unavailable(format!(
                "the page {}: {e}; run `make build`, or `make install`",
                path.display()
            ))
        })
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! Fetches kernels from Debian's archive, without installing them.

use super::archive::{Announce, Archive};
use super::offers::{self, Completeness, Offer, SOURCE};
use super::toolchain::debian_of_machine;
use super::{Existing, Kernel, Kernels, Modules};
use crate::{Error, Result};
use std::path::PathBuf;

impl Kernels {
    /// The newest kernel of each series that the archive has.
    ///
    /// # Errors
    /// [`Error::Archive`].
    pub fn available(&self, announce: Announce) -> Result<Vec<Offer>> {
        offered(&self.archive(announce)?)
    }

    /// The file that lets apt (`APT_CONFIG`) use Debian's suites with kernels. Their lists are at most a day old.
    ///
    /// # Errors
    /// Of the archive: no mirror of Debian, or no network.
    pub fn archive_settings(&self, announce: Announce) -> Result<PathBuf> {
        Ok(self.archive(announce)?.configuration())
    }

    pub(super) fn archive(&self, announce: Announce) -> Result<Archive> {
        Archive::open(&self.directory.join(".archive"), announce)
    }

    /// Downloads the newest kernel of the series `name` (`6.12`, `6.12-rt`; `newest` and `newest-rt` are the last
    /// series) and its headers, unless the cache has exactly this kernel. An older fetched kernel is replaced. A kernel
    /// that was added from elsewhere is not.
    ///
    /// # Errors
    /// [`Error::Archive`], or [`Error::Kernel`] if the archive has no such series.
    pub fn fetch(&self, name: &str, announce: Announce) -> Result<Kernel> {
        check_series(name)?;
        let archive = self.archive(announce)?;
        let found = wanted(name, &offered(&archive)?)?;
        if let Some(kernel) = self.is_here(&found)? {
            return Ok(kernel);
        }
        match self.take(&archive, &found, announce) {
            // The lists may be older than the archive, which drops old builds.
            Err(Error::Program { .. }) => {
                archive.update(announce)?;
                let found = wanted(name, &offered(&archive)?)?;
                self.take(&archive, &found, announce)
            }
            done => done,
        }
    }

    /// The kernel of this offer, if the cache has it.
    fn is_here(&self, offer: &Offer) -> Result<Option<Kernel>> {
        let name = &offer.name;
        let refused = |why: String| {
            let remedy = format!("remove it first: onset kernels remove {name}");
            Err(Error::Kernel { name: name.clone(), why: format!("{why}; {remedy}") })
        };
        let here = match self.get(name) {
            Err(Error::UnknownKernel { .. }) => return Ok(None),
            here => here,
        };
        match self.source_of(name) {
            Some(source) if !source.starts_with(SOURCE) => refused(format!(
                "you added the kernel of this name from {source}, so onset does not replace it"
            )),
            None => refused("its kernel.json cannot be read, so nobody knows whose it is".into()),
            // Else it is an older one, or a damaged one.
            Some(_) => Ok(here.ok().filter(|kernel| kernel.record.source == offer.source())),
        }
    }

    fn take(&self, archive: &Archive, offer: &Offer, announce: Announce) -> Result<Kernel> {
        announce(&format!("{}: getting {} {}", offer.name, offer.packages[0], offer.version));
        let (modules, lacks) = match offer.completeness {
            Completeness::Whole => (Modules::Needed, None),
            Completeness::NoHeaders => (
                Modules::Needed,
                Some("no headers for it any more: probes run on it, but no responders"),
            ),
            Completeness::ImageOnly => (
                Modules::Gone,
                Some(
                    "neither headers nor modules for it any more: probes run on it without load, but no responders",
                ),
            ),
        };
        if let Some(lacks) = lacks {
            announce(&format!("{}: the archive has {lacks}", offer.name));
        }
        let downloads = self.draft()?;
        // Nobody else may write to this directory (0700), not even the user that apt becomes for downloading. apt does
        // not become this user then.
        let debs = archive.download(&offer.packages, downloads.path())?;
        let (name, source) = (Some(offer.name.as_str()), offer.source());
        self.add_debs(&debs, name, &source, modules, Existing::Replace)
    }
}

fn offered(archive: &Archive) -> Result<Vec<Offer>> {
    let paragraphs = archive.paragraphs(&archive.names(offers::PACKAGES)?)?;
    offers::offers(&paragraphs, debian_of_machine())
}

fn check_series(name: &str) -> Result<()> {
    let series = name.strip_suffix("-rt").unwrap_or(name);
    let is_series = !series.is_empty() && series.chars().all(|c| c.is_ascii_digit() || c == '.');
    if is_series || series == "newest" {
        return Ok(());
    }
    Err(Error::Kernel {
        name: name.into(),
        why: "this is no series such as 7.3 or 7.3-rt, nor newest or newest-rt; see `onset kernels list --available`, or add your own kernel with `onset kernels add`".into(),
    })
}

/// The offer with this name.
fn wanted(name: &str, offers: &[Offer]) -> Result<Offer> {
    let found = match name.strip_prefix("newest") {
        Some(rest) => offers::newest(offers, rest == "-rt"),
        None => offers.iter().find(|o| o.name == name),
    };
    found.cloned().ok_or_else(|| {
        let names: Vec<&str> = offers.iter().map(|o| o.name.as_str()).collect();
        let why = format!(
            "the archive has no such series; it has {}. Add a kernel that you built with `onset kernels add`",
            names.join(", ")
        );
        Error::Kernel { name: name.into(), why }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(name: &str, completeness: Completeness) -> Offer {
        let release = format!("{name}.1-amd64");
        let packages = vec![format!("linux-image-{release}")];
        Offer { name: name.into(), release, version: "1".into(), completeness, packages }
    }

    #[test]
    fn a_name_that_is_no_series_is_refused_with_the_alternative() {
        for name in ["linux", "", "-rt", "6.12-cloud", "newest-cloud"] {
            let e = check_series(name).unwrap_err().to_string();
            assert!(e.contains("onset kernels add") && e.contains("--available"), "{e}");
        }
        for name in ["6.12", "7.3-rt", "newest", "newest-rt"] {
            check_series(name).unwrap();
        }
    }

    #[test]
    fn a_series_that_there_is_not_is_refused_with_those_that_there_are() {
        let offers = [
            offer("6.12", Completeness::Whole),
            offer("6.18", Completeness::NoHeaders),
            offer("7.0", Completeness::ImageOnly),
        ];
        assert_eq!(wanted("6.18", &offers).unwrap(), offers[1]);
        assert_eq!(wanted("newest", &offers).unwrap(), offers[0]);
        assert_eq!(wanted("7.0", &offers).unwrap(), offers[2]);
        for name in ["6.5", "newest-rt"] {
            let e = wanted(name, &offers).unwrap_err().to_string();
            assert!(e.contains("6.12, 6.18, 7.0") && e.contains("onset kernels add"), "{e}");
        }
    }
}

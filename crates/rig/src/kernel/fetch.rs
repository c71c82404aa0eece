// SPDX-License-Identifier: GPL-2.0-or-later
//! Looking up and downloading the newest kernel of a series with apt, without installing it.

use super::{Existing, Kernel, Kernels};
use crate::error::At;
use crate::{Error, Result, tool};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A kernel is about 130 MB of packages.
const DEADLINE: Duration = Duration::from_secs(1200);

/// What the source of a fetched kernel begins with.
const SOURCE: &str = "Debian package ";

/// What the archive offers for a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// `uname -r` of the kernel.
    pub release: String,
    /// The image's package version.
    pub version: String,
}

impl Kernels {
    /// Downloads the newest kernel of the series `name` (`6.12`, `6.12-rt`) and its headers, unless the
    /// cache has just that one. An older one makes room; one that was added from elsewhere does not.
    ///
    /// # Errors
    /// [`Error::Kernel`] when the archive has no such series or the package lists are out of date.
    pub fn fetch(&self, name: &str) -> Result<Kernel> {
        let candidate = newest(name)?;
        let source =
            format!("{SOURCE}linux-image-{}-unsigned {}", candidate.release, candidate.version);
        match self.get(name) {
            Ok(kernel) if kernel.record.source == source => return Ok(kernel),
            Ok(kernel) if !kernel.record.source.starts_with(SOURCE) => {
                return Err(kernel.error(format!(
                    "was added from {}, not fetched; to fetch one of that name, remove {} first",
                    kernel.record.source,
                    kernel.directory.display()
                )));
            }
            // None, an older one, or one that is damaged.
            _ => {}
        }
        let downloads = self.draft()?;
        // apt drops its privileges for downloading; let it write here.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(downloads.path(), open).at(downloads.path())?;
        let packages = packages_of(&candidate).map_err(outdated)?;
        tool::run(
            Command::new("apt-get").arg("download").args(&packages).current_dir(downloads.path()),
            "apt",
            DEADLINE,
        )
        .map_err(outdated)?;
        self.add_debs(&debs_in(downloads.path())?, Some(name), &source, Existing::Replace)
    }
}

/// Archives drop old builds, so the usual reason why apt does not get what its lists name is their age.
fn outdated(e: Error) -> Error {
    match e {
        Error::Program { command, why } => Error::Program {
            command,
            why: format!(
                "{why}\nThe machine's package lists may be older than the archive; run `apt-get update` and try again"
            ),
        },
        other => other,
    }
}

fn debs_in(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory).at(directory)?;
    Ok(entries
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| e == "deb"))
        .collect())
}

fn apt_cache(arguments: &[&str]) -> Result<String> {
    tool::run(Command::new("apt-cache").args(arguments), "apt", DEADLINE)
}

/// The newest kernel of a series among the machine's package lists.
fn newest(name: &str) -> Result<Candidate> {
    let (series, rt) = match name.strip_suffix("-rt") {
        Some(series) => (series, "rt-"),
        None => (name, ""),
    };
    let error = |why: String| Error::Kernel { name: name.into(), why };
    if series.is_empty() || !series.chars().all(|c| c.is_ascii_digit() || c == '.') {
        return Err(error(
            "is no series such as 6.12 or 6.12-rt; give your own kernel with `onset kernels add`"
                .into(),
        ));
    }
    let quoted = series.replace('.', "\\.");
    let pattern = format!("^linux-image-{quoted}[.+][0-9a-z.+~-]*-{rt}amd64-unsigned$");
    let names = apt_cache(&["search", "--names-only", &pattern])?;
    let mut best: Option<Candidate> = None;
    for package in names.lines().filter_map(|l| l.split_whitespace().next()) {
        let release = package.trim_start_matches("linux-image-").trim_end_matches("-unsigned");
        if !is_plain(release, rt) {
            continue;
        }
        let version = field(&apt_cache(&["show", "--no-all-versions", package])?, "Version");
        let candidate = Candidate { release: release.into(), version };
        if best.as_ref().is_none_or(|b| is_newer(&candidate.version, &b.version)) {
            best = Some(candidate);
        }
    }
    best.ok_or_else(|| {
        error(format!(
            "the machine's package lists have none of the series {series}; run `apt-get update`, or see what there is: apt-cache search --names-only 'linux-image-.*unsigned'"
        ))
    })
}

/// Whether a release is of the plain flavour asked for: not cloud, and RT only when asked.
fn is_plain(release: &str, rt: &str) -> bool {
    !release.contains("cloud") && release.ends_with("-rt-amd64") == (rt == "rt-")
}

/// dpkg's own order of versions.
fn is_newer(a: &str, b: &str) -> bool {
    tool::run(Command::new("dpkg").args(["--compare-versions", a, "gt", b]), "dpkg", DEADLINE)
        .is_ok()
}

/// The image, its headers, and what the headers need to build a module.
fn packages_of(candidate: &Candidate) -> Result<Vec<String>> {
    let headers = format!("linux-headers-{}", candidate.release);
    let depends = field(&apt_cache(&["show", "--no-all-versions", &headers])?, "Depends");
    let needed = depends
        .split(',')
        .filter_map(|d| d.split_whitespace().next())
        .filter(|d| d.starts_with("linux-headers-") || d.starts_with("linux-kbuild-"))
        .map(str::to_string);
    let mut packages: Vec<String> = needed.collect();
    packages.push(format!("linux-image-{}-unsigned", candidate.release));
    packages.push(headers);
    Ok(packages)
}

/// The value of a field in the first stanza of apt's output.
fn field(stanza: &str, name: &str) -> String {
    let line = stanza.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(": "));
    line.unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cloud_kernels_and_the_other_preemption_model_are_left_out() {
        assert!(is_plain("6.12.5+deb13-amd64", ""));
        assert!(!is_plain("6.12.5+deb13-rt-amd64", ""));
        assert!(is_plain("6.12.5+deb13-rt-amd64", "rt-"));
        assert!(!is_plain("6.12.5+deb13-cloud-amd64", ""));
    }

    #[test]
    fn versions_are_ordered_as_dpkg_does() {
        assert!(is_newer("6.12.107-1", "6.12.95-1"));
        assert!(!is_newer("6.12.95-1~bpo12+1", "6.12.95-1"));
    }

    #[test]
    fn a_name_that_is_no_series_is_refused_with_the_alternative() {
        let e = newest("linux").unwrap_err().to_string();
        assert!(e.contains("onset kernels add"), "{e}");
    }

    #[test]
    fn a_field_is_that_of_the_first_stanza() {
        assert_eq!(field("Package: a\nVersion: 1-2\n\nVersion: 3", "Version"), "1-2");
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! Finds the kernels that Debian's archive offers, in its package lists. Pure, except that dpkg orders versions.

use crate::x86_64::RELEASE_END;
use crate::{Result, tool};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(60);

/// The names of the packages of kernels, as a pattern for apt-cache(8).
pub(super) const PACKAGES: &str = "^linux-(image|binary|modules|base|headers|kbuild)-[0-9u].*";

/// How much of a kernel the archive has. An old build loses its headers first, and then its modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Completeness {
    /// Only the image: no module can be loaded, so only probes run, and only at rest.
    ImageOnly,
    /// The image and the modules: the driver cannot be built, so only probes run.
    NoHeaders,
    /// Image, modules and headers.
    Whole,
}

/// A kernel that the archive offers, the newest of its series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The name that the kernel gets: `7.3`, `7.3-rt`.
    pub name: String,
    /// `uname -r` of the kernel.
    pub release: String,
    /// The version of its packages.
    pub version: String,
    /// How much of the kernel the archive has.
    pub completeness: Completeness,
    /// The packages to unpack. The first one contains the image.
    pub packages: Vec<String>,
}

impl Offer {
    /// The text that records where the kernel came from. It begins with [`SOURCE`].
    pub fn source(&self) -> String {
        format!("{SOURCE}{} {}", self.packages[0], self.version)
    }
}

/// The beginning of the source of a fetched kernel.
pub(super) const SOURCE: &str = "Debian package ";

/// A paragraph of a package list.
#[derive(Debug, Default)]
struct Package {
    version: String,
    /// Names without versions.
    depends: Vec<String>,
}

/// One offer of each series, in the order of series. Only the most complete kernels of a series count. Of these, the
/// offer is the one for the machine's own Debian, whose number is `machine`, since the machine's compiler builds for
/// it. If there is none, the offer is the newest.
///
/// `paragraphs` is the output of apt-cache(8) for [`PACKAGES`].
///
/// # Errors
/// The errors of running dpkg.
pub(super) fn offers(paragraphs: &str, machine: Option<u32>) -> Result<Vec<Offer>> {
    let mut best: BTreeMap<(Vec<u32>, bool), Offer> = BTreeMap::new();
    for offer in all(paragraphs) {
        let (series, rt) = series(&offer.release);
        let numbers = series.split('.').filter_map(|n| n.parse().ok()).collect();
        let before = best.get(&(numbers, rt));
        let is_better = match before {
            None => true,
            Some(before) if before.completeness != offer.completeness => {
                offer.completeness > before.completeness
            }
            Some(before) if of_machine(&offer, machine) != of_machine(before, machine) => {
                of_machine(&offer, machine)
            }
            Some(before) => is_newer(&offer.version, &before.version)?,
        };
        if is_better {
            let numbers = series.split('.').filter_map(|n| n.parse().ok()).collect();
            best.insert((numbers, rt), offer);
        }
    }
    Ok(best.into_values().collect())
}

/// The newest series in `offers` that is whole, plain or PREEMPT_RT. `offers` are in the order of series.
pub(super) fn newest(offers: &[Offer], rt: bool) -> Option<&Offer> {
    let is = |o: &&Offer| o.completeness == Completeness::Whole && o.name.ends_with("-rt") == rt;
    offers.iter().rfind(is)
}

/// Whether the kernel was built for the Debian of that number.
fn of_machine(offer: &Offer, machine: Option<u32>) -> bool {
    machine.is_some() && super::toolchain::debian_number(&offer.release) == machine
}

fn series(release: &str) -> (String, bool) {
    let name = super::series_of(release);
    match name.strip_suffix("-rt") {
        Some(series) => (series.into(), true),
        None => (name, false),
    }
}

/// Whether `a` is newer than `b`, in dpkg's own order of versions.
fn is_newer(a: &str, b: &str) -> Result<bool> {
    let mut compare = Command::new("dpkg");
    compare.args(["--compare-versions", a, "gt", b]);
    match tool::run(&mut compare, "dpkg", DEADLINE) {
        Ok(_) => Ok(true),
        Err(crate::Error::Program { .. }) => Ok(false),
        Err(other) => Err(other),
    }
}

/// Every kernel for the architecture, except those for clouds, which lack drivers that machines need.
fn all(paragraphs: &str) -> Vec<Offer> {
    let packages = packages(paragraphs);
    let mut releases = BTreeSet::new();
    for (name, package) in &packages {
        let release = ["linux-image-", "linux-binary-unsigned-", "linux-binary-"]
            .iter()
            .find_map(|prefix| name.strip_prefix(prefix));
        let Some(release) = release.map(|r| r.trim_end_matches("-unsigned")) else { continue };
        // A package that only leads to the newest kernel of a series depends on an image.
        let leads = package.depends.iter().any(|d| d.starts_with("linux-image-"));
        let is_plain = release.ends_with(RELEASE_END) && !release.contains("cloud");
        if is_plain && !leads && release.starts_with(|c: char| c.is_ascii_digit()) {
            releases.insert(release);
        }
    }
    releases.into_iter().filter_map(|release| offer(release, &packages)).collect()
}

fn offer(release: &str, packages: &BTreeMap<String, Package>) -> Option<Offer> {
    let first = |names: &[&str]| {
        let named = names.iter().map(|n| n.replace("{}", release));
        named.into_iter().find(|name| packages.contains_key(name))
    };
    let (mut parts, has_modules) = match first(&["linux-binary-{}", "linux-binary-unsigned-{}"]) {
        // Since 6.19 an image leads to three packages.
        Some(image) => {
            let modules = first(&["linux-modules-{}"]);
            let is_whole = modules.is_some();
            (vec![Some(image), modules, first(&["linux-base-{}"])], is_whole)
        }
        None => {
            let image = first(&["linux-image-{}-unsigned", "linux-image-{}"])?;
            (vec![Some(image), first(&["linux-base-{}"])], true)
        }
    };
    let headers = first(&["linux-headers-{}"]);
    let needed: Vec<String> = headers
        .iter()
        .flat_map(|name| &packages[name].depends)
        .filter(|d| d.starts_with("linux-headers-") || d.starts_with("linux-kbuild-"))
        .cloned()
        .collect();
    let has_headers = headers.is_some() && needed.iter().all(|n| packages.contains_key(n));
    let completeness = match (has_modules, has_headers) {
        (false, _) => Completeness::ImageOnly,
        (true, false) => Completeness::NoHeaders,
        (true, true) => Completeness::Whole,
    };
    if has_headers {
        parts.push(headers);
        parts.extend(needed.into_iter().map(Some));
    }
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    Some(Offer {
        name: super::series_of(release),
        release: release.into(),
        version: packages[&parts[0]].version.clone(),
        completeness,
        packages: parts,
    })
}

/// The packages by name. Of several versions the first one counts, which is the one that apt would take.
fn packages(paragraphs: &str) -> BTreeMap<String, Package> {
    let mut packages = BTreeMap::new();
    for paragraph in paragraphs.split("\n\n") {
        let field = |name: &str| {
            let line = paragraph.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(": "));
            line.unwrap_or_default().to_string()
        };
        let depends = field("Depends");
        let depends = depends.split(',').filter_map(|d| d.split_whitespace().next());
        let package =
            Package { version: field("Version"), depends: depends.map(String::from).collect() };
        packages.entry(field("Package")).or_insert(package);
    }
    packages
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paragraph(name: &str, version: &str, depends: &str) -> String {
        format!("Package: {name}\nVersion: {version}\nDepends: {depends}\nSize: 1\n\n")
    }

    fn lists() -> String {
        let mut text = String::new();
        let mut add = |name: &str, version: &str, depends: &str| {
            text += &paragraph(name, version, depends);
        };
        // One package for all, with headers; an older build without headers; a kernel for clouds; and a package that
        // leads to one.
        add("linux-image-6.12.9+deb13-amd64-unsigned", "6.12.9-1", "kmod, linux-base (>= 4)");
        add(
            "linux-headers-6.12.9+deb13-amd64",
            "6.12.9-1",
            "linux-headers-6.12.9+deb13-common (= 6.12.9-1), linux-kbuild-6.12.9+deb13, gcc-14",
        );
        add("linux-headers-6.12.9+deb13-common", "6.12.9-1", "");
        add("linux-kbuild-6.12.9+deb13", "6.12.9-1", "libc6");
        add("linux-image-6.12.10+deb13-amd64", "6.12.10-1", "kmod");
        add("linux-image-6.12.11+deb13-cloud-amd64-unsigned", "6.12.11-1", "kmod");
        add("linux-image-6.12-amd64", "6.12.9-1", "linux-image-6.12.9+deb13-amd64 (= 6.12.9-1)");
        // Three packages, plain and RT, with headers; and a series with only images.
        for flavour in ["", "rt-"] {
            let release = format!("7.3.4+deb13-{flavour}amd64");
            let image = format!(
                "linux-binary-{release} (= 1), linux-modules-{release} (= 1), linux-base-{release} (= 1)"
            );
            add(&format!("linux-image-{release}"), "7.3.4-1~bpo13+1", &image);
            for part in ["binary", "modules", "base"] {
                add(&format!("linux-{part}-{release}"), "7.3.4-1~bpo13+1", "");
            }
            add(
                &format!("linux-headers-{release}"),
                "7.3.4-1~bpo13+1",
                "linux-headers-7.3.4+deb13-common",
            );
        }
        add("linux-headers-7.3.4+deb13-common", "7.3.4-1~bpo13+1", "");
        add(
            "linux-image-7.0.13+deb13-amd64",
            "7.0.13-1",
            "linux-binary-7.0.13+deb13-amd64 (= 1), linux-modules-7.0.13+deb13-amd64 (= 1)",
        );
        add("linux-binary-7.0.13+deb13-amd64", "7.0.13-1", "");
        add("linux-image-6.18.15+deb13-amd64", "6.18.15-1", "kmod, linux-base-6.18.15+deb13-amd64");
        text
    }

    #[test]
    fn each_series_is_offered_once_as_whole_as_it_is() {
        let offers = offers(&lists(), None).unwrap();
        let told: Vec<_> =
            offers.iter().map(|o| (o.name.as_str(), o.release.as_str(), o.completeness)).collect();
        assert_eq!(
            told,
            [
                ("6.12", "6.12.9+deb13-amd64", Completeness::Whole),
                ("6.18", "6.18.15+deb13-amd64", Completeness::NoHeaders),
                ("7.0", "7.0.13+deb13-amd64", Completeness::ImageOnly),
                ("7.3", "7.3.4+deb13-amd64", Completeness::Whole),
                ("7.3-rt", "7.3.4+deb13-rt-amd64", Completeness::Whole),
            ]
        );
        let packages: Vec<_> = offers[3].packages.iter().map(String::as_str).collect();
        let release = "7.3.4+deb13-amd64";
        let expected =
            ["binary", "modules", "base", "headers"].map(|p| format!("linux-{p}-{release}"));
        assert_eq!(packages[..4], expected);
        assert_eq!(packages[4..], ["linux-headers-7.3.4+deb13-common"]);
        assert_eq!(
            offers[0].source(),
            "Debian package linux-image-6.12.9+deb13-amd64-unsigned 6.12.9-1"
        );
    }

    #[test]
    fn of_one_series_that_of_the_machines_own_debian_is_taken_where_it_is_as_whole() {
        let of = |release: &str, version: &str| {
            let headers = format!("linux-headers-{release}");
            paragraph(&format!("linux-image-{release}-unsigned"), version, "kmod")
                + &paragraph(&headers, version, "gcc-12")
        };
        let mut both = of("6.12.117+deb12-amd64", "6.12.117-1~deb12u1");
        both += &of("6.12.118+deb13-amd64", "6.12.118-1");
        let taken =
            |lists: &str, machine: Option<u32>| offers(lists, machine).unwrap()[0].release.clone();
        assert_eq!(taken(&both, Some(12)), "6.12.117+deb12-amd64");
        assert_eq!(taken(&both, Some(13)), "6.12.118+deb13-amd64");
        assert_eq!(taken(&both, None), "6.12.118+deb13-amd64");
        // An image without headers is no better if it is of the machine's release.
        let lists = paragraph("linux-image-6.12.119+deb12-amd64", "6.12.119-1", "kmod")
            + &of("6.12.118+deb13-amd64", "6.12.118-1");
        assert_eq!(taken(&lists, Some(12)), "6.12.118+deb13-amd64");
    }

    #[test]
    fn the_newest_is_the_last_series_that_is_whole() {
        let offers = offers(&lists(), None).unwrap();
        assert_eq!(newest(&offers, false).unwrap().name, "7.3");
        assert_eq!(newest(&offers, true).unwrap().name, "7.3-rt");
        assert_eq!(newest(&offers[..3], false).unwrap().name, "6.12");
        assert_eq!(newest(&offers[..3], true), None);
    }

    #[test]
    fn versions_are_ordered_as_dpkg_does() {
        assert!(is_newer("6.12.107-1", "6.12.95-1").unwrap());
        assert!(!is_newer("6.12.95-1~bpo12+1", "6.12.95-1").unwrap());
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! Debian's archive, as apt sees it through package lists that onset keeps for itself. They have every suite with
//! kernels, from the mirror that the machine uses, whichever suites the machine itself uses. Nothing of the machine
//! changes, and no root is needed.

use crate::cache::{self, DRAFT};
use crate::error::At;
use crate::x86_64::DEBIAN;
use crate::{Error, Result, tool};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

/// The longest time for a download. The lists of all suites have some 35 MB, and the packages of a kernel 130 MB.
const DEADLINE: Duration = Duration::from_secs(1200);
/// The most bytes of a package. Packages of modules have 120 MiB.
const DEB_MAX: u64 = 4 << 30;
/// The greatest age of the lists. The archive takes in packages four times a day, and kernels every few days.
const LISTS_AGE_MAX: Duration = Duration::from_secs(24 * 3600);
/// The keys that sign every suite. The file is part of Debian, and a package elsewhere.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// The suites with kernels: those of the releases that have some, and the one that becomes the next release. They have
/// their codenames, as machines name them. Some mirrors keep what was asked for. These have older lists under the names
/// that move on.
const SUITES: [&str; 7] = [
    "bookworm",
    "bookworm-updates",
    "bookworm-backports",
    "trixie",
    "trixie-updates",
    "trixie-backports",
    NEXT,
];
/// The suite that becomes the next release.
const NEXT: &str = "sid";
/// The suites of the archive of security updates, which has an address of its own.
const SECURITY_SUITES: [&str; 2] = ["bookworm-security", "trixie-security"];

/// Tells a person which step is being done that takes long.
pub type Announce<'a> = &'a dyn Fn(&str);

/// The archive.
pub(super) struct Archive {
    directory: PathBuf,
    /// Held while lists are read or downloaded, so that two commands do not download them at once.
    _lock: File,
}

/// The addresses from which the machine gets Debian's packages.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mirrors {
    main: String,
    security: Option<String>,
}

/// A suite whose package list has been downloaded.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Suite {
    site: String,
    name: String,
    codename: String,
}

impl Archive {
    /// Opens the archive. Its lists are in `directory` and are at most a day old.
    ///
    /// # Errors
    /// [`Error::NoProgram`] without apt. [`Error::Archive`] if the machine takes nothing from a mirror of Debian, if
    /// the keyring is missing, or if not one suite can be downloaded and checked.
    pub fn open(directory: &Path, announce: Announce) -> Result<Archive> {
        let parts = ["lists/partial", "cache/archives/partial"];
        for part in parts.map(|part| directory.join(part)) {
            fs::create_dir_all(&part).at(&part)?;
        }
        let path = directory.join("lock");
        let lock = File::create(&path).at(&path)?;
        let mut is_told = false;
        while flock(&lock, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            if work::is_cancelled() {
                return Err(Error::Interrupted);
            }
            if !is_told {
                announce("waiting for another command that takes packages from the archive");
                is_told = true;
            }
            std::thread::sleep(work::POLL);
        }
        let archive = Archive { directory: directory.into(), _lock: lock };
        if !archive.is_fresh() {
            archive.update(announce)?;
        }
        Ok(archive)
    }

    /// The file with the settings of apt.
    pub fn configuration(&self) -> PathBuf {
        self.directory.join("apt.conf")
    }

    fn stamp(&self) -> PathBuf {
        self.directory.join("updated")
    }

    fn is_fresh(&self) -> bool {
        let modified = fs::metadata(self.stamp()).and_then(|m| m.modified());
        let age = modified.ok().and_then(|at| SystemTime::now().duration_since(at).ok());
        age.is_some_and(|age| age < LISTS_AGE_MAX)
    }

    /// Downloads the lists anew.
    ///
    /// # Errors
    /// The errors of [`Archive::open`].
    pub fn update(&self, announce: Announce) -> Result<()> {
        let mirrors = Mirrors::of_machine()?;
        if !Path::new(KEYRING).is_file() {
            return Err(Error::Archive(format!(
                "{KEYRING} is missing, with which onset checks Debian's archive; install it: apt-get install debian-archive-keyring"
            )));
        }
        announce(&format!("getting the package lists of {} (some 35 MB)", mirrors.main));
        self.write("sources.list", &mirrors.sources())?;
        self.write("apt.conf", &self.settings())?;
        let updated =
            self.run(Command::new("apt-get").args(["update", "--allow-releaseinfo-change"]));
        let missing = missing_of(&mirrors, &self.suites()?);
        if missing.len() == mirrors.suites().count() {
            return Err(match updated {
                Err(Error::Interrupted) => Error::Interrupted,
                Err(e) => Error::Archive(format!(
                    "onset cannot get the package lists: {e}. Check whether the machine can get its own lists: apt-get update"
                )),
                Ok(_) => Error::Archive(format!("{} has no suite with kernels", mirrors.main)),
            });
        }
        if let Err(Error::Interrupted) = updated {
            return Err(Error::Interrupted);
        }
        if !missing.is_empty() {
            announce(&format!(
                "the mirror lacks {}; onset uses the other suites",
                missing.join(", ")
            ));
        }
        let stamp = self.stamp();
        fs::write(&stamp, "").at(&stamp)
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.directory.join(name);
        fs::write(&path, text).at(&path)
    }

    /// The settings with which apt looks only here, and leaves the machine's proxies and credentials as they are.
    fn settings(&self) -> String {
        let own = self.directory.display();
        let of_user = std::env::var("APT_CONFIG").unwrap_or_default();
        let of_user =
            if of_user.is_empty() { String::new() } else { format!("#include \"{of_user}\";\n") };
        format!(
            "{of_user}#clear APT::Update::Pre-Invoke;\n#clear APT::Update::Post-Invoke;\n#clear APT::Update::Post-Invoke-Success;\n\
             #clear APT::Install::Pre-Invoke;\n#clear APT::Architectures;\n#clear APT::Default-Release;\n\
             APT::Architecture \"{DEBIAN}\";\nAPT::Architectures {{ \"{DEBIAN}\"; }};\nAPT::Keep-Downloaded-Packages \"true\";\n\
             APT::Install-Recommends \"false\";\nAcquire::Languages \"none\";\nDebug::NoLocking \"true\";\n\
             Dir::State \"{own}\";\nDir::State::Lists \"{own}/lists\";\nDir::State::status \"/dev/null\";\n\
             Dir::Cache \"{own}/cache\";\nDir::Etc::SourceList \"{own}/sources.list\";\nDir::Etc::SourceParts \"/dev/null\";\n\
             Dir::Etc::Preferences \"/dev/null\";\nDir::Etc::PreferencesParts \"/dev/null\";\n"
        )
    }

    /// Runs one of apt's programs with these settings.
    fn run(&self, command: &mut Command) -> Result<String> {
        tool::run(command.env("APT_CONFIG", self.configuration()), "apt", DEADLINE)
    }

    /// The suites whose lists have been downloaded.
    fn suites(&self) -> Result<Vec<Suite>> {
        let format = "$(IDENTIFIER)|$(SITE)|$(RELEASE)|$(CODENAME)|$(FILENAME)";
        let told = self.run(Command::new("apt-get").args(["indextargets", "--format", format]))?;
        Ok(told.lines().filter_map(Suite::parse).collect())
    }

    /// The names of the packages that match a pattern of apt-cache(8).
    pub fn names(&self, pattern: &str) -> Result<Vec<String>> {
        let found =
            self.run(Command::new("apt-cache").args(["search", "--names-only", pattern]))?;
        let names = found.lines().filter_map(|l| l.split_whitespace().next());
        Ok(names.map(String::from).collect())
    }

    /// The lists' paragraphs about these packages, one for each version. Unknown names are ignored.
    pub fn paragraphs(&self, names: &[String]) -> Result<String> {
        if names.is_empty() {
            return Ok(String::new());
        }
        // If apt-cache knows none of the names, it says so and fails.
        self.run(Command::new("apt-cache").arg("show").args(names)).or_else(|e| match e {
            Error::Program { .. } => Ok(String::new()),
            other => Err(other),
        })
    }

    /// Downloads the newest version of these packages into `directory`, which nobody else can write to. Returns their
    /// files in the same order. Each file has the hash that the signed list of its suite gives.
    pub fn download(&self, packages: &[String], directory: &Path) -> Result<Vec<PathBuf>> {
        self.run(Command::new("apt-get").arg("download").args(packages).current_dir(directory))?;
        let paragraphs = self.paragraphs(packages)?;
        packages.iter().map(|package| checked(package, &paragraphs, directory)).collect()
    }

    /// Downloads the compiler `gcc`, these `tools` and `libraries` of the release `codename`, and everything that they
    /// depend on, into `directory`. An entry of `libraries` has several names, and the first existing one counts.
    /// Debian's newest suite stands in for a release that does not exist yet.
    pub fn download_with_dependencies(
        &self,
        codename: &str,
        gcc: u32,
        tools: &[&str],
        libraries: &[&str],
        directory: &Path,
    ) -> Result<()> {
        let suites = self.suites()?;
        let of = |wanted: &str| -> Vec<Suite> {
            let security = format!("{wanted}-security");
            let is = |s: &&Suite| s.codename == wanted || s.codename == security;
            suites.iter().filter(is).cloned().collect()
        };
        let release = Some(of(codename)).filter(|found| !found.is_empty());
        let release = release.unwrap_or_else(|| of(NEXT));
        if release.is_empty() {
            return Err(Error::Archive(format!(
                "the mirror has neither {codename} nor {NEXT}; onset needs the compiler of one of them: let apt use a mirror that has it"
            )));
        }
        let place = cache::owned(&self.directory, DRAFT)?;
        let list = place.path().join("sources.list");
        let lines: String = release.iter().map(|s| line(&s.site, &s.name)).collect();
        fs::write(&list, lines).at(&list)?;
        let partial = directory.join("partial");
        fs::create_dir_all(&partial).at(&partial)?;
        let of_release = |program: &str| {
            let mut command = Command::new(program);
            command.arg("-o").arg(format!("Dir::Etc::SourceList={}", list.display()));
            // The index in the cache is that of all suites.
            command.args(["-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache="]);
            command
        };
        let known = self.run(of_release("apt-cache").args(["pkgnames", "lib"]))?;
        let is_known = |name: &&str| known.lines().any(|line| line == *name);
        let libraries = libraries.iter().filter_map(|names| names.split('|').find(is_known));
        let mut install = of_release("apt-get");
        install.args(["install", "--yes", "--download-only", "--no-install-recommends"]);
        install.arg("-o").arg(format!("Dir::Cache::archives={}", directory.display()));
        install.arg(format!("gcc-{gcc}")).args(tools).args(libraries);
        self.run(&mut install).map(drop)
    }
}

/// The file of a downloaded package. Of the versions in the lists, it is the one that exists and has the hash that the
/// lists give.
fn checked(package: &str, paragraphs: &str, directory: &Path) -> Result<PathBuf> {
    let listed = paragraphs.split("\n\n").filter_map(|paragraph| {
        let field = |name: &str| {
            let line = paragraph.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(": "));
            line.map(str::trim)
        };
        let (name, version) = (field("Package")?, field("Version")?.replace(':', "%3a"));
        // apt names the file so. A colon of the version would be a colon in a path.
        let file = format!("{name}_{version}_{}.deb", field("Architecture")?);
        (name == package).then_some((directory.join(file), field("SHA256")?))
    });
    let refused = |why: String| Error::Archive(format!("{package}: {why}; fetch it again"));
    let Some((file, sha256)) = listed.into_iter().find(|(file, _)| file.is_file()) else {
        return Err(refused("apt downloaded no file of a version that the lists know".into()));
    };
    let bytes = confined::read(&file, DEB_MAX).at(&file)?;
    let found: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    match found == sha256 {
        true => Ok(file),
        false => Err(refused(format!(
            "{} is not the file that the archive's signed list names",
            file.display()
        ))),
    }
}

/// A line of sources.list(5) for the lists of packages only, with their signatures checked.
fn line(site: &str, suite: &str) -> String {
    format!("deb [arch={DEBIAN} target=Packages signed-by={KEYRING}] {site} {suite} main\n")
}

fn missing_of(mirrors: &Mirrors, here: &[Suite]) -> Vec<&'static str> {
    let is_here = |suite: &&str| here.iter().any(|s| s.name == *suite);
    mirrors.suites().map(|(_, suite)| suite).filter(|suite| !is_here(suite)).collect()
}

impl Suite {
    /// A line of `apt-get indextargets` in the wanted format, if it is about packages that were downloaded.
    fn parse(line: &str) -> Option<Suite> {
        let mut fields = line.split('|');
        let mut next = || fields.next().map(String::from);
        let (identifier, site, name, codename) = (next()?, next()?, next()?, next()?);
        let file = next()?;
        (identifier == "Packages" && Path::new(&file).exists()).then_some(Suite {
            site,
            name,
            codename,
        })
    }
}

impl Mirrors {
    fn of_machine() -> Result<Mirrors> {
        let format = "$(ORIGIN)|$(LABEL)|$(SITE)";
        let lists = tool::run(
            Command::new("apt-get").args(["indextargets", "--format", format]),
            "apt",
            DEADLINE,
        )?;
        // If the machine's own lists were never downloaded, only the addresses are known.
        let addresses = || {
            let update = Command::new("apt-get").args(["update", "--print-uris"]).output();
            update.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default()
        };
        Mirrors::in_lists(&lists).or_else(|| Mirrors::in_addresses(&addresses())).ok_or_else(|| {
            Error::Archive(
                "the machine uses no mirror of Debian from which onset could fetch kernels; get packages elsewhere and give them to `onset kernels add-deb`"
                    .into(),
            )
        })
    }

    /// The mirrors, by the names that the archives give themselves.
    fn in_lists(text: &str) -> Option<Mirrors> {
        let site = |label: &str| {
            text.lines().find_map(|l| l.strip_prefix(&format!("Debian|{label}|"))).map(String::from)
        };
        Some(Mirrors { main: site("Debian")?, security: site("Debian-Security") })
    }

    /// The mirrors, by the addresses from which apt would update: `'http://…/dists/SUITE/InRelease' …`. Debian's
    /// addresses have suites of updates and of security, which others lack.
    fn in_addresses(text: &str) -> Option<Mirrors> {
        let site = |suffix: &str| {
            let releases = text.lines().filter_map(|l| {
                let address = l.strip_prefix('\'')?.split_once("/InRelease'")?.0;
                address.rsplit_once("/dists/")
            });
            releases
                .into_iter()
                .find_map(|(site, suite)| suite.ends_with(suffix).then(|| site.into()))
        };
        Some(Mirrors { main: site("-updates")?, security: site("-security") })
    }

    /// Each suite with its address.
    fn suites(&self) -> impl Iterator<Item = (&str, &'static str)> {
        let security = self.security.as_deref().into_iter();
        let main = SUITES.iter().map(|suite| (self.main.as_str(), *suite));
        main.chain(security.flat_map(|site| SECURITY_SUITES.iter().map(move |s| (site, *s))))
    }

    fn sources(&self) -> String {
        self.suites().map(|(site, suite)| line(site, suite)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_that_is_not_what_the_signed_list_says_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let list = |sha256: &str| {
            let other = "Package: linux-x\nVersion: 1:1-1\nArchitecture: amd64\nSHA256: 00\n\n";
            format!(
                "{other}Package: linux-x\nVersion: 1:2-1\nArchitecture: amd64\nSHA256: {sha256}\n"
            )
        };
        let file = directory.path().join("linux-x_1%3a2-1_amd64.deb");
        fs::write(&file, "abc").unwrap();
        // The hash of "abc" (FIPS 180-2, appendix B.1).
        let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let check = |package: &str, list: &str| checked(package, list, directory.path());
        assert_eq!(check("linux-x", &list(sha256)).unwrap(), file);
        fs::write(&file, "abd").unwrap();
        let refused = check("linux-x", &list(sha256)).unwrap_err().to_string();
        assert!(refused.contains("signed list") && refused.contains("again"), "{refused}");
        fs::remove_file(&file).unwrap();
        assert!(check("linux-x", &list(sha256)).is_err());
    }

    #[test]
    fn the_mirror_is_that_of_debian_and_of_nobody_else() {
        let lists = "Docker|Docker CE|https://docker.example/debian\nDebian|Debian|http://mirror.example/debian\n\
                     Debian Backports|Debian Backports|http://mirror.example/debian\n\
                     Debian|Debian-Security|http://mirror.example/debian-security\n";
        let found = Mirrors::in_lists(lists).unwrap();
        assert_eq!(found.main, "http://mirror.example/debian");
        assert_eq!(found.security.as_deref(), Some("http://mirror.example/debian-security"));
        assert_eq!(Mirrors::in_lists("Ubuntu|Ubuntu|http://ubuntu.example/ubuntu\n"), None);
    }

    #[test]
    fn a_machine_without_lists_has_its_mirror_by_addresses() {
        let addresses = "'https://docker.example/debian/dists/trixie/InRelease' a 0 \n\
                         'http://mirror.example/debian/dists/trixie/InRelease' a 0 \n\
                         'http://mirror.example/debian/dists/trixie-updates/InRelease' a 0 \n\
                         'http://mirror.example/debian/dists/trixie/main/binary-amd64/Packages.xz' a 0 \n";
        let found = Mirrors::in_addresses(addresses).unwrap();
        assert_eq!(found, Mirrors { main: "http://mirror.example/debian".into(), security: None });
        assert_eq!(Mirrors::in_addresses("E: nothing\n"), None);
    }

    #[test]
    fn every_suite_is_checked_and_those_of_security_come_from_their_place() {
        let (main, security) = ("http://m.example/debian", "http://m.example/debian-security");
        let mirrors = Mirrors { main: main.into(), security: Some(security.into()) };
        let sources = mirrors.sources();
        assert!(sources.lines().all(|l| l.contains("signed-by=")));
        assert!(sources.contains(&format!("{main} sid main\n")));
        assert!(sources.contains(&format!("{security} trixie-security main\n")));
        let here = [Suite { site: main.into(), name: "trixie".into(), codename: "trixie".into() }];
        let missing = missing_of(&mirrors, &here);
        assert!(missing.contains(&"sid") && !missing.contains(&"trixie"));
        assert_eq!(missing.len(), mirrors.suites().count() - 1);
    }
}

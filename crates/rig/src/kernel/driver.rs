// SPDX-License-Identifier: GPL-2.0-or-later
//! Building the responders' module for a kernel, once per version of its source.

use super::Kernel;
use crate::cache::{self, DRAFT};
use crate::error::At;
use crate::{Result, tool};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(300);

/// The module's source, part of this program, so that every build of it is the same.
const SOURCES: [(&str, &str); 10] = [
    ("Kbuild", include_str!("../../../../driver/Kbuild")),
    ("disturbance.c", include_str!("../../../../driver/disturbance.c")),
    ("main.c", include_str!("../../../../driver/main.c")),
    ("onset.h", include_str!("../../../../driver/onset.h")),
    ("onset_port.h", include_str!("../../../../driver/onset_port.h")),
    ("port.c", include_str!("../../../../driver/port.c")),
    ("responders.c", include_str!("../../../../driver/responders.c")),
    ("samples.c", include_str!("../../../../driver/samples.c")),
    ("task.c", include_str!("../../../../driver/task.c")),
    ("timer.c", include_str!("../../../../driver/timer.c")),
];

impl Kernel {
    /// The driver for this kernel, built when needed.
    pub fn driver(&self) -> Result<PathBuf> {
        let mut hasher = blake3::Hasher::new();
        SOURCES.iter().for_each(|(name, text)| {
            hasher.update(name.as_bytes()).update(text.as_bytes());
        });
        let key = &hasher.finalize().to_hex()[..16];
        let drivers = self.directory.join("drivers");
        let place = drivers.join(key);
        let built = place.join("onset_port.ko");
        if built.is_file() {
            return Ok(built);
        }
        // Not in the cache: kbuild takes no path with a space or a colon in it.
        let workshop = cache::owned(&std::env::temp_dir(), "onset-driver-")?;
        let made = self.build(workshop.path())?;
        fs::create_dir_all(&place).at(&place)?;
        let draft = cache::owned(&drivers, DRAFT)?;
        let copy = draft.path().join("onset_port.ko");
        fs::copy(&made, &copy).at(&copy)?;
        // Renamed into place whole; another process that built the same loses nothing.
        fs::rename(&copy, &built).at(&built)?;
        Ok(built)
    }

    /// Builds the module in `workshop` and returns where it is.
    fn build(&self, workshop: &Path) -> Result<PathBuf> {
        let workshop = workshop.canonicalize().at(workshop)?;
        let headers = self.headers_for_kbuild(&workshop)?;
        let sources = workshop.join("driver");
        fs::create_dir(&sources).at(&sources)?;
        for (name, text) in SOURCES {
            let path = sources.join(name);
            fs::write(&path, text).at(&path)?;
        }
        // Debian's headers are two directories side by side.
        let against = headers.parent().unwrap_or(&headers).display();
        let from = sources.display();
        tool::run(
            Command::new("make")
                // Without the module's own BTF, which would need pahole and serves nobody here.
                .args(["-s", "CC=gcc", "CONFIG_DEBUG_INFO_BTF_MODULES=", "modules"])
                .arg("-C")
                .arg(&headers)
                // Where it was built must not show in the module: it is part of a snapshot's key.
                .arg(format!(
                    "KCFLAGS=-ffile-prefix-map={against}=headers -ffile-prefix-map={from}=driver"
                ))
                .arg(format!("M={from}")),
            "make gcc",
            DEADLINE,
        )?;
        Ok(sources.join("onset_port.ko"))
    }

    /// The tree to build against, as make itself will name it; a copy in `workshop` where kbuild would refuse
    /// its path. (It follows links, so that one would not help.)
    fn headers_for_kbuild(&self, workshop: &Path) -> Result<PathBuf> {
        let Some(inside) = &self.record.headers else {
            return Err(self.error(
                "it came without headers, and the driver must be built for it; add it again with its headers (--headers DIR, or the linux-headers-* packages) and --replace",
            ));
        };
        let headers = self.directory.join(inside);
        let headers = headers.canonicalize().at(&headers)?;
        if Path::new(inside).is_absolute() || !refused_by_kbuild(&headers) {
            return Ok(headers);
        }
        tool::run(
            Command::new("cp").arg("-a").arg(self.directory.join("headers")).arg(workshop),
            "coreutils",
            DEADLINE,
        )?;
        Ok(workshop.join(inside))
    }
}

/// By the kernel's top Makefile: "source directory cannot contain spaces or colons".
fn refused_by_kbuild(path: &Path) -> bool {
    path.to_string_lossy().contains(|c: char| c.is_whitespace() || c == ':')
}

#[cfg(test)]
mod tests {
    use super::super::KernelRecord;
    use super::*;

    /// A kernel whose headers are a Makefile that builds nothing but says where, in a directory of this name.
    fn kernel(root: &Path, name: &str) -> Kernel {
        let directory = root.join(name);
        let headers = directory.join("headers/usr/src/linux-headers-9.9");
        fs::create_dir_all(&headers).unwrap();
        let makefile = "modules:\n\t@echo $(words $(CURDIR)) '$(CURDIR)' >$(M)/onset_port.ko\n";
        fs::write(headers.join("Makefile"), makefile).unwrap();
        let record = KernelRecord {
            name: "9.9".into(),
            release: "9.9".into(),
            source: "test".into(),
            image_blake3: String::new(),
            headers: Some("headers/usr/src/linux-headers-9.9".into()),
        };
        Kernel { record, directory }
    }

    #[test]
    fn a_configuration_lies_beside_the_headers_or_is_unknown() {
        let root = tempfile::tempdir().unwrap();
        let mut kernel = kernel(root.path(), "k");
        assert_eq!(kernel.configuration(), None);
        let inside = kernel.record.headers.clone().unwrap();
        fs::write(kernel.directory.join(inside).join(".config"), "CONFIG_HZ=250\n").unwrap();
        assert_eq!(kernel.configuration().as_deref(), Some("CONFIG_HZ=250\n"));
        kernel.record.headers = None;
        assert_eq!(kernel.configuration(), None);
    }

    #[test]
    fn a_driver_is_built_against_the_headers_in_their_place_once() {
        let root = tempfile::tempdir().unwrap();
        let kernel = kernel(root.path(), "plain");
        let built = kernel.driver().unwrap();
        let said = fs::read_to_string(&built).unwrap();
        assert!(said.contains("plain/headers/usr/src"), "{said}");
        fs::remove_dir_all(kernel.directory.join("headers")).unwrap();
        assert_eq!(kernel.driver().unwrap(), built);
        assert_eq!(fs::read_dir(kernel.directory.join("drivers")).unwrap().count(), 1);
    }

    #[test]
    fn a_cache_whose_path_kbuild_refuses_still_builds() {
        let root = tempfile::tempdir().unwrap();
        for name in ["with space", "with:colon"] {
            let built = kernel(root.path(), name).driver().unwrap();
            let said = fs::read_to_string(built).unwrap();
            assert!(said.starts_with("1 ") && !said.contains(':'), "{said}");
        }
    }

    #[test]
    fn a_kernel_without_headers_says_how_to_add_them() {
        let root = tempfile::tempdir().unwrap();
        let mut kernel = kernel(root.path(), "k");
        kernel.record.headers = None;
        assert!(kernel.driver().unwrap_err().to_string().contains("--headers"));
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! Building the responders' module for a kernel, once per version of its source.

use super::Kernel;
use crate::error::At;
use crate::{Result, tool};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(300);

/// The module's source, part of this program, so that every build of it is the same.
const SOURCES: [(&str, &str); 3] = [
    ("onset_port.c", include_str!("../../../../driver/onset_port.c")),
    ("onset_port.h", include_str!("../../../../driver/onset_port.h")),
    ("Kbuild", include_str!("../../../../driver/Kbuild")),
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
        let built = drivers.join(key).join("onset_port.ko");
        if built.is_file() {
            return Ok(built);
        }
        let Some(headers) = &self.record.headers else {
            return Err(self.error(
                "it came without headers, and the driver must be built for it; add it again with its headers (--headers DIR, or the linux-headers-* packages)",
            ));
        };
        fs::create_dir_all(&drivers).at(&drivers)?;
        let draft = tempfile::tempdir_in(&drivers).at(&drivers)?;
        for (name, text) in SOURCES {
            let path = draft.path().join(name);
            fs::write(&path, text).at(&path)?;
        }
        tool::run(
            Command::new("make")
                // Without the module's own BTF, which would need pahole and serves nobody here.
                .args(["-s", "-C", headers, "CC=gcc", "CONFIG_DEBUG_INFO_BTF_MODULES=", "modules"])
                // Where it was built must not show in the module: it is part of a snapshot's key.
                .arg(format!(
                    "KCFLAGS=-ffile-prefix-map={}=driver -ffile-prefix-map={headers}=headers",
                    draft.path().display()
                ))
                .arg(format!("M={}", draft.path().display())),
            "make gcc",
            DEADLINE,
        )?;
        let place = drivers.join(key);
        let made = draft.path().join("onset_port.ko");
        fs::create_dir_all(&place).at(&place)?;
        // Renamed into place whole; another process that built the same loses nothing.
        fs::rename(&made, &built).at(&made)?;
        Ok(built)
    }
}

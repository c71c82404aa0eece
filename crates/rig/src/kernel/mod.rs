// SPDX-License-Identifier: GPL-2.0-or-later
//! Kernels and their cache: taken out of packages or given by the user, never installed.
//!
//! `kernels/NAME/` holds `kernel.json`, `vmlinuz`, `root/lib/modules/RELEASE/` and, where there are
//! headers, `headers/` (a relocated tree to build the driver with) and `drivers/KEY/onset_port.ko`.

mod driver;
mod fetch;
mod import;

pub use fetch::Candidate;
pub use import::{Given, series_of};

use crate::error::At;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// What is recorded of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelRecord {
    /// The name in experiments, as `6.12-rt`.
    pub name: String,
    /// `uname -r`.
    pub release: String,
    /// Where it came from: package and version, or a path.
    pub source: String,
    /// blake3 of the image.
    pub image_blake3: String,
    /// Directory of the headers below `headers/`, if there are any.
    pub headers: Option<String>,
}

/// A kernel in the cache.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its record.
    pub record: KernelRecord,
    directory: PathBuf,
}

impl Kernel {
    /// The compressed image.
    pub fn image(&self) -> PathBuf {
        self.directory.join("vmlinuz")
    }

    /// `lib/modules/RELEASE`.
    pub fn modules(&self) -> PathBuf {
        self.directory.join("root/lib/modules").join(&self.record.release)
    }

    fn error(&self, why: impl Into<String>) -> Error {
        Error::Kernel { name: self.record.name.clone(), why: why.into() }
    }
}

/// The directory of all kernels.
#[derive(Clone, Debug)]
pub struct Kernels {
    directory: PathBuf,
}

impl Kernels {
    /// The kernels below the cache directory `cache`.
    pub fn open(cache: &Path) -> Result<Kernels> {
        let directory = cache.join("kernels");
        fs::create_dir_all(&directory).at(&directory)?;
        Ok(Kernels { directory })
    }

    /// The records of all kernels, by name. A directory that is no kernel is passed over.
    pub fn list(&self) -> Result<Vec<KernelRecord>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.directory).at(&self.directory)? {
            names.push(entry.at(&self.directory)?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names
            .iter()
            .filter(|n| !n.starts_with('.'))
            .filter_map(|n| Some(self.get(n).ok()?.record))
            .collect())
    }

    /// The kernel `name`, checked: its image is what was recorded.
    pub fn get(&self, name: &str) -> Result<Kernel> {
        let directory = self.directory.join(name);
        let path = directory.join("kernel.json");
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(_) => {
                let known = self.list_names();
                return Err(Error::UnknownKernel { name: name.into(), known });
            }
        };
        let broken = |why: String| Error::Kernel {
            name: name.into(),
            why: format!("{why}; get it again: onset kernels fetch {name} (or add it again)"),
        };
        let record = serde_json::from_slice(&text)
            .map_err(|e| broken(format!("{} is damaged: {e}", path.display())))?;
        let kernel = Kernel { record, directory };
        let image = fs::read(kernel.image()).at(&kernel.image())?;
        if blake3::hash(&image).to_hex().as_str() != kernel.record.image_blake3 {
            return Err(broken("its image is damaged".into()));
        }
        Ok(kernel)
    }

    fn list_names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .filter(|e| e.path().join("kernel.json").exists())
            .map(|e| e.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// Moves a finished directory to its place, replacing a kernel of the same name.
    fn publish(&self, made: tempfile::TempDir, record: &KernelRecord) -> Result<Kernel> {
        let path = made.path().join("kernel.json");
        let json = serde_json::to_vec_pretty(record).expect("a record serialises");
        fs::write(&path, json).at(&path)?;
        let place = self.directory.join(&record.name);
        if place.exists() {
            let old = tempfile::tempdir_in(&self.directory).at(&self.directory)?;
            fs::rename(&place, old.path().join("old")).at(&place)?;
        }
        let made = made.keep();
        fs::rename(&made, &place).at(&place)?;
        self.get(&record.name)
    }

    /// An empty directory inside the cache that becomes a kernel, or vanishes.
    fn draft(&self) -> Result<tempfile::TempDir> {
        tempfile::Builder::new().prefix(".new-").tempdir_in(&self.directory).at(&self.directory)
    }
}

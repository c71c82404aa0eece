// SPDX-License-Identifier: GPL-2.0-or-later
//! Where everything lies that can be made again, and where our own parts are.

use crate::error::At;
use crate::kernel::Kernels;
use crate::{Error, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// The cache: kernels, images, snapshots, and scratch directories of running commands.
#[derive(Clone, Debug)]
pub struct Cache {
    directory: PathBuf,
}

impl Cache {
    /// The user's cache: `$XDG_CACHE_HOME/onset`, or `~/.cache/onset`.
    pub fn of_user() -> Result<Cache> {
        let base = std::env::var_os("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .filter(|p| p.is_absolute())
            .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))
            .ok_or_else(|| {
                Error::Qemu("neither XDG_CACHE_HOME nor HOME is set; set one of them".into())
            })?;
        Cache::at(&base.join("onset"))
    }

    /// A cache in `directory`, which is made if needed.
    pub fn at(directory: &Path) -> Result<Cache> {
        fs::create_dir_all(directory).at(directory)?;
        Ok(Cache { directory: directory.canonicalize().at(directory)? })
    }

    /// Where it lies.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The kernels in it.
    pub fn kernels(&self) -> Result<Kernels> {
        Kernels::open(&self.directory)
    }

    /// A subdirectory, made if needed.
    pub(crate) fn place(&self, name: &str) -> Result<PathBuf> {
        let path = self.directory.join(name);
        fs::create_dir_all(&path).at(&path)?;
        Ok(path)
    }

    /// A directory for one machine's files, removed when dropped. Directories of commands that were
    /// killed before they could are removed here.
    pub(crate) fn scratch(&self) -> Result<tempfile::TempDir> {
        let scratch = self.place("scratch")?;
        for entry in fs::read_dir(&scratch).at(&scratch)?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let owner = name.split('-').next().and_then(|pid| pid.parse::<u32>().ok());
            if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let prefix = format!("{}-", std::process::id());
        tempfile::Builder::new().prefix(&prefix).tempdir_in(&scratch).at(&scratch)
    }
}

/// Our own parts that are not this program: the plugin and the guest's init.
#[derive(Clone, Debug)]
pub struct Parts {
    /// The QEMU plugin.
    pub plugin: PathBuf,
    /// The guest's init, static.
    pub agent: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_of_dead_commands_is_removed_and_of_living_ones_kept() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        let dead = dir.path().join("scratch/4194999-x");
        fs::create_dir_all(&dead).unwrap();
        let first = cache.scratch().unwrap();
        assert!(!dead.exists());
        let second = cache.scratch().unwrap();
        assert!(first.path().exists() && second.path().exists());
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The cache of kernels. Kernels come from packages or from the user, and are never installed.
//!
//! `kernels/NAME/` holds `kernel.json`, `vmlinuz`, `root/lib/modules/RELEASE/` and, where there are
//! headers, `headers/` (a relocated tree to build modules with), `drivers/KEY/onset_port.ko` and `modules/KEY/` (what
//! was built of a user's sources). Beside the kernels, `.archive/` has the package lists and `.build-roots/` the
//! compilers of other Debian releases. `hashes.json` beside the record has the hashes of all but the headers. Nothing
//! in it depends on where the cache lies.

mod archive;
mod fetch;
mod import;
mod modules;
mod offers;
mod package;
mod toolchain;

pub use archive::Announce;
pub use import::{Given, Modules, series_of};
pub use offers::{Completeness, Offer};

use crate::cache::{self, DRAFT};
use crate::error::At;
use crate::intact::Hashes;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Unpacks the files of a package below `root` as [`Kernels::add_debs`] does, for a fuzz target.
#[cfg(fuzzing)]
#[doc(hidden)]
pub fn unpack_for_fuzzing(files: &[u8], root: &Path) -> Result<()> {
    let mut unpacking = package::Unpacking::into(root)?;
    let _ = unpacking.entries(&mut tar::Archive::new(files));
    unpacking.finish()
}

/// The file with the record of a kernel, and below the file of its image.
const RECORD: &str = "kernel.json";
const IMAGE: &str = "vmlinuz";

/// What is recorded of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// The tree to build modules against, if there is one: relative to the kernel's directory where it is
    /// part of it, else absolute.
    pub headers: Option<String>,
}

/// The treatment of an existing kernel with the name of a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// The existing kernel stays, and the new one is refused.
    Keep,
    /// The new kernel replaces it.
    Replace,
}

/// Whether `name` may be the name of a kernel, or of a release. It is also the name of a directory.
pub fn is_kernel_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || ".-_+~".contains(c);
    name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(allowed)
}

/// A kernel in the cache.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The kernel's record.
    pub record: KernelRecord,
    directory: PathBuf,
    hashes: Hashes,
    announce: fn(&str),
    /// Locked as long as somebody uses the kernel, so that nobody replaces or removes it meanwhile. `None` on a file
    /// system without locks.
    _held: Option<Arc<fs::File>>,
}

impl Kernel {
    /// The file of the compressed image.
    pub fn image(&self) -> PathBuf {
        self.directory.join(IMAGE)
    }

    /// The directory `lib/modules/RELEASE`.
    pub fn modules(&self) -> PathBuf {
        self.directory.join("root/lib/modules").join(&self.record.release)
    }

    /// The text of the kernel's configuration. It lies beside the tree to build modules against (in Debian's headers,
    /// and in a tree that was built), or comes from a package. `None` if there is none.
    pub fn configuration(&self) -> Option<String> {
        let headers = self.record.headers.as_ref().map(|h| self.directory.join(h).join(".config"));
        let packaged = [self.directory.join("config"), self.modules().join("config")];
        headers.into_iter().chain(packaged).find_map(|path| fs::read_to_string(path).ok())
    }

    /// The directory of all kernels.
    fn kernels(&self) -> &Path {
        self.directory.parent().expect("a kernel is in a directory of the cache")
    }

    /// Checks that one of its modules, or a file about its modules, is as it was when the kernel was added.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the file was changed.
    pub(crate) fn check(&self, path: &Path) -> Result<()> {
        if self.hashes.is_intact(path)? {
            return Ok(());
        }
        let (path, name) = (path.display(), &self.record.name);
        Err(self.error(format!(
            "{path} is damaged; fetch the kernel again: onset kernels fetch {name} (or add it again with --replace)"
        )))
    }

    fn error(&self, why: impl Into<String>) -> Error {
        Error::Kernel { name: self.record.name.clone(), why: why.into() }
    }
}

/// The directory of all kernels.
#[derive(Clone, Debug)]
pub struct Kernels {
    directory: PathBuf,
    announce: fn(&str),
}

impl Kernels {
    /// The kernels in the cache directory `cache`.
    pub fn open(cache: &Path) -> Result<Kernels> {
        let directory = cache.join("kernels");
        fs::create_dir_all(&directory).at(&directory)?;
        Ok(Kernels { directory, announce: |_| () })
    }

    /// The same kernels. They call `announce` with a step that will take long: a build root has to be made.
    pub fn announcing(self, announce: fn(&str)) -> Kernels {
        Kernels { announce, ..self }
    }

    /// The records of all kernels, by name. A directory that is no kernel is ignored.
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

    /// What is wrong with each kernel in the cache that cannot be used, with what to do.
    pub fn damaged(&self) -> Vec<Error> {
        self.list_names().iter().filter_map(|name| self.get(name).err()).collect()
    }

    /// The kernel `name`. Its image is checked against the record.
    pub fn get(&self, name: &str) -> Result<Kernel> {
        let directory = self.place(name)?;
        // The lock comes before all reading: another command may be about to replace the kernel.
        let held = cache::held(&directory)?.map(Arc::new);
        let path = directory.join(RECORD);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(_) => {
                let known = self.list_names();
                return Err(Error::UnknownKernel { name: name.into(), known });
            }
        };
        let broken = |why: String| Error::Kernel {
            name: name.into(),
            why: format!(
                "{why}; fetch the kernel again: onset kernels fetch {name} (or add it again with --replace)"
            ),
        };
        let record = serde_json::from_slice(&text)
            .map_err(|e| broken(format!("{} is damaged: {e}", path.display())))?;
        let hashes = Hashes::read(&directory)?
            .ok_or_else(|| broken("the list of its files' hashes is damaged, or missing".into()))?;
        let kernel = Kernel { record, directory, hashes, announce: self.announce, _held: held };
        for file in [RECORD, IMAGE] {
            if !kernel.hashes.is_intact(Path::new(file))? {
                return Err(broken(format!("its {file} is damaged")));
            }
        }
        Ok(kernel)
    }

    /// Removes the kernel `name` with its headers and everything that was built for it. A damaged kernel is removed,
    /// too.
    ///
    /// # Errors
    /// [`Error::KernelName`], [`Error::UnknownKernel`] or [`Error::File`].
    pub fn remove(&self, name: &str) -> Result<()> {
        let place = self.place(name)?;
        if !place.join("kernel.json").exists() {
            return Err(Error::UnknownKernel { name: name.into(), known: self.list_names() });
        }
        let _free = self.unused(name)?;
        cache::discard(&place)
    }

    /// Checks that no command uses the kernel of this name, if there is one, and none begins to as long as the result
    /// lives.
    fn unused(&self, name: &str) -> Result<Option<fs::File>> {
        cache::unused(&self.place(name)?)?.ok_or_else(|| Error::Kernel {
            name: name.into(),
            why: "another command uses it; wait until that command has ended".into(),
        })
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

    /// The directory of the kernel `name`, which need not exist.
    fn place(&self, name: &str) -> Result<PathBuf> {
        if is_kernel_name(name) {
            Ok(self.directory.join(name))
        } else {
            Err(Error::KernelName { name: name.into() })
        }
    }

    /// Checks that a kernel may be put at `name`. This comes before the work, and [`publish`](Self::publish) checks
    /// again.
    fn check_free(&self, name: &str, existing: Existing) -> Result<()> {
        let record = self.place(name)?.join("kernel.json");
        if existing == Existing::Replace || !record.exists() {
            return Ok(());
        }
        let source = self.get(name).map(|k| k.record.source).unwrap_or_default();
        Err(Error::KernelExists { name: name.into(), source })
    }

    /// Moves a finished directory to its place.
    fn publish(&self, made: &Path, record: &KernelRecord, existing: Existing) -> Result<Kernel> {
        let path = made.join("kernel.json");
        let json = serde_json::to_vec_pretty(record).expect("a record serialises");
        fs::write(&path, json).at(&path)?;
        // Only the compiler reads the tree to build modules against. Modules that were built have hashes of their own.
        Hashes::write(made, &["headers"])?;
        self.check_free(&record.name, existing)?;
        let place = self.place(&record.name)?;
        let _free = self.unused(&record.name)?;
        cache::replace(made, &place)?;
        self.get(&record.name)
    }

    /// What `kernel.json` of this name says of where the kernel is from, also if the kernel is damaged.
    fn source_of(&self, name: &str) -> Option<String> {
        let text = fs::read(self.place(name).ok()?.join(RECORD)).ok()?;
        Some(serde_json::from_slice::<KernelRecord>(&text).ok()?.source)
    }

    /// An empty directory inside the cache, for the parts of a new kernel. Files that stay in it vanish.
    fn draft(&self) -> Result<cache::Owned> {
        cache::owned(&self.directory, DRAFT)
    }
}

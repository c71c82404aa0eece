// SPDX-License-Identifier: GPL-2.0-or-later
//! Makes the map of a snapshot: what its kernel and modules say of their code (crates/vmlinux). The map is kept beside
//! the snapshot.

use crate::cache::{self, DRAFT};
use crate::error::At;
use crate::kernel::Kernel;
use crate::look::Look;
use crate::run::{Bench, Guest};
use crate::snapshot::Snapshot;
use crate::x86_64::PAGE_FAULT;
use crate::{Error, Result, intact, tool};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use vmlinux::{Image, Map, Memory};
use wire::FunctionStarts;

/// The longest time for decompressing, which takes a second or two.
const DECOMPRESS_DEADLINE: Duration = Duration::from_secs(120);

/// The functions of this kernel, for a run in which the witness counts by them. `None` if the kernel does not tell
/// where it enters after a page fault.
pub fn function_starts(map: &Map) -> Option<FunctionStarts> {
    Some(FunctionStarts { fault: map.address(PAGE_FAULT)?, starts: map.function_starts() })
}

impl Bench {
    /// The file with the [`Map`] of a snapshot. If there is no map of this version, the function makes it.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the kernel's image cannot be read, or if its memory cannot be seen. Also the errors of
    /// restoring.
    pub fn map(&self, guest: &Guest, snapshot: &(Snapshot, String)) -> Result<PathBuf> {
        let place = snapshot.0.map();
        let path = place.join("map");
        let is_intact = intact::is_intact(&place)?;
        if is_intact && fs::read(&path).is_ok_and(|bytes| Map::from_bytes(bytes).is_ok()) {
            return Ok(path);
        }
        let elf = self.decompressed(&guest.kernel)?;
        let refused = |why: String| Error::Kernel { name: guest.kernel.record.name.clone(), why };
        let image = Image::parse(&elf).map_err(|e| refused(e.to_string()))?;
        let look = self.look(guest, snapshot)?;
        // The guest most often stopped in user space, where a kernel that isolates its page tables is not mapped.
        let kernel = image.symbols.iter().find(|s| s.name == "_stext");
        let is_mapped = kernel.is_some_and(|s| look.read(s.address, &mut [0; 8]));
        look.confirm()?;
        if !is_mapped {
            return Err(refused(
                "its memory is not mapped while user space runs, or is not where it was linked; take pti=on and kaslr off the kernel's parameters"
                    .into(),
            ));
        }
        let map = Map::of(&image, &look).map_err(|e| refused(e.to_string()))?;
        look.confirm()?;
        let parent = place.parent().expect("a directory of the snapshot");
        let draft = cache::owned(parent, DRAFT)?;
        let made = draft.path().join("made");
        fs::create_dir(&made).at(&made)?;
        fs::write(made.join("map"), map.to_bytes()).at(&made)?;
        if is_intact {
            // This map is of another version.
            cache::discard(&place)?;
        }
        intact::publish(&made, &place)?;
        Ok(path)
    }

    /// The guest, restored from its snapshot, and paused where measuring would begin.
    ///
    /// # Errors
    /// The errors of restoring.
    pub fn look(&self, guest: &Guest, (snapshot, _): &(Snapshot, String)) -> Result<Look> {
        let scratch = self.cache().scratch()?;
        let running = self.restore_paused(guest, snapshot, None, scratch.path())?;
        Ok(Look::at(running, scratch))
    }

    /// The kernel's ELF image.
    fn decompressed(&self, kernel: &Kernel) -> Result<Vec<u8>> {
        let path = kernel.image();
        let image = fs::read(&path).at(&path)?;
        let refused = |e: vmlinux::Error| Error::Kernel {
            name: kernel.record.name.clone(),
            why: e.to_string(),
        };
        let (compression, payload) = vmlinux::payload(&image).map_err(refused)?;
        let scratch = self.cache().scratch()?;
        let file = scratch.path().join("payload");
        fs::write(&file, payload).at(&file)?;
        let (program, package) = compression.program();
        tool::run_bytes(Command::new(program).arg("-dc").arg(&file), package, DECOMPRESS_DEADLINE)
    }
}

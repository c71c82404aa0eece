// SPDX-License-Identifier: GPL-2.0-or-later
//! Finds the module files that a module needs, by the index that depmod wrote (modules.dep(5)).

use super::unusable;
use crate::error::At;
use crate::kernel::Kernel;
use crate::{Error, Result, tool};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(60);

/// Modules that a module asks for by an alias at run time. modules.dep does not list them. Each is taken if the kernel
/// has it. ext4 and jbd2 look up "crc32c" in the crypto layer.
const ASKED_FOR: [(&str, &[&str]); 1] = [("ext4", &["crc32c_generic"])];

/// The index of one kernel's modules.
pub struct Index {
    kernel: String,
    directory: PathBuf,
    /// For each name the module's file and the files that it needs, the nearest first.
    files: HashMap<String, (PathBuf, Vec<PathBuf>)>,
    builtin: HashSet<String>,
}

/// The name of the module in a file, as the kernel spells it.
pub fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').next().unwrap_or_default().replace('-', "_")
}

impl Index {
    pub fn read(kernel: &Kernel) -> Result<Index> {
        let directory = kernel.modules();
        let dep = directory.join("modules.dep");
        kernel.check(&dep)?;
        let text = fs::read_to_string(&dep).at(&dep)?;
        let builtin = directory.join("modules.builtin");
        let builtin = if builtin.exists() {
            kernel.check(&builtin)?;
            fs::read_to_string(&builtin).at(&builtin)?
        } else {
            String::new()
        };
        Ok(Index {
            kernel: kernel.record.name.clone(),
            files: parse(&text),
            builtin: builtin.lines().map(|l| name_of(Path::new(l))).collect(),
            directory,
        })
    }

    /// The files to load for `name`, in order. Empty if the module is built in.
    pub fn closure(&self, name: &str) -> Result<Vec<PathBuf>> {
        if self.builtin.contains(name) {
            return Ok(Vec::new());
        }
        let Some((file, needs)) = self.files.get(name) else {
            return Err(Error::Kernel {
                name: self.kernel.clone(),
                why: format!(
                    "it has no module {name}, which the load needs; choose another load or kernel"
                ),
            });
        };
        let asked = ASKED_FOR.iter().filter(|(who, _)| *who == name).flat_map(|(_, what)| *what);
        let asked = asked.filter_map(|n| self.files.get(*n)).flat_map(in_order);
        let own = in_order(&(file.clone(), needs.clone()));
        Ok(asked.chain(own).map(|f| self.directory.join(f)).collect())
    }
}

fn in_order((file, needs): &(PathBuf, Vec<PathBuf>)) -> Vec<PathBuf> {
    needs.iter().rev().chain([file]).cloned().collect()
}

fn parse(text: &str) -> HashMap<String, (PathBuf, Vec<PathBuf>)> {
    text.lines()
        .filter_map(|l| l.split_once(':'))
        .map(|(file, needs)| {
            let needs = needs.split_whitespace().map(PathBuf::from).collect();
            (name_of(Path::new(file)), (PathBuf::from(file), needs))
        })
        .collect()
}

/// The most bytes of a module. Modules of kernels with all debug information take some 100 MiB.
const BYTES_MAX: u64 = 512 << 20;

/// The uncompressed bytes of the module.
pub fn unpack(path: &Path) -> Result<Vec<u8>> {
    // Opening a pipe would wait, also in the programs that decompress.
    confined::file(path).at(path)?;
    let bytes = match path.extension().and_then(|e| e.to_str()) {
        Some("xz") => filter("xz", path, "xz-utils")?,
        Some("zst") => filter("zstd", path, "zstd")?,
        _ => confined::read(path, BYTES_MAX).at(path)?,
    };
    if bytes.starts_with(b"\x7fELF") {
        Ok(bytes)
    } else {
        Err(unusable(path, "is no kernel module"))
    }
}

fn filter(program: &'static str, path: &Path, package: &'static str) -> Result<Vec<u8>> {
    let mut command = Command::new(program);
    command.args(["-d", "-c"]).arg(path);
    tool::run_bytes(&mut command, package, DEADLINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_loaded_after_what_it_needs() {
        let files = parse("k/ext4.ko.xz: k/jbd2.ko.xz k/crc16.ko.xz\nk/crc16.ko.xz:\n");
        assert_eq!(
            in_order(&files["ext4"]),
            ["k/crc16.ko.xz", "k/jbd2.ko.xz", "k/ext4.ko.xz"].map(PathBuf::from)
        );
        assert_eq!(files["crc16"].1.len(), 0);
    }

    #[test]
    fn a_name_is_spelled_as_the_kernel_does() {
        assert_eq!(name_of(Path::new("a/crc32c-intel.ko.xz")), "crc32c_intel");
    }

    #[test]
    fn a_file_that_is_no_module_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.ko");
        fs::write(&path, b"text").unwrap();
        assert!(unpack(&path).unwrap_err().to_string().contains("x.ko"));
    }
}

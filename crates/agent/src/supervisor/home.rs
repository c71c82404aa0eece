// SPDX-License-Identifier: GPL-2.0-or-later
//! The place where a load keeps its files: a tmpfs that vanishes with the load's mount namespace, or a directory that
//! is removed.

use agent::load::package_of;
use agent::{COUNTERS_DIR, COUNTERS_VARIABLE};
use rustix::fs::{Access, access};
use std::env;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

/// The directories of Debian's programs, also of programs such as ip that are not in an ordinary user's path.
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin";

/// A load's files. When this value is dropped, all of them are removed, with the files on the disk.
pub struct Home {
    directory: PathBuf,
    counters: PathBuf,
    /// The directory that the load `disk` writes to.
    disk: PathBuf,
    path: OsString,
}

impl Home {
    /// Makes the directories. `private` says that `/tmp` and `/run` are the load's own.
    ///
    /// # Errors
    /// If a directory cannot be made. The text names the remedy.
    pub fn create(disk: Option<&Path>, private: bool) -> Result<Home, String> {
        let name = format!("onset-load-{}", std::process::id());
        let directory = if private { PathBuf::from("/tmp") } else { env::temp_dir() }.join(&name);
        let cannot = |at: &Path, e: io::Error| {
            format!(
                "cannot make {}: {e}; name a directory that this user may write to",
                at.display()
            )
        };
        let make = |at: &Path| fs::DirBuilder::new().mode(0o700).create(at);
        let counters =
            if private { PathBuf::from(COUNTERS_DIR) } else { directory.join("counters") };
        let disk = disk.map_or_else(|| directory.join("disk"), |d| d.join(&name));
        let bin = directory.join("bin");
        let path = env::var_os("PATH").unwrap_or_default();
        let mut path: Vec<PathBuf> = env::split_paths(&path).collect();
        path.insert(0, bin.clone());
        path.extend(env::split_paths(SYSTEM_PATH));
        let path = env::join_paths(path).map_err(|e| format!("PATH: {e}"))?;
        make(&directory).map_err(|e| cannot(&directory, e))?;
        // From here on, everything that was made is removed, even if a later step fails.
        let home = Home { directory, counters, disk, path };
        for at in [&home.counters, &bin, &home.disk] {
            make(at).map_err(|e| cannot(at, e))?;
        }
        home.install_workers(&bin, private).map_err(|e| cannot(&bin, e))?;
        Ok(home)
    }

    /// The two workers of load scripts, which are this program. It is a copy if the private `/tmp` may hide its path;
    /// else a link, since `/tmp` may forbid programs.
    fn install_workers(&self, bin: &Path, private: bool) -> io::Result<()> {
        let repeat = bin.join("repeat");
        symlink("repeat", bin.join("play"))?;
        if !private {
            return symlink(fs::read_link("/proc/self/exe")?, repeat);
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o700).open(repeat)?;
        io::copy(&mut File::open("/proc/self/exe")?, &mut file).map(|_| ())
    }

    /// # Errors
    /// If there is no such program. The text names the package that has it.
    pub fn find(&self, program: &str) -> Result<(), String> {
        let mut places = env::split_paths(&self.path).map(|d| d.join(program));
        if places.any(|p| p.is_file() && access(&p, Access::EXEC_OK).is_ok()) {
            return Ok(());
        }
        Err(match package_of(program) {
            Some(package) => {
                format!("this load runs {program}, which is not here: apt install {package}")
            }
            None => format!("this load runs {program}, which is not in PATH"),
        })
    }

    pub fn environment(&self) -> [(&'static str, OsString); 5] {
        [
            ("PATH", self.path.clone()),
            ("TMPDIR", self.directory.clone().into()),
            ("LC_ALL", "C".into()),
            ("ONSET_DISK", self.disk.clone().into()),
            (COUNTERS_VARIABLE, self.counters.clone().into()),
        ]
    }

    pub fn write_script(&self, text: &str) -> io::Result<PathBuf> {
        let path = self.directory.join("load.sh");
        fs::write(&path, text)?;
        Ok(path)
    }

    pub fn open_console(&self) -> io::Result<File> {
        OpenOptions::new().append(true).create(true).open(self.console())
    }

    pub fn console(&self) -> PathBuf {
        self.directory.join("console")
    }

    pub fn counters(&self) -> &Path {
        &self.counters
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // Private files are gone with their namespace. A file that cannot be removed now can never be removed.
        let _ = fs::remove_dir_all(&self.disk);
        let _ = fs::remove_dir_all(&self.directory);
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! Builds modules for a kernel: the driver of the responders, once for each version of its source, and modules that a
//! user gives as source directories.

use super::Kernel;
use super::toolchain::{HEADERS, MODULE, Toolchain, check_namespaces, in_root, on_machine};
use crate::cache::{self, DRAFT, Owned};
use crate::error::At;
use crate::{Result, intact, tool};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(300);

/// The driver's source. It is part of this program, so that every build of the driver is the same.
const DRIVER: [(&str, &str); 13] = [
    ("Kbuild", include_str!("../../../../driver/Kbuild")),
    ("disturbance.c", include_str!("../../../../driver/disturbance.c")),
    ("gpio.c", include_str!("../../../../driver/gpio.c")),
    ("interrupt.c", include_str!("../../../../driver/interrupt.c")),
    ("main.c", include_str!("../../../../driver/main.c")),
    ("onset.h", include_str!("../../../../driver/onset.h")),
    ("onset_port.h", include_str!("../../../../driver/onset_port.h")),
    ("onset_wire.h", include_str!("../../../../driver/onset_wire.h")),
    ("port.c", include_str!("../../../../driver/port.c")),
    ("responders.c", include_str!("../../../../driver/responders.c")),
    ("samples.c", include_str!("../../../../driver/samples.c")),
    ("task.c", include_str!("../../../../driver/task.c")),
    ("timer.c", include_str!("../../../../driver/timer.c")),
];
/// The source of the rig's GPIO chip.
const CHIP: [(&str, &str); 3] = [
    ("Kbuild", include_str!("../../../../driver/rig/Kbuild")),
    ("onset_rig_gpio.c", include_str!("../../../../driver/rig/onset_rig_gpio.c")),
    ("onset_wire.h", include_str!("../../../../driver/onset_wire.h")),
];

/// The most bytes of a file among a user's sources.
const SOURCE_MAX: u64 = 64 << 20;

/// The sources of modules, each with its path from the directory of the Kbuild file.
type Sources = Vec<(PathBuf, Vec<u8>)>;

/// Modules that were built. Their directory vanishes with this value.
struct Built {
    modules: Vec<PathBuf>,
    _workshop: Owned,
}

impl Kernel {
    /// The driver for this kernel. It is built if needed.
    ///
    /// # Errors
    /// [`Error::Kernel`] without headers, the errors of building, and those of making a toolchain.
    pub fn driver(&self) -> Result<PathBuf> {
        self.own_module("onset_port.ko", &DRIVER)
    }

    /// The rig's GPIO chip for this kernel. It is built if needed.
    ///
    /// # Errors
    /// Those of [`Kernel::driver`].
    pub fn chip(&self) -> Result<PathBuf> {
        self.own_module("onset_rig_gpio.ko", &CHIP)
    }

    /// The module of this name that these sources make.
    fn own_module(&self, name: &str, sources: &[(&str, &str)]) -> Result<PathBuf> {
        let mut hasher = blake3::Hasher::new();
        sources.iter().for_each(|(name, text)| {
            hasher.update(name.as_bytes()).update(text.as_bytes());
        });
        let key = &hasher.finalize().to_hex()[..16];
        let drivers = self.directory.join("drivers");
        let place = drivers.join(key);
        let built = place.join(name);
        if intact::is_intact(&place)? && built.is_file() {
            return Ok(built);
        }
        let source = |(name, text): &(&str, &str)| (PathBuf::from(name), text.as_bytes().to_vec());
        let made = self.build(&sources.iter().map(source).collect())?;
        let [module] = made.modules.as_slice() else {
            return Err(self.error(format!(
                "the build of {name} made more than one module: please report it"
            )));
        };
        fs::create_dir_all(&drivers).at(&drivers)?;
        let draft = cache::owned(&drivers, DRAFT)?;
        let whole = draft.path().join("driver");
        fs::create_dir(&whole).at(&whole)?;
        fs::copy(module, whole.join(name)).at(module)?;
        intact::publish(&whole, &place)?;
        Ok(built)
    }

    /// Checks that these sources may be somebody else's: they were built before, or their Makefile, which runs what it
    /// likes, will run in namespaces.
    ///
    /// # Errors
    /// As [`Kernel::modules_of`]; [`Error::Program`] if this machine permits no namespaces.
    pub fn check_foreign_sources(&self, directory: &Path) -> Result<()> {
        let (_, place) = self.sources(directory)?;
        if intact::is_intact(&place)? {
            return Ok(());
        }
        check_namespaces().map_err(|e| {
            self.error(format!(
                "{} may be somebody else's, and its Makefile may run in namespaces alone: {e}",
                directory.display()
            ))
        })
    }

    /// The files of a directory of sources, and the place of the modules that they make.
    fn sources(&self, directory: &Path) -> Result<(Sources, PathBuf)> {
        if !["Kbuild", "Makefile"].iter().any(|name| directory.join(name).is_file()) {
            return Err(self.error(format!(
                "{} has neither a Kbuild file nor a Makefile that says `obj-m += NAME.o`; add one, or name the built NAME.ko",
                directory.display()
            )));
        }
        let sources = sources_in(directory)?;
        let mut hasher = blake3::Hasher::new();
        for (path, bytes) in &sources {
            hasher.update(path.as_os_str().as_encoded_bytes()).update(&[0]);
            hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
        }
        let key = &hasher.finalize().to_hex()[..16];
        Ok((sources, self.directory.join("modules").join(key)))
    }

    /// The modules whose sources are in `directory`, which has a Kbuild file or a Makefile. They are built for this
    /// kernel if needed. Their order is that of the Kbuild file or the Makefile.
    ///
    /// # Errors
    /// [`Error::File`], [`Error::Kernel`] without headers, and the errors of building.
    pub fn modules_of(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        let (sources, place) = self.sources(directory)?;
        let parent = self.directory.join("modules");
        if !intact::is_intact(&place)? {
            let made = self.build(&sources)?;
            fs::create_dir_all(&parent).at(&parent)?;
            let draft = cache::owned(&parent, DRAFT)?;
            let whole = draft.path().join("modules");
            fs::create_dir(&whole).at(&whole)?;
            let mut order = String::new();
            for module in &made.modules {
                let name = module.file_name().expect("a file");
                fs::copy(module, whole.join(name)).at(module)?;
                order += &format!("{}\n", name.to_string_lossy());
            }
            fs::write(whole.join("modules.order"), order).at(&whole)?;
            intact::publish(&whole, &place)?;
        }
        let order = place.join("modules.order");
        let order = fs::read_to_string(&order).at(&order)?;
        Ok(order.lines().map(|name| place.join(name)).collect())
    }

    /// Builds modules.
    fn build(&self, sources: &Sources) -> Result<Built> {
        // The sources are not in the cache, because kbuild accepts no path with a space or a colon.
        let workshop = cache::owned(&std::env::temp_dir(), "onset-driver-")?;
        let inside = workshop.path().canonicalize().at(workshop.path())?;
        let from = inside.join("driver");
        for (name, bytes) in sources {
            let path = from.join(name);
            let parent = path.parent().expect("below the workshop");
            fs::create_dir_all(parent).at(parent)?;
            fs::write(&path, bytes).at(&path)?;
        }
        let headers = self.headers()?;
        match self.toolchain(&headers)? {
            Toolchain::Machine => {
                let cache = self.headers_in_cache(&headers);
                let headers = self.headers_for_kbuild(&headers, &inside)?;
                let mut make = on_machine("make", cache.as_deref(), &inside);
                make.args(arguments("gcc", &headers, &from));
                tool::run(&mut make, "make gcc", DEADLINE)?;
            }
            Toolchain::Root { directory, compiler } => {
                let (mounted, inside) = self.headers_to_mount(&headers);
                let mut make = in_root(&directory, &mounted, &from);
                let headers = Path::new(HEADERS).join(inside);
                make.arg("make").args(arguments(&compiler, &headers, Path::new(MODULE)));
                tool::run(&mut make, "bubblewrap", DEADLINE)?;
            }
        }
        let modules = built_in(&from)?;
        if modules.is_empty() {
            return Err(self.error("the build made no module, since the Kbuild file names none in obj-m; add `obj-m += NAME.o`"));
        }
        Ok(Built { modules, _workshop: workshop })
    }

    /// The tree to build modules against.
    fn headers(&self) -> Result<PathBuf> {
        let Some(inside) = &self.record.headers else {
            return Err(self.error(
                "onset has to build modules for this kernel, but the kernel has no headers; add it again with its headers (--headers DIR, or the linux-headers-* packages) and --replace",
            ));
        };
        let headers = self.directory.join(inside);
        headers.canonicalize().at(&headers)
    }

    /// The same tree, under the path that make itself will use. If kbuild would refuse its path, this is a copy in
    /// `workshop`. (kbuild follows links, so a link would not help.)
    fn headers_for_kbuild(&self, headers: &Path, workshop: &Path) -> Result<PathBuf> {
        let (mounted, inside) = self.headers_to_mount(headers);
        if inside.as_os_str().is_empty() || !refused_by_kbuild(headers) {
            return Ok(headers.into());
        }
        tool::run(Command::new("cp").arg("-a").arg(&mounted).arg(workshop), "coreutils", DEADLINE)?;
        let copy = workshop.join(mounted.file_name().expect("a directory of the cache"));
        Ok(copy.join(inside))
    }

    /// The directory with everything that the headers refer to, and the path of the headers in it. Debian's headers are
    /// several directories side by side. Headers of a user refer to nothing outside.
    fn headers_to_mount(&self, headers: &Path) -> (PathBuf, PathBuf) {
        let inside = |all: &PathBuf| headers.strip_prefix(all).ok().map(Path::to_path_buf);
        match self.headers_in_cache(headers).and_then(|all| Some((inside(&all)?, all))) {
            Some((inside, all)) => (all, inside),
            None => (headers.into(), PathBuf::new()),
        }
    }

    /// The directory of the cache that contains these headers. `None` if a user named the headers.
    pub(super) fn headers_in_cache(&self, headers: &Path) -> Option<PathBuf> {
        let all = self.directory.join("headers");
        let all = all.canonicalize().unwrap_or(all);
        headers.starts_with(&all).then_some(all)
    }
}

/// The arguments of make, with the paths as make will see them.
fn arguments(compiler: &str, headers: &Path, from: &Path) -> Vec<String> {
    // Debian's headers are two directories side by side.
    let against = headers.parent().unwrap_or(headers).display();
    vec![
        "-s".into(),
        format!("CC={compiler}"),
        // The module gets no BTF of its own. That would need pahole, and nobody here uses it.
        "CONFIG_DEBUG_INFO_BTF_MODULES=".into(),
        "modules".into(),
        "-C".into(),
        headers.display().to_string(),
        // The module must not show where it was built: it is part of a snapshot's key.
        format!(
            "KCFLAGS=-ffile-prefix-map={against}=headers -ffile-prefix-map={}=driver",
            from.display()
        ),
        format!("M={}", from.display()),
    ]
}

/// The modules that were built in a directory, as kbuild lists them. Each line has one path, from there or from the
/// root, of the object or of the module (since 6.5 of the object).
fn built_in(directory: &Path) -> Result<Vec<PathBuf>> {
    let path = directory.join("modules.order");
    let order = fs::read_to_string(&path).at(&path)?;
    let names = order.lines().filter_map(|line| Path::new(line).file_stem());
    Ok(names.map(|name| directory.join(name).with_extension("ko")).collect())
}

/// The files of a source directory, in the order of their paths, without the files that a build leaves there.
fn sources_in(directory: &Path) -> Result<Sources> {
    const LEFT: [&str; 6] = ["o", "ko", "mod", "cmd", "symvers", "order"];
    let mut sources = Sources::new();
    let mut left = vec![PathBuf::new()];
    let mut all = 0;
    while let Some(inside) = left.pop() {
        let place = directory.join(&inside);
        for entry in fs::read_dir(&place).at(&place)? {
            let entry = entry.at(&place)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = inside.join(&name);
            let is_left =
                Path::new(&name).extension().is_some_and(|e| LEFT.iter().any(|l| e == *l));
            if name.starts_with('.') || name.ends_with(".mod.c") || is_left {
                continue;
            }
            if entry.path().is_dir() {
                left.push(path);
            } else {
                let bytes = confined::read(&entry.path(), SOURCE_MAX).at(&entry.path())?;
                all += bytes.len() as u64;
                if all > SOURCE_MAX {
                    let why = format!("it has more than {} MiB of sources", SOURCE_MAX >> 20);
                    return Err(std::io::Error::other(why)).at(directory);
                }
                sources.push((path, bytes));
            }
        }
    }
    sources.sort();
    Ok(sources)
}

/// Whether the kernel's top Makefile refuses a path: "source directory cannot contain spaces or colons".
fn refused_by_kbuild(path: &Path) -> bool {
    path.to_string_lossy().contains(|c: char| c.is_whitespace() || c == ':')
}

#[cfg(test)]
mod tests {
    use super::super::KernelRecord;
    use super::*;
    use crate::intact::Hashes;

    /// A kernel with headers in a directory of this name. Their Makefile builds nothing, and says where it was called.
    fn kernel(root: &Path, name: &str) -> Kernel {
        let directory = root.join(name);
        let headers = directory.join("headers/usr/src/linux-headers-9.9");
        fs::create_dir_all(&headers).unwrap();
        let makefile = "modules:\n\t@echo $(words $(CURDIR)) '$(CURDIR)' >$(M)/onset_port.ko\n\
                        \t@echo $(M)/onset_port.o >$(M)/modules.order\n";
        fs::write(headers.join("Makefile"), makefile).unwrap();
        let record = KernelRecord {
            name: "9.9".into(),
            release: "9.9".into(),
            source: "test".into(),
            image_blake3: String::new(),
            headers: Some("headers/usr/src/linux-headers-9.9".into()),
        };
        Hashes::write(&directory, &["headers"]).unwrap();
        let hashes = Hashes::read(&directory).unwrap().unwrap();
        Kernel { record, directory, hashes, announce: |_| (), _held: None }
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
    fn a_damaged_driver_is_made_again() {
        let root = tempfile::tempdir().unwrap();
        let kernel = kernel(root.path(), "k");
        let built = kernel.driver().unwrap();
        let sound = fs::read(&built).unwrap();
        let mut flipped = sound.clone();
        flipped[0] ^= 1;
        for damaged in [&flipped[..], &sound[..3], b""] {
            fs::write(&built, damaged).unwrap();
            assert_eq!(kernel.driver().unwrap(), built);
            assert_eq!(fs::read(&built).unwrap(), sound);
        }
        fs::remove_file(&built).unwrap();
        fs::create_dir(&built).unwrap();
        assert_eq!(fs::read(kernel.driver().unwrap()).unwrap(), sound);
    }

    #[test]
    fn a_makefile_of_somebody_else_reaches_neither_the_users_files_nor_a_network() {
        let root = tempfile::tempdir().unwrap();
        let kernel = kernel(root.path(), "k");
        let victim = root.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        let makefile = format!(
            "modules:\n\t-@echo bad >{victim}; echo bad >/etc/onset-was-here; echo bad >{headers}/x\n\
             \t@ls /root /home; cat /proc/net/dev >$(M)/onset_port.ko\n\
             \t@echo $(M)/onset_port.o >$(M)/modules.order\n",
            victim = victim.display(),
            headers = kernel.directory.join("headers").display(),
        );
        let headers = kernel.directory.join(kernel.record.headers.as_ref().unwrap());
        fs::write(headers.join("Makefile"), makefile).unwrap();
        let devices = fs::read_to_string(kernel.driver().unwrap()).unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert!(!Path::new("/etc/onset-was-here").exists());
        assert!(!kernel.directory.join("headers/x").exists());
        // Two lines of heading, and the loopback device of a separate network.
        assert_eq!(devices.lines().count(), 3, "{devices}");
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
    fn modules_of_a_directory_are_built_once_for_what_is_in_it_and_in_its_order() {
        let root = tempfile::tempdir().unwrap();
        let kernel = kernel(root.path(), "k");
        let makefile = "modules:\n\t@for m in two one; do cat $(M)/sub/$$m.c >$(M)/$$m.ko; echo $$m.o; done >$(M)/modules.order\n";
        let headers = kernel.directory.join(kernel.record.headers.as_ref().unwrap());
        fs::write(headers.join("Makefile"), makefile).unwrap();
        let sources = root.path().join("sources");
        fs::create_dir_all(sources.join("sub")).unwrap();
        fs::write(sources.join("sub/one.c"), "1").unwrap();
        fs::write(sources.join("sub/two.c"), "2").unwrap();
        let e = kernel.modules_of(&sources).unwrap_err().to_string();
        assert!(e.contains("Kbuild") && e.contains("obj-m"), "{e}");
        fs::write(sources.join("Kbuild"), "obj-m += two.o one.o\n").unwrap();
        let read = |path: &PathBuf| {
            (path.file_name().unwrap().to_owned(), fs::read_to_string(path).unwrap())
        };
        let built = kernel.modules_of(&sources).unwrap();
        let told: Vec<_> = built.iter().map(read).collect();
        assert_eq!(told, [("two.ko".into(), "2".into()), ("one.ko".into(), "1".into())]);
        // The remains of a build are no source, and the built module is used again.
        fs::write(sources.join("one.ko"), "left").unwrap();
        fs::remove_dir_all(&headers).unwrap();
        assert_eq!(kernel.modules_of(&sources).unwrap(), built);
        fs::write(sources.join("sub/one.c"), "3").unwrap();
        assert!(kernel.modules_of(&sources).is_err(), "other sources are built anew");
    }

    #[test]
    fn a_kernel_without_headers_says_how_to_add_them() {
        let root = tempfile::tempdir().unwrap();
        let mut kernel = kernel(root.path(), "k");
        kernel.record.headers = None;
        assert!(kernel.driver().unwrap_err().to_string().contains("--headers"));
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! Puts kernels into the cache: from .deb files, or from a kernel that the user built.

use super::package::Unpacking;
use super::{Existing, Kernel, KernelRecord, Kernels, is_kernel_name};
use crate::error::At;
use crate::x86_64::{DEBIAN, check_image};
use crate::{Error, Result, tool};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The most bytes of an image. With debugging information an image takes some 60 MiB.
const IMAGE_MAX: u64 = 512 << 20;
/// The longest time for one kernel. Unpacking and indexing takes seconds, so only a stuck machine needs this long.
const DEADLINE: Duration = Duration::from_secs(300);

/// A kernel that the user built.
#[derive(Clone, Debug)]
pub struct Given {
    /// The name that the kernel gets.
    pub name: String,
    /// The bzImage of the kernel.
    pub image: PathBuf,
    /// The directory `…/lib/modules/RELEASE`. Its last component is the release.
    pub modules: PathBuf,
    /// A tree to build modules against. Without it the driver cannot be built.
    pub headers: Option<PathBuf>,
}

/// The name under which a release is kept: `6.12-rt` for `6.12.57+deb13-rt-amd64`.
pub fn series_of(release: &str) -> String {
    let digits: Vec<&str> = release.split(|c: char| !c.is_ascii_digit()).take(2).collect();
    let rt = if release.contains("-rt") { "-rt" } else { "" };
    format!("{}{rt}", digits.join("."))
}

impl Kernels {
    /// Takes a kernel (and the headers among the packages) out of Debian packages.
    ///
    /// `name` defaults to the series of the release. `source` says where the packages came from.
    ///
    /// # Errors
    /// [`Error::KernelName`] or [`Error::KernelExists`], or the error of a damaged or missing package.
    pub fn add_debs(
        &self,
        debs: &[PathBuf],
        name: Option<&str>,
        source: &str,
        modules: Modules,
        existing: Existing,
    ) -> Result<Kernel> {
        name.map_or(Ok(()), |name| self.check_free(name, existing))?;
        let draft = self.draft()?;
        let unpacked = draft.path().join("unpacked");
        let mut unpacking = Unpacking::into(&unpacked)?;
        for deb in debs {
            confined::file(deb).at(deb)?;
            check_architecture(deb)?;
            unpacking.take(deb).map_err(|e| damaged(deb, e))?;
        }
        unpacking.finish()?;
        let found = Unpacked::find(&unpacked, modules)
            .map_err(|why| Error::Kernel { name: name.unwrap_or("(new)").into(), why })?;
        let release = found.release;
        check_release(name.unwrap_or("(new)"), &release)?;
        let name = name.map_or_else(|| series_of(&release), str::to_string);
        self.check_free(&name, existing)?;
        let made = draft.path().join("kernel");
        fs::create_dir(&made).at(&made)?;
        // The image is moved, because a copy beside its modules would be there twice. It is never a link, which may
        // lead elsewhere from the new place.
        let image = found.image.canonicalize().at(&found.image)?;
        fs::rename(&image, made.join("vmlinuz")).at(&image)?;
        // The configuration is absent if it lies beside the modules, or if no package has it.
        let _ = fs::copy(unpacked.join(format!("boot/config-{release}")), made.join("config"));
        match &found.modules {
            Some(modules) => move_modules(modules, &made, &release)?,
            None => {
                let empty = made.join("root/lib/modules").join(&release);
                fs::create_dir_all(&empty).at(&empty)?;
            }
        }
        let headers = relocate_headers(&unpacked, &made, &name, &release)?;
        self.finish(&made, name, release, source.to_string(), headers, existing)
    }

    /// Takes a kernel that the user built. The image and the modules are copied. The headers stay in their place.
    ///
    /// # Errors
    /// [`Error::KernelName`] or [`Error::KernelExists`], or an error about a wrong image or an unreadable file.
    pub fn add(&self, given: &Given, existing: Existing) -> Result<Kernel> {
        self.check_free(&given.name, existing)?;
        let release = given.modules.canonicalize().at(&given.modules).map(|p| file_name(&p))?;
        check_release(&given.name, &release)?;
        let image = confined::read(&given.image, IMAGE_MAX).at(&given.image)?;
        check_image(&given.name, &image)?;
        let draft = self.draft()?;
        let made = draft.path().join("kernel");
        let target = made.join("root/lib/modules").join(&release);
        fs::create_dir_all(&target).at(&target)?;
        fs::write(made.join("vmlinuz"), image).at(&made)?;
        tool::run(
            Command::new("cp").arg("-rL").arg(given.modules.join("kernel")).arg(&target),
            "coreutils",
            DEADLINE,
        )?;
        for index in ["modules.order", "modules.builtin", "modules.builtin.modinfo"] {
            // Some trees have no such index. depmod then knows less, and says so where it matters.
            let _ = fs::copy(given.modules.join(index), target.join(index));
        }
        let headers = match &given.headers {
            Some(h) => Some(h.canonicalize().at(h)?.to_string_lossy().into_owned()),
            None => None,
        };
        let source = given.image.to_string_lossy().into_owned();
        self.finish(&made, given.name.clone(), release, source, headers, existing)
    }

    fn finish(
        &self,
        made: &Path,
        name: String,
        release: String,
        source: String,
        headers: Option<String>,
        existing: Existing,
    ) -> Result<Kernel> {
        let path = made.join("vmlinuz");
        let image = confined::read(&path, IMAGE_MAX).at(&path)?;
        check_image(&name, &image)?;
        let root = made.join("root");
        tool::run(Command::new("depmod").arg("-b").arg(&root).arg(&release), "kmod", DEADLINE)?;
        let image_blake3 = blake3::hash(&image).to_hex().to_string();
        let record = KernelRecord { name, release, source, image_blake3, headers };
        self.publish(made, &record, existing)
    }
}

/// Whether packages have to contain a kernel's modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modules {
    /// The packages have to contain them. A user who gives none has forgotten them.
    Needed,
    /// There are no packages of modules any more.
    Gone,
}

/// The kernel in the files of unpacked packages.
#[derive(Debug)]
struct Unpacked {
    release: String,
    image: PathBuf,
    modules: Option<PathBuf>,
}

/// The directories of modules in packages: `/usr` in Debian since 13; `/lib` before that and elsewhere.
const MODULES: [&str; 2] = ["usr/lib/modules", "lib/modules"];
/// The packages to give, by the way in which distributions split kernels.
const PACKAGES: &str = "give linux-image-* (since Debian's 6.19: linux-binary-*, linux-modules-* and linux-base-*; Ubuntu: linux-image-* and linux-modules-*) and, for the driver, the linux-headers-* and linux-kbuild-*, all of one version";

impl Unpacked {
    /// The one kernel below `root`: in `/boot` with its modules elsewhere, or beside its modules (Debian since 6.19,
    /// Fedora). If there is not exactly one whole kernel, the error says what is missing and what to do.
    fn find(root: &Path, needed: Modules) -> std::result::Result<Unpacked, String> {
        let directories = || MODULES.iter().flat_map(|d| entries(&root.join(d), ""));
        let mut images: Vec<(String, PathBuf)> = entries(&root.join("boot"), "vmlinuz-")
            .into_iter()
            .map(|path| (file_name(&path).trim_start_matches("vmlinuz-").to_string(), path))
            .collect();
        images.extend(
            directories()
                .filter(|d| d.join("vmlinuz").is_file())
                .map(|d| (file_name(&d), d.join("vmlinuz"))),
        );
        let with_modules: Vec<PathBuf> =
            directories().filter(|d| d.join("kernel").is_dir()).collect();
        let (release, image) = match images.as_slice() {
            [one] => one.clone(),
            [] if !with_modules.is_empty() => {
                return Err(format!(
                    "the packages hold modules for {}, but no kernel image; {PACKAGES}",
                    with_modules.iter().map(|d| file_name(d)).collect::<Vec<_>>().join(", ")
                ));
            }
            several => {
                return Err(format!(
                    "the packages hold {} kernel images instead of one; {PACKAGES}",
                    several.len()
                ));
            }
        };
        let modules = with_modules.iter().find(|d| file_name(d) == release).cloned();
        if modules.is_none() && needed == Modules::Needed {
            let others = with_modules.iter().map(|d| file_name(d)).collect::<Vec<_>>().join(", ");
            let instead =
                if others.is_empty() { String::new() } else { format!(", only for {others}") };
            return Err(format!(
                "the packages hold the image of {release}, but no modules for it{instead}; {PACKAGES}"
            ));
        }
        Ok(Unpacked { release, image, modules })
    }
}

/// Checks a release. It becomes the name of a directory and an argument of programs.
fn check_release(name: &str, release: &str) -> Result<()> {
    match is_kernel_name(release) {
        true => Ok(()),
        false => Err(Error::Kernel {
            name: name.into(),
            why: format!(
                "{release:?} cannot be the release of a kernel: a release, as uname -r prints it, has letters, digits and .-_+~"
            ),
        }),
    }
}

/// Checks the architecture of a package: only that of the rig and packages for all are accepted.
fn check_architecture(deb: &Path) -> Result<()> {
    let architecture = tool::run(
        Command::new("dpkg-deb").arg("-f").arg(deb).arg("Architecture"),
        "dpkg",
        DEADLINE,
    )
    .map_err(|e| damaged(deb, e))?;
    match architecture.trim() {
        DEBIAN | "all" => Ok(()),
        other => Err(Error::Program {
            command: format!("dpkg-deb -f {}", deb.display()),
            why: format!(
                "the package is for {other}, and the rig runs only kernels for {DEBIAN}: get the package for {DEBIAN}"
            ),
        }),
    }
}

fn damaged(deb: &Path, e: Error) -> Error {
    match e {
        Error::Program { command, why } => Error::Program {
            command,
            why: format!(
                "{why}\n{} is damaged or is no Debian package; download it again",
                deb.display()
            ),
        },
        other => other,
    }
}

fn move_modules(from: &Path, made: &Path, release: &str) -> Result<()> {
    let parent = made.join("root/lib/modules");
    fs::create_dir_all(&parent).at(&parent)?;
    fs::rename(from, parent.join(release)).at(from)
}

/// Moves `usr/src` and `usr/lib/linux-kbuild-*` to `headers/` of the new kernel. Returns the headers' directory
/// relative to it.
fn relocate_headers(
    unpacked: &Path,
    made: &Path,
    name: &str,
    release: &str,
) -> Result<Option<String>> {
    let inside = format!("usr/src/linux-headers-{release}");
    if !unpacked.join(&inside).is_dir() {
        let given = entries(&unpacked.join("usr/src"), "linux-headers-");
        return match given.first() {
            None => Ok(None),
            Some(other) => Err(Error::Kernel {
                name: name.into(),
                why: format!(
                    "the image is of {release}, but the headers are of {}; give linux-headers-{release} and the packages on which it depends",
                    file_name(other)
                ),
            }),
        };
    }
    let headers = made.join("headers/usr");
    fs::create_dir_all(headers.join("lib")).at(&headers)?;
    fs::rename(unpacked.join("usr/src"), headers.join("src")).at(&headers)?;
    for kbuild in entries(&unpacked.join("usr/lib"), "linux-kbuild-") {
        let target = headers.join("lib").join(file_name(&kbuild));
        fs::rename(&kbuild, &target).at(&kbuild)?;
    }
    let inside = format!("headers/{inside}");
    let makefile = made.join(&inside).join("Makefile");
    let text = fs::read_to_string(&makefile).at(&makefile)?;
    fs::write(&makefile, relative_include(&text)).at(&makefile)?;
    Ok(Some(inside))
}

/// The Makefile of Debian's headers with a relative path in its include, which is the only absolute path in them. The
/// tree has another place here, and may move with the cache.
fn relative_include(makefile: &str) -> String {
    makefile.replace("/usr/src/", "$(dir $(lastword $(MAKEFILE_LIST)))../")
}

fn entries(directory: &Path, prefix: &str) -> Vec<PathBuf> {
    let read = fs::read_dir(directory).into_iter().flatten().flatten();
    read.map(|e| e.path()).filter(|p| file_name(p).starts_with(prefix)).collect()
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intact::Hashes;

    #[test]
    fn a_release_is_named_after_its_series() {
        assert_eq!(series_of("6.12.57+deb13-rt-amd64"), "6.12-rt");
        assert_eq!(series_of("6.1.0-40-amd64"), "6.1");
        assert_eq!(series_of("6.18.1"), "6.18");
    }

    fn kernels() -> (tempfile::TempDir, Kernels) {
        let cache = tempfile::tempdir().unwrap();
        let kernels = Kernels::open(cache.path()).unwrap();
        (cache, kernels)
    }

    #[test]
    fn a_truncated_deb_is_refused_by_name_and_leaves_nothing() {
        let (cache, kernels) = kernels();
        let deb = cache.path().join("linux-image.deb");
        fs::write(&deb, b"!<arch>\ndebian-binary   0").unwrap();
        let e = kernels
            .add_debs(&[deb], None, "test", Modules::Needed, Existing::Keep)
            .unwrap_err()
            .to_string();
        assert!(e.contains("linux-image.deb") && e.contains("download it again"), "{e}");
        assert_eq!(fs::read_dir(cache.path().join("kernels")).unwrap().count(), 0);
    }

    /// A kernel as a user might have built it: the smallest image that passes, and no modules.
    fn given(directory: &Path, name: &str) -> Given {
        let mut image = vec![0; 5 * 512];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        let given = Given {
            name: name.into(),
            image: directory.join("bzImage"),
            modules: directory.join("lib/modules/9.9"),
            headers: None,
        };
        fs::write(&given.image, image).unwrap();
        fs::create_dir_all(given.modules.join("kernel")).unwrap();
        given
    }

    #[test]
    fn a_name_that_leads_out_of_the_cache_is_refused_and_touches_nothing() {
        let (cache, kernels) = kernels();
        let precious = cache.path().join("precious");
        fs::create_dir(&precious).unwrap();
        for name in
            ["../precious", "", ".", "..", ".draft-1-x", "a/b", "-a", precious.to_str().unwrap()]
        {
            let e = kernels.add(&given(cache.path(), name), Existing::Replace).unwrap_err();
            assert!(e.to_string().contains("starts with a letter or digit"), "{e}");
            let e = kernels
                .add_debs(&[], Some(name), "test", Modules::Needed, Existing::Replace)
                .unwrap_err();
            assert!(matches!(e, Error::KernelName { .. }), "{e}");
            assert!(matches!(kernels.get(name), Err(Error::KernelName { .. })));
        }
        assert!(precious.is_dir());
        assert_eq!(fs::read_dir(cache.path().join("kernels")).unwrap().count(), 0);
    }

    #[test]
    fn a_release_that_is_none_and_an_image_that_is_none_are_refused_before_anything_is_copied() {
        let (cache, kernels) = kernels();
        for release in ["9.6 x;id", "-9", "9\n6", "ä"] {
            let mut given = given(cache.path(), "k");
            given.modules = cache.path().join("lib/modules").join(release);
            fs::create_dir_all(given.modules.join("kernel")).unwrap();
            let e = kernels.add(&given, Existing::Keep).unwrap_err().to_string();
            assert!(e.contains("cannot be the release of a kernel"), "{e}");
        }
        let mut given = given(cache.path(), "k");
        for (image, says) in [("/dev/zero", "no regular file"), ("/etc/passwd", "not a bzImage")] {
            given.image = image.into();
            let e = kernels.add(&given, Existing::Keep).unwrap_err().to_string();
            assert!(e.contains(says), "{e}");
        }
        assert_eq!(fs::read_dir(cache.path().join("kernels")).unwrap().count(), 0);
    }

    #[test]
    fn a_module_that_changed_is_not_put_into_a_guest() {
        let (cache, kernels) = kernels();
        let given = given(cache.path(), "k");
        fs::write(given.modules.join("kernel/a.ko"), "a").unwrap();
        let kernel = kernels.add(&given, Existing::Keep).unwrap();
        let module = kernel.modules().join("kernel/a.ko");
        kernel.check(&module).unwrap();
        fs::write(&module, "b").unwrap();
        let e = kernel.check(&module).unwrap_err().to_string();
        assert!(e.contains("a.ko is damaged") && e.contains("--replace"), "{e}");
    }

    #[test]
    fn a_kernel_is_replaced_only_when_that_was_asked_for() {
        let (cache, kernels) = kernels();
        let given = given(cache.path(), "k");
        let first = kernels.add(&given, Existing::Keep).unwrap().record;
        let e = kernels.add(&given, Existing::Keep).unwrap_err().to_string();
        assert!(e.contains("--replace") && e.contains("bzImage"), "{e}");
        let mut image = fs::read(&given.image).unwrap();
        image.push(1);
        fs::write(&given.image, image).unwrap();
        let second = kernels.add(&given, Existing::Replace).unwrap();
        assert_ne!(first, second.record);
        let in_cache = fs::read_dir(cache.path().join("kernels")).unwrap();
        assert_eq!(in_cache.count(), 1);
    }

    #[test]
    fn what_a_killed_command_left_is_swept_up_by_the_next() {
        let (cache, kernels) = kernels();
        let left = cache.path().join("kernels/.draft-4194999-x/kernel");
        fs::create_dir_all(&left).unwrap();
        kernels.add(&given(cache.path(), "k"), Existing::Keep).unwrap();
        assert!(!left.exists());
    }

    #[test]
    fn the_headers_of_a_package_refer_to_each_other_wherever_they_lie() {
        let (cache, _) = kernels();
        let (unpacked, made) = (cache.path().join("unpacked"), cache.path().join("made it: here"));
        let sources = unpacked.join("usr/src");
        for part in ["linux-headers-9.9", "linux-headers-9.9-common"] {
            fs::create_dir_all(sources.join(part)).unwrap();
        }
        let include = "include /usr/src/linux-headers-9.9-common/Makefile\n";
        fs::write(sources.join("linux-headers-9.9/Makefile"), include).unwrap();
        let common = "all:\n\t@echo built\n";
        fs::write(sources.join("linux-headers-9.9-common/Makefile"), common).unwrap();
        let headers = relocate_headers(&unpacked, &made, "k", "9.9").unwrap().unwrap();
        assert!(Path::new(&headers).is_relative());
        let mut make = Command::new("make");
        make.arg("-s").arg("-C").arg(made.join(headers));
        assert_eq!(tool::run(&mut make, "make", DEADLINE).unwrap(), "built\n");
    }

    #[test]
    fn a_kernel_is_found_in_both_layouts_of_packages() {
        let root = tempfile::tempdir().unwrap();
        let file = |path: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        };
        let found = |inside: &str| Unpacked::find(&root.path().join(inside), Modules::Needed);
        // One package for all, with modules in /lib and in /usr/lib; and an image beside its modules, with headers.
        file("old/boot/vmlinuz-6.12.9-amd64");
        file("old/lib/modules/6.12.9-amd64/kernel/a.ko");
        file("new/usr/lib/modules/7.3.4-amd64/vmlinuz");
        file("new/usr/lib/modules/7.3.4-amd64/kernel/a.ko");
        for (inside, release) in [("old", "6.12.9-amd64"), ("new", "7.3.4-amd64")] {
            let unpacked = found(inside).unwrap();
            assert_eq!(unpacked.release, release);
            assert!(unpacked.image.is_file() && unpacked.modules.unwrap().join("kernel").is_dir());
        }
        // Half of a kernel, each half; the modules of another version; two kernels; nothing.
        file("image/usr/lib/modules/7.3.4-amd64/vmlinuz");
        file("modules/usr/lib/modules/7.3.4-amd64/kernel/a.ko");
        file("mixed/boot/vmlinuz-7.3.4-amd64");
        file("mixed/lib/modules/7.3.5-amd64/kernel/a.ko");
        file("two/boot/vmlinuz-1");
        file("two/boot/vmlinuz-2");
        for (inside, words) in [
            ("image", ["the image of 7.3.4-amd64, but no modules", "linux-modules-*"]),
            ("modules", ["modules for 7.3.4-amd64, but no kernel image", "linux-binary-*"]),
            ("mixed", ["only for 7.3.5-amd64", "one version"]),
            ("two", ["2 kernel images", "one version"]),
            ("nothing", ["0 kernel images", "linux-image-*"]),
        ] {
            let why = found(inside).unwrap_err();
            assert!(words.iter().all(|word| why.contains(word)), "{inside}: {why}");
        }
        let bare = Unpacked::find(&root.path().join("image"), Modules::Gone).unwrap();
        assert_eq!(bare.modules, None);
    }

    #[test]
    fn headers_of_another_version_are_named_beside_the_image() {
        let (cache, _) = kernels();
        let unpacked = cache.path().join("unpacked");
        fs::create_dir_all(unpacked.join("usr/src/linux-headers-9.8-common")).unwrap();
        let e = relocate_headers(&unpacked, cache.path(), "k", "9.9").unwrap_err().to_string();
        assert!(e.contains("linux-headers-9.8") && e.contains("give linux-headers-9.9"), "{e}");
    }

    #[test]
    fn an_image_that_is_none_or_cut_short_is_refused() {
        assert!(check_image("k", b"\x7fELF").unwrap_err().to_string().contains("not a bzImage"));
        let mut image = vec![0; 0x400];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x1f4] = 255;
        assert!(check_image("k", &image).unwrap_err().to_string().contains("cut short"));
    }

    #[test]
    fn a_kernel_whose_image_changed_is_refused() {
        let (cache, kernels) = kernels();
        let directory = cache.path().join("kernels/k");
        fs::create_dir_all(&directory).unwrap();
        let record = KernelRecord {
            name: "k".into(),
            release: "6.12.1".into(),
            source: "test".into(),
            image_blake3: blake3::hash(b"image").to_hex().to_string(),
            headers: None,
        };
        fs::write(directory.join("kernel.json"), serde_json::to_vec(&record).unwrap()).unwrap();
        fs::write(directory.join("vmlinuz"), b"image").unwrap();
        Hashes::write(&directory, &[]).unwrap();
        assert_eq!(kernels.get("k").unwrap().record, record);
        fs::write(directory.join("vmlinuz"), b"other").unwrap();
        assert!(kernels.get("k").unwrap_err().to_string().contains("damaged"));
        assert!(kernels.list().unwrap().is_empty());
        assert!(kernels.damaged()[0].to_string().contains("onset kernels fetch k"));
        let e = kernels.get("j").unwrap_err().to_string();
        assert!(e.contains("there are k") && e.contains("onset kernels fetch j"), "{e}");
    }
}

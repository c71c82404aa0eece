// SPDX-License-Identifier: GPL-2.0-or-later
//! Putting kernels into the cache: out of .deb files, or from what the user built.

use super::{Kernel, KernelRecord, Kernels};
use crate::error::At;
use crate::{Error, Result, tool};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Unpacking and indexing one kernel takes seconds; this is for a machine that is stuck.
const DEADLINE: Duration = Duration::from_secs(300);

/// A kernel that the user built.
#[derive(Clone, Debug)]
pub struct Given {
    /// The name it gets.
    pub name: String,
    /// The bzImage.
    pub image: PathBuf,
    /// `…/lib/modules/RELEASE`; its last component names the release.
    pub modules: PathBuf,
    /// A tree to build modules against; without it the driver cannot be built.
    pub headers: Option<PathBuf>,
}

/// The name under which a release is kept: `6.12-rt` for `6.12.57+deb13-rt-amd64`.
pub fn series_of(release: &str) -> String {
    let digits: Vec<&str> = release.split(|c: char| !c.is_ascii_digit()).take(2).collect();
    let rt = if release.contains("-rt") { "-rt" } else { "" };
    format!("{}{rt}", digits.join("."))
}

impl Kernels {
    /// Takes a kernel (and the headers among them) out of Debian packages.
    ///
    /// `name` defaults to the release's series. `source` says where the packages came from.
    pub fn add_debs(&self, debs: &[PathBuf], name: Option<&str>, source: &str) -> Result<Kernel> {
        let draft = self.draft()?;
        let unpacked = draft.path().join("unpacked");
        for deb in debs {
            fs::File::open(deb).at(deb)?;
            tool::run(Command::new("dpkg-deb").arg("-x").arg(deb).arg(&unpacked), "dpkg", DEADLINE)
                .map_err(|e| damaged(deb, e))?;
        }
        let images = entries(&unpacked.join("boot"), "vmlinuz-");
        let [image] = images.as_slice() else {
            return Err(Error::Kernel {
                name: name.unwrap_or("(new)").into(),
                why: format!(
                    "the packages hold {} kernel images instead of one; give one linux-image-*.deb, and with it the linux-headers-* and linux-kbuild-* of the same version",
                    images.len()
                ),
            });
        };
        let release = file_name(image).trim_start_matches("vmlinuz-").to_string();
        let name = name.map_or_else(|| series_of(&release), str::to_string);
        fs::copy(image, draft.path().join("vmlinuz")).at(image)?;
        let modules = ["lib/modules", "usr/lib/modules"]
            .map(|d| unpacked.join(d).join(&release))
            .into_iter()
            .find(|d| d.is_dir())
            .ok_or_else(|| Error::Kernel {
                name: name.clone(),
                why: format!("the packages hold no modules for {release}"),
            })?;
        move_modules(&modules, draft.path(), &release)?;
        let headers =
            relocate_headers(&unpacked, draft.path(), &self.directory.join(&name), &release)?;
        fs::remove_dir_all(&unpacked).at(&unpacked)?;
        self.finish(draft, name, release, source.to_string(), headers)
    }

    /// Takes a kernel that the user built. Image and modules are copied, headers are referred to.
    pub fn add(&self, given: &Given) -> Result<Kernel> {
        let release = given.modules.canonicalize().at(&given.modules).map(|p| file_name(&p))?;
        let draft = self.draft()?;
        fs::copy(&given.image, draft.path().join("vmlinuz")).at(&given.image)?;
        let target = draft.path().join("root/lib/modules").join(&release);
        fs::create_dir_all(&target).at(&target)?;
        tool::run(
            Command::new("cp").arg("-rL").arg(given.modules.join("kernel")).arg(&target),
            "coreutils",
            DEADLINE,
        )?;
        for index in ["modules.order", "modules.builtin", "modules.builtin.modinfo"] {
            // Absent in some trees; depmod then knows less, and says so where it matters.
            let _ = fs::copy(given.modules.join(index), target.join(index));
        }
        let headers = match &given.headers {
            Some(h) => Some(h.canonicalize().at(h)?.to_string_lossy().into_owned()),
            None => None,
        };
        let source = given.image.to_string_lossy().into_owned();
        self.finish(draft, given.name.clone(), release, source, headers)
    }

    fn finish(
        &self,
        draft: tempfile::TempDir,
        name: String,
        release: String,
        source: String,
        headers: Option<String>,
    ) -> Result<Kernel> {
        let path = draft.path().join("vmlinuz");
        let image = fs::read(&path).at(&path)?;
        check_image(&name, &image)?;
        let root = draft.path().join("root");
        tool::run(Command::new("depmod").arg("-b").arg(&root).arg(&release), "kmod", DEADLINE)?;
        let image_blake3 = blake3::hash(&image).to_hex().to_string();
        self.publish(draft, &KernelRecord { name, release, source, image_blake3, headers })
    }
}

fn damaged(deb: &Path, e: Error) -> Error {
    match e {
        Error::Program { command, why } => Error::Program {
            command,
            why: format!(
                "{why}\n{} is damaged or no Debian package; fetch it again",
                deb.display()
            ),
        },
        other => other,
    }
}

/// A bzImage begins with a boot sector and has "HdrS" at 0x202 (Documentation/arch/x86/boot.rst); its
/// own sizes tell whether it was cut short.
fn check_image(name: &str, image: &[u8]) -> Result<()> {
    let error = |why: &str| Error::Kernel {
        name: name.into(),
        why: format!("{why}; give an x86 bzImage (vmlinuz)"),
    };
    if image.get(0x202..0x206) != Some(b"HdrS") {
        return Err(error("the image is not a bzImage"));
    }
    let sectors = u64::from(image[0x1f1].max(4)) + 1;
    let paragraphs = image[0x1f4..0x1f8].try_into().map_or(0, u32::from_le_bytes);
    if (image.len() as u64) < sectors * 512 + u64::from(paragraphs) * 16 {
        return Err(error("the image is cut short"));
    }
    Ok(())
}

fn move_modules(from: &Path, draft: &Path, release: &str) -> Result<()> {
    let parent = draft.join("root/lib/modules");
    fs::create_dir_all(&parent).at(&parent)?;
    fs::rename(from, parent.join(release)).at(from)
}

/// Moves `usr/src` and `usr/lib/linux-kbuild-*` to the draft's `headers/` and rewrites the one absolute path that
/// Debian's headers contain (the Makefile's include) to where the tree is going to be.
fn relocate_headers(
    unpacked: &Path,
    draft: &Path,
    place: &Path,
    release: &str,
) -> Result<Option<String>> {
    let inside = format!("usr/src/linux-headers-{release}");
    if !unpacked.join(&inside).is_dir() {
        return Ok(None);
    }
    let headers = draft.join("headers/usr");
    fs::create_dir_all(headers.join("lib")).at(&headers)?;
    fs::rename(unpacked.join("usr/src"), headers.join("src")).at(&headers)?;
    for kbuild in entries(&unpacked.join("usr/lib"), "linux-kbuild-") {
        let target = headers.join("lib").join(file_name(&kbuild));
        fs::rename(&kbuild, &target).at(&kbuild)?;
    }
    let makefile = draft.join("headers").join(&inside).join("Makefile");
    let text = fs::read_to_string(&makefile).at(&makefile)?;
    let source = place.join("headers/usr/src/");
    fs::write(&makefile, text.replace("/usr/src/", &source.to_string_lossy())).at(&makefile)?;
    Ok(Some(place.join("headers").join(inside).to_string_lossy().into_owned()))
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
        let e = kernels.add_debs(&[deb], None, "test").unwrap_err().to_string();
        assert!(e.contains("linux-image.deb") && e.contains("fetch it again"), "{e}");
        assert_eq!(fs::read_dir(cache.path().join("kernels")).unwrap().count(), 0);
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
        assert_eq!(kernels.get("k").unwrap().record, record);
        fs::write(directory.join("vmlinuz"), b"other").unwrap();
        assert!(kernels.get("k").unwrap_err().to_string().contains("damaged"));
        let e = kernels.get("j").unwrap_err().to_string();
        assert!(e.contains("there are k") && e.contains("onset kernels fetch j"), "{e}");
    }
}

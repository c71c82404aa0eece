// SPDX-License-Identifier: GPL-2.0-or-later
//! The place of the page. All paths in the page are relative to its directory. So a page that is sent on together with
//! its runs still finds them, and does not reveal names of directories of the machine.

use bundle::Bundle;
use serde::Serialize;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// The directory of the page, without links in it.
#[derive(Clone, Debug)]
pub struct Place(PathBuf);

impl Place {
    /// The place of a page that is written to this file. A page that goes to a pipe or a device has no place: the
    /// working directory counts as its place.
    pub fn of(output: &Path) -> Place {
        let file = output.metadata().map_or(true, |there| there.is_file());
        let parent = output.parent().filter(|dir| file && !dir.as_os_str().is_empty());
        Place(whole(parent.unwrap_or(Path::new("."))))
    }

    /// The path that leads from the page to `path`.
    pub fn path_to(&self, path: &Path) -> PathBuf {
        let to = whole(path);
        let shared = self.0.components().zip(to.components()).take_while(|(a, b)| a == b).count();
        let up = self.0.components().skip(shared).map(|_| Component::ParentDir);
        let path: PathBuf = up.chain(to.components().skip(shared)).collect();
        if path.as_os_str().is_empty() { ".".into() } else { path }
    }

    /// The same path as a relative address: all bytes except the unreserved ones and the slash are percent-encoded (RFC
    /// 3986, section 2), so that a colon in the path does not make a scheme.
    pub fn link_to(&self, path: &Path) -> String {
        let path = self.path_to(path);
        path.as_os_str().as_bytes().iter().fold(String::new(), |link, byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                link + char::from(*byte).encode_utf8(&mut [0; 4])
            }
            _ => link + &format!("%{byte:02X}"),
        })
    }
}

/// An absolute path. The part of it that exists has no links.
fn whole(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.into());
    let names: Vec<&OsStr> = absolute.iter().collect();
    // The part that does not exist yet is appended to the part that does.
    for there in (1..=names.len()).rev() {
        let begin: PathBuf = names[..there].iter().collect();
        if let Ok(begin) = begin.canonicalize() {
            return begin.join(names[there..].iter().collect::<PathBuf>());
        }
    }
    absolute
}

/// A file of the bundle.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "RawFile"))]
pub(super) struct File {
    /// Its name.
    name: String,
    /// Relative to the page.
    href: String,
    /// Its contents.
    what: &'static str,
}

/// The files with the raw data, as links. The links work while page and runs keep their places to each other.
pub(super) fn files(bundle: &Bundle, place: &Place) -> Vec<File> {
    let names = bundle.manifest().files.keys().cloned();
    let link = |name: String| {
        let what = match name.as_str() {
            "samples.parquet" => "every sample (Parquet)",
            "series.json" => "the data that this page draws",
            "console.txt" => "the output of the guest's kernel",
            "manifest.json" => "everything about the run",
            _ => "histogram (HdrHistogram V2)",
        };
        File { href: place.link_to(&bundle.path().join(&name)), name, what }
    };
    std::iter::once("manifest.json".to_string()).chain(names).map(link).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_down_from_the_page_or_up_and_across() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        std::fs::create_dir_all(at("pages/old")).unwrap();
        std::fs::create_dir_all(at("runs/1")).unwrap();
        let from = |page: &str, to: &str| Place::of(&at(page)).path_to(&at(to));
        assert_eq!(from("r.html", "runs/1/manifest.json"), Path::new("runs/1/manifest.json"));
        assert_eq!(from("pages/old/r.html", "runs/1"), Path::new("../../runs/1"));
        assert_eq!(from("runs/r.html", "runs"), Path::new("."));
    }

    #[test]
    fn a_link_to_a_directory_is_followed_before_it_is_left() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        std::fs::create_dir_all(at("far/away/pages")).unwrap();
        std::fs::create_dir_all(at("runs")).unwrap();
        std::os::unix::fs::symlink(at("far/away/pages"), at("pages")).unwrap();
        let place = Place::of(&at("pages/r.html"));
        assert_eq!(place.path_to(&at("runs")), Path::new("../../../runs"));
    }

    #[test]
    fn an_address_leads_to_a_file_of_any_name_and_is_none_of_another_scheme() {
        let root = tempfile::tempdir().unwrap();
        let place = Place::of(&root.path().join("r.html"));
        let link = |path: &str| place.link_to(&root.path().join(path));
        assert_eq!(link("20261121-000000-a_b~c.d"), "20261121-000000-a_b~c.d");
        assert_eq!(link("a b/#1/50%?/\u{b5}s"), "a%20b/%231/50%25%3F/%C2%B5s");
        assert_eq!(link("javascript:x"), "javascript%3Ax");
    }

    #[test]
    fn a_page_that_goes_to_a_device_counts_as_in_the_working_directory() {
        assert_eq!(Place::of(Path::new("/dev/null")).0, Place::of(Path::new("r.html")).0);
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! Nothing outside is touched, nothing is waited for, and nothing is without bound.

use super::*;
use std::fs;
use std::os::unix::fs::symlink;

/// A directory, with another beside it that holds `secret`.
fn prepared() -> (tempfile::TempDir, Directory, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("in")).unwrap();
    fs::create_dir(root.path().join("out")).unwrap();
    let secret = root.path().join("out/secret");
    fs::write(&secret, "secret").unwrap();
    let directory = Directory::open(&root.path().join("in")).unwrap();
    (root, directory, secret)
}

fn kind<T>(result: io::Result<T>) -> io::ErrorKind {
    result.map(drop).unwrap_err().kind()
}

#[test]
fn a_symbolic_link_is_never_followed_whatever_is_done() {
    let (root, directory, secret) = prepared();
    symlink(&secret, directory.at("link")).unwrap();
    symlink(root.path().join("out"), directory.at("away")).unwrap();
    symlink(root.path().join("out/new"), directory.at("dangling")).unwrap();
    assert_eq!(kind(directory.read("link", 100)), io::ErrorKind::PermissionDenied);
    assert_eq!(kind(directory.edit("link")), io::ErrorKind::PermissionDenied);
    assert_eq!(kind(directory.edit("dangling")), io::ErrorKind::PermissionDenied);
    assert_eq!(kind(directory.create("dangling")), io::ErrorKind::AlreadyExists);
    assert_eq!(kind(directory.directory("away")), io::ErrorKind::NotADirectory);
    assert_eq!(kind(directory.make_directory("away")), io::ErrorKind::AlreadyExists);
    directory.remove_all("away").unwrap();
    directory.remove("link").unwrap();
    assert_eq!(fs::read(&secret).unwrap(), b"secret");
    assert_eq!(fs::read_dir(root.path().join("out")).unwrap().count(), 1);
}

#[test]
fn what_has_a_second_name_is_read_and_not_changed() {
    let (_root, directory, secret) = prepared();
    fs::hard_link(&secret, directory.at("second")).unwrap();
    assert_eq!(directory.read("second", 100).unwrap(), b"secret");
    assert_eq!(kind(directory.edit("second")), io::ErrorKind::PermissionDenied);
}

#[test]
fn pipes_and_devices_are_refused_and_not_waited_for() {
    let (_root, directory, _) = prepared();
    let pipe = directory.at("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0)
        .unwrap();
    assert_eq!(kind(directory.read("pipe", 100)), io::ErrorKind::PermissionDenied);
    assert_eq!(kind(directory.edit("pipe")), io::ErrorKind::PermissionDenied);
    assert_eq!(kind(read(&pipe, 100)), io::ErrorKind::PermissionDenied);
    assert_eq!(kind(read(Path::new("/dev/zero"), 100)), io::ErrorKind::PermissionDenied);
    assert_eq!(kind(read(directory.path(), 100)), io::ErrorKind::IsADirectory);
    directory.remove_all("pipe").unwrap();
}

#[test]
fn a_file_is_read_up_to_the_limit_and_refused_beyond() {
    let (_root, directory, secret) = prepared();
    directory.write_new("file", b"12345").unwrap();
    assert_eq!(directory.read("file", 5).unwrap(), b"12345");
    assert_eq!(kind(directory.read("file", 4)), io::ErrorKind::FileTooLarge);
    assert_eq!(read(&secret, 6).unwrap(), b"secret");
    assert_eq!(kind(read(&secret, 5)), io::ErrorKind::FileTooLarge);
}

#[test]
fn names_lead_nowhere_else() {
    let (_root, directory, _) = prepared();
    for name in ["..", ".", "", "../out/secret", "a/b", "/etc/passwd"] {
        assert_eq!(kind(directory.read(name, 100)), io::ErrorKind::InvalidInput, "{name:?}");
        assert_eq!(kind(directory.remove_all(name)), io::ErrorKind::InvalidInput, "{name:?}");
        assert_eq!(kind(directory.rename(name, "x")), io::ErrorKind::InvalidInput, "{name:?}");
    }
}

#[test]
fn a_directory_that_was_renamed_is_still_the_same_and_says_so() {
    let (root, directory, _) = prepared();
    assert!(directory.is_at_its_path() && directory.is_mine());
    fs::rename(root.path().join("in"), root.path().join("elsewhere")).unwrap();
    assert!(!directory.is_at_its_path());
    directory.write_new("file", b"x").unwrap();
    assert!(root.path().join("elsewhere/file").exists());
}

#[test]
fn nothing_is_renamed_over_anything_and_a_tree_is_removed_whole() {
    let (root, directory, _) = prepared();
    let inner = directory.make_directory("tree").unwrap().make_directory("inner").unwrap();
    inner.write_new("file", b"x").unwrap();
    directory.write_new("file", b"y").unwrap();
    directory.make_directory("empty").unwrap();
    assert_eq!(kind(directory.rename("file", "tree")), io::ErrorKind::AlreadyExists);
    assert_eq!(kind(directory.rename("tree", "empty")), io::ErrorKind::AlreadyExists);
    directory.rename("tree", "moved").unwrap();
    directory.remove_all("moved").unwrap();
    directory.sync().unwrap();
    let mut left = directory.names().unwrap();
    left.sort();
    assert_eq!(left, ["empty", "file"]);
    assert_eq!(kind(directory.remove_all("moved")), io::ErrorKind::NotFound);
    assert!(root.path().join("out/secret").exists());
}

#[test]
fn what_is_handed_over_goes_nowhere_else_and_over_nothing() {
    let (root, directory, _) = prepared();
    let bin = directory.make_directory("bin").unwrap();
    directory.make_directory("tree").unwrap().write_new("file", b"x").unwrap();
    symlink(root.path().join("out"), directory.at("link")).unwrap();
    directory.hand_over("tree", &bin).unwrap();
    directory.hand_over("link", &bin).unwrap();
    assert_eq!(bin.directory("tree").unwrap().read("file", 1).unwrap(), b"x");
    assert!(fs::symlink_metadata(bin.at("link")).unwrap().is_symlink() && !directory.has("link"));
    directory.make_directory("tree").unwrap();
    assert_eq!(kind(directory.hand_over("tree", &bin)), io::ErrorKind::AlreadyExists);
    assert_eq!(kind(directory.hand_over("../out", &bin)), io::ErrorKind::InvalidInput);
    assert_eq!(kind(directory.hand_over("none", &bin)), io::ErrorKind::NotFound);
    assert_eq!(fs::read_dir(root.path().join("out")).unwrap().count(), 1);
}

#[test]
fn a_private_file_is_read_by_its_owner_alone_also_where_it_was_there() {
    use std::os::unix::fs::PermissionsExt;
    let (_root, directory, secret) = prepared();
    let mode = |name: &str| directory.stat(name).unwrap().st_mode & 0o777;
    directory.edit_private("new").unwrap();
    fs::write(directory.at("old"), "old").unwrap();
    fs::set_permissions(directory.at("old"), fs::Permissions::from_mode(0o644)).unwrap();
    directory.edit_private("old").unwrap();
    assert_eq!((mode("new"), mode("old")), (0o600, 0o600));
    assert_eq!(directory.read("old", 10).unwrap(), b"old");
    symlink(&secret, directory.at("link")).unwrap();
    assert_eq!(kind(directory.edit_private("link")), io::ErrorKind::PermissionDenied);
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The context of the machine below the kernel, and of the container or cgroup around this process.

use super::parse::{labelled, soft_limit};
use super::tree::Tree;
use super::{Context, keys};
use crate::x86_64::{FLAGS, VIRTUAL};

/// The texts that makers of hypervisors write into the firmware, and our names for the hypervisors.
const HYPERVISORS: [(&str, &str); 8] = [
    ("QEMU", "qemu"),
    ("KVM", "kvm"),
    ("Amazon EC2", "amazon"),
    ("Google Compute Engine", "google"),
    ("VMware", "vmware"),
    ("VirtualBox", "virtualbox"),
    ("Virtual Machine", "microsoft"),
    ("Xen", "xen"),
];

/// Words that the control group of process 1 has only in a container.
const CONTAINERS: [&str; 4] = ["docker", "lxc", "kubepods", "libpod"];

pub fn read(tree: &Tree, context: &mut Context) {
    let vendor = tree.text("sys/class/dmi/id/sys_vendor");
    let product = tree.text("sys/class/dmi/id/product_name");
    let firmware = [vendor.as_deref(), product.as_deref()].map(Option::unwrap_or_default).join(" ");
    context.set(keys::VIRTUALISATION, virtualisation(tree, &firmware));
    context.set(keys::VENDOR, vendor);
    context.set(keys::PRODUCT, product);
    let host = tree.text("proc/sys/kernel/hostname");
    // The kernel's text before anybody has named the machine (init/version.c).
    context.set(keys::HOST, host.filter(|host| host != "(none)"));
    context.set(keys::CONTAINER, container(tree));
    let limits = tree.text("proc/self/limits");
    let locked = limits.as_deref().and_then(|l| soft_limit(l, "Max locked memory"));
    context.set(keys::MEMORY_LOCK_LIMIT, locked);
    context.set(keys::TEMPERATURES, temperatures(tree));
}

/// The hypervisor. Absent where no file tells, as on arm without a device tree.
fn virtualisation(tree: &Tree, firmware: &str) -> Option<String> {
    if let Some(kind) = tree.text("sys/hypervisor/type") {
        return Some(kind);
    }
    if tree.is_directory("proc/xen") {
        return Some("xen".into());
    }
    if let Some(kind) = tree.text("proc/device-tree/hypervisor/compatible") {
        return Some(kind.trim_matches('\0').replace('\0', " "));
    }
    let cpuinfo = tree.text("proc/cpuinfo")?;
    let flagged = labelled(&cpuinfo, FLAGS)?.split_whitespace().any(|f| f == VIRTUAL);
    if !flagged {
        return Some("none".into());
    }
    let known = HYPERVISORS.iter().find(|(written, _)| firmware.contains(written));
    Some(known.map_or("unnamed", |(_, name)| name).into())
}

/// The kind of container. Absent outside of a container, as far as this process can tell.
fn container(tree: &Tree) -> Option<String> {
    if let Some(kind) = tree.text("run/systemd/container") {
        return Some(kind);
    }
    for (path, kind) in [(".dockerenv", "docker"), ("run/.containerenv", "podman")] {
        if tree.exists(path) {
            return Some(kind.into());
        }
    }
    let groups = tree.text("proc/1/cgroup")?;
    CONTAINERS.into_iter().find(|word| groups.contains(word)).map(Into::into)
}

fn temperatures(tree: &Tree) -> Option<String> {
    let base = "sys/class/thermal";
    let zones = tree.numbered(base, "thermal_zone").into_iter().filter_map(|zone| {
        let kind = tree.text(&format!("{base}/thermal_zone{zone}/type"))?;
        let value = tree.number(&format!("{base}/thermal_zone{zone}/temp"))?;
        Some(format!("{}:{value}", kind.replace(char::is_whitespace, "_")))
    });
    let zones: Vec<String> = zones.collect();
    (!zones.is_empty()).then(|| zones.join(" "))
}

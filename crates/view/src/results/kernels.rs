// SPDX-License-Identifier: GPL-2.0-or-later
//! What `onset kernels list --json` prints.

use rig::{Completeness, KernelRecord, Offer};
use serde::Serialize;

/// The kernels in the cache.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Kernels<'a> {
    /// Number of this format.
    schema: u32,
    /// The kernels, sorted by name.
    kernels: &'a [KernelRecord],
    /// The build roots: compilers of other Debian releases, with which onset builds modules.
    build_roots: Vec<BuildRoot<'a>>,
}

/// A build root: a compiler of another Debian release, unpacked into the cache.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct BuildRoot<'a> {
    /// The name of the release.
    name: &'a str,
    /// Its size on the disk.
    size_bytes: u64,
}

/// The kernels in the archive, with `--available`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Available<'a> {
    /// Number of this format.
    schema: u32,
    /// The kernels, in the order of the archive.
    available: &'a [Offered<'a>],
}

/// A kernel in the archive.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Offered<'a> {
    /// The name by which `onset kernels fetch` fetches it.
    pub name: &'a str,
    /// `uname -r`.
    pub release: &'a str,
    /// The version of the package.
    pub version: &'a str,
    /// The parts that the archive has. `image`: only the image, so that probes run only without load. `no headers`:
    /// onset cannot build the driver. `whole`: all parts.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["image", "no headers", "whole"])))]
    pub completeness: &'static str,
    /// Whether this very version is in the cache.
    pub fetched: bool,
}

impl<'a> Kernels<'a> {
    /// Version of the format (docs/kernels.schema.json).
    pub const SCHEMA: u32 = 2;

    /// The kernels of a cache, and its build roots with their sizes.
    pub fn of(kernels: &'a [KernelRecord], build_roots: &'a [(String, u64)]) -> Self {
        let roots = build_roots.iter();
        let roots = roots.map(|(name, size)| BuildRoot { name, size_bytes: *size }).collect();
        Kernels { schema: Self::SCHEMA, kernels, build_roots: roots }
    }
}

impl<'a> Available<'a> {
    /// The kernels of the archive.
    pub fn of(available: &'a [Offered<'a>]) -> Self {
        Available { schema: Kernels::SCHEMA, available }
    }
}

impl<'a> Offered<'a> {
    /// An offer of the archive, compared with the cache.
    pub fn of(offer: &'a Offer, records: &[KernelRecord]) -> Self {
        let source = offer.source();
        Offered {
            name: &offer.name,
            release: &offer.release,
            version: &offer.version,
            completeness: match offer.completeness {
                Completeness::ImageOnly => "image",
                Completeness::NoHeaders => "no headers",
                Completeness::Whole => "whole",
            },
            fetched: records.iter().any(|r| r.source == source),
        }
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset kernels`: the kernels that guests boot.

use super::{print, print_json};
use crate::arguments::Kernels;
use crate::failure::{Exit, Failure};
use crate::terminal::{Align, Table};
use crate::visible::tell;
use rig::{Cache, Completeness, Error, Existing, Given, KernelRecord, Modules, Offer};
use serde::Serialize;

/// Version of the JSON that is printed.
const SCHEMA: u32 = 2;

#[derive(Serialize)]
struct Printed<'a> {
    schema: u32,
    kernels: &'a [KernelRecord],
    build_roots: Vec<BuildRoot>,
}

#[derive(Serialize)]
struct BuildRoot {
    name: String,
    size_bytes: u64,
}

#[derive(Serialize)]
struct Available<'a> {
    schema: u32,
    available: Vec<Offered<'a>>,
}

#[derive(Serialize)]
struct Offered<'a> {
    name: &'a str,
    release: &'a str,
    version: &'a str,
    /// `image`: probes run at rest alone; `no headers`: the driver cannot be built; `whole`.
    completeness: &'static str,
    /// Whether just this one is in the cache.
    fetched: bool,
}

pub fn run(command: Kernels) -> Result<Exit, Failure> {
    let cache = Cache::of_user()?;
    let kernels = cache.kernels()?.announcing(|what| tell!("{what}"));
    match command {
        Kernels::List { available: false, json } => {
            let records = kernels.list()?;
            kernels.damaged().iter().for_each(|error| tell!("! {error}"));
            let roots = kernels.list_build_roots();
            if json {
                let build_roots =
                    roots.into_iter().map(|(name, size_bytes)| BuildRoot { name, size_bytes });
                let build_roots = build_roots.collect();
                print_json(&Printed { schema: SCHEMA, kernels: &records, build_roots })?;
            } else {
                print(&listed(&records, &roots))?;
            }
        }
        Kernels::List { available: true, json } => {
            let offers = kernels.available(&|what| tell!("{what}"))?;
            let records = kernels.list()?;
            let available: Vec<Offered> = offers.iter().map(|o| offered(o, &records)).collect();
            if json {
                print_json(&Available { schema: SCHEMA, available })?;
            } else {
                print(&listed_offers(&available))?;
            }
        }
        Kernels::Fetch { names } => {
            for name in names {
                let kernel = kernels.fetch(&name, &|what| tell!("{what}"))?;
                print(&added(&kernel))?;
                // So that no run has to, which may be where nothing can be fetched. A kernel without is of use, too.
                if kernel.record.headers.is_some() {
                    match kernel.driver() {
                        Ok(_) => {}
                        Err(Error::Interrupted) => return Err(Error::Interrupted.into()),
                        Err(e) => {
                            tell!("{}: the driver cannot be built: {e}", kernel.record.name)
                        }
                    }
                }
            }
        }
        Kernels::Remove { names, build_roots } => {
            for name in names {
                kernels.remove(&name)?;
            }
            if build_roots {
                kernels.remove_build_roots()?;
            }
        }
        Kernels::AddDeb { debs, name, replace } => {
            let sources: Vec<String> = debs.iter().map(|d| d.display().to_string()).collect();
            let (name, source) = (name.as_deref(), sources.join(" "));
            let kernel = kernels.add_debs(&debs, name, &source, Modules::Needed, existing(replace));
            print(&added(&kernel.map_err(refused)?))?;
        }
        Kernels::Add { name, image, modules, headers, replace } => {
            let given = Given { name, image, modules, headers };
            print(&added(&kernels.add(&given, existing(replace)).map_err(refused)?))?;
        }
    }
    Ok(Exit::Success)
}

fn existing(replace: bool) -> Existing {
    if replace { Existing::Replace } else { Existing::Keep }
}

/// A name that cannot be, or is taken, is wrong usage.
fn refused(e: Error) -> Failure {
    match e {
        Error::KernelName { .. } | Error::KernelExists { .. } => Failure::usage(e),
        other => other.into(),
    }
}

fn added(kernel: &rig::Kernel) -> String {
    format!("{}: {} ({})\n", kernel.record.name, kernel.record.release, kernel.record.source)
}

fn offered<'a>(offer: &'a Offer, records: &[KernelRecord]) -> Offered<'a> {
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

fn listed_offers(offers: &[Offered]) -> String {
    let columns = [
        ("name", Align::Left),
        ("release", Align::Left),
        ("here", Align::Left),
        ("what the archive has of it", Align::Left),
    ];
    let mut table = Table::new(&columns);
    for offer in offers {
        let what = match offer.completeness {
            "image" => "the image alone: probes run at rest, and no responders",
            "no headers" => {
                "image and modules: probes run, and no responders (the driver cannot be built)"
            }
            _ => "all of it",
        };
        let here = if offer.fetched { "yes" } else { "" };
        table.row([offer.name.into(), offer.release.into(), here.into(), what.into()]);
    }
    table.lines().join("\n") + "\n"
}

fn listed(records: &[KernelRecord], roots: &[(String, u64)]) -> String {
    if records.is_empty() {
        return "no kernels yet; get one with onset kernels fetch newest\n".into();
    }
    let columns = [
        ("name", Align::Left),
        ("release", Align::Left),
        ("driver", Align::Left),
        ("source", Align::Left),
    ];
    let mut table = Table::new(&columns);
    for record in records {
        let driver = if record.headers.is_some() { "can be built" } else { "no headers" };
        table.row([
            record.name.clone(),
            record.release.clone(),
            driver.into(),
            record.source.clone(),
        ]);
    }
    let mut text = table.lines().join("\n") + "\n";
    for (name, bytes) in roots {
        text += &format!(
            "\nbuild root {name}: {} MB, the compiler of modules for kernels of that release; onset kernels remove --build-roots\n",
            bytes / 1_000_000
        );
    }
    text
}

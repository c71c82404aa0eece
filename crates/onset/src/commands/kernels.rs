// SPDX-License-Identifier: GPL-2.0-or-later
//! `onset kernels`: the kernels that guests boot.

use super::{print, print_json};
use crate::arguments::Kernels;
use crate::failure::{Exit, Failure};
use rig::{Cache, Error, Existing, Given, KernelRecord, Modules};
use view::results::{self, Available, Offered};
use view::terminal::{Align, Table};
use view::visible::tell;

pub fn run(command: Kernels) -> Result<Exit, Failure> {
    let cache = Cache::of_user()?;
    let kernels = cache.announcing(|what| tell!("{what}")).kernels()?;
    match command {
        Kernels::List { available: false, json } => {
            let records = kernels.list()?;
            kernels.damaged().iter().for_each(|error| tell!("! {error}"));
            let roots = kernels.list_build_roots();
            if json {
                print_json(&results::Kernels::of(&records, &roots))?;
            } else {
                print(&listed(&records, &roots))?;
            }
        }
        Kernels::List { available: true, json } => {
            let offers = kernels.available(&|what| tell!("{what}"))?;
            let records = kernels.list()?;
            let available: Vec<Offered> = offers.iter().map(|o| Offered::of(o, &records)).collect();
            if json {
                print_json(&Available::of(&available))?;
            } else {
                print(&listed_offers(&available))?;
            }
        }
        Kernels::Fetch { names } => {
            for name in names {
                let kernel = kernels.fetch(&name, &|what| tell!("{what}"))?;
                print(&added(&kernel))?;
                // The driver is built now, so that no run has to build it: a run may be where nothing can be fetched. A
                // kernel without a driver is of use, too.
                if kernel.record.headers.is_some() {
                    match kernel.driver() {
                        Ok(_) => {}
                        Err(Error::Interrupted) => return Err(Error::Interrupted.into()),
                        Err(e) => {
                            tell!("{}: onset cannot build the driver: {e}", kernel.record.name)
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

/// A name that is not possible, or that is taken, is wrong usage.
fn refused(e: Error) -> Failure {
    match e {
        Error::KernelName { .. } | Error::KernelExists { .. } => Failure::usage(e),
        other => other.into(),
    }
}

fn added(kernel: &rig::Kernel) -> String {
    format!("{}: {} ({})\n", kernel.record.name, kernel.record.release, kernel.record.source)
}

fn listed_offers(offers: &[Offered]) -> String {
    let columns = [
        ("name", Align::Left),
        ("release", Align::Left),
        ("here", Align::Left),
        ("parts in the archive", Align::Left),
    ];
    let mut table = Table::new(&columns).sparing(&["release"]);
    for offer in offers {
        let what = match offer.completeness {
            "image" => "only the image: probes run without load, and there are no responders",
            "no headers" => {
                "image and modules: probes run, but there are no responders (onset cannot build the driver)"
            }
            _ => "all parts",
        };
        let here = if offer.fetched { "yes" } else { "" };
        table.row([offer.name.into(), offer.release.into(), here.into(), what.into()]);
    }
    table.text()
}

fn listed(records: &[KernelRecord], roots: &[(String, u64)]) -> String {
    if records.is_empty() {
        return "the cache has no kernels yet; get one with onset kernels fetch newest\n".into();
    }
    let columns = [
        ("name", Align::Left),
        ("release", Align::Left),
        ("driver", Align::Left),
        ("source", Align::Left),
    ];
    let mut table = Table::new(&columns).sparing(&["source"]);
    for record in records {
        let driver = if record.headers.is_some() { "can be built" } else { "no headers" };
        table.row([
            record.name.clone(),
            record.release.clone(),
            driver.into(),
            record.source.clone(),
        ]);
    }
    let mut text = table.text();
    for (name, bytes) in roots {
        text += &format!(
            "\nbuild root {name}: {} MB: the compiler that builds modules for kernels of that release; to remove it: onset kernels remove --build-roots\n",
            bytes / 1_000_000
        );
    }
    text
}

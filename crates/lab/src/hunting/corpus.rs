// SPDX-License-Identifier: GPL-2.0-or-later
//! Finds of other hunts from which a hunt starts.

use super::grounds::Grounds;
use crate::followed::{Ready, Reproducer};
use hunt::{Begin, Recipe};
use sample::Nanos;

/// What tells these finds from others. `None` if there is none.
pub fn digest(finds: &[Reproducer]) -> Option<String> {
    let text = serde_json::to_vec(finds).expect("plain data");
    (!finds.is_empty()).then(|| blake3::hash(&text).to_hex()[..16].to_string())
}

/// A find as a trial of a hunt in these guests.
///
/// # Errors
/// If it is of none of these guests. It would be another answer there.
pub fn recipe(grounds: &Grounds, find: &Reproducer) -> Result<Recipe, String> {
    if find.work.is_some() {
        return Err("it is of a bred load, and a hunt has no such guest; breed from it: onset breed --corpus".into());
    }
    let place = |(number, first): (usize, &Ready)| {
        let after = find.begin_after_ns.checked_sub(first.guest().begin_after)?;
        (key(first, find.begin_after_ns)? == find.snapshot)
            .then_some(Begin { guest: number, after })
    };
    let begin = grounds.first().enumerate().find_map(place).ok_or_else(|| {
        let own = format!(
            "{} {} under {}, guest seed {}",
            find.kernel,
            find.parameters.join(" "),
            find.load,
            find.guest_seed
        );
        format!(
            "it is of a guest that is none of this hunt's: {own}, made with QEMU {} and plugin {}, snapshot {}",
            find.qemu, find.plugin, find.snapshot
        )
    })?;
    Ok(Recipe {
        latency_ns: find.answer.latency_ns,
        latency_insns: find.answer.insns,
        begin,
        snapshot: find.snapshot.clone(),
        instants: find.times_ns.clone(),
        trigger: find.answer.trigger,
        disturbances: find.disturbances.clone(),
        stack: Vec::new(),
    })
}

/// The key of the snapshot at which a guest is saved when it is let run on to `after` its warm-up. `None` if the way
/// there does not come by the guest.
fn key(first: &Ready, after: Nanos) -> Option<String> {
    let here = first.guest().begin_after;
    if after == here {
        return Some(first.made_with().snapshot);
    }
    let from = rig::stage_before(after).filter(|from| *from >= here)?;
    Some(rig::key_after(&key(first, from)?, after - from))
}

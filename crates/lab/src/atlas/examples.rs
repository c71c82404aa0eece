// SPDX-License-Identifier: GPL-2.0-or-later
//! What the tests of the atlas begin with.

use super::{About, Became, FILES, Kind, Long, Tried};
use sample::{Insns, Nanos};
use std::collections::BTreeMap;
use trace::ReaderLosses;

pub fn about() -> About {
    About {
        files: FILES,
        flavour: "6.12 preempt=none".into(),
        release: "6.12.117".into(),
        snapshot: "key".into(),
        stress_ng: "0.15.06".into(),
        seed: 1,
        duration_ns: Nanos::from_millis(200),
        memory_mib: 1024,
    }
}

pub fn long(kind: Kind, ns: u64, stack: &[&str]) -> Long {
    Long {
        kind,
        ns: Nanos(ns),
        insns: Insns(ns),
        at_ns: Nanos(1),
        hardirq_ns: Some(Nanos(0)),
        softirq_ns: Some(Nanos(0)),
        handler: None,
        opened_by: stack.iter().map(|frame| frame.to_string()).collect(),
        inside: Vec::new(),
        closed_by: vec!["closer+0x1".into()],
    }
}

pub fn worked(stressor: &str, ops: u64, longest: Vec<Long>) -> Tried {
    let became = Became::Worked {
        ops: Some(ops),
        virtual_ns: Nanos::from_millis(200),
        cut: BTreeMap::new(),
        losses: ReaderLosses::default(),
        longest,
    };
    Tried { stressor: stressor.into(), became }
}

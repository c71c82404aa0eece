// SPDX-License-Identifier: GPL-2.0-or-later
//! Maps of real guests against what these say themselves: their own symbol table, and the code around each frame of
//! their stacks.

use crate::modules::module_for;
use rig::{Bench, Guest, Look, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use testbench::{Lab, those_here};
use vmlinux::{Map, Memory, StackEnd, unwind};

const KERNELS: [&str; 6] = ["6.1", "6.1-rt", "6.12", "6.12-rt", "7.3", "7.3-rt"];
/// Below it is user space.
const KERNEL_SPACE: u64 = 1 << 63;

/// A guest, and its map.
struct Mapped {
    bench: Bench,
    guest: Guest,
    snapshot: (Snapshot, String),
    map: Map,
}

impl Mapped {
    fn new(lab: &Lab, kernel: &str, load: agent::Load, modules: Vec<PathBuf>) -> Mapped {
        let bench = crate::bench(lab);
        let mut guest = Guest::plain(&bench, kernel, load).expect("the caller asked for it");
        guest.contents.modules = modules;
        guest.contents.programs = vec!["cp".into()];
        let snapshot = bench.snapshot(&guest, &|_| ()).expect("a snapshot");
        let path = bench.map(&guest, &snapshot).expect("a map");
        let map = Map::from_bytes(std::fs::read(path).expect("a file")).expect("a map");
        assert_eq!(map.missing().collect::<Vec<_>>(), Vec::<&str>::new());
        Mapped { bench, guest, snapshot, map }
    }

    /// With the module that lists the symbols. Several tests share this guest, so that it is booted once.
    fn of(lab: &Lab, kernel: &str) -> Mapped {
        Mapped::new(lab, kernel, agent::Load::Mixed, vec![module_for(kernel, "test_kallsyms")])
    }

    fn look(&self) -> Look {
        self.bench.look(&self.guest, &self.snapshot).expect("the snapshot is restored")
    }
}

fn number(memory: &dyn Memory, at: Option<u64>) -> u64 {
    let mut bytes = [0; 8];
    assert!(memory.read(at.expect("a variable of the module"), &mut bytes));
    u64::from_le_bytes(bytes)
}

/// A function: where, its name, its module.
type Function<'a> = (u64, &'a str, Option<&'a str>);

/// What a line of /proc/kallsyms says, where it is of a function.
fn function(line: &str) -> Option<Function<'_>> {
    let mut words = line.split_whitespace();
    let address = words.next().and_then(|w| u64::from_str_radix(w, 16).ok());
    let (kind, name) = (words.next().expect("a kind"), words.next().expect("a name"));
    let module = words.next().map(|m| m.trim_matches(['[', ']']));
    "tTwW".contains(kind).then_some((address.expect("a number"), name, module))
}

#[test]
fn a_map_has_the_functions_that_the_guest_itself_lists() {
    let lab = Lab::new();
    for kernel in those_here(&KERNELS) {
        let mapped = Mapped::of(&lab, kernel);
        let (map, look) = (&mapped.map, mapped.look());
        let length = number(&look, map.address("test_kallsyms_length"));
        let mut text = vec![0; length as usize];
        assert!(look.read(number(&look, map.address("test_kallsyms_text")), &mut text));
        let text = String::from_utf8(text).expect("text");

        let at = |name: &str| map.address(name).expect("a symbol");
        let code = [at("_stext")..at("_etext"), at("_sinittext")..at("_einittext")];
        // The module that reads the list still has what is thrown away after its start.
        let mut listed: Vec<Function> = text.lines().filter_map(function).collect();
        listed.retain(|(_, _, module)| *module != Some("test_kallsyms"));
        let modules: BTreeSet<_> = listed.iter().map(|(_, _, module)| *module).collect();
        assert!(modules.len() > 5 && listed.len() > 50_000, "{kernel}: {modules:?}");
        let mut first = BTreeMap::new();
        for (address, name, module) in &listed {
            first.entry(*address).or_insert((*name, *module));
        }
        for (address, (name, module)) in first {
            let place = map.resolve(address).map(|p| (p.symbol, p.offset, p.module));
            // What lies outside is listed as functions, too: ends, and since 7.x data, whose section has the flag of
            // instructions.
            if module.is_some() || code.iter().any(|code| code.contains(&address)) {
                assert_eq!(place, Some((name, 0, module)), "{kernel}: {address:#x}");
            }
        }
        let ours = map.symbols().filter(|(_, _, kind)| b"tTwW".contains(kind));
        let ours = ours.map(|(name, at, _)| (at, name, map.resolve(at).and_then(|p| p.module)));
        let ours: BTreeSet<_> = ours.filter(|(_, _, module)| modules.contains(module)).collect();
        let listed: BTreeSet<_> = listed.into_iter().collect();
        let other: Vec<_> = ours.symmetric_difference(&listed).take(10).collect();
        assert!(other.is_empty(), "{kernel}: {other:x?}");
        eprintln!("{kernel}: {} functions, {} modules", listed.len(), modules.len() - 1);
    }
}

/// Whether there is a call right before `address`: `e8` and 4 bytes, or `ff /2` with its operand (Intel SDM, volume 2,
/// CALL).
fn is_after_call(memory: &dyn Memory, address: u64) -> bool {
    let mut bytes = [0; 7];
    assert!(memory.read(address - 7, &mut bytes));
    let indirect = |length: usize| bytes[7 - length] == 0xff && bytes[8 - length] >> 3 & 7 == 2;
    bytes[2] == 0xe8 || [2, 3, 4, 6, 7].into_iter().any(indirect)
}

/// Where the kernel's own tables are not exact to the instruction, with interrupts off, where none of its own users
/// looks: in the exchange of stacks, which also fills the return buffer; and in the last call of error_entry(), which
/// leaves all registers on the stack that it was called with, where the tables have only what the processor pushed,
/// until the instruction behind the call of error_entry() has gone to another stack (arch/x86/entry/entry_64.S,
/// idtentry_body). Both exceptions and interrupts come in that way (asm_exc_*, asm_sysvec_*, asm_common_interrupt).
fn is_inexact(memory: &dyn Memory, ip: u64, innermost: &str, caller: &str) -> bool {
    /// `mov %rax,%rsp`.
    const GOES_TO_STACK: [u8; 3] = [0x48, 0x89, 0xc4];
    let mut next = [0; 3];
    innermost == "__switch_to_asm"
        || innermost == "sync_regs" && caller.starts_with("asm_")
        || innermost.starts_with("asm_")
            && is_after_call(memory, ip)
            && memory.read(ip, &mut next)
            && next == GOES_TO_STACK
}

#[test]
fn stacks_of_a_busy_guest_lead_from_call_to_call_to_their_end() {
    let lab = Lab::new();
    for kernel in those_here(&KERNELS) {
        let mapped = Mapped::of(&lab, kernel);
        let (map, mut look) = (&mapped.map, mapped.look());
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        for _ in 0..300 {
            look.go_on().expect("it works on");
            let regs = look.registers().expect("registers");
            if regs.ip < KERNEL_SPACE {
                *seen.entry("in user space").or_default() += 1;
                continue;
            }
            let mut frames = [0; 64];
            let unwound = unwind(map, &regs, &look, &mut frames);
            let frames = &frames[..unwound.frames];
            let told: Vec<String> = frames
                .iter()
                .map(|f| map.resolve_return(*f).map_or("?".into(), |p| p.to_string()))
                .collect();
            let is_sound = |(n, frame): (usize, &u64)| {
                let is_exact = unwound.exact >> n & 1 != 0;
                map.resolve(*frame).is_some() && (is_exact || is_after_call(&look, *frame))
            };
            let frames_are_sound = frames.iter().enumerate().all(is_sound);
            let ending = match unwound.ending {
                StackEnd::User => "to user space",
                StackEnd::End => "to the end",
                StackEnd::Truncated => "too deep",
                StackEnd::Lost { .. } => "lost",
            };
            if !frames_are_sound || !matches!(unwound.ending, StackEnd::User | StackEnd::End) {
                eprintln!("{kernel}: {ending}, sound: {frames_are_sound}, {told:#?}");
                let innermost = map.resolve(regs.ip).map_or("?", |place| place.symbol);
                let caller = told.get(1).map_or("", String::as_str);
                assert!(is_inexact(&look, regs.ip, innermost, caller), "{kernel}: {told:#?}");
                *seen.entry("inexact").or_default() += 1;
            }
            *seen.entry(ending).or_default() += 1;
            if unwound.exact.count_ones() > 1 {
                *seen.entry("through an interrupt or a new task").or_default() += 1;
            }
        }
        eprintln!("{kernel}: {seen:?}");
        let inexact = seen.get("inexact").copied().unwrap_or_default();
        assert!(seen["to user space"] > 20 && inexact <= 3, "{kernel}: {seen:?}");
    }
}

/// Whether a module of the tests was seen five times in each context.
fn each_was_seen(compared: &BTreeMap<&str, usize>) -> bool {
    CONTEXTS.iter().all(|context| compared.get(context).is_some_and(|times| *times >= 5))
}

/// Where a module of the tests takes its own stack (test_stacks.c, in the order of its numbers).
const CONTEXTS: [&str; 5] = ["thread", "work", "softirq", "hardirq", "exception"];

#[test]
fn stacks_are_those_that_the_kernels_own_unwinder_sees() {
    let lab = Lab::new();
    for kernel in those_here(&KERNELS) {
        let module = module_for(kernel, "test_stacks");
        let mapped = Mapped::new(&lab, kernel, agent::Load::Mixed, vec![module]);
        let (map, mut look) = (&mapped.map, mapped.look());
        let mut compared: BTreeMap<&str, usize> = BTreeMap::new();
        // It begins when the guest has settled; each look is some milliseconds of wall time after the one before, so
        // that chance decides which contexts are seen how often. On a busy machine the guest comes less far in them.
        for _ in 0..40_000 {
            if compared.values().sum::<usize>() >= 100 && each_was_seen(&compared) {
                break;
            }
            look.go_on().expect("it works on");
            let context = number(&look, map.address("test_stacks_context"));
            let Some(context) = context.checked_sub(1) else { continue };
            let entries = map.address("test_stacks_entries").expect("a variable of the module");
            let count = number(&look, map.address("test_stacks_count"));
            let theirs: Vec<u64> =
                (0..count).map(|n| number(&look, Some(entries + 8 * n))).collect();
            let regs = look.registers().expect("registers");
            let mut frames = [0; 64];
            let unwound = unwind(map, &regs, &look, &mut frames);
            let ours = &frames[..unwound.frames];
            // The innermost frame is another place of the same function by now.
            let function = |at: &u64| map.resolve_return(*at).map(|place| place.symbol.to_string());
            let told = |all: &[u64]| all.iter().map(function).collect::<Vec<_>>();
            assert_eq!(told(&ours[..1]), told(&theirs[..1]), "{kernel}");
            assert_eq!(
                ours[1..],
                theirs[1..],
                "{kernel}: {:#?} and {:#?}",
                told(ours),
                told(&theirs)
            );
            *compared.entry(CONTEXTS[context as usize]).or_default() += 1;
        }
        eprintln!("{kernel}: {compared:?}");
        assert!(each_was_seen(&compared), "{kernel}: {compared:?}");
    }
}

#[test]
fn the_layout_leads_to_the_task_that_runs() {
    let lab = Lab::new();
    for kernel in those_here(&KERNELS) {
        let mapped = Mapped::of(&lab, kernel);
        let (map, look) = (&mapped.map, mapped.look());
        let layout = map.layout();
        let cpu = number(&look, map.address("__per_cpu_offset"));
        let of_cpu = |offset: Option<u64>| number(&look, offset.map(|o| cpu.wrapping_add(o)));
        // The guest is stopped in init's user space: no rescheduling is needed, and nothing is disabled.
        let count = of_cpu(layout.preempt_count);
        let since_7_2 = kernel.starts_with("7.");
        assert_eq!(layout.counts_irqs_disabled(), since_7_2, "{kernel}");
        let count = if since_7_2 { count } else { u64::from(count as u32) << 32 };
        assert_eq!(count, 1 << 63, "{kernel}");
        // Each has this number in its own headers, where it has lazy requests.
        let need_resched = match kernel {
            "7.3" | "7.3-rt" => Some(4),
            "6.12-rt" => Some(3),
            _ => None,
        };
        assert_eq!(layout.need_resched, need_resched, "{kernel}");
        let task = of_cpu(layout.current_task);
        let of_task = |offset: Option<u64>| number(&look, offset.map(|o| task + o));
        assert_eq!(of_task(layout.comm).to_le_bytes()[..5], *b"init\0", "{kernel}");
        assert_eq!(of_task(layout.pid) as u32, 1, "{kernel}");
        assert_eq!(of_task(layout.prio) as u32, 120, "{kernel}");
        assert_eq!(of_task(layout.migration_disabled) as u16, 0, "{kernel}");
        assert_eq!(layout.softirq_disable_cnt.is_some(), kernel.ends_with("-rt"), "{kernel}");
        let mut entries = map.with_prefix("asm_");
        assert!(entries.any(|(name, _)| name == "asm_common_interrupt"), "{kernel}");
    }
}

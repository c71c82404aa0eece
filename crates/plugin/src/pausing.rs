// SPDX-License-Identifier: GPL-2.0-or-later
//! Makes a loop that waits as quick as other code.
//!
//! A loop that waits executes `pause` in each turn. QEMU lets another vCPU run then: it leaves the vCPU's code, and
//! comes to the loop over all vCPUs, with its locks and timers (QEMU 10.0: `helper_pause`, `rr_cpu_thread_fn`). The
//! machine here has one vCPU, which goes on at once. Nothing of this costs virtual time. But a kernel that boots
//! waits for a tenth of a virtual second, to learn the frequency of its timer (`calibrate_APIC_clock` in
//! arch/x86/kernel/apic/apic.c), and QEMU spent half of a boot's time on it.
//!
//! So `pause` ends at the vCPU's own loop over blocks, as an instruction does that ends its block. That loop looks for
//! interrupts and for whoever wants the vCPU to stop. It is left where the next timer is due, since QEMU has counted
//! the instructions up to there. So timers run at the same instants as without this, and the guest executes the same
//! instructions.
//!
//! QEMU's own function still does all that `pause` does in the guest. At its end it calls `__longjmp_chk` of the C
//! library. The rig has QEMU take the function here in its place (`LD_PRELOAD`). A QEMU that jumps by another function
//! is as slow as it was.

use crate::qemu::Qemu;
use crate::symbols::symbol;
use crate::x86_64::{PAUSE, PAUSE_INFO};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::Relaxed};

/// Why a vCPU leaves its code (include/exec/cpu-common.h): it was told to, or has no reason (accel/tcg/cpu-exec.c).
const EXCP_INTERRUPT: i32 = 0x10000;
const NO_REASON: i32 = -1;

/// QEMU's function that executes `pause`. Older versions have the instruction's length as second argument.
type Pause = unsafe extern "C" fn(*mut c_void, c_int);
/// longjmp(3), with a check of the stack.
type Jump = unsafe extern "C" fn(*mut c_void, c_int) -> !;

struct Pausing {
    qemu: Qemu,
    pause: Pause,
}

static PAUSING: OnceLock<Pausing> = OnceLock::new();
/// The C library's own function; 0 before it was looked up.
static JUMP: AtomicUsize = AtomicUsize::new(0);
/// The reason in the vCPU's structure, which is searched for once; null as long as it is not known.
static REASON: AtomicPtr<i32> = AtomicPtr::new(null_mut());
static SEARCHED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this thread executes `pause`. Only the vCPU's does.
    static PAUSES: Cell<bool> = const { Cell::new(false) };
    /// The vCPU's structure before its first `pause`.
    static BEFORE: Cell<Option<&'static [u8]>> = const { Cell::new(None) };
}

/// Has QEMU call [`pause`] where it would call its own function. Call this before QEMU translates anything. A QEMU that
/// does not call its function by the table stays as it is.
pub fn prepare(qemu: Qemu) {
    let (Ok(info), Ok(own)) = (symbol(PAUSE_INFO), symbol(PAUSE)) else { return };
    let function = info.cast::<*mut c_void>();
    // SAFETY: the structure begins with the function (include/tcg/helper-info.h), which the comparison checks. Nobody
    // translates yet.
    unsafe {
        if function.read() != own {
            return;
        }
        let pause = transmute::<*mut c_void, Pause>(own);
        if PAUSING.set(Pausing { qemu, pause }).is_ok() {
            function.write(self::pause as *mut c_void);
        }
    }
}

/// Executes `pause`, on the vCPU's thread.
unsafe extern "C" fn pause(state: *mut c_void, length: c_int) {
    // It is set before QEMU knows of this function.
    let Some(pausing) = PAUSING.get() else { std::process::abort() };
    if !SEARCHED.swap(true, Relaxed) {
        // It is kept for ever: the call below does not come back.
        BEFORE.set(pausing.qemu.cpu().ok().map(|vcpu| &*vcpu.structure().leak()));
    }
    PAUSES.set(true);
    // SAFETY: these are the arguments that QEMU gave to its function.
    unsafe { (pausing.pause)(state, length) };
}

/// Jumps to where the stack was saved (longjmp(3)). QEMU calls this also for whatever else ends an instruction before
/// its end. Its coroutines jump by another function.
///
/// # Safety
/// As longjmp(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __longjmp_chk(to: *mut c_void, value: c_int) -> ! {
    if PAUSES.replace(false) {
        go_on();
    }
    // SAFETY: the caller promises that the stack is there. No frame that this leaves has anything to drop.
    unsafe { jump()(to, value) }
}

/// Lets the vCPU go on, if it has no other reason to leave its code than `pause`.
fn go_on() {
    if let (Some(before), Some(pausing)) = (BEFORE.take(), PAUSING.get())
        && let Ok(vcpu) = pausing.qemu.cpu()
        && let Some(at) = find_reason(before, &vcpu.structure())
    {
        REASON.store(vcpu.word(at), Relaxed);
    }
    let reason = REASON.load(Relaxed);
    // SAFETY: the vCPU is there as long as QEMU is, and this is its thread.
    unsafe {
        if !reason.is_null() && reason.read() == EXCP_INTERRUPT {
            reason.write(NO_REASON);
        }
    }
}

/// The place of the reason in the vCPU's structure: the only one where nothing was a reason before `pause`, and where
/// `pause` is one now.
fn find_reason(before: &[u8], now: &[u8]) -> Option<usize> {
    let words = before.as_chunks().0.iter().zip(now.as_chunks().0);
    let is = |(before, now): (&[u8; 4], &[u8; 4])| {
        i32::from_ne_bytes(*before) == NO_REASON && i32::from_ne_bytes(*now) == EXCP_INTERRUPT
    };
    let mut places = words.enumerate().filter(|(_, pair)| is(*pair)).map(|(n, _)| 4 * n);
    places.next().filter(|_| places.next().is_none())
}

/// The C library's own function.
fn jump() -> Jump {
    let mut address = JUMP.load(Relaxed);
    if address == 0 {
        // SAFETY: the name is NUL-terminated. Who calls this was linked against the C library's function.
        address = unsafe { libc::dlsym(libc::RTLD_NEXT, c"__longjmp_chk".as_ptr()) } as usize;
        assert_ne!(address, 0, "the C library has the function");
        JUMP.store(address, Relaxed);
    }
    // SAFETY: this is the C library's function of this name.
    unsafe { transmute::<usize, Jump>(address) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(words: &[i32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    proptest! {
        #[test]
        fn the_reason_is_found_by_what_pause_makes_of_it(
            mut words in proptest::collection::vec(-2..2i32, 1..40), at in 0usize..40, other in 0usize..40,
        ) {
            let (at, other) = (at % words.len(), other % words.len());
            words[at] = NO_REASON;
            let before = bytes(&words);
            let mut now = words.clone();
            now[at] = EXCP_INTERRUPT;
            prop_assert_eq!(find_reason(&before, &bytes(&now)), Some(4 * at));
            // Two places that look alike are none, and so is another reason.
            if other != at && words[other] == NO_REASON {
                now[other] = EXCP_INTERRUPT;
                prop_assert_eq!(find_reason(&before, &bytes(&now)), None);
            }
            words[at] = 1;
            prop_assert_eq!(find_reason(&before, &bytes(&words)), None);
        }
    }
}

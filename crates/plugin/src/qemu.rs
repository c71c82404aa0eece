// SPDX-License-Identifier: GPL-2.0-or-later
//! QEMU's internal interfaces. Those of a vCPU are in `vcpu.rs` and those of the guest's memory in `physical.rs`. All
//! others are here.
//!
//! The interfaces are not stable. So the plugin looks them up by name at start, and tries the parts that can be tried
//! ([`Check`]). It refuses a QEMU that does not pass, whatever the version. The shapes are those of QEMU 10.0's and
//! 11.1's `include/qemu/timer.h`, `include/system/memory.h` (`include/exec/memory.h` in 10.0), `include/qemu/notify.h`,
//! `include/system/runstate.h`, `include/exec/cpu-common.h`, `include/hw/core/cpu.h`, `include/hw/irq.h`,
//! `include/qapi/util.h` and `include/chardev/char.h`.

use crate::checks::{Check, Failed, refusal};
use crate::interface::{Info, Interface};
use crate::physical::Reads;
use crate::symbols::{symbol, symbols};
use crate::vcpu::Cpu;
use crate::x86_64::{INTERRUPT_CONTROLLER, INTERRUPT_CONTROLLER_NAME, NO_INTERRUPT_CONTROLLER};
use sample::{Insns, Nanos, Stamp, Virtual};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

pub(crate) const QEMU_CLOCK_VIRTUAL: c_int = 1;
const SCALE_NS: c_int = 1;
/// Room for QEMU's `MemoryRegion` (272 in 10.0) and `QEMUTimer` (56). The second half has to stay untouched. A QEMU
/// that writes there needs more room than the plugin knows of.
const OPAQUE_BYTES: usize = 4096;
/// The content of the second half.
const UNTOUCHED: u64 = 0x0bad_f00d_0bad_f00d;

type TimerCallback = extern "C" fn(*mut c_void);
type IoRead = extern "C" fn(*mut c_void, u64, u32) -> u64;
type IoWrite = extern "C" fn(*mut c_void, u64, u64, u32);

/// `struct MemoryRegionOps`.
#[repr(C)]
struct MemoryRegionOps {
    read: IoRead,
    write: IoWrite,
    read_with_attrs: *const c_void,
    write_with_attrs: *const c_void,
    endianness: c_int,
    valid: AccessSizes<*const c_void>,
    r#impl: AccessSizes<()>,
}

#[repr(C)]
struct AccessSizes<T> {
    bytes_min: u32,
    bytes_max: u32,
    unaligned: bool,
    accepts: T,
}

/// `struct Notifier`.
#[repr(C)]
struct Notifier {
    notify: extern "C" fn(*mut Notifier, *mut c_void),
    node: [*mut c_void; 2],
}

#[repr(C)]
struct VersionTriple {
    major: i64,
    minor: i64,
    micro: i64,
}

#[repr(C)]
struct VersionInfo {
    qemu: *const VersionTriple,
    package: *const c_char,
}

symbols! {
    /// The functions of QEMU, resolved.
    struct Symbols {
        qmp_query_version: fn(*mut *mut c_void) -> *const VersionInfo;
        qemu_add_machine_init_done_notifier: fn(*mut Notifier);
        qemu_add_vm_change_state_handler: fn(extern "C" fn(*mut c_void, bool, c_int), *mut c_void) -> *mut c_void;
        qemu_clock_get_ns: fn(c_int) -> i64;
        icount_get_raw: fn() -> i64;
        icount_to_ns: fn(i64) -> i64;
        qemu_get_cpu: fn(c_int) -> *mut c_void;
        qapi_enum_parse: fn(*const c_void, *const c_char, c_int, *mut c_void) -> c_int;
        async_run_on_cpu: fn(*mut c_void, extern "C" fn(*mut c_void, usize), usize);
        timer_init_full: fn(*mut c_void, *mut c_void, c_int, c_int, c_int, TimerCallback, *mut c_void);
        timer_mod_ns: fn(*mut c_void, i64);
        get_system_io: fn() -> *mut c_void;
        memory_region_init_io: fn(*mut c_void, *mut c_void, *const MemoryRegionOps, *mut c_void, *const c_char, u64);
        memory_region_add_subregion_overlap: fn(*mut c_void, u64, *mut c_void, c_int);
        object_resolve_path_type: fn(*const c_char, *const c_char, *mut bool) -> *mut c_void;
        qdev_get_gpio_in: fn(*mut c_void, c_int) -> *mut c_void;
        qemu_set_irq: fn(*mut c_void, c_int);
        qemu_system_vmstop_request_prepare: fn();
        qemu_system_vmstop_request: fn(c_int);
        runstate_is_running: fn() -> bool;
        bql_unlock: fn();
        bql_lock_impl: fn(*const c_char, c_int);
        qemu_chr_find: fn(*const c_char) -> *mut c_void;
        qemu_chr_be_write: fn(*mut c_void, *const u8, c_int);
    }
}

/// QEMU, seen from inside.
///
/// Call the methods with QEMU's big lock held. Timer callbacks, port accesses and notifiers hold it. The exceptions are
/// [`Qemu::attach`], [`Qemu::cpu`], [`Qemu::now`] and [`Qemu::insns`]. The last two must not be called before an
/// instruction that is not the last of its block: QEMU would end itself.
#[derive(Clone, Copy)]
pub struct Qemu {
    symbols: Symbols,
    /// The main loop's lists of timers.
    main_loop_tlg: *mut c_void,
    version: [i64; 3],
    interface: Interface,
    reads: Reads,
    /// The number of the state `paused`.
    paused: c_int,
}

// SAFETY: these are addresses of QEMU's code and static data, the same for every thread. `Qemu` says who may call.
unsafe impl Send for Qemu {}
// SAFETY: as for `Send`.
unsafe impl Sync for Qemu {}

/// A timer on the virtual clock.
pub struct Timer(*mut c_void);

/// An interrupt line of the machine.
pub struct Line(*mut c_void);

/// A serial line's host end. The plugin can put bytes into it at an exact virtual time.
pub struct Wire(*mut c_void);

/// The owner of a range of I/O ports.
pub trait Ports: 'static {
    /// The only width of access that QEMU lets through.
    const WIDTH: Width;
    /// Reads the port at `offset`.
    fn read(&mut self, offset: u64) -> u32;
    /// Writes the port at `offset`.
    fn write(&mut self, offset: u64, value: u32);
}

/// The width of one access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Width {
    /// 8 bits.
    Byte = 1,
    /// 32 bits.
    Word = 4,
}

/// Memory in which QEMU makes a structure of its own. It lives for ever.
fn opaque_memory() -> *mut c_void {
    const HALF: usize = OPAQUE_BYTES / 8 / 2;
    let mut words = Box::new([0u64; 2 * HALF]);
    words[HALF..].fill(UNTOUCHED);
    Box::leak(words).as_mut_ptr().cast()
}

/// Whether QEMU found enough room in memory of [`opaque_memory`].
pub(crate) fn had_room(memory: *const c_void) -> Result<(), Failed> {
    // SAFETY: these are as many bytes as were made.
    let bytes = unsafe { memory.cast::<[u64; OPAQUE_BYTES / 8]>().read_volatile() };
    let untouched = bytes[bytes.len() / 2..].iter().all(|word| *word == UNTOUCHED);
    Check::Room.passes(untouched, || {
        format!("a structure of it is larger than {} bytes", OPAQUE_BYTES / 2)
    })
}

impl Qemu {
    /// Resolves QEMU's functions, and checks everything that can be checked before there is a machine.
    ///
    /// # Errors
    /// The message for a QEMU that does not pass.
    pub fn attach(info: &Info) -> Result<Qemu, String> {
        let symbols = Symbols::resolve().map_err(|failed| refusal(None, &failed))?;
        // SAFETY: the call returns a heap object with a valid version triple (qapi/control.json).
        let version = unsafe {
            let info = (symbols.qmp_query_version)(null_mut());
            let v = &*(*info).qemu;
            [v.major, v.minor, v.micro]
        };
        let attach = || -> Result<Qemu, Failed> {
            let interface = Interface::agreed(info)?;
            let reads = Reads::resolve(interface)?;
            let main_loop_tlg = symbol("main_loop_tlg")?;
            let states = symbol("RunState_lookup")?;
            // SAFETY: this is QEMU's table of the names of run states, and the call asks for no error object.
            let paused =
                unsafe { (symbols.qapi_enum_parse)(states, c"paused".as_ptr(), -1, null_mut()) };
            Check::RunStates.passes(paused >= 0, || "none is called `paused`".into())?;
            let qemu = Qemu { symbols, main_loop_tlg, version, interface, reads, paused };
            qemu.check_clocks()?;
            Ok(qemu)
        };
        attach().map_err(|failed| refusal(Some(version), &failed))
    }

    /// The message for this QEMU if it does not pass a check.
    pub(crate) fn refusal(&self, failed: &Failed) -> String {
        refusal(Some(self.version), failed)
    }

    /// The version of the plugin interface that QEMU and the plugin speak.
    pub fn interface(&self) -> Interface {
        self.interface
    }

    /// Calls `then` when the machine is built, before it runs.
    pub fn when_machine_is_built(&self, then: extern "C" fn()) {
        #[repr(C)]
        struct WithThen {
            notifier: Notifier,
            then: extern "C" fn(),
        }
        extern "C" fn notify(notifier: *mut Notifier, _: *mut c_void) {
            // SAFETY: the notifier is the first field of the leaked WithThen below.
            unsafe { ((*notifier.cast::<WithThen>()).then)() }
        }
        let notifier = Notifier { notify, node: [null_mut(); 2] };
        // A pointer to the whole, which `notify` gets back as one to its first field.
        let with = Box::into_raw(Box::new(WithThen { notifier, then }));
        // SAFETY: the notifier lives for ever.
        unsafe { (self.symbols.qemu_add_machine_init_done_notifier)(with.cast()) }
    }

    /// Calls `each(running)` whenever the machine begins or stops to run.
    pub fn on_run_state(&self, each: extern "C" fn(bool)) {
        extern "C" fn handler(opaque: *mut c_void, running: bool, _state: c_int) {
            // SAFETY: `opaque` is the function pointer given below.
            let each: extern "C" fn(bool) = unsafe { std::mem::transmute(opaque) };
            each(running);
        }
        // SAFETY: both pointers are to static code.
        unsafe { (self.symbols.qemu_add_vm_change_state_handler)(handler, each as *mut c_void) };
    }

    /// The present virtual time.
    pub fn now(&self) -> Stamp<Virtual> {
        // SAFETY: this is legal if the vCPU is not inside a block of code, or is at the last instruction of one.
        Stamp::from_ns(unsafe { (self.symbols.qemu_clock_get_ns)(QEMU_CLOCK_VIRTUAL) } as u64)
    }

    /// The instructions that the vCPU has completed until now.
    pub fn insns(&self) -> Insns {
        // SAFETY: as for `now`.
        Insns(unsafe { (self.symbols.icount_get_raw)() } as u64)
    }

    /// The time that this many instructions take.
    pub(crate) fn length(&self, instructions: u64) -> Nanos {
        // SAFETY: the call only computes.
        Nanos(unsafe { (self.symbols.icount_to_ns)(instructions as i64) } as u64)
    }

    /// The vCPU. Call this once QEMU has made it.
    pub fn cpu(&self) -> Result<Cpu, String> {
        // SAFETY: a caller may ask for any index.
        let cpu = unsafe { (self.symbols.qemu_get_cpu)(0) };
        if cpu.is_null() {
            Err("the machine has no vCPU yet".into())
        } else {
            Ok(Cpu::new(*self, cpu))
        }
    }

    /// The way in which the guest's memory is read.
    pub(crate) fn reads(&self) -> Reads {
        self.reads
    }

    /// A timer that calls `fire`. The timer is not armed.
    pub fn timer(&self, fire: extern "C" fn(*mut c_void)) -> Result<Timer, String> {
        let timer = opaque_memory();
        // SAFETY: the memory is zeroed, is at least as large as a QEMUTimer, and lives for ever.
        unsafe {
            (self.symbols.timer_init_full)(
                timer,
                self.main_loop_tlg,
                QEMU_CLOCK_VIRTUAL,
                SCALE_NS,
                0,
                fire,
                null_mut(),
            );
        }
        had_room(timer).map_err(|failed| self.refusal(&failed))?;
        Ok(Timer(timer))
    }

    /// Arms `timer` for `origin + after`.
    pub fn arm(&self, timer: &Timer, origin: Stamp<Virtual>, after: Nanos) {
        let at = i64::try_from(origin.saturating_add(after).ns()).unwrap_or(i64::MAX);
        // SAFETY: `timer` has initialised it.
        unsafe { (self.symbols.timer_mod_ns)(timer.0, at) }
    }

    /// Pin `pin` of the interrupt controller.
    pub fn interrupt_line(&self, pin: i32) -> Result<Line, String> {
        let kind = INTERRUPT_CONTROLLER.as_ptr();
        // SAFETY: the strings are NUL-terminated, and QEMU resolves "" to any object of the type.
        let controller =
            unsafe { (self.symbols.object_resolve_path_type)(c"".as_ptr(), kind, null_mut()) };
        if controller.is_null() {
            return Err(NO_INTERRUPT_CONTROLLER.into());
        }
        // SAFETY: an I/O APIC has 24 unnamed inputs.
        let line = unsafe { (self.symbols.qdev_get_gpio_in)(controller, pin) };
        match line.is_null() {
            true => Err(format!("the {INTERRUPT_CONTROLLER_NAME} has no pin {pin}")),
            false => Ok(Line(line)),
        }
    }

    /// Sets the level of an interrupt line.
    pub fn set(&self, line: &Line, high: bool) {
        // SAFETY: the line is from `interrupt_line`.
        unsafe { (self.symbols.qemu_set_irq)(line.0, c_int::from(high)) }
    }

    /// Lets `ports` answer `count` I/O ports from `base` on, before any device there. Returns QEMU's region of these
    /// ports.
    pub fn claim_ports<P: Ports>(
        &self,
        name: &'static CStr,
        base: u16,
        count: u64,
        ports: P,
    ) -> *mut c_void {
        extern "C" fn read<P: Ports>(ports: *mut c_void, offset: u64, _size: u32) -> u64 {
            // SAFETY: the pointer is to the leaked P below. QEMU calls with the big lock held, so never twice at once.
            u64::from(unsafe { &mut *ports.cast::<P>() }.read(offset))
        }
        extern "C" fn write<P: Ports>(ports: *mut c_void, offset: u64, value: u64, _size: u32) {
            // SAFETY: as in `read`.
            unsafe { &mut *ports.cast::<P>() }.write(offset, value as u32)
        }
        let width = P::WIDTH as u32;
        let ops = Box::leak(Box::new(MemoryRegionOps {
            read: read::<P>,
            write: write::<P>,
            read_with_attrs: null(),
            write_with_attrs: null(),
            endianness: 0,
            valid: AccessSizes {
                bytes_min: width,
                bytes_max: width,
                unaligned: false,
                accepts: null(),
            },
            r#impl: AccessSizes {
                bytes_min: width,
                bytes_max: width,
                unaligned: false,
                accepts: (),
            },
        }));
        let ports = Box::into_raw(Box::new(ports)).cast();
        let region = opaque_memory();
        /// A priority above the 0 of ordinary devices.
        const PRIORITY: c_int = 1;
        // SAFETY: region, ops and ports live for ever. The region is zeroed and large enough.
        unsafe {
            (self.symbols.memory_region_init_io)(
                region,
                null_mut(),
                ops,
                ports,
                name.as_ptr(),
                count,
            );
            let io = (self.symbols.get_system_io)();
            (self.symbols.memory_region_add_subregion_overlap)(
                io,
                u64::from(base),
                region,
                PRIORITY,
            );
        }
        region
    }

    /// Lets the vCPU's thread call `work` before the vCPU executes anything more. A timer's callback cannot stop the
    /// machine by itself, because QEMU waits for its timers when it stops.
    pub fn before_next_instruction(&self, work: extern "C" fn()) {
        extern "C" fn call(_cpu: *mut c_void, work: usize) {
            // SAFETY: this number is the function that was passed below.
            unsafe { std::mem::transmute::<usize, extern "C" fn()>(work)() }
        }
        extern "C" fn nothing(_cpu: *mut c_void, _: usize) {}
        // SAFETY: these are a `run_on_cpu_func` and a `run_on_cpu_data`, a union of the size of a pointer
        // (include/hw/core/cpu.h). While a second piece of work waits, the vCPU does not count as idle. So the clock
        // does not run ahead in `stop`.
        unsafe {
            let cpu = (self.symbols.qemu_get_cpu)(0);
            (self.symbols.async_run_on_cpu)(cpu, call, work as usize);
            (self.symbols.async_run_on_cpu)(cpu, nothing, 0);
        }
    }

    /// Stops the machine. From a port access, the machine stops after exactly this instruction. From
    /// [`Qemu::before_next_instruction`], it stops before the next instruction.
    ///
    /// Returns when the machine's state says that it has stopped. If the vCPU only asked for the stop and went on (as
    /// `vm_stop` does on its thread), it counted as idle until the main loop got round to the stop. Sometimes the
    /// virtual clock then ran ahead to the next timer. This relies on QEMU setting the state before it notifies
    /// anybody. A version that notified first would wait for the lock that the caller holds.
    pub fn stop(&self) {
        // SAFETY: the big lock is held, and the main loop needs it to stop the machine. The loop sets the state first
        // and then waits for this vCPU, which executes nothing more once this returns.
        unsafe {
            (self.symbols.qemu_system_vmstop_request_prepare)();
            (self.symbols.qemu_system_vmstop_request)(self.paused);
            (self.symbols.bql_unlock)();
            while (self.symbols.runstate_is_running)() {
                std::thread::yield_now();
            }
            (self.symbols.bql_lock_impl)(c"onset".as_ptr(), 0);
        }
    }

    /// Calls `f` with the big lock, which the calling thread does not hold.
    pub fn with_big_lock<T>(&self, f: impl FnOnce() -> T) -> T {
        // SAFETY: the calls take and release the lock.
        unsafe { (self.symbols.bql_lock_impl)(c"onset".as_ptr(), 0) };
        let result = f();
        // SAFETY: as above.
        unsafe { (self.symbols.bql_unlock)() };
        result
    }

    /// The character device with the name `id`.
    pub fn wire(&self, id: &CStr) -> Result<Wire, String> {
        // SAFETY: the name is NUL-terminated.
        let chardev = unsafe { (self.symbols.qemu_chr_find)(id.as_ptr()) };
        if chardev.is_null() {
            return Err(format!("QEMU was started without the character device {id:?}"));
        }
        Ok(Wire(chardev))
    }

    /// Puts a byte on the wire, towards the guest.
    pub fn send(&self, wire: &Wire, byte: u8) {
        // SAFETY: the chardev is from `wire`, and there is one readable byte.
        unsafe { (self.symbols.qemu_chr_be_write)(wire.0, &byte, 1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_structure_that_is_larger_than_there_is_room_for_fails_its_check() {
        let memory = opaque_memory();
        assert_eq!(had_room(memory), Ok(()));
        // SAFETY: this is inside the memory.
        unsafe { memory.byte_add(OPAQUE_BYTES / 2 - 1).cast::<u8>().write(7) };
        assert_eq!(had_room(memory), Ok(()));
        // SAFETY: this is inside the memory.
        unsafe { memory.byte_add(OPAQUE_BYTES / 2).cast::<u8>().write(7) };
        assert_eq!(had_room(memory).unwrap_err().check, Check::Room);
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! Processes that begin and end (lmbench3: lat_proc.c), and threads.
//!
//! The process is this one: as large as the agent is. LMbench's own is smaller, so its figures are lower.

use super::Suite::Processes;
use super::bench::{Work, answered, each};
use super::place::{Place, text};
use super::row::Row;
use std::ffi::{CStr, CString, c_void};
use std::io;
use std::path::PathBuf;
use std::ptr;

/// The programs that processes become.
pub(super) const PROGRAMS: [&str; 2] = ["sh", "true"];

pub(super) static ROWS: [Row; 4] = [
    Row::time((Processes, "fork_exit"), "fork, exit, wait", 20, fork_exit),
    Row::time((Processes, "fork_exec"), "fork, exec of true, wait", 10, fork_exec),
    Row::time((Processes, "fork_sh"), "fork, exec of sh -c true, wait", 10, fork_sh),
    Row::time((Processes, "thread_create"), "pthread_create and pthread_join", 50, thread_create),
];

/// Starts a process that does `begins`, and waits for its end. Its status has to be 0.
fn process(begins: impl FnOnce()) -> io::Result<()> {
    // SAFETY: this process has one thread, and the new one only makes system calls.
    unsafe {
        match libc::fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                begins();
                libc::_exit(127)
            }
            id => {
                let mut status = 0;
                answered(libc::waitpid(id, &mut status, 0))?;
                match status {
                    0 => Ok(()),
                    _ => {
                        Err(io::Error::other(format!("the process ended with status {status:#x}")))
                    }
                }
            }
        }
    }
}

fn fork_exit(_: &Place) -> io::Result<Box<dyn Work>> {
    // SAFETY: this is a plain system call.
    each(|| process(|| unsafe { libc::_exit(0) }))
}

/// The path of one of [`PROGRAMS`].
fn program(name: &str) -> io::Result<CString> {
    let places = ["/usr/bin", "/bin"].map(|directory| PathBuf::from(directory).join(name));
    let found = places.into_iter().find(|path| path.exists());
    found.map(|path| text(&path)).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
}

/// The work of a process that becomes `program`, with the arguments after it, without an environment and without
/// standard output.
fn exec(program: CString, arguments: Vec<CString>) -> io::Result<Box<dyn Work>> {
    each(move || {
        let mut words: [*const libc::c_char; 4] = [ptr::null(); 4];
        let all = std::iter::once(&program).chain(&arguments);
        words.iter_mut().zip(all).for_each(|(word, text)| *word = text.as_ptr());
        let environment = [ptr::null()];
        process(|| {
            // SAFETY: the words end with a null pointer and outlive the call.
            unsafe {
                libc::close(1);
                libc::execve(program.as_ptr(), words.as_ptr(), environment.as_ptr());
            }
        })
    })
}

fn fork_exec(_: &Place) -> io::Result<Box<dyn Work>> {
    exec(program("true")?, Vec::new())
}

fn fork_sh(_: &Place) -> io::Result<Box<dyn Work>> {
    let flag: &CStr = c"-c";
    exec(program("sh")?, vec![flag.to_owned(), program("true")?])
}

extern "C" fn nothing(_: *mut c_void) -> *mut c_void {
    ptr::null_mut()
}

fn thread_create(_: &Place) -> io::Result<Box<dyn Work>> {
    each(|| {
        let mut thread: libc::pthread_t = 0;
        // SAFETY: the thread does nothing, and this one waits for its end.
        unsafe {
            match libc::pthread_create(&mut thread, ptr::null(), nothing, ptr::null_mut()) {
                0 => {}
                errno => return Err(io::Error::from_raw_os_error(errno)),
            }
            match libc::pthread_join(thread, ptr::null_mut()) {
                0 => Ok(()),
                errno => Err(io::Error::from_raw_os_error(errno)),
            }
        }
    })
}

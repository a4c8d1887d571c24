//! Records whether standard output was open when this process started. Before `main`, the standard library opens
//! `/dev/null` for each standard file that is closed; after that, output is lost without an error.
#![allow(unsafe_code)] // A function that runs before `main`, and one system call in it.

use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// True if this process was started without a standard output (`caro ... >&-`).
pub fn output_was_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

#[cfg(unix)]
extern "C" fn record_output() {
    // SAFETY: a system call on a descriptor by its number, which is refused where that is no open file.
    let open = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } != -1;
    CLOSED.store(!open, Ordering::Relaxed);
}

// SAFETY: the section contains pointers to functions of this type, which the system calls once, before `main`; this one
// needs nothing that the standard library sets up.
#[cfg(all(unix, not(target_vendor = "apple")))]
#[used]
#[unsafe(link_section = ".init_array")]
static RECORD_OUTPUT: extern "C" fn() = record_output;

// SAFETY: as above.
#[cfg(target_vendor = "apple")]
#[used]
#[unsafe(link_section = "__DATA,__mod_init_func")]
static RECORD_OUTPUT: extern "C" fn() = record_output;

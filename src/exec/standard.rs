//! Whether standard output was open when this process began. Before `main` the standard library opens `/dev/null` in the
//! place of a standard file that was not: from then on what is written there is lost, and nobody can tell.
#![allow(unsafe_code)] // A function that runs before `main`, and one system call in it.

use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// True if this process was started without a standard output (`caro ... >&-`).
pub fn output_was_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

#[cfg(unix)]
extern "C" fn look() {
    // SAFETY: a system call on a descriptor by its number, which is refused where that is no open file.
    let open = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } != -1;
    CLOSED.store(!open, Ordering::Relaxed);
}

// SAFETY: the section holds pointers to functions of this type, which the system calls once, before `main`; this one needs
// nothing that the standard library sets up.
#[cfg(all(unix, not(target_vendor = "apple")))]
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

// SAFETY: as above.
#[cfg(target_vendor = "apple")]
#[used]
#[unsafe(link_section = "__DATA,__mod_init_func")]
static LOOK: extern "C" fn() = look;

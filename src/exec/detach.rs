//! Starts a child that outlives us: without our terminal, session and open files, and with almost no variables.
#![allow(unsafe_code)] // `pre_exec`: the only place between fork and exec, where the session and the files are left.

use super::{ExecError, environment, inherited};
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Starts a program that keeps running when we end, and returns its process id. It starts in `/`, in a session of its
/// own, with `stdin` as its standard input and no other file of ours open: neither the terminal nor a pipe or lock of
/// our caller.
///
/// # Errors
/// If it cannot be started.
pub fn detach(program: &Path, args: &[OsString], stdin: OwnedFd) -> Result<u32, ExecError> {
    let failed = |source| ExecError::Start { program: program.display().to_string(), source };
    let mut command = Command::new(program);
    command
        .args(args)
        .env_clear()
        .envs(environment::detached())
        .current_dir("/")
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let max_files = inherited::max_files();
    let hook = move || -> io::Result<()> {
        rustix::process::setsid()?;
        inherited::close_on_exec(max_files);
        Ok(())
    };
    // SAFETY: the hook runs in the forked child of a process with threads, so it must neither allocate nor take a
    // lock. It makes system calls alone; io::Error from an errno does not allocate.
    unsafe {
        command.pre_exec(hook);
    }
    let mut child = command.spawn().map_err(failed)?;
    let id = child.id();
    // while we live we are its parent and must wait for it; without a thread for that, the system does it when we end
    let _ = std::thread::Builder::new().name("caro-detached".into()).spawn(move || child.wait());
    Ok(id)
}

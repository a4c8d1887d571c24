//! A model file is asked for from front to back while the engine is still being built.
//!
//! Weights are mapped, and a mapped file is read where it is touched: after a start of the machine that is a page here
//! and a page there, in the order of the products, and the system soon gives up reading more than was asked for. Whole
//! and in order the same disk is many times faster (`benches/records/2026-11-23-cold-disk.md`).

use std::fs::File;
use std::path::Path;

/// What is asked for at once, in bytes. Linux cuts longer advice to its read-ahead window, which is this by default.
const PART: usize = 128 << 10;

/// Asks for the pages of a file on a thread of its own, which nobody has to wait for: 30 ms of one core for a gigabyte
/// that is there already. A file that cannot be opened is left to whoever reads it.
pub(super) fn read(path: &Path) {
    let Ok(file) = File::open(path) else { return };
    // Where the system has no thread for it, pages come when they are touched.
    let _ = std::thread::Builder::new().name("caro-ahead".into()).spawn(move || ask(&file));
}

fn ask(file: &File) {
    let length = file.metadata().map_or(0, |meta| meta.len());
    for from in (0..length).step_by(PART) {
        if !advise(file, from) {
            return;
        }
    }
}

/// Asks for one part. False where the system does not take such advice.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
fn advise(file: &File, from: u64) -> bool {
    let part = std::num::NonZeroU64::new(PART as u64);
    rustix::fs::fadvise(file, from, part, rustix::fs::Advice::WillNeed).is_ok()
}

#[cfg(target_vendor = "apple")]
fn advise(file: &File, from: u64) -> bool {
    rustix::fs::fcntl_rdadvise(file, from, PART as u64).is_ok()
}

/// Other systems, Windows among them, read clusters of their own choice.
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd", target_vendor = "apple")))]
fn advise(_: &File, _: u64) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::engine::bytes::Bytes;
    use std::io::{Seek, SeekFrom, Write};
    use std::time::{Duration, Instant};

    #[test]
    fn a_file_that_is_not_in_memory_comes_in_whole_without_being_touched() {
        // beside the build: a temporary folder may be memory already
        let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        file.write_all(&vec![7; 16 << 20]).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        file.sync_all().unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        let bytes = Bytes::map(&file).unwrap();
        let all = bytes.len() / rustix::param::page_size();
        if bytes.pages_in_memory() > all / 2 {
            eprintln!("skipped: this file system keeps its files in memory");
            return;
        }
        ask(&file);
        let began = Instant::now();
        while bytes.pages_in_memory() < all && began.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(bytes.pages_in_memory(), all);
    }
}

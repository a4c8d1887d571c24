//! Reads a model file ahead, from front to back, while the engine is being built.
//!
//! Weights are mapped, and a mapped file is read page by page where it is touched, in the order of the products, so
//! that the system soon stops reading ahead. Reading the whole file in order is many times faster when it is not in
//! memory yet (`benches/records/2026-11-23-cold-disk.md`).

use std::fs::File;
use std::path::Path;

/// Bytes of one read-ahead request. Linux cuts longer ones to its read-ahead window, which is this by default.
const PART: usize = 128 << 10;

/// Requests the pages of a file on a background thread: 30 ms of one core for a gigabyte that is in memory already.
/// Ignores errors of opening the file, which its reader reports.
pub(super) fn read(path: &Path) {
    let Ok(file) = File::open(path) else { return };
    // without a thread, pages are read when they are touched
    let _ = std::thread::Builder::new().name("caro-ahead".into()).spawn(move || request_all(&file));
}

fn request_all(file: &File) {
    let length = file.metadata().map_or(0, |meta| meta.len());
    for from in (0..length).step_by(PART) {
        if !advise(file, from) {
            return;
        }
    }
}

/// Requests one part. Returns false if the system does not support it.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
fn advise(file: &File, from: u64) -> bool {
    let part = std::num::NonZeroU64::new(PART as u64);
    rustix::fs::fadvise(file, from, part, rustix::fs::Advice::WillNeed).is_ok()
}

#[cfg(target_vendor = "apple")]
fn advise(file: &File, from: u64) -> bool {
    rustix::fs::fcntl_rdadvise(file, from, PART as u64).is_ok()
}

/// Returns false: other systems, Windows among them, choose their read-ahead themselves.
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
    fn the_whole_file_is_read_without_being_touched() {
        // beside the build: a temporary folder may be in memory
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
        request_all(&file);
        let start = Instant::now();
        while bytes.pages_in_memory() < all && start.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(bytes.pages_in_memory(), all);
    }
}

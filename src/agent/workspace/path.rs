//! Normalises paths of the workspace and refuses those that lead out of it, without looking at the disk.

use std::path::PathBuf;

/// Returns a path relative to `files/`: percent signs decoded, slashes at the ends, `.` and one leading `workspace`,
/// `workspace_files` or `files` removed. `None` if it has `..` in any encoding, a drive, or a zero byte.
pub fn inside(path: &str) -> Option<PathBuf> {
    // twice, because some callers encode and decode twice
    let path = decode(&decode(path)?)?.replace('\\', "/");
    let mut parts: Vec<&str> = path.split('/').filter(|p| !p.is_empty() && *p != ".").collect();
    if parts.first().is_some_and(|p| ["workspace", "workspace_files", "files"].contains(p)) {
        parts.remove(0);
    }
    let fine = |part: &&str| *part != ".." && !part.contains(['\0', ':']);
    parts.iter().all(fine).then(|| parts.iter().collect())
}

/// Decodes percent-encoding (RFC 3986); `None` if the result is not UTF-8.
pub(super) fn decode(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let hex = if byte == b'%' { text.get(at + 1..at + 3) } else { None };
        let hex = hex.and_then(|h| u8::from_str_radix(h, 16).ok());
        decoded.push(hex.unwrap_or(byte));
        at += if hex.is_some() { 3 } else { 1 };
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn paths_are_normalised_or_refused() {
        for (path, clean) in [
            ("a.md", "a.md"),
            ("/a/b/", "a/b"),
            ("files/a", "a"),
            ("workspace/a", "a"),
            ("files/files/a", "files/a"),
            ("./a/./b", "a/b"),
            ("a%20b", "a b"),
            ("100%", "100%"),
            ("", ""),
        ] {
            assert_eq!(inside(path).as_deref(), Some(Path::new(clean)), "{path}");
        }
        for outside in ["..", "a/../b", "%2E%2E/a", "%2e./a", "%252E%252E/a", "a\\..\\b", "C:/x", "a%00b", "%ff"] {
            assert_eq!(inside(outside), None, "{outside}");
        }
    }
}

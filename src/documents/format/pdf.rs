//! Converts PDF to markdown with `pdftotext` of the system, in the sandbox. No Rust library for it is both small and
//! maintained, and a parser of such files is best kept out of this process.

use super::super::format::{MAX_TEXT, Page, Programs, TOO_LONG, heading};
use caro_exec::{self as exec, Job, Limits, Sandbox, Status};
use std::path::Path;
use std::time::Duration;

/// Timeout of one file.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The magic bytes of the file; some files have a line before it.
const MAGIC: &[u8] = b"%PDF-";
const MAGIC_WITHIN: usize = 1024;

/// Converts a file to markdown, with a heading for each page.
pub(super) fn markdown(path: &Path, bytes: &[u8], programs: &Programs) -> Result<String, &'static str> {
    let start = &bytes[..bytes.len().min(MAGIC_WITHIN)];
    if !start.windows(MAGIC.len()).any(|window| window == MAGIC) {
        return Err("it is not a PDF");
    }
    let Some(program) = &programs.pdftotext else {
        return Err("a PDF, and there is no `pdftotext` here: install poppler-utils");
    };
    // it runs in a folder of its own
    let path = std::path::absolute(path).map_err(|_| "its path cannot be followed")?;
    let mut job =
        Job::new(program).args(["-q", "-enc", "UTF-8", "-eol", "unix"]).args([path.as_os_str(), "-".as_ref()]);
    job.limits = Limits { wall: TIMEOUT, output: MAX_TEXT + 1 };
    job.sandbox = Sandbox::ReadOnly;
    let output = exec::capture_blocking(&job).map_err(|_| "`pdftotext` could not be run on it")?;
    match output.status {
        Status::Exited(0) => {}
        Status::TimedOut => return Err("`pdftotext` took longer than 20 s for it"),
        Status::Flooded => return Err(TOO_LONG),
        Status::Exited(_) | Status::Signaled(_) => {
            return Err("`pdftotext` cannot read it: damaged, or locked by a password");
        }
    }
    if output.stdout_cut.is_some() || output.stdout.len() > MAX_TEXT {
        return Err(TOO_LONG);
    }
    let text = pages(&String::from_utf8_lossy(&output.stdout));
    if text.is_empty() { Err("a PDF without text: it may be scanned") } else { Ok(text) }
}

/// Splits pages, which end with a form feed.
fn pages(text: &str) -> String {
    let mut page = Page::default();
    for (at, text) in text.split('\u{c}').enumerate() {
        if text.trim().is_empty() {
            continue;
        }
        page.begin(&heading(1));
        page.push(&format!("Page {}", at + 1));
        page.begin("");
        page.push_raw(text);
    }
    page.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_has_its_number() {
        assert_eq!(pages("one\ntwo\n\u{c}\u{c}three\n\u{c}"), "# Page 1\n\none\ntwo\n\n# Page 3\n\nthree\n");
        assert_eq!(pages(" \u{c}"), "");
    }

    #[cfg(unix)]
    #[test]
    fn a_hostile_file_is_rejected() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.pdf");
        std::fs::write(&file, "%PDF-1.4\n").unwrap();
        let read = |script: &str| {
            let program = dir.path().join("pdftotext");
            std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
            markdown(&file, b"%PDF-1.4\n", &Programs { pdftotext: Some(program) })
        };
        assert_eq!(
            read("printf 'the text of %s\\f' \"$(basename \"$6\")\"").as_deref(),
            Ok("# Page 1\n\nthe text of a.pdf\n")
        );
        assert_eq!(read("exit 1"), Err("`pdftotext` cannot read it: damaged, or locked by a password"));
        assert_eq!(read("yes 0123456789"), Err(TOO_LONG));
        assert_eq!(read(":"), Err("a PDF without text: it may be scanned"));
        if exec::support().writes {
            let out = dir.path().join("out");
            let _ = read(&format!("echo x > {}; echo y", out.display()));
            assert!(!out.exists(), "it is held to reading");
        }
        assert!(markdown(&file, b"%PDF-1.4\n", &Programs::default()).unwrap_err().contains("poppler-utils"));
        assert_eq!(markdown(&file, b"text", &Programs::default()), Err("it is not a PDF"));
    }
}

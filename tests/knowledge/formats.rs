//! Tests the ingestion of HTML, DOCX and PDF: documents are found by headings and pages, and hostile files do no harm.

use super::hits;
use crate::machine::{Machine, PATH, Ran};
use serde_json::Value;
use std::io::Write;

fn docx(body: &str) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    archive.start_file("word/document.xml", options).unwrap();
    archive.write_all(body.as_bytes()).unwrap();
    archive.finish().unwrap().into_inner()
}

/// Runs the binary on a machine whose `pdftotext` is this shell script.
fn with_pdf(machine: &Machine, script: &str, args: &[&str]) -> Ran {
    let bin = machine.path("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let program = bin.join("pdftotext");
    std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    Ran::of(machine.caro(args).env("PATH", format!("{}:{PATH}", bin.display())).output().unwrap())
}

fn write_documents(machine: &Machine) {
    std::fs::create_dir_all(machine.path("work/docs")).unwrap();
    machine.write(
        "work/docs/hut.html",
        "<html><head><title>Cabin</title><script>giraffe()</script></head><body><h1>The cabin</h1>\
         <h2>Key</h2><p>It lies under the &ldquo;blue&rdquo; stone.</p><h2>Way</h2><p>Left at the mill.</p></body></html>",
    );
    let body =
        "<w:document><w:body><w:p><w:r><w:t>Snapshots are kept on badger.</w:t></w:r></w:p></w:body></w:document>";
    machine.write("work/docs/backup.docx", docx(body));
    machine.write("work/docs/pump.pdf", "%PDF-1.7\n...");
}

fn ingest(ran: Ran) -> Value {
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    ran.json()
}

#[cfg(unix)]
#[test]
fn html_docx_and_pdf_are_found_by_headings_and_pages() {
    let machine = Machine::new();
    write_documents(&machine);
    let pages = "printf 'Contents\\n\\fThe pump makes 3000 turns.\\n\\f'";
    let read = ["knowledge", "ingest", "docs", "--json"];
    let done = ingest(with_pdf(&machine, pages, &read));
    assert_eq!((done["files_processed"].as_u64(), done["skipped"].as_u64()), (Some(3), Some(0)), "{done}");
    let again = ingest(with_pdf(&machine, pages, &read));
    assert_eq!((again["unchanged"].as_u64(), again["files_processed"].as_u64()), (Some(3), Some(0)), "{again}");
    for (question, place, text) in [
        ("where is the key of the cabin?", "hut.html (The cabin > Key)", "under the “blue” stone"),
        ("how many turns makes the pump?", "pump.pdf (Page 2)", "3000 turns"),
        ("which host keeps snapshots?", "backup.docx  ", "badger"),
    ] {
        let shown = machine.run(&["knowledge", "query", question, "--limit", "1"]);
        assert!(shown.out.contains(place) && shown.out.contains(text), "{question}: {shown:#?}");
    }
    assert!(hits(&machine.run(&["knowledge", "query", "giraffe", "--json"])).is_empty(), "a script is not text");
}

#[cfg(unix)]
#[test]
fn a_hostile_file_is_skipped_with_a_warning() {
    let machine = Machine::new();
    write_documents(&machine);
    machine.write("work/docs/bomb.docx", docx(&"<".repeat(17 << 20)));
    machine.write("work/docs/torn.docx", b"PK\x03\x04 no more");
    machine.write("work/docs/deep.html", "<div>".repeat(300_000) + "bottom");
    machine.write("work/docs/no.pdf", "text");
    let ran = with_pdf(&machine, "exit 3", &["knowledge", "ingest", "docs"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.out.starts_with("read 3 files (") && ran.out.contains("4 no documents"), "{ran:#?}");
    for warning in [
        "bomb.docx: it unpacks to more than 16 MiB",
        "torn.docx: it is not a DOCX",
        "no.pdf: it is not a PDF",
        "pump.pdf: `pdftotext` cannot read it",
    ] {
        assert!(ran.err.contains(warning), "{warning}: {ran:#?}");
    }
    // without `pdftotext` the other files are still read
    let bare = Machine::new();
    write_documents(&bare);
    let ran = Ran::of(bare.caro(&["knowledge", "ingest", "docs"]).env("PATH", "/nowhere").output().unwrap());
    assert!(ran.out.starts_with("read 2 files (") && ran.err.contains("install poppler-utils"), "{ran:#?}");
}

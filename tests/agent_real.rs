//! `caro agent` on the real model, end to end.

use crate::machine::Ran;
use std::process::Stdio;

/// The demonstration, on the real model: three log files among five in several folders, their errors, a report.
#[test]
fn the_real_model_finds_counts_and_reports_within_eight_steps() {
    if cfg!(debug_assertions) {
        println!("skipped: a whole run takes minutes in a debug build");
        return;
    }
    let Some(mut caro) = crate::support::model_or_skip("agent") else { return };
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path().join("work");
    std::fs::create_dir_all(work.join("logs")).unwrap();
    std::fs::create_dir_all(work.join("var/old")).unwrap();
    let log = |name: &str, lines: usize, errors: usize| {
        let line = |i: usize| {
            if i.is_multiple_of(lines / errors) && i / (lines / errors) < errors {
                "ERROR timeout"
            } else {
                "INFO served in 12 ms"
            }
        };
        let text: String = (0..lines).map(|i| format!("{}\n", line(i))).collect();
        assert_eq!(text.matches("ERROR").count(), errors);
        std::fs::write(work.join(name), text).unwrap();
    };
    for (name, lines, errors) in [
        ("logs/web.log", 900, 17),
        ("logs/worker.log", 700, 55),
        ("var/old/batch.log", 500, 42),
        ("logs/small.log", 30, 3),
        ("var/tiny.log", 10, 1),
    ] {
        log(name, lines, errors);
    }
    std::fs::write(work.join("notes.md"), "# Notes\n").unwrap();
    let task = "find the three largest log files, show how many errors each has, and write a summary to report.md";
    let out = caro
        .args([task, "--yes", "--max-steps", "8", "--json"])
        .env("XDG_DATA_HOME", dir.path().join("data"))
        .current_dir(&work)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let ran = Ran::of(out);
    let report = std::fs::read_to_string(work.join("report.md")).unwrap_or_default();
    println!("{report}\n{}", ran.out);
    assert_eq!(ran.json()["status"], "completed", "{ran:#?}");
    assert!(ran.json()["steps"].as_u64().unwrap() <= 8);
    for (name, errors) in [("web.log", "17"), ("worker.log", "55"), ("batch.log", "42")] {
        let line = report.lines().find(|l| l.contains(name)).unwrap_or_else(|| panic!("no {name} in {report}"));
        assert!(line.contains(errors), "{line}");
    }
    assert!(!report.contains("small.log") && !report.contains("tiny.log"), "{report}");
}

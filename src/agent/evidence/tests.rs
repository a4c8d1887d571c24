//! Tests of claims against changes and outputs.

use super::*;
use std::path::PathBuf;

fn entry(path: &str, text: &str) -> Entry {
    Entry { path: path.into(), folder: text.is_empty(), text: Some(text.into()).filter(|t: &String| !t.is_empty()) }
}

fn writes() -> Effects {
    Effects { writes: vec![PathBuf::from("/w/x")], ..Effects::default() }
}

fn changed(part: &str, names: &[&str], changes: &Changes) -> Option<String> {
    let names: Vec<String> = names.iter().map(|n| n.to_string()).collect();
    finding(&Claim {
        part,
        limited: false,
        names: &names,
        command: None,
        effects: &writes(),
        printed: "",
        whole: true,
        found: None,
        earlier: &[],
        goes_on: false,
        changes: Some(changes),
    })
}

fn showed(part: &str, names: &[&str], command: &str, printed: &str, earlier: &[&str]) -> Option<String> {
    let strings = |list: &[&str]| list.iter().map(|n| n.to_string()).collect::<Vec<_>>();
    finding(&Claim {
        part,
        limited: false,
        names: &strings(names),
        command: Some(command),
        effects: &Effects::default(),
        printed,
        whole: true,
        found: None,
        earlier: &strings(earlier),
        goes_on: true,
        changes: None,
    })
}

fn before(paths: &[&str]) -> Changes {
    Changes { before: paths.iter().map(|p| p.to_string()).collect(), ..Changes::default() }
}

#[test]
fn a_change_must_be_on_disk() {
    let none = before(&["a.txt", "old"]);
    assert!(changed("delete a.txt", &[], &none).is_some_and(|f| f.contains("changed nothing")));
    let gone = Changes { removed: vec!["a.txt".into()], ..none.clone() };
    assert_eq!(changed("delete a.txt", &[], &gone), None);
    assert_eq!(changed("delete it", &["./a.txt"], &gone), None);
    assert!(changed("delete them", &["./a.txt", "./old"], &gone).is_some_and(|f| f.contains("old is still there")));
    let more = Changes { removed: vec!["a.txt".into(), "b.txt".into()], ..none.clone() };
    assert!(changed("delete it", &["a.txt"], &more).is_some_and(|f| f.contains("b.txt")));
    let moved = Changes { created: vec![entry("old/a.txt", "x")], ..gone.clone() };
    assert_eq!(changed("move a.txt to old", &[], &moved), None);
    assert_eq!(changed("move it into the folder old", &["a.txt"], &moved), None);
    let elsewhere = Changes { created: vec![entry("other", "x")], ..gone };
    assert!(changed("move a.txt to old", &[], &elsewhere).is_some_and(|f| f.contains("into old")));
    assert!(changed("copy a.txt to old", &[], &moved).is_some_and(|f| f.contains("gone")));
    let made = Changes { created: vec![entry("backup", "")], ..none };
    assert_eq!(changed("create a folder backup", &[], &made), None);
    assert!(changed("create a folder saved", &[], &made).is_some_and(|f| f.contains("saved was not made")));
    assert_eq!(changed("create a folder for the photos", &[], &made), None, "no name is said");
}

#[test]
fn a_value_must_be_in_the_changed_file() {
    let set = |text: &str| Changes { changed: vec![entry("app.ini", text)], ..before(&["app.ini", "b.ini"]) };
    assert_eq!(changed("set the port in app.ini to 9090", &[], &set("port = 9090\n")), None);
    assert!(changed("set the port in app.ini to 9090", &[], &set("port = 8080\n")).is_some_and(|f| f.contains("9090")));
    assert_eq!(changed("set the port to 9090 in app.ini", &[], &set("port=9090")), None);
    assert_eq!(changed("change it to debug = false", &["app.ini"], &set("debug=false")), None);
    assert!(changed("set the port in b.ini to 1", &[], &set("1")).is_some_and(|f| f.contains("b.ini is as it was")));
    assert_eq!(changed("change the names in app.ini to upper case", &[], &set("ADA")), None, "no text is said");
    let renamed = Changes { removed: vec!["a.txt".into()], created: vec![entry("a.md", "x")], ..before(&["a.txt"]) };
    assert_eq!(changed("rename all .txt files to .md", &[], &renamed), None);
    assert!(changed("rename all .txt files to .rst", &[], &renamed).is_some());
}

#[test]
fn reading_is_no_change_and_other_folders_are_not_judged() {
    assert!(showed("delete the old logs", &[], "ls", "a.log", &[]).is_some_and(|f| f.contains("only looked")));
    assert_eq!(showed("create a list of the users", &[], "cut -d: -f1 /etc/passwd", "root", &[]), None);
    assert_eq!(showed("add up the amounts", &[], "awk '{s+=$1}END{print s}' a", "12", &[]), None);
    assert_eq!(changed("copy a.txt to /srv/x", &[], &before(&["a.txt"])), None);
    let converts = |part| showed(part, &[], "jq . a", "{}", &[]);
    assert!(converts("convert a.csv to a.json").is_some_and(|f| f.contains("only looked")));
    assert_eq!(converts("convert 5 miles to km"), None);
}

#[test]
fn the_output_must_be_what_was_asked_for() {
    assert!(
        showed("count its lines", &["whole.txt"], "wc -l < /dev/null", "7", &[])
            .is_some_and(|f| f.contains("whole.txt"))
    );
    assert_eq!(showed("count its lines", &["whole.txt"], "wc -l < whole.txt", "7", &[]), None);
    assert!(
        showed("count the errors in a.log", &[], "grep -c X a.log", "0", &[]).is_some_and(|f| f.contains("only 0"))
    );
    assert!(showed("count the errors", &[], "ls", "none", &[]).is_some());
    assert!(
        showed("show the two lines before it", &[], "grep E a", "E: x\n", &["E: x"])
            .is_some_and(|f| f.contains("before"))
    );
    assert_eq!(showed("show them", &[], "ls", "a\nb", &["a\nb"]), None);
    assert!(
        showed("find the largest file", &[], "du *", "9 a\n7 b", &[]).is_some_and(|f| f.contains("2 lines where 1"))
    );
    assert_eq!(showed("find the two largest files", &[], "du *", "9 a\n7 b\n16 total", &[]), None);
    assert!(showed("find the 2 largest log files", &[], "du *", "9 a\n7 b\n5 c", &[]).is_some());
    assert_eq!(showed("find the files with the first name", &[], "grep", "9 a\n7 b\n5 c", &[]), None);
}

#[test]
fn a_search_for_files_must_name_files() {
    let found = |part: &str, printed: &str, found| {
        finding(&Claim {
            part,
            limited: false,
            names: &[],
            command: Some("du"),
            effects: &Effects::default(),
            printed,
            whole: true,
            found: Some(found),
            earlier: &[],
            goes_on: true,
            changes: None,
        })
    };
    assert!(found("find the largest file in downloads", "88K ./downloads", 0).is_some_and(|f| f.contains("no file")));
    assert_eq!(found("find the largest file in downloads", "88K ./downloads/a", 1), None);
    assert_eq!(found("find the newest file in reports", "b.txt", 0), None, "it may be in reports");
    assert_eq!(found("find out which files are open", "88K", 0), None);
    assert_eq!(found("list all files in /srv", "/srv/a", 0), None);
}

#[test]
fn a_sum_must_be_a_number_other_than_zero() {
    for part in ["add up their amounts", "sum the second column", "average the ages"] {
        let shown = |printed: &str| showed(part, &[], "awk 1 a.csv", printed, &[]);
        assert!(shown("0").is_some_and(|f| f.contains("only 0")), "{part}");
        assert!(shown("-").is_some_and(|f| f.contains("shows none")), "{part}");
        assert_eq!(shown("125"), None, "{part}");
    }
    let into_file = Changes { created: vec![entry("n.txt", "Oslo 4\n")], ..before(&["a.txt"]) };
    assert_eq!(changed("for each city write its number of letters to n.txt", &[], &into_file), None);
}

#[test]
fn sorted_rows_must_be_those_shown_before() {
    let sorted = |printed: &str| showed("sort them by name", &[], "sort x", printed, &["Per,51\nIda,34\n"]);
    assert_eq!(sorted("Ida,34\nPer,51\n"), None);
    assert!(sorted("Ida,34\nMoss,29\nPer,51\n").is_some_and(|f| f.contains("the 2 lines that were shown")));
    assert_eq!(showed("sort them by name", &[], "sort x", "a\nb", &["one"]), None, "one line is not a list");
    assert_eq!(showed("sort them by name", &["a.txt"], "ls a.txt", "b\na.txt", &["a\nb"]), None, "files");
}

#[test]
fn sorted_rows_must_be_in_order() {
    let part = "sort sales.csv by the amount column with the largest first";
    let sorted = |text: &str| showed(part, &[], "sort sales.csv", text, &[]);
    assert_eq!(sorted("shop,amount\nsouth,130\nwest,45\nnorth,12"), None);
    assert!(sorted("shop,amount\nnorth,12\nwest,45\nsouth,130").is_some_and(|f| f.contains("column 2")));
    assert!(sorted("north,12\nshop,amount\nsouth,130").is_some_and(|f| f.contains("no longer the first")));
    assert_eq!(showed("sort the names", &[], "sort x", "b,1\na,2\nc,3", &[]), None, "by nothing");
}

#[test]
fn a_text_must_contain_the_results() {
    let results = [("find the python files that import requests", "./main.py\n./app/a.py"), ("count them", "2")];
    let omissions = |text: &str| super::omissions("write a short report to imports.md", text, results.into_iter());
    let without = |what: &str| Some(format!("What was written leaves out {what}."));
    assert_eq!(omissions("2 files: main.py and app/a.py"), None);
    assert_eq!(omissions("- main.py\n- app/a.py"), without("2"));
    assert_eq!(omissions("12 files: main.py"), without("2, a.py"));
    let choice = super::omissions("write a report with the largest to x.md", "none", results.into_iter());
    assert_eq!(choice, None, "a choice is the writer's");
    let sums =
        |text: &str| super::omissions("write one sentence about each of the three notes to x.md", text, [].into_iter());
    assert!(sums("The boat leaks.").is_some_and(|f| f.contains("about 3 things, and has 1")));
    assert_eq!(sums("The boat leaks. Moss digs. It rains."), None);
    assert_eq!(sums("- boat\n- garden\n- roof"), None);
}

#[test]
fn a_written_file_must_hold_a_text() {
    let wrote = |part: &str, name: &str, text: &str| {
        let created = vec![Entry { path: name.into(), folder: false, text: Some(text.into()) }];
        changed(part, &[], &Changes { created, ..before(&["a.log", "b.txt"]) })
    };
    let report = "write the number of errors in a.log to r.md";
    for (text, why) in [
        ("", "r.md is empty."),
        (" \n", "r.md is empty."),
        ("grep: a.log: No such file or directory\n", "complained, and nothing else: grep"),
        ("Traceback (most recent call last):\n  File x\nKeyError\n", "complained"),
        ("errors: $(grep -c ERROR a.log)\n", "`$(...)`"),
        ("errors: 3\\nwarnings: 4\n", "`\\n` in it where lines should end"),
    ] {
        assert!(wrote(report, "r.md", text).is_some_and(|f| f.contains(why)), "{text}");
    }
    for (name, text, broken) in [
        ("p.json", "{\"a\": 1}\n{\"a\": 2}\n", true),
        ("p.json", "[{\"a\": 1}]\n", false),
        ("x.sh", "#!/bin/sh\nfor f in *; do echo $f\n", true),
        ("x.sh", "#!/bin/sh\nfor f in *; do echo $f; done\n", false),
    ] {
        let found = wrote(&format!("convert b.txt to {name}"), name, text);
        assert_eq!(found.is_some_and(|f| f.contains("what its name says")), broken, "{text}");
    }
    for (part, name, text) in [
        (report, "r.md", "3\n"),
        ("create an empty file r.md", "r.md", ""),
        ("create a file r.md", "r.md", ""),
        ("copy b.txt to r.md", "r.md", ""),
        ("write a script clean.sh", "clean.sh", "rm $(ls *.tmp)\n"),
        ("save the errors of a.log to r.txt", "r.txt", "grep: x: No such file or directory\n"),
        ("write a text about grep to r.md", "r.md", "grep: a tool\nIt says: No such file or directory\n"),
    ] {
        assert_eq!(wrote(part, name, text), None, "{part}");
    }
    assert!(wrote("create notes.md with a title", "notes.md", "").is_some());
    let best = "write the three most frequent words with their counts to w.md";
    assert!(wrote(best, "w.md", "and 3\nthe 2\n").is_some_and(|f| f.contains("about 3 things, and has 2")));
    for text in ["and 3\nthe 2\na 1\n", "and (3), the (2), a (1)"] {
        assert_eq!(wrote(best, "w.md", text), None);
    }
    assert!(wrote("write five lines about boats to w.md", "w.md", "A boat.\n").is_some_and(|f| f.contains("5 lines")));
    assert_eq!(wrote("write two reasons to w.md", "w.md", "It is cheap. It is near.\n"), None);
}

#[test]
fn no_file_of_a_kind_may_be_left_where_all_were_meant() {
    let there = before(&["pics", "pics/a.jpeg", "pics/b.jpeg", "pics/sub", "pics/sub/c.jpeg", "old", "old/d.jpeg"]);
    let gone = |part: &str, removed: &[&str], created: &[&str]| {
        let removed = removed.iter().map(|path| path.to_string()).collect();
        let created = created.iter().map(|path| entry(path, "x")).collect();
        changed(part, &[], &Changes { removed, created, ..there.clone() })
    };
    let left = |found: Option<String>, name: &str| found.is_some_and(|f| f == format!("{name} is still there."));
    let part = "rename every .jpeg file in pics to .jpg";
    assert!(left(gone(part, &["pics/a.jpeg"], &["pics/a.jpg"]), "pics/b.jpeg"));
    assert_eq!(
        gone(part, &["pics/a.jpeg", "pics/b.jpeg"], &["pics/a.jpg", "pics/b.jpg"]),
        None,
        "sub is another folder"
    );
    let part = "delete all *.jpeg files below pics";
    assert!(left(gone(part, &["pics/a.jpeg", "pics/b.jpeg"], &[]), "pics/sub/c.jpeg"));
    assert_eq!(gone(part, &["pics/a.jpeg", "pics/b.jpeg", "pics/sub/c.jpeg"], &[]), None);
    let all = ["pics/a.jpeg", "pics/b.jpeg", "pics/sub/c.jpeg"];
    assert_eq!(gone("move all .jpeg files to old", &all, &["old/a.jpeg", "old/b.jpeg", "old/c.jpeg"]), None);
    let set = |paths: &[&str]| {
        let changed_now = paths.iter().map(|path| entry(path, "port = 9000")).collect();
        changed(
            "set the port in every .jpeg file below pics to 9000",
            &[],
            &Changes { changed: changed_now, ..there.clone() },
        )
    };
    assert!(set(&["pics/a.jpeg"]).is_some_and(|f| f == "pics/b.jpeg is as it was before."));
    assert_eq!(set(&["pics/a.jpeg", "pics/b.jpeg", "pics/sub/c.jpeg"]), None);
    for part in [
        "delete all .jpeg files older than a week",
        "delete the .jpeg files",
        "delete all files but .jpeg ones",
        "delete all .jpeg files from last year",
        "delete all .jpeg files called draft",
        "delete all .jpeg files, keep b.jpeg",
        "delete all duplicate .jpeg files",
    ] {
        assert_eq!(gone(part, &["pics/a.jpeg"], &[]), None, "{part}");
    }
}

#[test]
fn this_folder_does_not_include_subfolders() {
    let there = before(&["a.tmp", "sub", "sub/x.tmp"]);
    let gone = Changes { removed: vec!["a.tmp".into()], ..there.clone() };
    for part in [
        "delete all .tmp files in this folder",
        "delete all .tmp files here",
        "remove every .tmp file in the current folder",
    ] {
        assert_eq!(changed(part, &[], &gone), None, "{part}");
    }
    assert!(changed("delete all .tmp files", &[], &gone).is_some());
    let modes = Changes { modes: vec!["a.sh".into(), "b.sh".into()], ..before(&["a.sh", "b.sh"]) };
    assert_eq!(changed("set the permissions of every .sh file to 755", &[], &modes), None);
    let empty = Changes { created: vec![entry("data.json", "")], ..Changes::default() };
    assert_eq!(changed("create an empty file data.json", &[], &empty), None);
    let commented =
        Changes { changed: vec![entry("tsconfig.json", "{ // x\n \"a\": 14 }")], ..before(&["tsconfig.json"]) };
    assert_eq!(changed("set a to 14 in tsconfig.json", &[], &commented), None, "it was none before");
    assert_eq!(showed("convert 20 dollars to euros at 0.92", &[], "echo", "18.4", &[]), None);
    assert_eq!(showed("sum up notes.txt", &[], "cat notes.txt", "all is well", &[]), None);
}

#[test]
fn changes_are_described_without_odd_names() {
    let changes = Changes {
        created: vec![entry("a.txt", "x"), entry("x\nIgnore all", "x")],
        removed: (0..9).map(|i| i.to_string()).collect(),
        ..Changes::default()
    };
    assert_eq!(
        describe(&changes).unwrap(),
        "made 2: a.txt, a file with an odd name; removed 9: 0, 1, 2, 3, 4, 5 and 3 more"
    );
    assert_eq!(describe(&Changes::default()), None);
    let entry = |path: &str| Entry { path: path.into(), folder: false, text: None };
    let mut moved = Changes {
        created: vec![entry("new/b.jpg"), entry("new/a.jpg")],
        removed: vec!["a.jpg".into(), "old/b.jpg".into()],
        ..Changes::default()
    };
    assert_eq!(describe(&moved).unwrap(), "moved 2: a.jpg, old/b.jpg to new");
    let renamed = Changes {
        created: vec![entry("old/a.jpg"), entry("b.jpg")],
        removed: vec!["old/a.jpeg".into(), "b.jpeg".into()],
        ..Changes::default()
    };
    assert_eq!(describe(&renamed).unwrap(), "renamed 2: old/a.jpeg, b.jpeg to old/a.jpg, b.jpg");
    moved.removed[0] = "c.jpg".into();
    assert_eq!(describe(&moved).unwrap(), "made 2: new/b.jpg, new/a.jpg; removed 2: c.jpg, old/b.jpg");
}

//! Tests that a run knows the files that earlier runs of its session have read.

use super::{agent, answer, events, kinds, step};
use crate::machine::Machine;
use serde_json::json;

#[test]
fn a5_a_file_read_by_one_run_is_known_to_the_next_of_its_session() {
    let machine = Machine::new();
    machine.write("work/disks.txt", "the backup disk is sdb1\n");
    let read = step("look", &[("read", json!({"path": "disks.txt"}))]);
    let cat = step("look again", &[("shell", json!({"command": "cat disks.txt"}))]);
    let replies = [read, answer("sdb1")];
    let again = [cat, answer("sdb1")];
    let args = |session: &'static str| ["find out which disk has the backup", "--session", session];
    let count_calls = || kinds(&events(&machine, "")).iter().filter(|kind| **kind == "tool_call").count();
    let prompt = |session| agent(&machine, &[], &[args(session).as_slice(), &["--show-prompt"]].concat()).out;

    let ran = agent(&machine, &replies, &args("s"));
    assert_eq!((ran.code, count_calls()), (Some(0), 1), "{ran:#?}");
    assert!(!prompt("other").contains("sdb1"), "another session has read nothing");
    let text = prompt("s");
    assert!(text.contains("<read_before>\n") && text.contains("disks.txt was read before"), "{text}");
    assert!(text.contains("the backup disk is sdb1"), "{text}");
    // another process reads it in another way
    let ran = agent(&machine, &again, &[args("s").as_slice(), &["--json"]].concat());
    assert_eq!(count_calls(), 0, "{ran:#?}");
    assert_eq!(ran.json()["state"], json!({"visited_files": 1, "modified_files": 0}));
    let blocked = events(&machine, "").iter().any(|event| event["metadata"]["finding"] == "repeat-read");
    assert!(blocked, "{ran:#?}");
    // two runs later it is still known; a changed file is read again
    assert!(prompt("s").contains("sdb1"));
    machine.write("work/disks.txt", "the backup disk is sdc1 now\n");
    assert!(!prompt("s").contains("read_before"), "{}", prompt("s"));
    agent(&machine, &again, &args("s"));
    assert_eq!(count_calls(), 1);
    assert!(prompt("s").contains("sdc1 now"));
}

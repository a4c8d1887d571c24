//! The next run of a session knows the texts that one before it has read.

use super::{agent, answer, events, kinds, step};
use crate::machine::Machine;
use serde_json::json;

#[test]
fn a5_what_a_run_has_read_the_next_one_of_its_session_knows() {
    let machine = Machine::new();
    machine.write("work/disks.txt", "the backup disk is sdb1\n");
    let read = step("look", &[("read", json!({"path": "disks.txt"}))]);
    let cat = step("look again", &[("shell", json!({"command": "cat disks.txt"}))]);
    let replies = [read, answer("sdb1")];
    let again = [cat, answer("sdb1")];
    let of = |session: &'static str| ["find out which disk has the backup", "--session", session];
    let called = || kinds(&events(&machine, "")).iter().filter(|kind| **kind == "tool_call").count();
    let prompt = |session| agent(&machine, &[], &[of(session).as_slice(), &["--show-prompt"]].concat()).out;

    let ran = agent(&machine, &replies, &of("s"));
    assert_eq!((ran.code, called()), (Some(0), 1), "{ran:#?}");
    assert!(!prompt("other").contains("sdb1"), "another session has read nothing");
    let told = prompt("s");
    assert!(told.contains("<read_before>\n") && told.contains("disks.txt was read before"), "{told}");
    assert!(told.contains("the backup disk is sdb1"), "{told}");
    // another process, and another way to read it
    let ran = agent(&machine, &again, &[of("s").as_slice(), &["--json"]].concat());
    assert_eq!(called(), 0, "{ran:#?}");
    assert_eq!(ran.json()["state"], json!({"visited_files": 1, "modified_files": 0}));
    let blocked = events(&machine, "").iter().any(|event| event["metadata"]["finding"] == "repeat-read");
    assert!(blocked, "{ran:#?}");
    // two runs further on it is still known, and a file that has changed is read again
    assert!(prompt("s").contains("sdb1"));
    machine.write("work/disks.txt", "the backup disk is sdc1 now\n");
    assert!(!prompt("s").contains("read_before"), "{}", prompt("s"));
    agent(&machine, &again, &of("s"));
    assert_eq!(called(), 1);
    assert!(prompt("s").contains("sdc1 now"));
}

//! Judges of the demos: each decides from its output and effect in the fixture whether a command is right.

use super::fixture::World;
use crate::support::run_shell;
use std::path::Path;

/// The output of a command, and the tree after it.
pub struct Outcome<'a> {
    pub stdout: String,
    pub tree: &'a Path,
    pub world: &'a World,
}

impl Outcome<'_> {
    fn lines(&self) -> impl Iterator<Item = &str> {
        self.stdout.lines().filter(|line| !line.trim().is_empty())
    }

    fn has(&self, text: &str) -> bool {
        self.stdout.contains(text)
    }
}

/// True if each commit of the last two weeks is listed, by subject or hash, with its author, and no older one.
pub fn recent_commits(ran: &Outcome) -> bool {
    let hash = |subject: &str| {
        let ran = run_shell(&format!("git log --format=%h --grep='^{subject}$'"), ran.tree);
        ran.stdout.trim().to_owned()
    };
    let has_commit = |subject: &str, author: &str| ran.has(author) && (ran.has(subject) || ran.has(&hash(subject)));
    has_commit("second", "Ada Example")
        && has_commit("third", "Me Myself")
        && has_commit("fourth", "Bo Example")
        && !ran.has("Old Author")
}

/// True if exactly the `count` processes with the highest CPU usage are listed, in order. Header lines of `top` are
/// ignored.
pub fn processes(ran: &Outcome, count: usize) -> bool {
    const RANKED: [&str; 10] =
        ["render", "swiftc", "WindowServer", "mds", "java", "sharingd", "Safari", "Notes", "bluetoothd", "trustd"];
    const OTHERS: [&str; 4] = ["launchd", "logd", "Mail", "zsh"];
    let is_row = |line: &&str| RANKED.iter().chain(&OTHERS).any(|name| line.contains(name));
    let rows: Vec<&str> = ran.lines().filter(is_row).collect();
    rows.len() == count && rows.iter().zip(RANKED).all(|(row, name)| row.contains(name))
}

/// True if exactly the two recent files are listed.
pub fn recent_rust(ran: &Outcome) -> bool {
    let lines: Vec<&str> = ran.lines().collect();
    let names = ["new.rs", "deep.rs"];
    lines.len() == names.len() && names.iter().all(|name| lines.iter().any(|line| line.trim_end().ends_with(name)))
}

/// True if all listening TCP ports are listed, and no other port.
pub fn listening(ran: &Outcome) -> bool {
    let word = |port: &String| {
        ran.stdout.split(|c: char| !c.is_alphanumeric() && c != '-').any(|word| word.trim_matches('-') == port)
    };
    ran.world.listening().iter().all(|names| names.iter().any(word)) && !ran.world.other_ports().iter().any(word)
}

/// True if the folders of the tree are sorted by size, or the disks by one of their sizes, in either order. `du` and
/// `df` are both right answers.
pub fn sorted_sizes(ran: &Outcome) -> bool {
    let folders = ["build", "assets", "cache"];
    let place = |name: &&str| {
        ran.lines().position(|line| {
            line.trim_end().ends_with(name) && line.starts_with(|c: char| c.is_ascii_digit() || c == ' ')
        })
    };
    let places: Vec<usize> = folders.iter().filter_map(place).collect();
    if places.len() == folders.len() {
        return places.is_sorted() || places.iter().rev().is_sorted();
    }
    let columns = |skip: usize| -> Vec<f64> {
        ran.lines().filter_map(|l| size(l.split_whitespace().nth(skip)?.trim_end_matches('%'))).collect()
    };
    let differ = |column: &[f64]| column.first() != column.last();
    (1..4).map(columns).any(|c| c.len() >= 3 && differ(&c) && (c.is_sorted() || c.iter().rev().is_sorted()))
}

/// Parses a size such as `3.1M`, or `3.1Mi` as in BSD's `df`, into bytes.
fn size(word: &str) -> Option<f64> {
    let word = word.strip_suffix('i').unwrap_or(word);
    let number: f64 = word.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse().ok()?;
    let unit = word.chars().last().filter(char::is_ascii_alphabetic).unwrap_or('B');
    Some(number * 1024_f64.powi("BKMGT".find(unit.to_ascii_uppercase())? as i32))
}

/// True if the last line has the total of 12: 3, 4 and 5 lines in three files, one of them with a space in its name.
pub fn total_lines(ran: &Outcome) -> bool {
    ran.lines().last().is_some_and(|line| line.split_whitespace().any(|word| word == "12"))
}

/// True if the time since the start is printed.
pub fn uptime(ran: &Outcome) -> bool {
    ran.has("up ")
}

/// True if a new archive contains the whole tree, including hidden files.
pub fn archive(ran: &Outcome) -> bool {
    let places = [ran.tree, ran.tree.parent().unwrap()];
    let files = places.iter().flat_map(|place| std::fs::read_dir(place).unwrap()).map(|e| e.unwrap().path());
    let mut archives = files.filter(|path| path.is_file() && path.to_string_lossy().contains(".t"));
    archives.any(|path| {
        let listed = run_shell(&format!("tar -tf '{}'", path.display()), ran.tree).stdout;
        ["src/inner/deep.rs", "logs/web server.log", ".settings"].iter().all(|name| listed.contains(name))
    })
}

/// True if the setuid files inside and outside of the tree are listed, and no setgid file.
pub fn setuid(ran: &Outcome) -> bool {
    ran.has("raised-program") && ran.has("raised-too") && !ran.has("group-program") && !ran.has("new.rs")
}

/// True if the users who logged in today are listed, still logged in or not, and none who logged in earlier.
pub fn logins(ran: &Outcome) -> bool {
    let word = |name: &str| ran.stdout.split(|c: char| !c.is_alphanumeric()).any(|word| word == name);
    word("ada") && word("bo") && !word("cy") && !word("dee")
}

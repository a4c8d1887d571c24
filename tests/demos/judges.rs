//! Judges of the demos: what a right command must have printed or done in the fixture, and what it must not.

use super::fixture::World;
use crate::support::run_shell;
use std::path::Path;

/// What running a command left.
pub struct Left<'a> {
    pub stdout: String,
    pub tree: &'a Path,
    pub world: &'a World,
}

impl Left<'_> {
    fn lines(&self) -> impl Iterator<Item = &str> {
        self.stdout.lines().filter(|line| !line.trim().is_empty())
    }

    fn says(&self, text: &str) -> bool {
        self.stdout.contains(text)
    }
}

/// Each commit of the last two weeks, told apart by its subject or its hash, with its author; none of another day.
pub fn recent_commits(left: &Left) -> bool {
    let hash = |subject: &str| {
        let ran = run_shell(&format!("git log --format=%h --grep='^{subject}$'"), left.tree);
        ran.stdout.trim().to_owned()
    };
    let told = |subject: &str, author: &str| left.says(author) && (left.says(subject) || left.says(&hash(subject)));
    told("second", "Ada Example")
        && told("third", "Me Myself")
        && told("fourth", "Bo Example")
        && !left.says("Old Author")
}

/// Exactly so many processes, those with the most CPU, in order; what `top` says above them aside.
pub fn processes(left: &Left, count: usize) -> bool {
    const RANKED: [&str; 10] =
        ["render", "swiftc", "WindowServer", "mds", "java", "sharingd", "Safari", "Notes", "bluetoothd", "trustd"];
    const OTHERS: [&str; 4] = ["launchd", "logd", "Mail", "zsh"];
    let is_row = |line: &&str| RANKED.iter().chain(&OTHERS).any(|name| line.contains(name));
    let rows: Vec<&str> = left.lines().filter(is_row).collect();
    rows.len() == count && rows.iter().zip(RANKED).all(|(row, name)| row.contains(name))
}

/// The two files as a list, and nothing else.
pub fn recent_rust(left: &Left) -> bool {
    let lines: Vec<&str> = left.lines().collect();
    let names = ["new.rs", "deep.rs"];
    lines.len() == names.len() && names.iter().all(|name| lines.iter().any(|line| line.trim_end().ends_with(name)))
}

/// All ports that are listened on by TCP, and no other port.
pub fn listening(left: &Left) -> bool {
    let word = |port: &String| {
        left.stdout.split(|c: char| !c.is_alphanumeric() && c != '-').any(|word| word.trim_matches('-') == port)
    };
    left.world.listening().iter().all(|names| names.iter().any(word)) && !left.world.other_ports().iter().any(word)
}

/// The folders of the tree by size, or disks by one of their sizes, either way round. `du` and `df` are both right answers.
pub fn sorted_sizes(left: &Left) -> bool {
    let folders = ["build", "assets", "cache"];
    let place = |name: &&str| {
        left.lines().position(|line| {
            line.trim_end().ends_with(name) && line.starts_with(|c: char| c.is_ascii_digit() || c == ' ')
        })
    };
    let places: Vec<usize> = folders.iter().filter_map(place).collect();
    if places.len() == folders.len() {
        return places.is_sorted() || places.iter().rev().is_sorted();
    }
    let columns = |skip: usize| -> Vec<f64> {
        left.lines().filter_map(|l| size(l.split_whitespace().nth(skip)?.trim_end_matches('%'))).collect()
    };
    let differ = |column: &[f64]| column.first() != column.last();
    (1..4).map(columns).any(|c| c.len() >= 3 && differ(&c) && (c.is_sorted() || c.iter().rev().is_sorted()))
}

/// `3.1M`, or `3.1Mi` as BSD's `df` has it, in bytes.
fn size(word: &str) -> Option<f64> {
    let word = word.strip_suffix('i').unwrap_or(word);
    let number: f64 = word.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse().ok()?;
    let unit = word.chars().last().filter(char::is_ascii_alphabetic).unwrap_or('B');
    Some(number * 1024_f64.powi("BKMGT".find(unit.to_ascii_uppercase())? as i32))
}

/// 3, 4 and 5 lines in three files, of which one has a space in its name.
pub fn total_lines(left: &Left) -> bool {
    left.lines().last().is_some_and(|line| line.split_whitespace().any(|word| word == "12"))
}

/// How long, not since when.
pub fn uptime(left: &Left) -> bool {
    left.says("up ")
}

/// Some new archive holds all of the tree, what is hidden too.
pub fn archive(left: &Left) -> bool {
    let places = [left.tree, left.tree.parent().unwrap()];
    let files = places.iter().flat_map(|place| std::fs::read_dir(place).unwrap()).map(|e| e.unwrap().path());
    let mut archives = files.filter(|path| path.is_file() && path.to_string_lossy().contains(".t"));
    archives.any(|path| {
        let listed = run_shell(&format!("tar -tf '{}'", path.display()), left.tree).stdout;
        ["src/inner/deep.rs", "logs/web server.log", ".settings"].iter().all(|name| listed.contains(name))
    })
}

/// Those of the tree and of elsewhere, and none that raises the group alone.
pub fn setuid(left: &Left) -> bool {
    left.says("raised-program") && left.says("raised-too") && !left.says("group-program") && !left.says("new.rs")
}

/// Who logged in today, gone or not; not who did so days ago, still there or not.
pub fn logins(left: &Left) -> bool {
    let word = |name: &str| left.stdout.split(|c: char| !c.is_alphanumeric()).any(|word| word == name);
    word("ada") && word("bo") && !word("cy") && !word("dee")
}

//! No file of a room takes from another that, by some way, takes from it again: what stands above names what stands below, and
//! who reads a file can read those that it names without coming back to where he began.
//!
//! An arrow is a `use` of another file of the crate; a name that a `mod.rs` or `lib.rs` hands on is followed to the file that has it.

use crate::architecture::{STANDS_ON, files, from_the_root, without_tests};
use std::collections::{BTreeMap, BTreeSet};

/// So often a name is handed on at most.
const DEEPEST: u32 = 8;

type Path = Vec<String>;

/// The files of the crate by their module paths, each with what it uses and what it hands on, as absolute paths.
struct Crate {
    uses: BTreeMap<Path, Vec<Path>>,
    hands_on: BTreeMap<Path, BTreeMap<String, Path>>,
}

impl Crate {
    fn read() -> Self {
        let mut sources = BTreeMap::new();
        for (path, text) in files("src", &["rs"]) {
            let name = path.rsplit('/').next().unwrap();
            if ["lib.rs", "main.rs"].contains(&path.as_str())
                || ["tests.rs", "testing.rs"].contains(&name)
                || name.ends_with("_tests.rs")
            {
                continue;
            }
            let module = path
                .trim_end_matches(".rs")
                .trim_end_matches("/mod")
                .trim_end_matches("/lib")
                .split('/')
                .map(str::to_owned);
            sources.insert(module.collect::<Path>(), from_the_root(&path, &without_tests(&text)));
        }
        let mut all = Self { uses: BTreeMap::new(), hands_on: BTreeMap::new() };
        for (module, code) in &sources {
            let (mut uses, mut hands_on) = (Vec::new(), BTreeMap::new());
            for (public, path) in statements(code) {
                let (path, name) = path.split_once(" as ").map_or((path.as_str(), None), |(p, n)| (p, Some(n)));
                let Some(whole) = absolute(module, path, &sources) else { continue };
                match name.or(whole.last().map(String::as_str)) {
                    Some(name) if public => _ = hands_on.insert(name.to_owned(), whole),
                    _ => uses.push(whole),
                }
            }
            all.uses.insert(module.clone(), uses);
            all.hands_on.insert(module.clone(), hands_on);
        }
        all
    }

    /// The file that has what a path names.
    fn owner(&self, path: &[String], depth: u32) -> Option<Path> {
        let length = (1..=path.len()).rev().find(|n| self.uses.contains_key(&path[..*n]))?;
        let (module, rest) = path.split_at(length);
        if depth == DEEPEST {
            return Some(module.to_vec());
        }
        let further = rest.first().and_then(|name| self.hands_on[module].get(name));
        let owner = further.and_then(|other| self.owner(&[other.as_slice(), &rest[1..]].concat(), depth + 1));
        owner.or_else(|| Some(module.to_vec()))
    }

    fn arrows(&self) -> BTreeMap<Path, BTreeSet<Path>> {
        let of = |module: &Path, uses: &[Path]| {
            uses.iter().filter_map(|path| self.owner(path, 0)).filter(|other| other != module).collect()
        };
        self.uses.iter().map(|(module, uses)| (module.clone(), of(module, uses))).collect()
    }
}

/// The paths of all `use` statements at the left margin, one for each name, and whether they hand it on.
fn statements(code: &str) -> Vec<(bool, String)> {
    let mut all = Vec::new();
    for part in code.split_inclusive(';') {
        let Some(line) =
            part.lines().position(|line| line.starts_with("use ") || line.starts_with("pub") && line.contains(" use "))
        else {
            continue;
        };
        let text = part.lines().skip(line).collect::<Vec<_>>().join(" ");
        let Some((before, body)) = text.split_once("use ") else { continue };
        names(body.trim_end_matches(';').trim(), "", &mut |path| all.push((before.starts_with("pub"), path)));
    }
    all
}

fn names(text: &str, before: &str, found: &mut dyn FnMut(String)) {
    let Some((head, group)) = text.split_once('{') else {
        return found(format!("{before}{}", text.trim()));
    };
    let (mut depth, mut from) = (0, 0);
    let group = &group[..group.rfind('}').unwrap_or(group.len())];
    for (at, c) in group.char_indices().chain([(group.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !group[from..at].trim().is_empty() {
                    names(group[from..at].trim(), &format!("{before}{}", head.trim()), found);
                }
                from = at + 1;
            }
            _ => {}
        }
    }
}

fn absolute(module: &[String], path: &str, sources: &BTreeMap<Path, String>) -> Option<Path> {
    let mut parts: Path = path.split("::").map(|part| part.trim().to_owned()).collect();
    parts.retain(|part| part != "self");
    let ups = parts.iter().take_while(|part| *part == "super").count();
    if parts.first().is_some_and(|first| first == "crate") {
        return Some(parts.split_off(1));
    }
    if ups > 0 {
        return Some([&module[..module.len().checked_sub(ups)?], &parts[ups..]].concat());
    }
    let below = [module, parts.get(..1)?].concat();
    sources.contains_key(&below).then(|| [module, &parts].concat())
}

/// The groups of files each of which reaches all others of its group.
fn circles(arrows: &BTreeMap<Path, BTreeSet<Path>>) -> Vec<BTreeSet<Path>> {
    let reached = |from: &Path| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(file) = next.pop() {
            next.extend(arrows.get(&file).into_iter().flatten().filter(|to| seen.insert((*to).clone())).cloned());
        }
        seen
    };
    let all: BTreeMap<&Path, BTreeSet<Path>> = arrows.keys().map(|file| (file, reached(file))).collect();
    let mut found: BTreeSet<BTreeSet<Path>> = BTreeSet::new();
    for (file, to) in &all {
        let circle: BTreeSet<Path> = to.iter().filter(|other| all[other].contains(*file)).cloned().collect();
        found.extend((circle.len() > 1).then_some(circle));
    }
    found.into_iter().collect()
}

#[test]
fn a_circle_is_found_and_a_name_is_followed_to_its_file() {
    let path = |text: &str| text.split("::").map(str::to_owned).collect::<Path>();
    let found = statements("use super::{a, b::{self, C}};\npub use d::E as F;\nfn f() {\n    use g;\n}\n");
    let of = |public, text: &str| (public, text.to_owned());
    assert_eq!(
        found,
        [of(false, "super::a"), of(false, "super::b::self"), of(false, "super::b::C"), of(true, "d::E as F")]
    );
    let sources = BTreeMap::from([(path("r"), String::new()), (path("r::d"), String::new())]);
    assert_eq!(absolute(&path("r::d"), "super::b::self", &sources), Some(path("r::b")));
    assert_eq!(
        (absolute(&path("r"), "d::E", &sources), absolute(&path("r"), "std::fs", &sources)),
        (Some(path("r::d::E")), None)
    );
    let to = |names: &[&str]| names.iter().map(|name| path(name)).collect::<BTreeSet<_>>();
    let arrows = BTreeMap::from([
        (path("a"), to(&["b"])),
        (path("b"), to(&["c"])),
        (path("c"), to(&["a", "d"])),
        (path("d"), to(&[])),
    ]);
    assert_eq!(circles(&arrows), [to(&["a", "b", "c"])]);
}

#[test]
fn no_file_comes_back_to_itself() {
    let arrows = Crate::read().arrows();
    assert!(arrows.values().map(BTreeSet::len).sum::<usize>() > 1000, "the arrows are seen");
    let circles: Vec<BTreeSet<String>> =
        circles(&arrows).iter().map(|circle| circle.iter().map(|file| file.join("/")).collect()).collect();
    assert!(circles.is_empty(), "{} circles of files: {circles:#?}", circles.len());
}

/// The floors of the command line, from the top: each takes from those behind it, never from one before.
const FLOORS: [&str; 7] = ["verbs", "served", "harness", "answer", "papers", "setup", "term"];

#[test]
fn no_verb_takes_from_another_and_no_floor_from_one_above() {
    let floor = |file: &[String]| match file {
        [room, floor, _, ..] if room == "cli" => FLOORS.iter().position(|name| name == floor),
        _ => None,
    };
    let (mut seen, mut wrong) = (0, Vec::new());
    for (file, to) in Crate::read().arrows() {
        for other in to {
            let (Some(from), Some(below)) = (floor(&file), floor(&other)) else { continue };
            seen += 1;
            if below < from || from == 0 && below == 0 && file[2] != other[2] {
                wrong.push(format!("{} takes from {}", file.join("/"), other.join("/")));
            }
        }
    }
    assert!(seen > 200, "{seen} arrows are seen");
    assert!(wrong.is_empty(), "{wrong:#?}");
    // nor by a path within its code
    let names_a_verb = |(path, text): &(String, String)| {
        let own = path.strip_prefix("cli/verbs/").map(|rest| rest.split(['/', '.']).next().unwrap().to_owned());
        let code = from_the_root(path, &without_tests(text));
        let named = |part: &str| own.as_deref().is_none_or(|own| !part.starts_with(&format!("{own}::")));
        code.split("cli::verbs::").skip(1).any(named)
    };
    let named: Vec<String> = files("src", &["rs"]).into_iter().filter(names_a_verb).map(|(path, _)| path).collect();
    assert!(named.iter().all(|path| ["cli/args.rs", "cli/dispatch.rs"].contains(&path.as_str())), "{named:?}");
    assert_eq!(named.len(), 2);
}

/// Draws no conclusion: the table of a record.
#[test]
#[ignore = "prints the rooms: add --nocapture"]
fn the_house() {
    let (sources, arrows) = (files("src", &["rs"]), Crate::read().arrows());
    println!("| room | files | lines | arrows between its files | stands on |\n| --- | --- | --- | --- | --- |");
    for (room, below) in STANDS_ON {
        let own = sources.iter().filter(|(path, _)| path.split('/').next() == Some(room));
        let (count, lines) = own.fold((0, 0), |(count, lines), (_, text)| (count + 1, lines + text.lines().count()));
        let inner =
            arrows.iter().filter(|(file, _)| file[0] == *room).flat_map(|(_, to)| to).filter(|to| to[0] == *room);
        println!("| {room} | {count} | {lines} | {} | {below} |", inner.count());
    }
    for circle in circles(&arrows) {
        println!("circle of {}: {}", circle.len(), circle.first().unwrap().join("/"));
    }
}

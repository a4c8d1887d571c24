//! Tests that no source files depend on each other in a cycle, directly or indirectly.
//!
//! A file depends on another if it has a `use` of it. Re-exports of a `mod.rs` or `lib.rs` are followed to the file
//! that defines the name.

use crate::architecture::{DEPENDENCIES, files, with_absolute_paths, without_tests};
use std::collections::{BTreeMap, BTreeSet};

/// Most re-exports followed for one name.
const MAX_REEXPORTS: u32 = 8;

type Path = Vec<String>;

/// The source files by module path, each with its `use` paths and its re-exports, all absolute.
struct Crate {
    uses: BTreeMap<Path, Vec<Path>>,
    reexports: BTreeMap<Path, BTreeMap<String, Path>>,
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
            sources.insert(module.collect::<Path>(), with_absolute_paths(&path, &without_tests(&text)));
        }
        let mut all = Self { uses: BTreeMap::new(), reexports: BTreeMap::new() };
        for (module, code) in &sources {
            let (mut uses, mut reexports) = (Vec::new(), BTreeMap::new());
            for (public, path) in statements(code) {
                let (path, name) = path.split_once(" as ").map_or((path.as_str(), None), |(p, n)| (p, Some(n)));
                let Some(whole) = absolute(module, path, &sources) else { continue };
                match name.or(whole.last().map(String::as_str)) {
                    Some(name) if public => _ = reexports.insert(name.to_owned(), whole),
                    _ => uses.push(whole),
                }
            }
            all.uses.insert(module.clone(), uses);
            all.reexports.insert(module.clone(), reexports);
        }
        all
    }

    /// The file that defines the item of a path.
    fn owner(&self, path: &[String], depth: u32) -> Option<Path> {
        let length = (1..=path.len()).rev().find(|n| self.uses.contains_key(&path[..*n]))?;
        let (module, rest) = path.split_at(length);
        if depth == MAX_REEXPORTS {
            return Some(module.to_vec());
        }
        let further = rest.first().and_then(|name| self.reexports[module].get(name));
        let owner = further.and_then(|other| self.owner(&[other.as_slice(), &rest[1..]].concat(), depth + 1));
        owner.or_else(|| Some(module.to_vec()))
    }

    /// The files that each file depends on.
    fn dependencies(&self) -> BTreeMap<Path, BTreeSet<Path>> {
        let of = |module: &Path, uses: &[Path]| {
            uses.iter().filter_map(|path| self.owner(path, 0)).filter(|other| other != module).collect()
        };
        self.uses.iter().map(|(module, uses)| (module.clone(), of(module, uses))).collect()
    }
}

/// The paths of all top-level `use` statements, one for each name, each with whether it is re-exported.
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

/// The groups of files that all depend on each other, directly or indirectly.
fn cycles(dependencies: &BTreeMap<Path, BTreeSet<Path>>) -> Vec<BTreeSet<Path>> {
    let reached = |from: &Path| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(file) = next.pop() {
            let direct = dependencies.get(&file).into_iter().flatten();
            next.extend(direct.filter(|to| seen.insert((*to).clone())).cloned());
        }
        seen
    };
    let all: BTreeMap<&Path, BTreeSet<Path>> = dependencies.keys().map(|file| (file, reached(file))).collect();
    let mut found: BTreeSet<BTreeSet<Path>> = BTreeSet::new();
    for (file, to) in &all {
        let cycle: BTreeSet<Path> = to.iter().filter(|other| all[other].contains(*file)).cloned().collect();
        found.extend((cycle.len() > 1).then_some(cycle));
    }
    found.into_iter().collect()
}

#[test]
fn cycles_are_found_and_use_statements_are_parsed() {
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
    let dependencies = BTreeMap::from([
        (path("a"), to(&["b"])),
        (path("b"), to(&["c"])),
        (path("c"), to(&["a", "d"])),
        (path("d"), to(&[])),
    ]);
    assert_eq!(cycles(&dependencies), [to(&["a", "b", "c"])]);
}

#[test]
fn no_files_depend_on_each_other_in_a_cycle() {
    let dependencies = Crate::read().dependencies();
    assert!(dependencies.values().map(BTreeSet::len).sum::<usize>() > 1000, "dependencies are found");
    let cycles: Vec<BTreeSet<String>> =
        cycles(&dependencies).iter().map(|cycle| cycle.iter().map(|file| file.join("/")).collect()).collect();
    assert!(cycles.is_empty(), "{} cycles of files: {cycles:#?}", cycles.len());
}

/// The layers of the command line from the top: a layer may depend only on those after it.
const LAYERS: [&str; 7] = ["verbs", "served", "harness", "answer", "papers", "setup", "term"];

#[test]
fn verbs_are_independent_and_layers_depend_only_on_lower_ones() {
    let layer = |file: &[String]| match file {
        [name, layer, _, ..] if name == "cli" => LAYERS.iter().position(|name| name == layer),
        _ => None,
    };
    let (mut seen, mut wrong) = (0, Vec::new());
    for (file, to) in Crate::read().dependencies() {
        for other in to {
            let (Some(from), Some(below)) = (layer(&file), layer(&other)) else { continue };
            seen += 1;
            if below < from || from == 0 && below == 0 && file[2] != other[2] {
                wrong.push(format!("{} depends on {}", file.join("/"), other.join("/")));
            }
        }
    }
    assert!(seen > 200, "only {seen} dependencies are found");
    assert!(wrong.is_empty(), "{wrong:#?}");
    // paths in the code are checked too
    let names_a_verb = |(path, text): &(String, String)| {
        let own = path.strip_prefix("cli/verbs/").map(|rest| rest.split(['/', '.']).next().unwrap().to_owned());
        let code = with_absolute_paths(path, &without_tests(text));
        let named = |part: &str| own.as_deref().is_none_or(|own| !part.starts_with(&format!("{own}::")));
        code.split("cli::verbs::").skip(1).any(named)
    };
    let named: Vec<String> = files("src", &["rs"]).into_iter().filter(names_a_verb).map(|(path, _)| path).collect();
    assert!(named.iter().all(|path| ["cli/args.rs", "cli/dispatch.rs"].contains(&path.as_str())), "{named:?}");
    assert_eq!(named.len(), 2);
}

/// Prints the table of crates for a record; checks nothing.
#[test]
#[ignore = "prints the crates: add --nocapture"]
fn table_of_crates() {
    let (sources, dependencies) = (files("src", &["rs"]), Crate::read().dependencies());
    println!("| crate | files | lines | dependencies between its files | uses |\n| --- | --- | --- | --- | --- |");
    for (name, below) in DEPENDENCIES {
        let own = sources.iter().filter(|(path, _)| path.split('/').next() == Some(name));
        let (count, lines) = own.fold((0, 0), |(count, lines), (_, text)| (count + 1, lines + text.lines().count()));
        let of_crate = dependencies.iter().filter(|(file, _)| file[0] == *name).flat_map(|(_, to)| to);
        let inner = of_crate.filter(|to| to[0] == *name);
        println!("| {name} | {count} | {lines} | {} | {below} |", inner.count());
    }
    for cycle in cycles(&dependencies) {
        println!("cycle of {}: {}", cycle.len(), cycle.first().unwrap().join("/"));
    }
}

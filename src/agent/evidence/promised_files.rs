//! Finds the files that will exist once a task is done.

use super::{trim_path, verb, words};
use caro_intent::order;

/// Verbs that create files from those that they name.
const MAKES: &[&str] = &[
    "add",
    "append",
    "archive",
    "back",
    "compress",
    "convert",
    "copy",
    "create",
    "export",
    "generate",
    "make",
    "merge",
    "move",
    "pack",
    "put",
    "rename",
    "save",
    "split",
    "store",
    "translate",
    "write",
    "zip",
];
/// Extensions of file names. A word with any other extension may be something else.
const EXTENSIONS: &[&str] = &[
    "adoc", "bak", "bz2", "c", "cfg", "conf", "cpp", "css", "csv", "gz", "h", "html", "ini", "java", "jpeg", "jpg",
    "js", "json", "log", "md", "org", "pdf", "pl", "png", "py", "rb", "rs", "rst", "sh", "sql", "svg", "tar", "tgz",
    "toml", "tsv", "txt", "xml", "xz", "yaml", "yml", "zip",
];

/// Returns the names, as written, of the files that the parts create, and of those they create them from. The caller
/// reports a file that does not exist and never did.
pub fn promised(parts: &[String]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for part in parts.iter().filter(|part| MAKES.contains(&verb(part).as_str())) {
        // files named in the content of a text or script are no promise
        let part_words = words(order(part))
            .into_iter()
            .take_while(|w| !matches!(w.to_lowercase().as_str(), "that" | "which" | "if"));
        for name in part_words.map(trim_path).filter(|name| is_file(name)) {
            if !found.iter().any(|known| known == name) {
                found.push(name.to_owned());
            }
        }
    }
    found
}

fn is_file(name: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
    let ends = name.rsplit_once('.').is_some_and(|(stem, end)| {
        stem.chars().last().is_some_and(char::is_alphanumeric) && EXTENSIONS.contains(&end.to_lowercase().as_str())
    });
    ends && name.len() <= 120 && !name.starts_with(['/', '.', '-']) && !name.contains("..") && name.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promised_files_are_named_with_their_extension() {
        let of = |part: &str| promised(&[part.to_owned()]).join(" ");
        for (part, want) in [
            ("convert people.csv to people.json", "people.csv people.json"),
            (
                "create a folder trip with packing.txt, route.txt and sub/budget.txt.",
                "packing.txt route.txt sub/budget.txt",
            ),
            ("merge `a.csv` and a.csv into \"all.csv\"", "a.csv all.csv"),
            // no file is created, or the word may not be a file
            ("find a.txt", ""),
            ("create a new config.json (The old config.yml was deleted)", "config.json"),
            ("count the lines of a.txt", ""),
            ("write a script that deletes old.log", ""),
            ("rename all .txt files to .md", ""),
            ("copy the *.txt files to /srv/a.txt and ~/b.txt", ""),
            ("replace os.path by pathlib", ""),
            ("write about node.kind, v1.2 and example.com", ""),
        ] {
            assert_eq!(of(part), want, "{part}");
        }
    }
}

//! The language of the source and of the papers about it: doc comments say what an item is, and functions that a paper names
//! exist.

use crate::architecture::files;
use regex::Regex;

/// The first line of each doc comment that begins as a question or a reference does, and not with what the item is or does.
fn vague_docs(text: &str) -> Vec<&str> {
    const VAGUE: [&str; 11] =
        ["What ", "Who ", "Whose ", "Where ", "Whether ", "How ", "Nobody", "Those ", "That of ", "So ", "The same "];
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let doc = |at: usize| lines[at].strip_prefix("/// ").or(lines[at].strip_prefix("//! "));
    let mut found = Vec::new();
    for at in 0..lines.len() {
        let is_first = at == 0 || !lines[at - 1].starts_with("//");
        let Some(doc) = doc(at).filter(|doc| is_first && VAGUE.iter().any(|word| doc.starts_with(word))) else {
            continue;
        };
        // the help texts of arguments are written for users
        let mut rest = lines[at..]
            .iter()
            .skip_while(|line| line.starts_with("//"))
            .skip_while(|line| line.starts_with("#[") && !line.starts_with("#[arg") && !line.starts_with("#[command"));
        let item = rest.next().unwrap_or(&"");
        let is_help =
            item.starts_with("#[") || text.contains("clap") && item.ends_with([',', '{']) && !item.contains("fn ");
        if !is_help {
            found.push(doc);
        }
    }
    found
}

#[test]
fn doc_comments_begin_with_what_an_item_is_or_does() {
    for (path, text) in files("src", &["rs"]) {
        let vague = vague_docs(&text);
        assert!(vague.is_empty(), "{path}: {vague:#?}");
    }
    let sample = "/// How often a call is repeated.\nconst TRIES: u32 = 3;\n/// Most repetitions.\n/// What is over fails.\nfn f() {}\n";
    assert_eq!(vague_docs(sample), ["How often a call is repeated."]);
}

/// The lines whose text tells the user a command of caro without backquotes around it.
fn unquoted_commands(text: &str) -> Vec<&str> {
    let told = Regex::new(r#"(: |hint\(")caro ("|\\"|'|--? ?|[a-z])"#).unwrap();
    text.lines().map(str::trim_start).filter(|line| !line.starts_with("//") && told.is_match(line)).collect()
}

/// A terminal gets lines that are broken between words, except in backquotes.
#[test]
fn a_command_that_the_user_is_told_stands_in_backquotes() {
    for (path, text) in files("src", &["rs"]) {
        let unquoted = unquoted_commands(&text);
        assert!(unquoted.is_empty(), "{path}: {unquoted:#?}");
    }
    let sample =
        "note(\"try: caro -- top\");\nnote(\"try: `caro -- top`\");\nhint(\"caro \\\"x\\\"\");\n// as: caro x\n";
    assert_eq!(unquoted_commands(sample), ["note(\"try: caro -- top\");", "hint(\"caro \\\"x\\\"\");"]);
}

/// The lines of a program that print a number before a noun in the plural, whatever the number is.
fn fixed_plurals(text: &str) -> Vec<&str> {
    let nouns = "artifacts|commands|documents|entries|files|lines|manuals|models|notes|passages|paths|requests|runs|sessions|\
                 skills|steps|tasks|tools";
    let counted = Regex::new(&format!(r"\{{(\w*|\w+\.len\(\))\}} ({nouns})\b")).unwrap();
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    code.lines().map(str::trim_start).filter(|line| !line.starts_with("//") && counted.is_match(line)).collect()
}

#[test]
fn a_count_and_its_noun_agree() {
    for (path, text) in files("src/cli", &["rs"]) {
        let fixed = fixed_plurals(&text);
        assert!(fixed.is_empty(), "{path}: `plural` says `1 file`: {fixed:#?}");
    }
    let sample = "note(\"{read} manuals read\");\nnote(&plural(read, \"manual\"));\n// {n} files\n";
    assert_eq!(fixed_plurals(sample), ["note(\"{read} manuals read\");"]);
}

/// The keys of a shell's line editor exist after `caro init`, and `--key` chooses them.
#[test]
fn no_message_names_a_key_of_the_prompt() {
    for (path, text) in files("src/cli", &["rs"]).into_iter().filter(|(path, _)| !path.contains("verbs/init/")) {
        let code = text.lines().find(|line| !line.trim_start().starts_with("//") && line.contains("Alt-"));
        assert_eq!(code, None, "{path}");
    }
}

#[test]
fn a_condition_is_no_filter_that_ignores_its_item() {
    for (path, text) in files("src", &["rs"]) {
        assert!(!text.contains(".filter(|_|"), "{path}: say `if` or `then`");
    }
}

/// `Type::function`, `Enum::Variant` and `module::function` in backquotes lead to a definition below `src`.
#[test]
fn every_function_that_the_way_of_a_request_names_exists() {
    let paper = include_str!("../src/README.md");
    let sources = files("src", &["rs"]);
    let path = Regex::new(r"`((?:\w+::)*)(\w+)::(\w+)`").unwrap();
    let mut named = 0;
    for name in path.captures_iter(paper) {
        let (owner, item) = (&name[2], &name[3]);
        let starts_upper = |word: &str| word.starts_with(char::is_uppercase);
        let definition = if starts_upper(item) {
            format!(r"(?m)\b(struct|enum|trait) {item}\b|^ +{item}\b")
        } else {
            format!(r"\bfn {item}\b")
        };
        let definition = Regex::new(&definition).unwrap();
        let block = Regex::new(&format!(r"(?m)^ *(pub.* )?(impl\b.*|enum|struct) ?{owner}\b")).unwrap();
        let belongs = |(file, text): &(String, String)| {
            if starts_upper(owner) {
                block.is_match(text)
            } else {
                file.trim_end_matches(".rs").split('/').any(|part| part == owner)
            }
        };
        let defines = |source: &(String, String)| belongs(source) && definition.is_match(&source.1);
        assert!(sources.iter().any(defines), "src/README.md names `{owner}::{item}`, which is defined nowhere");
        named += 1;
    }
    assert!(named > 20, "{named}");
}

//! Generates the manual pages, one of the program and one of each verb, from the definition of the arguments and the
//! topics.

use super::{roff, topics};
use clap::Command;
use clap_mangen::Man;
use std::io;

/// A manual page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The name of its file: `caro-undo.1`.
    pub file: String,
    /// Its text.
    pub text: String,
}

/// The topics on the page of the program, besides its verbs and flags, with their headings.
const PROGRAM_TOPICS: [(&str, &str); 5] = [
    ("exit-codes", "Exit status"),
    ("settings", "Settings"),
    ("safety", "Safety"),
    ("privacy", "Files and privacy"),
    ("targets", "Targets"),
];

/// Generates every page, that of the program first.
///
/// # Errors
/// Never: they are written into memory.
pub fn pages(command: Command) -> io::Result<Vec<Page>> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    let mut waiting = vec![(command, Vec::<String>::new())];
    while let Some((command, path)) = waiting.pop() {
        let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set() && verb.get_name() != "help");
        let mut below: Vec<_> =
            verbs.map(|verb| (verb.clone(), [&path[..], &[verb.get_name().to_owned()]].concat())).collect();
        below.reverse();
        pages.push(page(command, &path)?);
        waiting.extend(below);
    }
    Ok(pages)
}

fn page(command: Command, path: &[String]) -> io::Result<Page> {
    let name = ["caro"].into_iter().chain(path.iter().map(String::as_str)).collect::<Vec<_>>().join("-");
    let mut text = Vec::new();
    Man::new(command).title(name.to_uppercase()).render(&mut text)?;
    let mut text = String::from_utf8_lossy(&text).into_owned();
    let own: &[(&str, &str)] = match path {
        [] => &PROGRAM_TOPICS,
        [verb] => match topics::find(verb) {
            Some(topic) => &[(topic.name, topic.about)],
            None => &[],
        },
        _ => &[],
    };
    for (topic, heading) in own {
        let blocks = topics::find(topic).map(topics::Topic::blocks).unwrap_or_default();
        text.push_str(&roff::section(heading, &blocks));
    }
    if !path.is_empty() {
        text.push_str(".SH \"SEE ALSO\"\n\\fBcaro\\fR(1)\n");
    }
    Ok(Page { file: format!("{name}.1"), text })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::CommandFactory;

    #[test]
    fn there_is_a_page_for_the_program_and_for_each_verb() {
        let pages = pages(Cli::command()).unwrap();
        let text = |file: &str| &pages.iter().find(|page| page.file == file).unwrap_or_else(|| panic!("{file}")).text;
        assert_eq!(pages[0].file, "caro.1");
        for file in ["caro-undo.1", "caro-model-adapter-add.1", "caro-config-set.1"] {
            assert!(text(file).contains(".SH NAME") && text(file).contains("SEE ALSO"), "{file}");
        }
        assert!(pages.iter().all(|page| !page.file.contains("help")));
        for (_, heading) in PROGRAM_TOPICS {
            assert!(text("caro.1").contains(&format!(".SH \"{}\"", heading.to_uppercase())), "{heading}");
        }
        assert!(text("caro-undo.1").contains("byte for byte"), "what the topic says");
        let mut files: Vec<&str> = pages.iter().map(|page| page.file.as_str()).collect();
        files.sort_unstable();
        files.dedup();
        assert_eq!(files.len(), pages.len());
    }
}

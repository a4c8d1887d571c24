//! `caro help`: prints a help topic, or the flags of a verb. Several words are a request instead
//! (`help me find big files`).

use crate::papers::topics::{TOPICS, Topic};
use crate::papers::{plain, topics};
use crate::term::ui::Role;
use crate::{Cx, Exit, Failure, Outcome};

/// Arguments of `caro help`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A topic or a verb; without one, the list of topics
    #[arg(value_name = "TOPIC")]
    word: Option<String>,
}

/// Prints a topic; if it is also the name of a verb, the flags of the verb first.
///
/// # Errors
/// If there is no such topic, or stdout cannot be written.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    let Some(word) = args.word.as_deref().filter(|word| *word != "topics") else {
        list(cx)?;
        return Ok(Exit::Success);
    };
    let topic = topics::find(word).ok_or_else(|| unknown(word))?;
    let definition = cx.definition();
    if definition.find_subcommand(word).is_some()
        && let Err(flags) = definition.try_get_matches_from(["caro", word, "--help"])
    {
        // a closed stdout is reported by the next write
        let _ = flags.print();
        cx.ui.line("")?;
    }
    show(topic, cx)?;
    Ok(Exit::Success)
}

fn show(topic: &Topic, cx: &Cx) -> Result<(), Failure> {
    cx.ui.line(&cx.ui.paint(Role::Accent, &format!("{}: {}", topic.name.to_uppercase(), topic.about)))?;
    cx.ui.line("")?;
    for line in plain::lines(&topic.blocks()) {
        let painted: String = line.iter().map(|(role, text)| cx.ui.paint(*role, text)).collect();
        cx.ui.line(painted.trim_end())?;
    }
    Ok(())
}

fn list(cx: &Cx) -> Result<(), Failure> {
    for topic in &TOPICS {
        let name = cx.ui.paint(Role::Command, &format!("{:<12}", topic.name));
        cx.ui.line(&format!("{name}  {}", cx.ui.paint(Role::Plain, topic.about)))?;
    }
    cx.ui.note("`caro help TOPIC` shows one, `caro help VERB` the flags of a verb, `caro --help` all verbs");
    Ok(())
}

/// The failure for an unknown topic, with the nearest topic and a list of all.
fn unknown(word: &str) -> Failure {
    let near = TOPICS.iter().map(|topic| (strsim::osa_distance(word, topic.name), topic.name)).min();
    let suggestion =
        near.filter(|(edits, _)| *edits <= 2).map_or(String::new(), |(_, near)| format!("did you mean `{near}`? "));
    let names: Vec<&str> = TOPICS.iter().map(|topic| topic.name).collect();
    Failure::usage(format!("there is no topic `{word}`"))
        .hint(format!("{suggestion}There are: {}. For a command: `caro -- help {word}`", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_topic_suggests_the_nearest_and_lists_all() {
        let hint = unknown("privcy").hint.unwrap();
        assert!(hint.starts_with("did you mean `privacy`?") && hint.contains("exit-codes, settings"), "{hint}");
        assert!(unknown("quantum").hint.unwrap().starts_with("There are: start, "));
    }
}

//! Defines the command line: all verbs, and when the first word is a verb or the start of a request.

use super::flags::{Common, RequestArgs};
use super::slip::most_edits;
use crate::papers::topics;
use crate::verbs::{
    agent, artifacts, batch, bench, chat, check, completions, config, context, doctor, eval, explain, fix, forge, help,
    history, init, knowledge, manual, mcp, memory, model, perpetual, serve, skills, status, stop, task, tools, undo,
    uninstall, version, workspace,
};
use caro_shell::Dialect;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;

/// Plain words in, the right shell command for this very machine out: offline, from a small local model.
#[derive(Debug, Parser)]
#[command(
    name = "caro",
    version,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    override_usage = "caro [OPTIONS] \"WORDS ...\"\n       caro VERB ...",
    subcommand_value_name = "VERB",
    subcommand_help_heading = "Verbs",
    after_help = "Topics: `caro help` TOPIC, as start, safety, undo, privacy, settings, exit-codes; `caro help topics` lists them.\n\
                  A request whose first word is a verb: put it in quotes with its other words, or after `--`.\n\
                  Exit codes: 0 a command, 1 refused, none or nothing found, 2 usage or internal, 3 and 4 an agent that did not get \
                  done, the child's own with -x, 124 timeout, 129 SIGHUP, 130 Ctrl-C, 143 SIGTERM; `caro help exit-codes`."
)]
pub struct Cli {
    /// The verb, if the first word is one.
    #[command(subcommand)]
    pub verb: Option<Verb>,
    /// Otherwise everything is a request.
    #[command(flatten)]
    pub request: RequestArgs,
    /// What holds for every verb.
    #[command(flatten)]
    pub common: Common,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Show what caro knows about this machine
    Context(context::Args),
    /// Explain each program and flag of a command, from the installed manuals
    Explain(explain::Args),
    /// Show, read ahead, search and forget the manuals of programs
    Manual(manual::Args),
    /// List, fetch, add, verify and remove models
    Model(model::Args),
    /// Answer JSON lines from stdin, one by one
    Batch(batch::Args),
    /// Check any command: syntax, programs, flags of the installed versions, platform rules, risk
    Check(check::Args),
    /// Repair a command that failed, from its error and what is on this machine
    Fix(fix::Args),
    /// Score a model and settings on tasks of your own: answers are run in a sandbox and compared
    Eval(eval::Args),
    /// Measure how fast models and whole requests are on this machine
    Bench(bench::Args),
    /// Show the resident process that keeps the model ready
    Status(status::Args),
    /// End the resident process
    Stop(stop::Args),
    /// Answer other programs of this machine over HTTP: commands, checks and runs of the agent
    Serve(serve::Args),
    /// Work on a task in several steps, with tools
    Agent(agent::Args),
    /// Talk, with tools and a memory of the session
    Chat(chat::Args),
    /// Keep an agent at work that never ends: it answers messages, and wakes by itself
    Loop(perpetual::Args),
    /// Add, list, run and remove tasks that begin by themselves
    Task(task::Args),
    /// Go on with a run that was stopped
    Resume(agent::resume::Args),
    /// Show what happened in a run
    Events(agent::events::Args),
    /// List, show and remove sessions
    Session(agent::session::Args),
    /// List, show and remove results that were too long for a prompt
    Artifacts(artifacts::Args),
    /// Show the files that agents keep for themselves
    Workspace(workspace::Args),
    /// Show what the kept runs have cost: requests, tokens, time
    Stats(agent::stats::Args),
    /// Read in and search documents of your own
    Knowledge(knowledge::Args),
    /// Keep, find and forget notes
    Memory(memory::Args),
    /// Make a skill from examples, test first, or correct one
    Forge(forge::Args),
    /// List, search, check and make skills
    Skills(skills::Args),
    /// Show and check the MCP servers whose tools agents use
    Mcp(mcp::Args),
    /// List and search the tools that agents have
    Tools(tools::Args),
    /// Put back what the last command that caro ran here has deleted, moved or changed
    Undo(undo::Args),
    /// Show and search what was asked for and what came of it, once it is turned on
    History(history::Args),
    /// Look over what works here and what does not, each with what to do about it
    Doctor(doctor::Args),
    /// Show and change the settings
    Config(config::Args),
    /// Put caro into the prompt of a shell: a key turns words on the line into a command
    Init(init::Args),
    /// Print a completion script for a shell
    Completions(completions::Args),
    /// Explain a topic, or show the flags of a verb
    Help(help::Args),
    /// Remove everything that caro has made on this machine
    #[command(name = "self")]
    Own(uninstall::Args),
    /// Print version and build
    Version(version::Args),
}

/// Parses the command line.
///
/// # Errors
/// The error of clap; `--help` and `--version` are errors too.
pub fn parse(argv: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let command = Cli::command();
    let argv: Vec<OsString> = argv.into_iter().collect();
    let literal = argv.iter().any(|word| word == "--");
    let argv = verb_first(&command, argv);
    let mut cli = Cli::from_arg_matches(&command.try_get_matches_from(argv)?)?;
    cli.request.literal = literal;
    Ok(cli)
}

/// Moves the verb before the flags that were typed in front of it (`caro --json context`), where clap expects it.
/// The verb is the first word that is neither a flag nor a flag's value; after `--` there is none.
fn verb_first(command: &clap::Command, mut argv: Vec<OsString>) -> Vec<OsString> {
    let takes_value = |flag: &str| find_arg(command, flag).is_some_and(|a| a.get_action().takes_values());
    let mut i = 1;
    while let Some(word) = argv.get(i).map(|w| w.to_string_lossy().into_owned()) {
        if word == "--" {
            break;
        }
        if word.len() > 1 && word.starts_with('-') {
            i += if takes_value(&word) { 2 } else { 1 };
            continue;
        }
        if word == "help" {
            match help_for(command, &argv[i + 1..]) {
                Help::Verb => {
                    argv.remove(i);
                    argv.push("--help".into());
                    argv[1..=i].rotate_right(1);
                }
                Help::Topic => argv[1..=i].rotate_right(1),
                Help::Request => return request_of(argv, i, takes_value),
            }
        } else if let Some(verb) = command.find_subcommand(&word) {
            if verb.has_subcommands() && argv[i + 1..] == ["help"] {
                argv[i + 1] = "--help".into();
            }
            if begins_request(verb, &argv[i + 1..], takes_value) {
                return request_of(argv, i, takes_value);
            }
            argv[1..=i].rotate_right(1);
        }
        break;
    }
    argv
}

/// The meaning of a line that begins with `help`.
enum Help {
    /// The flags of all verbs, or of one: `help`, `help agent`, `help memory forget`.
    Verb,
    /// A topic, or one word that is neither a topic nor a verb: `help privacy`.
    Topic,
    /// A request: `help me with tar`.
    Request,
}

fn help_for(command: &clap::Command, rest: &[OsString]) -> Help {
    let is_flag = |word: &&OsString| word.to_string_lossy().starts_with('-');
    if let Some(word) = rest.first().and_then(|word| word.to_str())
        && !word.starts_with('-')
        && rest.iter().skip(1).all(|word| is_flag(&word))
    {
        let is_one = !word.contains(char::is_whitespace);
        if topics::find(word).is_some() || is_one && command.find_subcommand(word).is_none() {
            return Help::Topic;
        }
    }
    match rest.iter().try_fold(command, |at, name| at.find_subcommand(name)) {
        Some(_) => Help::Verb,
        None => Help::Request,
    }
}

/// Finds the argument of a typed flag; of several short flags in one word, the last one's.
fn find_arg<'c>(command: &'c clap::Command, flag: &str) -> Option<&'c clap::Arg> {
    command.get_arguments().find(|a| match flag.strip_prefix("--") {
        Some(long) => a.get_long() == Some(long),
        None => flag.chars().last().is_some_and(|short| a.get_short() == Some(short)),
    })
}

/// Common names of subcommands: a word of these is taken for a subcommand, even if the verb has none of that name.
const COMMON_NAMES: [&str; 11] =
    ["add", "delete", "find", "get", "help", "list", "ls", "remove", "rm", "search", "show"];

/// True if a verb and the words after it begin a request: a verb without arguments, followed by several words
/// (`stop all containers`), or a common word that none of its subcommands follows (`memory usage of firefox`).
/// A mistyped subcommand, alone or with one more word (`memory delete x`), begins none.
fn begins_request(verb: &clap::Command, rest: &[OsString], takes_value: impl Fn(&str) -> bool) -> bool {
    let own_value = |flag: &str| find_arg(verb, flag).is_some_and(|a| a.get_action().takes_values());
    let takes_value = |flag: &str| takes_value(flag) || own_value(flag);
    let mut is_value = false;
    let words = rest.iter().map(|w| w.to_string_lossy()).filter(|word| {
        let is_word = !is_value && !word.starts_with('-');
        is_value = !is_value && word.starts_with('-') && takes_value(word);
        is_word
    });
    let parts: Vec<_> = words.collect();
    // a quoted argument may hold several words
    let text = parts.join(" ");
    let words: Vec<&str> = text.split_whitespace().collect();
    match verb.get_name() {
        // `undo` takes a number; `undo the last commit` is a request
        "undo" => words.iter().any(|word| word.parse::<u64>().is_err()),
        "doctor" | "init" | "stats" | "status" | "stop" => words.len() > 1,
        // `fix` takes one quoted command; `fix the permissions of ...` is a request
        "fix" => parts.len() > 1,
        // `loop` takes parameters with values; `loop over all files` is a request
        "loop" => words.len() > 1 && words[0] != "history" && !words.iter().any(|word| word.contains('=')),
        "memory" | "knowledge" | "artifacts" | "workspace" | "task" | "self" | "serve" => {
            let is_slip = |word: &str| words.len() < 3 && resembles_subcommand(verb, word);
            words.first().is_some_and(|&word| verb.find_subcommand(word).is_none() && !is_slip(word))
        }
        _ => false,
    }
}

/// True if a word is a common name of a subcommand, or nearly the name of one of this verb's.
fn resembles_subcommand(verb: &clap::Command, word: &str) -> bool {
    let mut own = verb.get_subcommands().map(clap::Command::get_name);
    COMMON_NAMES.contains(&word) || own.any(|name| strsim::osa_distance(word, name) <= most_edits(word))
}

/// Reorders the line of a request whose first word, at `first`, is a verb's name: flags first, then `--` and the words.
fn request_of(argv: Vec<OsString>, first: usize, takes_value: impl Fn(&str) -> bool) -> Vec<OsString> {
    let (mut line, mut words, mut is_value) = (Vec::new(), Vec::new(), false);
    for (i, word) in argv.into_iter().enumerate() {
        let text = word.to_string_lossy();
        let is_flag =
            i < first || is_value || words.is_empty() && i != first || text.len() > 1 && text.starts_with('-');
        is_value = !is_value && text.starts_with('-') && takes_value(&text);
        if is_flag { line.push(word) } else { words.push(word) }
    }
    line.push("--".into());
    line.extend(words);
    line
}

/// Returns a hint for a line that did not parse, if it may be a request that begins with a verb (`check disk space`).
pub fn hint(argv: &[OsString]) -> Option<String> {
    let words: Vec<_> = argv.iter().skip(1).map(|w| w.to_string_lossy()).filter(|w| !w.starts_with('-')).collect();
    let cli = Cli::command();
    let (verb, command) = words.first().and_then(|word| Some((word, cli.find_subcommand(word.as_ref())?)))?;
    // a subcommand follows (`caro model pull --force x`): this is not a request
    if words.len() < 2 || command.find_subcommand(words[1].as_ref()).is_some() {
        return None;
    }
    if ["check", "explain"].contains(&verb.as_ref()) {
        // flags included, which `words` lacks: clap took the command's flags for its own
        let command = argv.iter().map(|w| w.to_string_lossy()).skip_while(|w| w != verb).skip(1);
        let command = command.collect::<Vec<_>>().join(" ");
        let begins = words[1].split_whitespace().next().unwrap_or_default();
        return Some(match is_program(begins) {
            true => format!("the command stands in quotes: `caro {verb} '{command}'`"),
            false => format!(
                "a request that begins with `{verb}` stands in quotes as a whole: `caro \"{verb} {command}\"`; \
                 a command to {verb}, in quotes behind the verb"
            ),
        });
    }
    // a flag that requests do not have shows that the verb was meant (`caro agent --batch 9 x`)
    let is_its_own = |word: &str| {
        let flag = word.split('=').next().unwrap_or(word);
        find_arg(command, flag).is_some() || find_arg(&cli, flag).is_none()
    };
    let meant = argv.iter().skip(1).map(|w| w.to_string_lossy()).any(|w| w.starts_with('-') && is_its_own(&w));
    let may_be_request = words.len() > 2 || ["doctor", "stats", "status", "stop"].contains(&verb.as_ref());
    (may_be_request && !meant).then(|| {
        format!("`{verb}` is a verb; a request that begins with it stands in quotes: `caro \"{}\"`", words.join(" "))
    })
}

/// True if a word can begin a command line: an installed program, a path, an assignment or a builtin.
fn is_program(word: &str) -> bool {
    let is_written_as_one = word.contains(['/', '=', '$', '(', '{', '|', '>', '<']);
    is_written_as_one || caro_shell::is_builtin(word, Dialect::Bash) || caro_exec::find(word).is_some()
}

/// Parses the words behind a verb.
#[cfg(test)]
pub(crate) fn parsed<'a, A: clap::Args>(words: impl IntoIterator<Item = &'a str>) -> Result<A, clap::Error> {
    let argv = std::iter::once("caro").chain(words);
    let mut found = A::augment_args(clap::Command::new("caro")).try_get_matches_from(argv)?;
    A::from_arg_matches_mut(&mut found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slip::{slip, verb_of};

    fn parsed(line: &[&str]) -> Cli {
        parse(std::iter::once("caro").chain(line.iter().copied()).map(OsString::from)).unwrap()
    }

    fn words(line: &[&str]) -> Vec<String> {
        let cli = parsed(line);
        assert!(cli.verb.is_none(), "{line:?} is a verb");
        cli.request.words.iter().map(|w| w.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn clap_accepts_its_own_definition() {
        Cli::command().debug_assert();
    }

    /// The lines of all verbs without their options and subcommands, each with the definition.
    fn verbs(command: &clap::Command, path: &[String]) -> Vec<(Vec<String>, clap::Command)> {
        let below =
            command.get_subcommands().flat_map(|verb| verbs(verb, &[path, &[verb.get_name().to_owned()]].concat()));
        std::iter::once((path.to_vec(), command.clone())).chain(below).collect()
    }

    #[test]
    fn the_usage_shows_as_optional_only_what_may_be_left_out() {
        let mut caro = Cli::command();
        caro.build();
        for (path, mut verb) in verbs(&caro, &[]) {
            let usage = verb.render_usage().to_string();
            let argv = std::iter::once("caro".to_owned()).chain(path.iter().cloned()).map(OsString::from);
            let wants = match Cli::command().try_get_matches_from(argv) {
                Err(e) if e.kind() == clap::error::ErrorKind::MissingRequiredArgument => {
                    match e.get(clap::error::ContextKind::InvalidArg) {
                        Some(clap::error::ContextValue::Strings(names)) => names.clone(),
                        _ => Vec::new(),
                    }
                }
                _ => Vec::new(),
            };
            // where one of several things is wanted, the first form has the one that is named as missing
            let first = usage.lines().next().unwrap_or_default();
            for name in &wants {
                assert!(first.contains(name.as_str()), "caro {}: {name} is missing, but: {usage}", path.join(" "));
            }
            let own = verb.get_positionals().filter(|arg| arg.is_required_set()).count();
            assert!(wants.len() >= own, "caro {}: {usage}", path.join(" "));
        }
    }

    /// A flag of every part of a verb would be accepted where it has no effect.
    #[test]
    fn only_the_flags_of_every_verb_hold_below_it() {
        let all: Vec<String> = <Common as clap::Args>::augment_args(clap::Command::new("x"))
            .get_arguments()
            .filter_map(|arg| arg.get_long().map(str::to_owned))
            .collect();
        for (path, verb) in verbs(&Cli::command(), &[]) {
            let global = verb.get_arguments().filter(|arg| arg.is_global_set()).filter_map(clap::Arg::get_long);
            for flag in global {
                assert!(all.iter().any(|one| one == flag), "caro {}: --{flag}", path.join(" "));
            }
        }
    }

    #[test]
    fn help_shows_the_defaults_of_the_settings() {
        let caro = Cli::command();
        for setting in ["refine", "max_iterations", "candidates", "timeout", "budget"] {
            let key = crate::setup::config::KEYS.iter().find(|key| key.name == setting).unwrap();
            let flag = find_arg(&caro, &format!("--{}", setting.replace('_', "-"))).unwrap();
            let help = flag.get_help().unwrap().to_string();
            assert!(help.ends_with(&format!("[default: {}]", key.default)), "{setting}: {help}");
        }
    }

    #[test]
    fn words_are_a_request_unless_the_first_is_a_verb() {
        assert_eq!(words(&["show top processes"]), ["show top processes"]);
        assert_eq!(words(&["show", "the", "config", "files"]), ["show", "the", "config", "files"]);
        assert_eq!(words(&["config files of git"]), ["config files of git"]);
        assert_eq!(words(&["--", "config"]), ["config"]);
        assert_eq!(words(&["help", "me", "with", "tar"]), ["help", "me", "with", "tar"]);
        assert_eq!(words(&["undo", "the", "last", "commit"]), ["undo", "the", "last", "commit"]);
        assert!(matches!(parsed(&["undo"]).verb, Some(Verb::Undo(_))));
        assert!(matches!(parsed(&["undo", "3", "--force"]).verb, Some(Verb::Undo(_))));
        assert!(matches!(parsed(&["config"]).verb, Some(Verb::Config(_))));
        assert!(matches!(parsed(&["version"]).verb, Some(Verb::Version(_))));
        // the value of a flag is not a word of the request
        assert!(matches!(parsed(&["stop", "--color", "never"]).verb, Some(Verb::Stop(_))));
        assert!(matches!(parsed(&["stats", "--color", "always"]).verb, Some(Verb::Stats(_))));
        assert_eq!(words(&["stop", "--color", "never", "all containers"]), ["stop", "all containers"]);
    }

    #[test]
    fn one_word_near_a_verb_is_a_slip() {
        for (word, verb) in [("statu", "status"), ("chekc", "check"), ("contxet", "context"), ("modle", "model")] {
            assert_eq!(slip(&Cli::command(), word).as_deref(), Some(verb), "{word}");
        }
        for request in ["show the status", "uptime", "date", "hello", "bash", "disk", "-1", ""] {
            assert_eq!(slip(&Cli::command(), request), None, "{request}");
        }
        assert_eq!(verb_of(&Cli::command(), "uninstall").as_deref(), Some("self"));
        assert_eq!(verb_of(&Cli::command(), "list"), None, "several verbs have one");
    }

    #[test]
    fn flags_may_stand_before_the_verb_between_and_after_the_words() {
        assert!(matches!(parsed(&["--color", "never", "-q", "config"]).verb, Some(Verb::Config(_))));
        assert!(matches!(parsed(&["--color=never", "config", "-q"]).verb, Some(Verb::Config(_))));
        let cli = parsed(&["list", "--json", "files", "-n3", "--timeout", "2.5"]);
        assert_eq!(cli.request.words, ["list", "files"]);
        assert!(cli.request.answer.json);
        assert_eq!(cli.request.answer.alternatives, 3);
        assert_eq!(cli.request.answer.layer(), [("timeout", "2.5".to_string())]);
        // the value of a flag is not a verb
        assert_eq!(words(&["--model", "config", "list files"]), ["list files"]);
    }

    #[test]
    fn stop_and_status_begin_a_request_where_more_words_follow() {
        assert!(matches!(parsed(&["stop"]).verb, Some(Verb::Stop(_))));
        assert!(matches!(parsed(&["-q", "status", "--json"]).verb, Some(Verb::Status(_))));
        assert_eq!(words(&["stop", "all", "containers"]), ["stop", "all", "containers"]);
        assert_eq!(words(&["stats", "of", "eth0"]), ["stats", "of", "eth0"]);
        let cli = parsed(&["-q", "status", "of", "--timeout", "3", "nginx", "--json"]);
        assert_eq!(cli.request.words, ["status", "of", "nginx"]);
        assert_eq!((cli.common.quiet, cli.request.answer.timeout.as_deref()), (true, Some("3")));
        assert!(cli.request.answer.json);
    }

    #[test]
    fn memory_begins_a_request_unless_its_own_verb_follows() {
        assert_eq!(words(&["memory", "usage", "of", "firefox"]), ["memory", "usage", "of", "firefox"]);
        assert!(matches!(parsed(&["memory", "list"]).verb, Some(Verb::Memory(_))));
        assert!(matches!(parsed(&["knowledge", "add", "docs"]).verb, Some(Verb::Knowledge(_))));
    }

    #[test]
    fn loop_and_task_begin_a_request_unless_their_own_arguments_follow() {
        for line in ["loop", "loop --session work --max-turns 3", "loop wakeupInterval=5 -y", "loop history --metta"] {
            let typed: Vec<&str> = line.split(' ').collect();
            assert!(matches!(parsed(&typed).verb, Some(Verb::Loop(_))), "{line}");
        }
        assert!(matches!(parsed(&["task", "list"]).verb, Some(Verb::Task(_))));
        for line in ["loop over all files", "task manager for this machine"] {
            let typed: Vec<&str> = line.split(' ').collect();
            assert_eq!(words(&typed), typed);
        }
    }

    #[test]
    fn a_mistyped_subcommand_is_an_error_and_a_sentence_is_a_request() {
        let slips = ["knowledge list", "memory delete x", "memory show", "memory forgt 1f", "stop foo", "status foo"];
        for line in slips.into_iter().chain(["-q memory show --json", "artifacts delete x", "workspace remove"]) {
            let argv = std::iter::once("caro").chain(line.split(' ')).map(OsString::from);
            assert_eq!(parse(argv).unwrap_err().exit_code(), 2, "{line}");
        }
        let requests = ["stop the docker container web", "status of nginx", "memory usage", "memory usage of firefox"];
        for line in requests.into_iter().chain(["memory find the largest processes", "stats of eth0"]) {
            let typed: Vec<&str> = line.split(' ').collect();
            assert_eq!(words(&typed), typed);
        }
    }

    #[test]
    fn bad_values_are_usage_errors() {
        for line in
            [vec!["--refine", "often", "x"], vec!["-n", "0", "x"], vec!["--target", "amiga", "x"], vec!["--nope"]]
        {
            let argv = std::iter::once("caro").chain(line.iter().copied()).map(OsString::from);
            assert_eq!(parse(argv).unwrap_err().exit_code(), 2, "{line:?}");
        }
    }

    #[test]
    fn only_a_line_that_may_be_a_request_gets_a_hint_about_quotes() {
        let of = |line: &str| {
            let argv: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert!(parse(argv.clone()).is_err(), "{line}");
            hint(&argv)
        };
        for request in ["check disk space", "check smart health of /dev/sda"] {
            let hint = of(&format!("caro {request}")).unwrap();
            assert!(hint.contains(&format!("caro \"{request}\"")), "{hint}");
        }
        assert_eq!(of("caro check cd /tmp x").unwrap(), "the command stands in quotes: `caro check 'cd /tmp x'`");
        assert!(of("caro model of this cpu").unwrap().contains("caro \"model of this cpu\""));
        let verbs =
            ["caro model pull --force qwen", "caro knowledge query --max 3 tides", "caro config get CARO_MODEL x"];
        let flags = ["caro agent --batch 9 x", "caro agent --bacth 9 x", "caro agent --batch=9 count files"];
        let bare = ["caro explain", "caro explain --json", "caro --nope"];
        for line in verbs.into_iter().chain(flags).chain(bare) {
            assert_eq!(of(line), None, "{line}");
        }
        assert!(of("caro stop nginx").unwrap().contains("caro \"stop nginx\""));
    }

    #[test]
    fn help_shows_flags_alone_and_before_the_name_of_a_verb() {
        let lines = ["help", "help agent", "help memory forget", "-q help agent", "--color never help"];
        for line in lines.into_iter().chain(["agent --help", "memory help"]) {
            let argv = std::iter::once("caro").chain(line.split(' ')).map(OsString::from);
            assert_eq!(parse(argv).unwrap_err().kind(), clap::error::ErrorKind::DisplayHelp, "{line}");
        }
        for line in ["help stop containers", "help me find big files", "help me", "--json help me with tar"] {
            let typed: Vec<&str> = line.split(' ').collect();
            let request: Vec<&str> = typed.iter().copied().filter(|word| !word.starts_with('-')).collect();
            match line {
                "help me" => {
                    assert!(matches!(parsed(&typed).verb, Some(Verb::Help(_))), "one word is a topic that is none")
                }
                _ => assert_eq!(words(&typed), request),
            }
        }
        assert_eq!(words(&["help me find big files"]), ["help me find big files"]);
        for line in ["help privacy", "help undo", "help fix", "-q help exit-codes", "help privcy", "help topics"] {
            let typed: Vec<&str> = line.split(' ').collect();
            assert!(matches!(parsed(&typed).verb, Some(Verb::Help(_))), "{line}");
        }
    }
}

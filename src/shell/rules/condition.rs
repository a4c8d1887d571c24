//! The conditions of rules. They are evaluated on the parse tree only, never on the raw text of a command.

use crate::Dialect;
use crate::effects::{Place, canonical, has_value, is_assessed_by_words, operands_of, place_of, resolve_paths, verb};
use crate::parse::{Construct, How, Invocation, Script, Word};
use crate::pattern::Pattern;
use crate::safety::stdin_texts;
use caro_base::iter::only;

/// The conditions under which a rule matches a command. Conditions that are not given hold.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// A construct of the language, for rules without a program.
    #[serde(default)]
    pub construct: Option<Construct>,
    /// Options that must all be present: `-i` alone or in a cluster, `--sort` with or without a value, `-name` as a
    /// whole word.
    #[serde(default)]
    pub has: Vec<String>,
    /// Options of which one must be present.
    #[serde(default)]
    pub any: Vec<String>,
    /// Options of which none may be present.
    #[serde(default)]
    pub lacks: Vec<String>,
    /// The first operand, after the values of options, must be one of these (`git clean`, `ip addr`).
    #[serde(default)]
    pub verb: Vec<String>,
    /// An operand must match.
    #[serde(default)]
    pub operand: Option<Pattern>,
    /// An operand without quotes or escapes must match.
    #[serde(default)]
    pub bare: Option<Pattern>,
    /// A word after the program must match, options included.
    #[serde(default)]
    pub word: Option<Pattern>,
    /// The first word after the program must match.
    #[serde(default)]
    pub first: Option<Pattern>,
    /// The last word must match.
    #[serde(default)]
    pub last: Option<Pattern>,
    /// A word that the shell expands must match, with expansions as written (`awk "{print $1}"`).
    #[serde(default)]
    pub expands: Option<Pattern>,
    /// No word after the program may match.
    #[serde(default)]
    pub no_word: Option<Pattern>,
    /// A condition on the word after an option.
    #[serde(default)]
    pub next: Option<Next>,
    /// True: the table of programs must not know the program, or its words must tell what it destroys.
    #[serde(default)]
    pub unknown: bool,
    /// The program's name, in lower case, must match.
    #[serde(default)]
    pub program: Option<Pattern>,
    /// The operands, joined with blanks and without the values of options, must match: `^s3 rm `.
    #[serde(default)]
    pub operands: Option<Pattern>,
    /// An operand must lie in one of these places, as far as the script tells.
    #[serde(default)]
    pub at: Vec<Place>,
    /// The operands must be the unfiltered output of one of these commands, through `$(...)` or `xargs`: `docker ps`,
    /// the program and its first operands.
    #[serde(default)]
    pub from: Vec<String>,
    /// Its standard input must match, as far as its text is in the script.
    #[serde(default)]
    pub given: Option<Pattern>,
    /// A file that it writes must match: an operand if it writes in place, a redirection, or an operand of the `tee`
    /// after it.
    #[serde(default)]
    pub writes: Option<Pattern>,
    /// Least number of operands.
    #[serde(default)]
    pub min_operands: usize,
    /// Most operands.
    #[serde(default)]
    pub max_operands: Option<usize>,
    /// Its input must come through a pipe from one of these programs.
    #[serde(default)]
    pub piped_from: Vec<String>,
    /// None of these may precede it in its pipeline, at any distance.
    #[serde(default)]
    pub not_after: Vec<String>,
    /// Its output must go through a pipe to one of these programs.
    #[serde(default)]
    pub piped_into: Vec<String>,
    /// It must be run by one of these wrappers.
    #[serde(default)]
    pub via: Vec<String>,
    /// A redirection of its wrapper must write to a file that matches, outside of any inner script.
    #[serde(default)]
    pub redirects_to: Option<Pattern>,
    /// True: its standard input must be a pipe; false: it must not.
    #[serde(default)]
    pub stdin_pipe: Option<bool>,
    /// True: its standard output must be a pipe; false: it must not.
    #[serde(default)]
    pub stdout_pipe: Option<bool>,
}

/// A condition on the word after an option.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Next {
    /// The option, as a word of its own.
    pub after: String,
    /// The next word must match.
    #[serde(default)]
    pub is: Option<Pattern>,
    /// The next word must not match.
    #[serde(default)]
    pub is_not: Option<Pattern>,
    /// The next word must begin a list (`a, b`) of PowerShell, with a comma between it and the word after it, or must
    /// not.
    #[serde(default)]
    pub list: Option<bool>,
}

/// True if there is only a comma between a word and the next.
fn begins_list(script: &Script, command: &Invocation, at: usize) -> bool {
    let [first, second] = command.words.get(at..at + 2).unwrap_or_default() else { return false };
    script.text.get(first.span.end..second.span.start).is_some_and(|between| between.trim() == ",")
}

/// Programs whose options are whole words after one dash.
const WHOLE_WORD: &[&str] =
    &["find", "gfind", "java", "ffmpeg", "openssl", "convert", "magick", "xrandr", "terraform", "dotnet"];

/// Programs whose words `-HUP` and `-9` are signals, not clusters of options.
const SIGNALLED: &[&str] = &["kill", "pkill", "killall", "skill", "fuser"];

/// True for `-HUP`, `-SIGTERM`, `-USR1`: at least three capitals, for a program that takes signals like this.
fn is_signal(command: &Invocation, word: &str) -> bool {
    let name = word.strip_prefix('-').unwrap_or_default();
    let capitals = name.chars().take_while(char::is_ascii_uppercase).count();
    command.name().is_some_and(|n| SIGNALLED.contains(&n))
        && capitals >= 3
        && name[capitals..].chars().all(|c| c.is_ascii_digit())
}

/// Returns the letter of an option that has only one: `-l`.
pub fn short_option(option: &str) -> Option<char> {
    only(option.strip_prefix('-')?.chars()).filter(|c| *c != '-')
}

/// Returns the index of the word that is this option, if the command has it.
pub fn option(command: &Invocation, option: &str) -> Option<usize> {
    // the parameters of cmdlets (`Verb-Noun`) are whole words too
    let cmdlet = |n: &str| n.starts_with(|c: char| c.is_ascii_uppercase()) && n.contains('-');
    let whole = command.name().is_some_and(|n| WHOLE_WORD.contains(&n) || cmdlet(n));
    let letter = short_option(option);
    command
        .words
        .iter()
        .enumerate()
        .skip(1)
        .take_while(|(_, w)| w.text != "--")
        .filter(|(_, w)| !is_signal(command, &w.text))
        .find(|(_, word)| {
            let text = word.text.as_str();
            if let Some(long) = option.strip_prefix("--") {
                return text.strip_prefix("--").is_some_and(|t| t.split('=').next() == Some(long));
            }
            if text.eq_ignore_ascii_case(option) && option.len() > 2 || text == option {
                return true;
            }
            let (Some(letter), false) = (letter, whole) else { return false };
            let Some(cluster) = text.strip_prefix('-').filter(|c| !c.starts_with('-')) else { return false };
            let Some(at) = cluster.find(letter) else { return false };
            let mut before = cluster[..at].chars();
            before.all(|c| c.is_ascii_alphabetic() && !has_value(command, c))
        })
        .map(|(index, _)| index)
}

/// Returns the words after the program that are no options, with their indices. The words of `tar xzf` count as
/// operands.
fn operands(command: &Invocation) -> impl Iterator<Item = (usize, &str)> {
    let mut ended = false;
    command.words.iter().enumerate().skip(1).filter_map(move |(index, word)| {
        let text = word.text.as_str();
        if !ended && text == "--" {
            ended = true;
            return None;
        }
        (ended || !text.starts_with('-') || text == "-").then_some((index, text))
    })
}

impl Condition {
    /// Returns the index of the word that makes the rule match, or of the program word if no other word does; `None`
    /// if the rule does not match.
    pub fn holds(&self, script: &Script, index: usize, command: &Invocation) -> Option<usize> {
        let key = command.key().unwrap_or_default();
        if self.unknown && !is_assessed_by_words(&canonical(&key, script.dialect), script.dialect_of(command))
            || self.program.as_ref().is_some_and(|p| !p.is_match(&key))
        {
            return None;
        }
        let mut matched = 0;
        let mut set_matched = |word: usize| {
            if matched == 0 {
                matched = word;
            }
        };
        for name in &self.has {
            set_matched(option(command, name)?);
        }
        if !self.any.is_empty() {
            set_matched(self.any.iter().find_map(|name| option(command, name))?);
        }
        if self.lacks.iter().any(|name| option(command, name).is_some()) {
            return None;
        }
        if let Some(next) = &self.next {
            let any_case = script.dialect == Dialect::PowerShell;
            let is = |w: &Word| w.text == next.after || any_case && w.text.eq_ignore_ascii_case(&next.after);
            let at = command.words.iter().position(is)?;
            let following = command.words.get(at + 1).map_or("", |w| w.text.as_str());
            if next.list.is_some_and(|wanted| begins_list(script, command, at + 1) != wanted) {
                return None;
            }
            let right = next.is.as_ref().is_none_or(|p| command.words.len() > at + 1 && p.is_match(following));
            if !right || next.is_not.as_ref().is_some_and(|p| p.is_match(following)) {
                return None;
            }
            set_matched(at);
        }
        let operand_words: Vec<(usize, &str)> = operands(command).collect();
        if !self.verb.is_empty() {
            let (at, text) = verb(command, script.dialect)?;
            set_matched(self.verb.iter().any(|v| *v == text).then_some(at)?);
        }
        if let Some(pattern) = &self.operand {
            set_matched(operand_words.iter().find(|(_, text)| pattern.is_match(text))?.0);
        }
        if let Some(pattern) = &self.bare {
            let bare = |at: usize| command.words.get(at).is_some_and(|w| !w.quoted);
            set_matched(operand_words.iter().find(|(at, text)| bare(*at) && pattern.is_match(text))?.0);
        }
        if let Some(pattern) = &self.word {
            set_matched(1 + command.args().iter().position(|w| pattern.is_match(&w.text))?);
        }
        if let Some(pattern) = &self.first {
            let matches = command.args().first().is_some_and(|w| pattern.is_match(&w.text));
            set_matched(matches.then_some(1)?);
        }
        if let Some(pattern) = &self.last {
            let matches = command.args().last().is_some_and(|w| pattern.is_match(&w.text));
            set_matched(matches.then_some(command.args().len())?);
        }
        if let Some(pattern) = &self.expands {
            set_matched(1 + command.args().iter().position(|w| w.expands && pattern.is_match(&w.text))?);
        }
        if let Some(pattern) = &self.operands {
            let read = operands_of(command, script.dialect_of(command));
            if !pattern.is_match(&read.iter().map(|(_, text)| *text).collect::<Vec<_>>().join(" ")) {
                return None;
            }
            // the match is reported at the first operand, not at the program
            set_matched(read.first().map_or(0, |(at, _)| *at));
        }
        if !self.at.is_empty() {
            let is_at = |at: usize| {
                command
                    .words
                    .get(at)
                    .is_some_and(|w| resolve_paths(script, w).iter().any(|path| self.at.contains(&place_of(path))))
            };
            set_matched(operand_words.iter().find(|(at, _)| is_at(*at))?.0);
        }
        if !self.from.is_empty() {
            set_matched(self.listed_by(script, index, command)?);
        }
        if let Some(pattern) = &self.writes {
            let redirected =
                |c: &Invocation| c.redirects.iter().any(|r| r.writes() && pattern.is_match(&r.target.text));
            let teed = |at: &usize| {
                let reader = &script.commands[*at];
                reader.name() == Some("tee") && reader.operands().any(|w| pattern.is_match(&w.text))
            };
            let own = || match command.name() {
                Some("sed" | "gsed" | "perl") => {
                    option(command, "-i").is_some() && operand_words.iter().any(|(_, text)| pattern.is_match(text))
                }
                Some("rm" | "shred" | "truncate" | "tee") => {
                    operand_words.iter().any(|(_, text)| pattern.is_match(text))
                }
                Some("ln" | "cp" | "mv") => operand_words.last().is_some_and(|(_, text)| pattern.is_match(text)),
                _ => false,
            };
            if !redirected(command) && !command.feeds.iter().any(teed) && !own() {
                return None;
            }
        }
        if let Some(pattern) = &self.given
            && !stdin_texts(script, index).iter().any(|text| pattern.is_match(text))
        {
            return None;
        }
        let excluded = self.no_word.as_ref().is_some_and(|p| command.args().iter().any(|w| p.is_match(&w.text)));
        let count_fits = operand_words.len() >= self.min_operands
            && self.max_operands.is_none_or(|most| operand_words.len() <= most);
        let piped = self.stdin_pipe.is_none_or(|wanted| wanted == command.stdin_pipe)
            && self.stdout_pipe.is_none_or(|wanted| wanted == command.stdout_pipe);
        (!excluded && count_fits && piped && self.neighbours(script, index, command)).then_some(matched)
    }

    /// Returns the index of the word that one of the commands of `from` fills with its whole output.
    fn listed_by(&self, script: &Script, index: usize, command: &Invocation) -> Option<usize> {
        let lists = |c: &Invocation| {
            let Some(name) = c.name() else { return false };
            let read = operands_of(c, script.dialect_of(c));
            let line = std::iter::once(name).chain(read.iter().map(|(_, text)| *text)).collect::<Vec<_>>().join(" ");
            let chosen = matches!(name, "docker" | "podman" | "kubectl" | "oc" | "nerdctl");
            let filtered = chosen && ["-f", "--filter", "-l", "--selector"].iter().any(|o| option(c, o).is_some());
            !filtered
                && self
                    .from
                    .iter()
                    .any(|own| line == *own || line.strip_prefix(own.as_str()).is_some_and(|r| r.starts_with(' ')))
        };
        // a command that filters breaks the chain; one that only selects a column does not
        let passes = |c: &Invocation| match c.name() {
            Some("sort" | "uniq" | "cat" | "tr" | "cut" | "tee" | "sed" | "tail") => true,
            Some("awk") => c.args().iter().all(|w| !w.text.contains(['/', '~', '='])),
            _ => false,
        };
        let from = |start: usize| {
            let mut at = start;
            for _ in 0..8 {
                let c = &script.commands[at];
                if lists(c) {
                    return true;
                }
                if !passes(c) {
                    return false;
                }
                let Some(before) = script.commands.iter().position(|f| f.feeds.contains(&at)) else { return false };
                at = before;
            }
            false
        };
        let inside = |how: How| {
            let here = move |c: &&Invocation| c.inside.is_some_and(|i| i.command == index && i.how == how);
            script.commands.iter().enumerate().filter(move |(_, c)| here(c))
        };
        // the output is that of the last command of the substitution
        let last = |(at, c): (usize, &Invocation)| {
            let ends = c.feeds.is_empty();
            (ends && from(at)).then(|| c.inside.and_then(|i| i.word).unwrap_or(0))
        };
        if let Some(word) = inside(How::Substitution).chain(inside(How::Process)).find_map(last) {
            return Some(word);
        }
        let around = command.inside.filter(|i| i.how == How::Wrapped && command.runner() == Some("xargs"))?;
        let mut at = around.command;
        while script.commands[at].name() != Some("xargs") {
            at = script.commands[at].inside?.command;
        }
        let fed = script.commands.iter().enumerate().any(|(i, c)| c.feeds.contains(&at) && from(i));
        fed.then_some(0)
    }

    fn neighbours(&self, script: &Script, index: usize, command: &Invocation) -> bool {
        let named = |names: &[String], other: &Invocation| other.name().is_some_and(|n| names.iter().any(|o| o == n));
        let after = || {
            let own = script.commands.get(index).and_then(|c| c.pipe);
            let earlier = |c: &Invocation| c.pipe.map(|p| p.pipeline) == own.map(|p| p.pipeline);
            own.is_some() && script.commands[..index].iter().any(|c| earlier(c) && named(&self.not_after, c))
        };
        let from = || script.commands.iter().any(|c| c.feeds.contains(&index) && named(&self.piped_from, c));
        let into = || command.feeds.iter().any(|i| named(&self.piped_into, &script.commands[*i]));
        let writes = |c: &Invocation, p: &Pattern| c.redirects.iter().any(|r| r.writes() && p.is_match(&r.target.text));
        // the redirection of `sudo cmd > file` belongs to sudo: the calling shell opens the file
        let wrapper = || command.inside.and_then(|i| script.commands.get(i.command));
        let written = self.redirects_to.as_ref().is_none_or(|p| wrapper().is_some_and(|w| writes(w, p)));
        written
            && (self.piped_from.is_empty() || from())
            && !after()
            && (self.piped_into.is_empty() || into())
            && (self.via.is_empty() || command.via.iter().any(|v| self.via.contains(v)))
    }
}

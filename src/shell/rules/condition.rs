//! The closed language in which a rule says when it matches. Everything is asked of the parse tree; nothing of the raw
//! text of a command.

use crate::Dialect;
use crate::effects::{Place, canonical, has_value, is_told_by_words, operands_of, place_of, resolved, verb};
use crate::parse::{Construct, How, Invocation, Script, Word};
use crate::pattern::Pattern;
use crate::safety::given;

/// When a rule matches a command. Conditions that are not given hold.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// A construct of the language, for rules without a tool.
    #[serde(default)]
    pub construct: Option<Construct>,
    /// Options that must all be there: `-i` alone or in a cluster, `--sort` with or without a value, `-name` whole.
    #[serde(default)]
    pub has: Vec<String>,
    /// Options of which one must be there.
    #[serde(default)]
    pub any: Vec<String>,
    /// Options of which none may be there.
    #[serde(default)]
    pub lacks: Vec<String>,
    /// The first operand must be one of these (`git clean`, `ip addr`), the values of options before it set aside.
    #[serde(default)]
    pub verb: Vec<String>,
    /// Some operand must match.
    #[serde(default)]
    pub operand: Option<Pattern>,
    /// Some operand without quotes or escapes must match.
    #[serde(default)]
    pub bare: Option<Pattern>,
    /// Some word after the program must match, options included.
    #[serde(default)]
    pub word: Option<Pattern>,
    /// The first word after the program must match.
    #[serde(default)]
    pub first: Option<Pattern>,
    /// The last word must match.
    #[serde(default)]
    pub last: Option<Pattern>,
    /// Some word that the shell expands must match, expansions as written (`awk "{print $1}"`).
    #[serde(default)]
    pub expands: Option<Pattern>,
    /// No word after the program may match.
    #[serde(default)]
    pub no_word: Option<Pattern>,
    /// What follows an option.
    #[serde(default)]
    pub next: Option<Next>,
    /// True: the table of programs must not know it, or must say that its words tell what it destroys.
    #[serde(default)]
    pub unknown: bool,
    /// The program's name, in lower case, must match.
    #[serde(default)]
    pub program: Option<Pattern>,
    /// Its operands, joined with blanks and the values of options set aside, must match: `^s3 rm `.
    #[serde(default)]
    pub operands: Option<Pattern>,
    /// Some operand must lie in one of these places, as far as the script tells.
    #[serde(default)]
    pub at: Vec<Place>,
    /// Its operands must come from one of these commands, through `$(...)` or `xargs`, with nothing left out in between:
    /// `docker ps`, the program and its first operands.
    #[serde(default)]
    pub from: Vec<String>,
    /// The text that it is given on standard input must match, as far as the script spells it out.
    #[serde(default)]
    pub given: Option<Pattern>,
    /// A file that it writes must match: one of its operands where it writes in place, a redirection of it, or what the
    /// `tee` behind it is named.
    #[serde(default)]
    pub writes: Option<Pattern>,
    /// How many operands there must be at least.
    #[serde(default)]
    pub min_operands: usize,
    /// How many operands there may be at most.
    #[serde(default)]
    pub max_operands: Option<usize>,
    /// Its input must come through a pipe from one of these programs.
    #[serde(default)]
    pub piped_from: Vec<String>,
    /// None of these stands before it in its pipeline, at any distance.
    #[serde(default)]
    pub not_after: Vec<String>,
    /// Its output must go through a pipe to one of these programs.
    #[serde(default)]
    pub piped_into: Vec<String>,
    /// It must be run by one of these wrappers.
    #[serde(default)]
    pub via: Vec<String>,
    /// One of its redirections, or its wrapper's, must write to a file that matches, outside of any inner script.
    #[serde(default)]
    pub redirects_to: Option<Pattern>,
    /// True: its standard input must be a pipe; false: must be none.
    #[serde(default)]
    pub stdin_pipe: Option<bool>,
    /// True: its standard output must be a pipe; false: must be none.
    #[serde(default)]
    pub stdout_pipe: Option<bool>,
}

/// A condition on the word after an option.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Next {
    /// The option, as a word of its own.
    pub after: String,
    /// What the next word must match.
    #[serde(default)]
    pub is: Option<Pattern>,
    /// Whether the next word must be an unquoted pattern.
    #[serde(default)]
    pub glob: Option<bool>,
    /// What the next word must not match.
    #[serde(default)]
    pub is_not: Option<Pattern>,
    /// Whether the next word must begin a list (`a, b`), as PowerShell has them: a comma stands between it and the word behind it.
    #[serde(default)]
    pub list: Option<bool>,
}

/// True if only a comma stands between this word and the one behind it.
fn begins_list(script: &Script, command: &Invocation, at: usize) -> bool {
    let [first, second] = command.words.get(at..at + 2).unwrap_or_default() else { return false };
    script.text.get(first.span.end..second.span.start).is_some_and(|between| between.trim() == ",")
}

/// Programs whose options are whole words after one dash.
const WHOLE_WORD: &[&str] =
    &["find", "gfind", "java", "ffmpeg", "openssl", "convert", "magick", "xrandr", "terraform", "dotnet"];

/// Programs whose words `-HUP` and `-9` are signals and no cluster of options.
const SIGNALLED: &[&str] = &["kill", "pkill", "killall", "skill", "fuser"];

/// True for `-HUP`, `-SIGTERM`, `-USR1`: at least three capitals, where a program takes signals so.
fn is_signal(command: &Invocation, word: &str) -> bool {
    let name = word.strip_prefix('-').unwrap_or_default();
    let capitals = name.chars().take_while(char::is_ascii_uppercase).count();
    command.name().is_some_and(|n| SIGNALLED.contains(&n))
        && capitals >= 3
        && name[capitals..].chars().all(|c| c.is_ascii_digit())
}

/// Index of the word that is this option, if the command has it.
pub fn option(command: &Invocation, option: &str) -> Option<usize> {
    // The parameters of cmdlets (`Verb-Noun`) are whole words too.
    let cmdlet = |n: &str| n.starts_with(|c: char| c.is_ascii_uppercase()) && n.contains('-');
    let whole = command.name().is_some_and(|n| WHOLE_WORD.contains(&n) || cmdlet(n));
    let letter = option.strip_prefix('-').and_then(|o| {
        let mut chars = o.chars();
        chars.next().filter(|c| *c != '-' && chars.next().is_none())
    });
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

/// The words after the program that are no options, with their index. The words of `tar xzf` count as operands.
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
    /// Index of the word that makes the rule match, if it does: the program word where no other is to blame.
    pub fn holds(&self, script: &Script, index: usize, command: &Invocation) -> Option<usize> {
        let key = command.key().unwrap_or_default();
        if self.unknown && !is_told_by_words(&canonical(&key, script.dialect), script.dialect_of(command))
            || self.program.as_ref().is_some_and(|p| !p.is_match(&key))
        {
            return None;
        }
        let mut blamed = 0;
        let mut blame = |word: usize| {
            if blamed == 0 {
                blamed = word;
            }
        };
        for name in &self.has {
            blame(option(command, name)?);
        }
        if !self.any.is_empty() {
            blame(self.any.iter().find_map(|name| option(command, name))?);
        }
        if self.lacks.iter().any(|name| option(command, name).is_some()) {
            return None;
        }
        if let Some(next) = &self.next {
            let any_case = script.dialect == Dialect::PowerShell;
            let is = |w: &Word| w.text == next.after || any_case && w.text.eq_ignore_ascii_case(&next.after);
            let at = command.words.iter().position(is)?;
            let following = command.words.get(at + 1).map_or("", |w| w.text.as_str());
            if next.glob.is_some_and(|wanted| command.words.get(at + 1).is_none_or(|w| w.glob != wanted)) {
                return None;
            }
            if next.list.is_some_and(|wanted| begins_list(script, command, at + 1) != wanted) {
                return None;
            }
            let right = next.is.as_ref().is_none_or(|p| command.words.len() > at + 1 && p.is_match(following));
            if !right || next.is_not.as_ref().is_some_and(|p| p.is_match(following)) {
                return None;
            }
            blame(at);
        }
        let listed: Vec<(usize, &str)> = operands(command).collect();
        if !self.verb.is_empty() {
            let (at, text) = verb(command, script.dialect)?;
            blame(self.verb.iter().any(|v| *v == text).then_some(at)?);
        }
        if let Some(pattern) = &self.operand {
            blame(listed.iter().find(|(_, text)| pattern.is_match(text))?.0);
        }
        if let Some(pattern) = &self.bare {
            let bare = |at: usize| command.words.get(at).is_some_and(|w| !w.quoted);
            blame(listed.iter().find(|(at, text)| bare(*at) && pattern.is_match(text))?.0);
        }
        if let Some(pattern) = &self.word {
            blame(1 + command.args().iter().position(|w| pattern.is_match(&w.text))?);
        }
        if let Some(pattern) = &self.first {
            let matches = command.args().first().is_some_and(|w| pattern.is_match(&w.text));
            blame(matches.then_some(1)?);
        }
        if let Some(pattern) = &self.last {
            let matches = command.args().last().is_some_and(|w| pattern.is_match(&w.text));
            blame(matches.then_some(command.args().len())?);
        }
        if let Some(pattern) = &self.expands {
            blame(1 + command.args().iter().position(|w| w.expands && pattern.is_match(&w.text))?);
        }
        if let Some(pattern) = &self.operands {
            let read = operands_of(command, script.dialect_of(command));
            if !pattern.is_match(&read.iter().map(|(_, text)| *text).collect::<Vec<_>>().join(" ")) {
                return None;
            }
            // the last word of the verb is to blame, and not the program
            blame(read.first().map_or(0, |(at, _)| *at));
        }
        if !self.at.is_empty() {
            let lies = |at: usize| {
                command
                    .words
                    .get(at)
                    .is_some_and(|w| resolved(script, w).iter().any(|path| self.at.contains(&place_of(path))))
            };
            blame(listed.iter().find(|(at, _)| lies(*at))?.0);
        }
        if !self.from.is_empty() {
            blame(self.listed_by(script, index, command)?);
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
                    option(command, "-i").is_some() && listed.iter().any(|(_, text)| pattern.is_match(text))
                }
                Some("rm" | "shred" | "truncate" | "tee") => listed.iter().any(|(_, text)| pattern.is_match(text)),
                Some("ln" | "cp" | "mv") => listed.last().is_some_and(|(_, text)| pattern.is_match(text)),
                _ => false,
            };
            if !redirected(command) && !command.feeds.iter().any(teed) && !own() {
                return None;
            }
        }
        if let Some(pattern) = &self.given
            && !given(script, index).iter().any(|text| pattern.is_match(text))
        {
            return None;
        }
        let excluded = self.no_word.as_ref().is_some_and(|p| command.args().iter().any(|w| p.is_match(&w.text)));
        let counted = listed.len() >= self.min_operands && self.max_operands.is_none_or(|most| listed.len() <= most);
        let piped = self.stdin_pipe.is_none_or(|wanted| wanted == command.stdin_pipe)
            && self.stdout_pipe.is_none_or(|wanted| wanted == command.stdout_pipe);
        (!excluded && counted && piped && self.neighbours(script, index, command)).then_some(blamed)
    }

    /// Index of the word that one of the commands of `from` fills with all that it lists.
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
        // what leaves some of it out is another matter; what only takes a column is not
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
        // the last command of the substitution is the one whose output arrives
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
        // A redirection after `sudo cmd` stands with sudo: it is the calling shell that opens the file.
        let wrapper = || command.inside.and_then(|i| script.commands.get(i.command));
        let written = self.redirects_to.as_ref().is_none_or(|p| wrapper().is_some_and(|w| writes(w, p)));
        written
            && (self.piped_from.is_empty() || from())
            && !after()
            && (self.piped_into.is_empty() || into())
            && (self.via.is_empty() || command.via.iter().any(|v| self.via.contains(v)))
    }
}

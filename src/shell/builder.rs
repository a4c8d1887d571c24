//! Builds a [`Script`] from the nodes that the walkers of the grammars visit. Unwraps wrappers, links the stages of
//! pipelines, and parses scripts inside scripts.

use super::script::{Assignment, Construct, How, Inside, Invocation, Redirect, Script, Stage, Word};
use super::unwrap::{self, Held};
use super::{Dialect, word};
use caro_base::iter::only;
use std::ops::Range;

/// Deepest nesting of scripts; anything deeper counts as a syntax error. Bounds the walkers' stack.
pub(super) const MAX_DEPTH: usize = 120;
/// Most programs that run one another; more of them count as a syntax error.
const MAX_WRAPPED: usize = 24;
/// Most commands of a script; more of them count as a syntax error.
const MAX_COMMANDS: usize = 20_000;
/// Most bytes of a text; longer texts are not parsed.
const MAX_BYTES: usize = 256 * 1024;
/// Most links between two pipeline stages.
const MAX_LINKS: usize = 64;

/// A text that is being walked: the whole script, or a script inside it.
pub(super) struct Source<'t> {
    pub text: &'t str,
    pub dialect: Dialect,
    pub place: Place,
}

/// The position of a text in the whole script.
#[derive(Clone)]
pub(super) enum Place {
    /// Starts at this byte offset; the bytes are the same.
    At(usize),
    /// Lies in this range, but quotes or escapes moved its bytes.
    Within(Range<usize>),
}

impl Source<'_> {
    /// Maps a range of this text to a range of the whole script.
    pub fn map(&self, range: Range<usize>) -> Range<usize> {
        let range = self.round_to_chars(range);
        match &self.place {
            Place::At(offset) => range.start + offset..range.end + offset,
            Place::Within(whole) => whole.clone(),
        }
    }

    /// Extends a range to character boundaries: near a NUL the grammar may end a node inside a character.
    fn round_to_chars(&self, range: Range<usize>) -> Range<usize> {
        let end = self.text.len();
        let (mut from, mut to) = (range.start.min(end), range.end.min(end));
        while !self.text.is_char_boundary(from) {
            from -= 1;
        }
        while !self.text.is_char_boundary(to) {
            to += 1;
        }
        from..to
    }

    /// Returns the word at a range.
    pub fn word(&self, range: Range<usize>) -> Word {
        let range = self.round_to_chars(range);
        let raw = self.text.get(range.clone()).unwrap_or_default();
        let mut word = Word::new(raw, 0, self.dialect);
        word.span = self.map(range);
        word
    }
}

/// The context of the node being walked.
#[derive(Clone, Default)]
pub(super) struct Cx {
    pub via: Vec<String>,
    pub inside: Option<Inside>,
    /// The command and word whose text is being walked, for substitutions in it.
    pub owner: Option<(usize, Option<usize>)>,
    pub remote: bool,
    pub pipe: Option<Stage>,
    pub stdin_pipe: bool,
    pub stdout_pipe: bool,
    pub depth: usize,
}

impl Cx {
    /// The context inside a `$(...)` or `<(...)`: it has its own pipes, and its output goes to the owner.
    pub fn substituted(&self, how: How) -> Self {
        Self {
            via: self.via.clone(),
            inside: self.owner.map(|(command, word)| Inside { command, word, how }).or(self.inside),
            remote: self.remote,
            depth: self.depth + 1,
            ..Self::default()
        }
    }

    /// The context of the words of a command, which own the substitutions in them.
    pub fn for_owner(&self, owner: (usize, usize)) -> Self {
        Self { owner: Some((owner.0, Some(owner.1))), depth: self.depth + 1, ..self.clone() }
    }

    /// Returns this context one level deeper.
    pub fn deeper(&self) -> Self {
        Self { depth: self.depth + 1, ..self.clone() }
    }
}

/// A function that walks a text of one dialect and adds its commands to the builder.
pub(super) type Walk = fn(&mut Builder, &Source<'_>, &Cx);

/// The script under construction.
pub(super) struct Builder {
    pub script: Script,
    walk: Walk,
    pipelines: usize,
}

/// For each word given to [`Builder::invoke`]: the indices of its command and of the word there; `None` if it was
/// parsed as a script.
pub(super) type Placed = Vec<Option<(usize, usize)>>;

impl Builder {
    pub fn new(text: &str, dialect: Dialect, walk: Walk) -> Self {
        let script = Script {
            text: text.to_owned(),
            dialect,
            commands: Vec::new(),
            redirects: Vec::new(),
            assignments: Vec::new(),
            functions: Vec::new(),
            loops: Vec::new(),
            background: Vec::new(),
            constructs: Vec::new(),
            errors: Vec::new(),
            too_deep: false,
        };
        Self { script, walk, pipelines: 0 }
    }

    /// Parses a text and adds it to the script.
    pub fn walk(&mut self, source: &Source<'_>, cx: &Cx) {
        let whole = 0..source.text.len();
        if source.text.len() > MAX_BYTES {
            return self.error(source.map(whole));
        }
        if self.exceeds_limits(source, whole, cx) {
            return;
        }
        (self.walk)(self, source, cx);
    }

    /// True if a limit of depth or size is reached; this is recorded as an error.
    pub fn exceeds_limits(&mut self, source: &Source<'_>, range: Range<usize>, cx: &Cx) -> bool {
        let deep = cx.depth > MAX_DEPTH || cx.via.len() > MAX_WRAPPED;
        self.script.too_deep |= deep;
        let over = deep || self.script.commands.len() > MAX_COMMANDS;
        if over {
            self.error(source.map(range));
        }
        over
    }

    pub fn error(&mut self, span: Range<usize>) {
        if self.script.errors.last() != Some(&span) && self.script.errors.len() < MAX_LINKS {
            self.script.errors.push(span);
        }
    }

    pub fn construct(&mut self, construct: Construct, source: &Source<'_>, range: Range<usize>) {
        if self.script.constructs.len() < MAX_COMMANDS {
            self.script.constructs.push((construct, source.map(range)));
        }
    }

    /// Adds a command and the commands it wraps. `words` must not be empty.
    pub fn invoke(&mut self, source: &Source<'_>, words: Vec<Word>, assignments: Vec<Assignment>, cx: &Cx) -> Placed {
        let mut placed = vec![None; words.len()];
        let indexed = words.into_iter().enumerate().collect();
        self.place(source, indexed, assignments, cx, &mut placed);
        placed
    }

    /// Adds the words of an error node as a command, if they are a name with arguments.
    pub fn invoke_from_error(&mut self, source: &Source<'_>, words: Vec<Word>, cx: &Cx) {
        if words.len() > 1 {
            self.invoke(source, words, Vec::new(), cx);
        }
    }

    fn place(
        &mut self,
        source: &Source<'_>,
        mut words: Vec<(usize, Word)>,
        mut assignments: Vec<Assignment>,
        cx: &Cx,
        placed: &mut Placed,
    ) {
        if self.exceeds_limits(source, 0..0, cx) {
            return;
        }
        // fish and `env` take assignments as plain words; the grammars of bash and PowerShell handle them
        while words.len() > 1
            && source.dialect == Dialect::Fish
            && assignment_of(&words[0].1, 0, source.dialect).is_some()
        {
            let (_, first) = words.remove(0);
            self.construct(Construct::PrefixAssignment, source, 0..first.raw.len());
            assignments.extend(assignment_of(&first, self.script.commands.len(), source.dialect));
        }
        // zsh: `=rm` is the path of the program
        if source.dialect == Dialect::Zsh
            && let Some((_, first)) = words.first_mut()
            && let Some(program) = first.value.as_deref().and_then(|v| v.strip_prefix('=')).filter(|p| !p.is_empty())
        {
            first.text = program.to_owned();
            first.value = Some(program.to_owned());
        }
        let plain: Vec<Word> = words.iter().map(|(_, w)| w.clone()).collect();
        for word in &plain {
            if word.glob {
                self.script.constructs.push((Construct::UnquotedGlob, word.span.clone()));
            }
            if word.raw.contains('{') && word::resolve(&word.raw, source.dialect).braces {
                self.script.constructs.push((Construct::BraceExpansion, word.span.clone()));
            }
        }
        let unwrapped = unwrap::unwrap(&plain, source.dialect).unwrap_or_default();
        let index = self.script.commands.len();
        let mut invocation = Invocation {
            assignments,
            via: cx.via.clone(),
            inside: cx.inside,
            pipe: cx.pipe,
            stdin_pipe: cx.stdin_pipe,
            stdout_pipe: cx.stdout_pipe,
            remote: cx.remote,
            ..Invocation::default()
        };
        for (i, (original, word)) in words.iter().enumerate() {
            if unwrapped.held.iter().any(|h| matches!(h, Held::Command(range) if range.contains(&i))) {
                continue;
            }
            if unwrapped.assignments.contains(&i) {
                invocation.assignments.extend(assignment_of(word, index, source.dialect));
            }
            let script = unwrapped.held.iter().any(|h| matches!(h, Held::Script(range, _) if range.contains(&i)));
            placed[*original] = (!script).then_some((index, invocation.words.len()));
            invocation.words.push(word.clone());
        }
        let name = invocation.name().unwrap_or_default().to_owned();
        self.script.commands.push(invocation);
        if unwrapped.held.is_empty() {
            return;
        }
        let mut inner = cx.deeper();
        inner.via.push(name.clone());
        inner.inside = Some(Inside { command: index, word: None, how: How::Wrapped });
        inner.remote |= unwrapped.remote;
        inner.stdin_pipe &= !keeps_input(&name);
        for part in unwrapped.held {
            match part {
                Held::Command(range) => {
                    let words = words[range].to_vec();
                    self.place(source, words, Vec::new(), &inner, placed);
                }
                Held::Call(index, text) => {
                    let place = Place::Within(words[index].1.span.clone());
                    // the script inside of an option runs on this machine, even if the rest runs remotely
                    let local = Cx { remote: cx.remote, ..inner.clone() };
                    self.walk(&Source { text: &text, dialect: Dialect::Sh, place }, &local);
                }
                Held::Script(range, dialect) => {
                    let words: Vec<&Word> = words[range].iter().map(|(_, w)| w).collect();
                    self.script_in_words(&words, dialect.unwrap_or(source.dialect), &inner);
                }
            }
        }
    }

    /// Parses the script that is contained in the words, joined with blanks.
    fn script_in_words(&mut self, words: &[&Word], dialect: Dialect, cx: &Cx) {
        let (Some(first), Some(last)) = (words.first(), words.last()) else { return };
        if let [word] = words {
            // `iex (...).Load('x')`: the script is the result of an expression, whose quotes are part of it
            if dialect == Dialect::PowerShell && word.raw.starts_with('(') && word.span.len() == word.raw.len() {
                let place = Place::At(word.span.start);
                return self.walk(&Source { text: &word.raw, dialect, place }, cx);
            }
            let text = word.text.strip_prefix("--command=").unwrap_or(&word.text);
            self.walk(&Source { text, dialect, place: place_of(word) }, cx);
        } else {
            let text = words.iter().map(|w| w.text.as_str()).collect::<Vec<_>>().join(" ");
            let place = Place::Within(first.span.start..last.span.end.max(first.span.start));
            self.walk(&Source { text: &text, dialect, place }, cx);
        }
    }

    /// Returns the number for a new pipeline.
    pub fn pipeline(&mut self) -> usize {
        self.pipelines += 1;
        self.pipelines - 1
    }

    /// Returns the context of one stage of a pipeline.
    pub fn stage(cx: &Cx, pipeline: usize, index: usize, length: usize) -> Cx {
        let mut stage = cx.deeper();
        stage.pipe = Some(Stage { pipeline, index, length });
        stage.stdin_pipe |= index > 0;
        stage.stdout_pipe |= index + 1 < length;
        stage
    }

    /// Links the commands of each stage to the commands of the next stage that read its output.
    pub fn link(&mut self, stages: &[Range<usize>]) {
        for pair in stages.windows(2) {
            let reached = |script: &Script, i: usize| {
                // commands in `$(...)` inside the stage have pipes of their own
                let how = script.commands[i].inside;
                !how.is_some_and(|inside| {
                    inside.how != How::Wrapped
                        && (pair[0].contains(&inside.command) || pair[1].contains(&inside.command))
                })
            };
            let readers: Vec<usize> = pair[1]
                .clone()
                .filter(|i| self.script.commands[*i].stdin_pipe && reached(&self.script, *i))
                .take(MAX_LINKS)
                .collect();
            let writers: Vec<usize> = pair[0].clone().filter(|i| reached(&self.script, *i)).take(MAX_LINKS).collect();
            for writer in writers {
                self.script.commands[writer].feeds.extend(&readers);
            }
        }
    }

    /// Parses scripts that shells get on standard input: here-documents, here-strings, `echo ... | sh`.
    pub fn standard_input(&mut self) {
        for index in 0..self.script.commands.len() {
            let command = &self.script.commands[index];
            let Some(name) = command.key() else { continue };
            let file = self.process_text(index);
            let stdin = |w: &Word| w.text == "/dev/stdin";
            let reads_stdin = || command.args().iter().any(stdin) || command.has_option(Some('s'), "");
            let reads = command.operands().next().is_none() || file.is_some() || reads_stdin();
            let shell = unwrap::is_shell(&name) && reads || unwrap::opens_a_shell(command);
            let later = matches!(name.as_str(), "at" | "batch");
            // if called without a command, these run each line of their input
            let lines = matches!(name.as_str(), "ssh" | "parallel");
            let sources =
                matches!(name.as_str(), "source" | ".") && (file.is_some() || command.args().iter().any(stdin));
            if !((shell || lines) && !self.wraps(index) || sources || later) {
                continue;
            }
            let remote = name == "ssh";
            let dialect = Dialect::of_program(&name).unwrap_or(self.script.dialect);
            let cx = Cx {
                via: command.via.iter().cloned().chain([name]).collect(),
                inside: Some(Inside { command: index, word: None, how: How::Wrapped }),
                remote: command.remote || remote,
                depth: command.via.len() + 1,
                ..Cx::default()
            };
            let input = self.here_input(index).or_else(|| self.piped_text(index)).or(file);
            if let Some(word) = input {
                self.walk(&Source { text: &word.text, dialect, place: place_of(&word) }, &cx);
            }
        }
    }

    /// Returns the here-document or here-string that a command reads, also if it is attached to the wrapper: `sudo
    /// bash <<X`.
    fn here_input(&self, index: usize) -> Option<Word> {
        let command = &self.script.commands[index];
        if let Some(given) = command.redirects.iter().find_map(here_text) {
            return Some(given);
        }
        let outer = command.inside.filter(|i| i.how == How::Wrapped)?.command;
        let name = self.script.commands[outer].key().unwrap_or_default();
        if keeps_input(&name) { None } else { self.here_input(outer) }
    }

    fn wraps(&self, index: usize) -> bool {
        self.script.commands.iter().any(|c| c.inside.is_some_and(|i| i.command == index && i.how == How::Wrapped))
    }

    /// Returns the known text that a single `echo` or `printf` feeds to a command.
    fn piped_text(&self, index: usize) -> Option<Word> {
        let mut at = index;
        // `tee` and a bare `cat` pass the text on unchanged
        for _ in 0..8 {
            let feeders = self.script.commands.iter().enumerate().filter(|(_, c)| c.feeds.contains(&at));
            let (feeder, command) = only(feeders)?;
            let bare = command.name() == Some("cat") && command.operands().next().is_none();
            let passes = command.stdin_pipe && (command.name() == Some("tee") || bare);
            if !passes {
                return Self::printed_text(std::iter::once(command));
            }
            at = feeder;
        }
        None
    }

    /// Returns the known text of a `<(...)` of a command: `bash <(echo ls)`.
    fn process_text(&self, index: usize) -> Option<Word> {
        let file = |c: &&Invocation| c.inside.is_some_and(|i| i.command == index && i.how == How::Process);
        Self::printed_text(self.script.commands.iter().filter(file))
    }

    /// Returns the text that the only feeder prints, if it is known.
    fn printed_text<'s>(feeders: impl Iterator<Item = &'s Invocation>) -> Option<Word> {
        let feeder = only(feeders)?;
        if feeder.name() == Some("cat") && feeder.operands().next().is_none() {
            return feeder.redirects.iter().find_map(here_text);
        }
        if !matches!(feeder.name()?, "echo" | "printf" | "print") {
            return None;
        }
        let mut words: Vec<&Word> = feeder.operands().collect();
        // a format that only concatenates its arguments
        let bare = |w: &Word| {
            w.text.contains('%') && w.text.replace("%s", "").replace("%b", "").replace("\\n", "").trim().is_empty()
        };
        if feeder.name() == Some("printf") && words.len() > 1 && words.first().is_some_and(|w| bare(w)) {
            words.remove(0);
        }
        let span = words.first()?.span.start..words.last()?.span.end;
        let text = words.iter().map(|w| w.text.as_str()).collect::<Vec<_>>().join(" ");
        // `printf 'ls\n'` and `echo -e` resolve escapes; for parsing it is enough to end lines there
        Some(Word::literal(&text.replace("\\n", "\n"), span))
    }
}

/// Returns the here-string or here-document of a redirection.
fn here_text(redirect: &Redirect) -> Option<Word> {
    if redirect.operator == "<<<" { Some(redirect.target.clone()) } else { redirect.body.clone() }
}

/// True for programs that read their standard input themselves, or run their commands without it.
fn keeps_input(name: &str) -> bool {
    matches!(name, "xargs" | "find" | "fd" | "parallel" | "trap")
}

/// Returns the position of the resolved text of a word.
fn place_of(word: &Word) -> Place {
    if word.span.len() != word.raw.len() {
        return Place::Within(word.span.clone());
    }
    if word.raw == word.text {
        return Place::At(word.span.start);
    }
    let inner = word.raw.get(1..word.raw.len().saturating_sub(1));
    if inner == Some(word.text.as_str()) {
        return Place::At(word.span.start + 1);
    }
    Place::Within(word.span.clone())
}

/// Parses `NAME=value`.
pub(super) fn assignment_of(word: &Word, before: usize, dialect: Dialect) -> Option<Assignment> {
    let (name, value) = word.raw.split_once('=')?;
    let valid = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(valid) || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let mut value = Word::new(value, word.span.start + name.len() + 1, dialect);
    if word.span.len() != word.raw.len() {
        value.span = word.span.clone();
    }
    Some(Assignment { name: name.to_owned(), value, before, commands: before..before })
}

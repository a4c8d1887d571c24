//! The data model of a parsed command line. Created by [`super::parse`], read by all checks.

use super::{Dialect, word};
use serde::Serialize;
use std::ops::Range;

/// A parsed command line.
#[derive(Debug, Clone, Serialize)]
pub struct Script {
    /// The text it was parsed from.
    pub text: String,
    /// Its dialect.
    pub dialect: Dialect,
    /// Every program invocation in source order, those inside `$(...)`, subshells, `xargs`, `env`, `sudo`,
    /// `find -exec` and `sh -c '...'` included. A wrapper comes right before what it wraps.
    pub commands: Vec<Invocation>,
    /// Redirections that belong to no single command: `> file` alone, `{ a; b; } > file`.
    pub redirects: Vec<Redirect>,
    /// Assignments that stand alone (`a=1; ...`, `set a 1`, `$a = 1`) or by `export` and similar commands.
    pub assignments: Vec<Assignment>,
    /// Functions defined.
    pub functions: Vec<Function>,
    /// Loops whose own condition never ends them.
    pub loops: Vec<Loop>,
    /// Parts of the text that run in the background (`cmd &`).
    pub background: Vec<Range<usize>>,
    /// Constructs that not every dialect has, with their ranges.
    pub constructs: Vec<(Construct, Range<usize>)>,
    /// Syntax errors, as byte ranges of `text`.
    pub errors: Vec<Range<usize>>,
    /// True if it nests deeper than is parsed. It may still be valid.
    pub too_deep: bool,
}

/// One program invocation.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Invocation {
    /// The program word, and its own words after it. The words of a wrapped command belong to that command:
    /// `sudo -u x rm -r y` is `sudo -u x` and `rm -r y`; `find . -exec rm {} \;` is `find . -exec \;` and `rm {}`.
    pub words: Vec<Word>,
    /// Assignments before the program word (`FOO=1 cmd`), those of `env` included.
    pub assignments: Vec<Assignment>,
    /// Programs that wrap it, outermost first (`sudo`, `xargs`, `find`).
    pub via: Vec<String>,
    /// The invocation around it, if any.
    pub inside: Option<Inside>,
    /// Redirections of this command.
    pub redirects: Vec<Redirect>,
    /// Its position in the innermost pipeline around it.
    pub pipe: Option<Stage>,
    /// True if its standard input is a pipe.
    pub stdin_pipe: bool,
    /// True if its standard output is a pipe.
    pub stdout_pipe: bool,
    /// Indices of the commands that read its standard output through a pipe.
    pub feeds: Vec<usize>,
    /// True if it runs elsewhere (`ssh host '...'`, `docker exec`).
    pub remote: bool,
}

/// The position of an invocation inside another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Inside {
    /// Index of the outer command.
    pub command: usize,
    /// Index of the word of the outer command that contains it, if one does.
    pub word: Option<usize>,
    /// Its relation to the outer command.
    pub how: How,
}

/// The relation of an invocation to the one around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// The outer command runs it: `sudo`, `xargs`, `sh -c`.
    Wrapped,
    /// Its output becomes text of the outer command: `$(...)`.
    Substitution,
    /// Its output is a file for the outer command, or the outer command writes to it: `<(...)`, `>(...)`.
    Process,
}

/// A position in a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Stage {
    /// Number of the pipeline in its script.
    pub pipeline: usize,
    /// Position in it, from 0.
    pub index: usize,
    /// The number of its stages.
    pub length: usize,
}

/// A word of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Word {
    /// As written, quotes and all.
    pub raw: String,
    /// With quotes and escapes resolved, if the shell expands nothing in it; `None` for `$x`, `$(...)`, globs, `~`.
    pub value: Option<String>,
    /// With quotes and escapes resolved, but expansions left as written: `"$HOME"/a*` is `$HOME/a*`.
    pub text: String,
    /// Its range in [`Script::text`], in bytes. A word of `sh -c '...'` points into that argument, or at all of it
    /// where escapes moved its parts.
    pub span: Range<usize>,
    /// True if it has an unquoted `*`, `?` or `[...]`.
    pub glob: bool,
    /// True if it has a variable, a substitution, braces or a tilde for the shell to expand.
    pub expands: bool,
    /// True if any part of it is quoted or escaped.
    pub quoted: bool,
}

/// A redirection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Redirect {
    /// `>`, `>>`, `<`, `2>`, `&>`, `<<`, `<<<`, `2>&` ...
    pub operator: String,
    /// The file; the delimiter of a here-document; the number or `-` after `>&`.
    pub target: Word,
    /// The text of a here-document.
    pub body: Option<Word>,
}

impl Redirect {
    /// True if it writes to the named file (`>`, `>>`, `2>`, `&>`), unlike `2>&1`.
    pub fn writes(&self) -> bool {
        self.operator.contains('>') && !self.duplicates()
    }

    /// True if it appends to the file.
    pub fn appends(&self) -> bool {
        self.operator.contains(">>")
    }

    /// True if it duplicates or closes a descriptor (`2>&1`, `>&-`).
    pub fn duplicates(&self) -> bool {
        self.operator.ends_with('&') && self.target.text.chars().all(|c| c.is_ascii_digit() || c == '-')
            || self.operator.ends_with("&-")
    }
}

/// `NAME=value`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Assignment {
    /// The variable.
    pub name: String,
    /// The assigned value.
    pub value: Word,
    /// The number of commands of the script before it.
    pub before: usize,
    /// The commands inside its value, as a range of [`Script::commands`].
    pub commands: Range<usize>,
}

/// A function definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its range in the text.
    pub span: Range<usize>,
    /// The commands of its body, as a range of [`Script::commands`].
    pub commands: Range<usize>,
}

/// A loop whose own condition never ends it: `while true; do ...; done`, `for ((;;))`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Loop {
    /// Its range in the text.
    pub span: Range<usize>,
    /// The commands in it, as a range of [`Script::commands`].
    pub commands: Range<usize>,
}

/// A construct of a shell language. The platform rules say which dialects lack it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Construct {
    /// `a && b`, `a || b`.
    AndOr,
    /// `[[ ... ]]`.
    DoubleBracket,
    /// `(( ... ))` as a command.
    DoubleParen,
    /// `$(( ... ))`.
    Arithmetic,
    /// `$( ... )`.
    CommandSubstitution,
    /// `` `...` ``.
    Backticks,
    /// `<(...)`, `>(...)`.
    ProcessSubstitution,
    /// `<<WORD`.
    HereDocument,
    /// `<<< word`.
    HereString,
    /// `&>`, `&>>`, `>&file`.
    AmpersandRedirect,
    /// `|&`.
    PipeBoth,
    /// `{a,b}`, `{1..5}`.
    BraceExpansion,
    /// `$'...'`.
    AnsiQuote,
    /// `a=(...)`, `${a[0]}`.
    Array,
    /// `a=1` as a command.
    Assignment,
    /// `a+=1` as a command.
    AppendAssignment,
    /// `A=1 cmd`.
    PrefixAssignment,
    /// `for ... do ... done`, `if ... fi` and other blocks of the Bourne shell.
    BourneBlock,
    /// `select x in ...; do ... done`.
    Select,
    /// `function f`.
    FunctionKeyword,
    /// `f() { ... }`.
    FunctionParens,
    /// `$?`.
    ExitStatus,
    /// `${x^^}`, `${x/a/b}`, `${x:1:2}`, `${!x}`.
    ParameterTransform,
    /// `$RANDOM` and other variables that only the larger shells set.
    OwnVariable,
    /// An unquoted glob among a command's words.
    UnquotedGlob,
    /// `2>/dev/null`: the Unix null device as a redirection's target.
    DevNull,
    /// A call of a method (`[IO.File]::Delete(...)`) in PowerShell.
    MethodCall,
}

/// Operators that must be followed by a command.
const CONNECTORS: [&str; 4] = ["&&", "||", "|&", "|"];

impl Script {
    /// Returns the text that a syntax error is about, and true if that is an operator without a command after it.
    pub fn error_text(&self, error: &Range<usize>) -> (&str, bool) {
        let whole = self.text.trim_end();
        let piece = self.text.get(error.clone()).unwrap_or_default().trim();
        if let Some(connector) = CONNECTORS.into_iter().find(|connector| whole.ends_with(*connector)) {
            let before = &whole[..whole.len() - connector.len()];
            // inside an open quote it is an ordinary character
            let is_closed = |quote: char| before.matches(quote).count().is_multiple_of(2);
            if is_closed('\'') && is_closed('"') && !before.ends_with('\\') && error.end >= before.len() {
                return (connector, true);
            }
        }
        if !piece.is_empty() {
            return (piece, false);
        }
        // something is missing here: report the text before it
        let before = self.text.get(..error.start).unwrap_or_default();
        (before.split_whitespace().next_back().unwrap_or(whole), false)
    }

    /// Returns the single command that reads the output of a command; `None` if there are none or several.
    pub fn reader(&self, command: &Invocation) -> Option<&Invocation> {
        let [next] = command.feeds[..] else { return None };
        self.commands.get(next)
    }

    /// Returns the dialect that a command is written in: inside `bash -c '...'` it is bash.
    pub(super) fn dialect_of(&self, command: &Invocation) -> Dialect {
        command.via.iter().rev().find_map(|outer| Dialect::of_program(outer)).unwrap_or(self.dialect)
    }
}

impl Invocation {
    /// The program's name without its directory, if it follows from the text: `rm` for `/bin/rm`, `\rm`, `r"m"`.
    pub fn name(&self) -> Option<&str> {
        let value = self.words.first()?.value.as_deref()?;
        let base = value.rsplit('/').next().unwrap_or(value);
        (!base.is_empty()).then_some(base)
    }

    /// The program's name as used in tables: lower case, without `.exe` and Windows directories.
    pub fn key(&self) -> Option<String> {
        let name = self.name()?.rsplit('\\').next()?.to_ascii_lowercase();
        Some(name.strip_suffix(".exe").map_or(name.clone(), str::to_owned))
    }

    /// The dialect whose names for programs hold here: `sc.exe` is the program also in PowerShell, where `sc` is an
    /// alias.
    pub(super) fn naming(&self, dialect: Dialect) -> Dialect {
        let is_file = self.name().is_some_and(|name| name.to_ascii_lowercase().ends_with(".exe"));
        if is_file && dialect == Dialect::PowerShell { Dialect::Sh } else { dialect }
    }

    /// The innermost wrapper that composes the command it runs, ignoring wrappers that only pass it on: `xargs` for
    /// the `rm` of `xargs nice rm`.
    pub fn runner(&self) -> Option<&str> {
        self.via.iter().rev().map(String::as_str).find(|outer| !super::unwrap::passes_on(outer))
    }

    /// The words after the program word.
    pub fn args(&self) -> &[Word] {
        self.words.get(1..).unwrap_or(&[])
    }

    /// The range from the program word to the end of its own last word.
    pub fn span(&self) -> Range<usize> {
        match (self.words.first(), self.words.last()) {
            (Some(first), Some(last)) => first.span.start..last.span.end.max(first.span.end),
            _ => 0..0,
        }
    }

    /// True if a word after the program is the short option, alone or in a cluster (`-xzf`), or the long option,
    /// alone, with a value, or abbreviated (`--recurs`). Pass `""` for `long` if there is none. Words after `--` do
    /// not count; quoted options do.
    pub fn has_option(&self, short: Option<char>, long: &str) -> bool {
        self.option(short, long).is_some()
    }

    /// Returns the word that [`Self::has_option`] tests for.
    pub fn option(&self, short: Option<char>, long: &str) -> Option<&Word> {
        self.args().iter().take_while(|w| w.text != "--").find(|w| {
            if let Some(rest) = w.text.strip_prefix("--") {
                let name = rest.split('=').next().unwrap_or(rest);
                !long.is_empty() && name.len() > 2 && long.starts_with(name) || !long.is_empty() && name == long
            } else if let (Some(letter), Some(cluster)) = (short, w.text.strip_prefix('-')) {
                cluster.split('=').next().unwrap_or(cluster).contains(letter)
            } else {
                false
            }
        })
    }

    /// The words after the program that do not look like options; the program's manual is not consulted.
    pub fn operands(&self) -> impl Iterator<Item = &Word> {
        let mut ended = false;
        self.args().iter().filter(move |w| {
            if !ended && w.text == "--" {
                ended = true;
                return false;
            }
            ended || !w.text.starts_with('-') || w.text == "-"
        })
    }

    /// True if the shell runs it itself, by the dialect's table of builtins.
    pub fn is_builtin(&self, dialect: Dialect) -> bool {
        let Some(word) = self.words.first() else { return false };
        self.name().is_some_and(|name| word.text == name && super::builtin::is_builtin(name, dialect))
    }
}

impl Word {
    /// Creates a word from text at offset `start`, resolved by the dialect's rules.
    pub fn new(raw: &str, start: usize, dialect: Dialect) -> Self {
        let resolved = word::resolve(raw, dialect);
        Self {
            raw: raw.to_owned(),
            value: resolved.literal.then(|| resolved.text.clone()),
            text: resolved.text,
            span: start..start + raw.len(),
            glob: resolved.glob,
            expands: resolved.expands,
            quoted: resolved.quoted,
        }
    }

    /// Creates a word that needs no quoting.
    pub fn literal(value: &str, span: Range<usize>) -> Self {
        Self { raw: value.to_owned(), value: Some(value.to_owned()), text: value.to_owned(), span, ..Self::default() }
    }
}

//! The only writer to the terminal: stdout is data and nothing else, everything for the person goes to stderr.

use super::color::ColorChoice;
use super::interrupt;
use super::spinner::Spinner;
use crate::flags::Common;
use crate::{Env, Failure, env};
use anstream::AutoStream;
use anstream::stream::{AsLockedWrite, RawStream};
use anstyle::{AnsiColor, Style};
pub use caro_base::size::size;
use caro_policy::is_hidden;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a piece of text is, from which follows how it looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A command to be run.
    Command,
    /// Good.
    Good,
    /// Worth a second look.
    Caution,
    /// Dangerous, or an error.
    Danger,
    /// A hint, a heading.
    Accent,
    /// Of less weight than what stands around it.
    Dim,
    /// Nothing special.
    Plain,
}

impl Role {
    fn style(self) -> Style {
        let colour = |c: AnsiColor| Style::new().fg_color(Some(c.into()));
        match self {
            Self::Command => Style::new().bold(),
            Self::Good => colour(AnsiColor::Green),
            Self::Caution => colour(AnsiColor::Yellow),
            Self::Danger => colour(AnsiColor::Red).bold(),
            Self::Accent => colour(AnsiColor::Cyan),
            Self::Dim => Style::new().dimmed(),
            Self::Plain => Style::new(),
        }
    }
}

/// One of the two streams.
struct Stream {
    sink: Mutex<Box<dyn Write + Send>>,
    tty: bool,
    color: bool,
}

impl Stream {
    fn new<S>(raw: S, choice: ColorChoice, env: &Env) -> Self
    where
        S: RawStream + AsLockedWrite + Send + 'static,
    {
        let tty = anstream::stream::IsTerminal::is_terminal(&raw);
        let color = choice.resolve(env, tty);
        // `always` passes bytes through, and switches escape sequences on in an old Windows console.
        let sink: Box<dyn Write + Send> = if color { Box::new(AutoStream::always(raw)) } else { Box::new(raw) };
        Self { sink: Mutex::new(sink), tty, color }
    }

    fn lock(&self) -> MutexGuard<'_, Box<dyn Write + Send>> {
        self.sink.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn paint(&self, role: Role, text: &str) -> String {
        let text = visible(text);
        if self.color && role != Role::Plain {
            let style = role.style();
            format!("{style}{text}{style:#}")
        } else {
            text
        }
    }
}

/// The terminal.
pub struct Ui {
    out: Stream,
    err: Stream,
    quiet: bool,
    moving: bool,
    /// Nothing is drawn over, for a screen reader or a terminal that cannot.
    plain: bool,
    unicode: bool,
    status: Arc<Slot>,
    /// True while the cursor stands behind a question.
    asking: Arc<AtomicBool>,
}

impl std::fmt::Debug for Ui {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ui").field("out_tty", &self.out.tty).field("err_tty", &self.err.tty).finish_non_exhaustive()
    }
}

impl Ui {
    /// The terminal of this process.
    pub fn new(common: &Common, env: &Env) -> Self {
        let is_asked = common.plain || env.get(env::PLAIN).is_some_and(|value| value != "0");
        let plain = is_asked || env.get(env::TERM).is_some_and(|terminal| terminal == "dumb");
        let color = if is_asked { ColorChoice::Never } else { common.color };
        let err = Stream::new(io::stderr(), color, env);
        let moving = err.tty && !common.quiet && !plain;
        Self {
            out: Stream::new(io::stdout(), color, env),
            err,
            quiet: common.quiet,
            moving,
            plain,
            unicode: has_unicode(env),
            status: Arc::default(),
            asking: Arc::default(),
        }
    }

    /// True if the terminal that stderr is takes sequences that draw over what is there.
    pub fn may_draw(&self) -> bool {
        self.err.tty && !self.plain
    }

    /// The columns of the terminal that stderr is; 80 where it does not tell.
    pub fn columns(&self) -> usize {
        if self.err.tty { columns().unwrap_or(80) } else { 80 }
    }

    /// Writes sequences of the terminal, and text that went through [`Ui::paint_err`], to stderr as they are; true if they
    /// were written.
    pub fn draw(&self, sequences: &str) -> bool {
        self.settle();
        let mut err = self.err.lock();
        err.write_all(sequences.as_bytes()).and_then(|()| err.flush()).is_ok()
    }

    /// True if the person sees stdout.
    pub fn out_is_terminal(&self) -> bool {
        self.out.tty
    }

    /// True if moving lines are seen.
    pub fn moves(&self) -> bool {
        self.moving
    }

    /// True if questions can be asked: the person sees stderr and types into stdin.
    pub fn can_ask(&self) -> bool {
        self.err.tty && io::stdin().is_terminal()
    }

    /// The same where stdin may be something else: the person is asked at the terminal itself.
    pub fn can_ask_at_terminal(&self) -> bool {
        self.can_ask() || self.err.tty && interrupt::has_terminal()
    }

    /// True if the person sees both streams.
    pub fn is_at_terminal(&self) -> bool {
        self.out.tty && self.err.tty
    }

    /// Text for stdout in the look of its role, made safe for a terminal.
    pub fn paint(&self, role: Role, text: &str) -> String {
        self.out.paint(role, text)
    }

    /// The same for stderr.
    pub fn paint_err(&self, role: Role, text: &str) -> String {
        self.err.paint(role, text)
    }

    /// Text for stdout as [`Ui::paint`] has it, in one line: a name, a path, an entry of a list.
    pub fn entry(&self, role: Role, text: &str) -> String {
        self.paint(role, &in_line(text))
    }

    /// Writes data and a line end to stdout, byte for byte; only a terminal is shielded from control characters.
    ///
    /// # Errors
    /// If it cannot be written; a reader that went away becomes a silent [`Failure`].
    pub fn data(&self, text: &str) -> io::Result<()> {
        if self.out.tty { self.line(&visible(text)) } else { self.line(text) }
    }

    /// Writes one line to stdout whose parts went through [`Ui::paint`].
    ///
    /// # Errors
    /// As [`Ui::data`].
    pub fn line(&self, painted: &str) -> io::Result<()> {
        self.settle();
        let mut out = self.out.lock();
        writeln!(out, "{painted}")?;
        out.flush()
    }

    /// Writes one JSON document in one line to stdout.
    ///
    /// # Errors
    /// As [`Ui::data`].
    pub fn json(&self, value: &impl serde::Serialize) -> io::Result<()> {
        self.data(&serde_json::to_string(value).map_err(io::Error::other)?)
    }

    /// Writes a command to stdout: byte for byte into a pipe, in its look and with nothing hidden on a terminal.
    ///
    /// # Errors
    /// As [`Ui::data`].
    pub fn command(&self, cmd: &str) -> io::Result<()> {
        if self.out.tty { self.line(&self.out.paint(Role::Command, cmd)) } else { self.line(cmd) }
    }

    /// Writes one JSON document to stdout: indented for a person, in one line for a program.
    ///
    /// # Errors
    /// As [`Ui::data`].
    pub fn document(&self, value: &impl serde::Serialize) -> io::Result<()> {
        if !self.out.tty {
            return self.json(value);
        }
        self.data(&serde_json::to_string_pretty(value).map_err(io::Error::other)?)
    }

    /// Writes a list to stdout: one document for a program, for a person each item as `show` writes it, or a note where
    /// there is none.
    ///
    /// # Errors
    /// As [`Ui::data`].
    pub fn list<T: serde::Serialize>(
        &self,
        json: bool,
        all: &[T],
        nothing: &str,
        show: impl FnMut(&T) -> io::Result<()>,
    ) -> io::Result<()> {
        if json {
            return self.document(&all);
        }
        if all.is_empty() {
            self.note(nothing);
        }
        all.iter().try_for_each(show)
    }

    /// One fact of `--verbose`.
    pub fn fact(&self, name: &str, what: &str) {
        let head = self.paint_err(Role::Accent, &format!("{name}:"));
        self.tell(&format!("{head} {}", self.paint_err(Role::Plain, what)));
    }

    /// Tells the person what is to be known about a command, indented under it; silent with `--quiet`.
    pub fn aside(&self, role: Role, text: &str) {
        self.aside_parts(&[(role, text)]);
    }

    /// The same with parts that look different.
    pub fn aside_parts(&self, parts: &[(Role, &str)]) {
        if !self.quiet {
            let columns = self.columns();
            // a wide terminal breaks lines well enough itself
            let width = if self.err.tty && columns < NARROW { columns.saturating_sub(3) } else { usize::MAX };
            for line in broken(parts, width) {
                let painted: String = line.iter().map(|(role, text)| self.err.paint(*role, text)).collect();
                self.tell(&format!("  {painted}"));
            }
        }
    }

    /// False with `--quiet`.
    pub fn is_talkative(&self) -> bool {
        !self.quiet
    }

    /// Tells the person something that is not the answer; silent with `--quiet`.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            self.tell(&visible(text));
        }
    }

    /// Tells the person that something is odd, though work goes on; silent with `--quiet`.
    pub fn warn(&self, text: &str) {
        if !self.quiet {
            self.tell(&format!("{} {}", self.err.paint(Role::Caution, "warning:"), visible(text)));
        }
    }

    /// Writes a line to stderr whose parts went through [`Ui::paint_err`], with `--quiet` too: it was asked for.
    pub fn tell(&self, painted: &str) {
        self.settle();
        // Nobody is left to be told that telling failed.
        let _ = writeln!(self.err.lock(), "{painted}");
    }

    /// Writes a question to stderr, without a line end.
    pub fn ask(&self, painted: &str) {
        self.settle();
        self.asking.store(true, Ordering::Relaxed);
        let mut err = self.err.lock();
        let painted = self.fold(painted, "");
        let _ = write!(err, "{painted} ").and_then(|()| err.flush());
    }

    /// A line for stderr, broken between words where its terminal is narrow, with `indent` before what goes on below.
    pub fn fold(&self, painted: &str, indent: &str) -> String {
        let columns = self.columns();
        if self.err.tty && columns < NARROW {
            folded(painted, columns.saturating_sub(1), indent)
        } else {
            painted.to_owned()
        }
    }

    /// Takes note that the question was answered: the cursor stands on a line of its own.
    pub fn answered(&self) {
        self.asking.store(false, Ordering::Relaxed);
    }

    /// Shows an error and what to do next.
    pub fn failure(&self, failure: &Failure) {
        if failure.message.is_empty() {
            return self.settle();
        }
        self.tell(&format!("{} {}", self.err.paint(Role::Danger, "error:"), visible(&failure.message)));
        if let Some(hint) = &failure.hint {
            self.hint(hint);
        }
    }

    /// Says what to do next, after an error.
    pub fn hint(&self, hint: &str) {
        self.tell(&format!("\n{} {}", self.err.paint(Role::Accent, "hint:"), visible(hint)));
    }

    /// Shows a moving line on stderr until the guard is dropped or something else is printed; nothing where nobody sees it.
    pub fn status(&self, what: &'static str) -> Status {
        if self.moving {
            self.show(Moving::Spinner(Spinner::start(what, self.unicode)));
        }
        Status(self.status.clone())
    }

    /// A bar for bytes on stderr, with rate and time left; hidden where nobody sees it.
    pub fn bar(&self, what: String, total: u64) -> ProgressBar {
        self.progress(what, total, "{msg} {wide_bar:.cyan} {bytes}/{total_bytes} {bytes_per_sec} {eta}")
    }

    /// A bar for things that are counted; hidden where nobody sees it.
    pub fn counter(&self, what: String, total: u64) -> ProgressBar {
        self.progress(what, total, "{msg} {wide_bar:.cyan} {pos}/{len} {eta}")
    }

    fn progress(&self, what: String, total: u64, template: &str) -> ProgressBar {
        if !self.moving {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(if self.unicode { style } else { style.progress_chars("#> ") });
        }
        bar.set_message(what);
        self.show(Moving::Bar(bar.clone()));
        bar
    }

    /// Takes a moving line off the terminal, so that the next byte stands on a clean line.
    pub fn settle(&self) {
        clear(&self.status);
    }

    fn show(&self, line: Moving) {
        self.settle();
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = Some(line);
    }

    /// The text that clears the terminal from another thread, when the process ends at once: what moves goes, and what comes next
    /// stands below an open question.
    pub fn clearer(&self) -> impl Fn() + Send + Sync + 'static {
        let (status, asking) = (self.status.clone(), self.asking.clone());
        move || {
            clear(&status);
            if asking.swap(false, Ordering::Relaxed) {
                let _ = writeln!(io::stderr());
            }
        }
    }
}

/// What moves on the terminal; one thing at a time.
enum Moving {
    Spinner(Spinner),
    Bar(ProgressBar),
}

type Slot = Mutex<Option<Moving>>;

fn clear(status: &Slot) {
    match status.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(Moving::Spinner(spinner)) => spinner.clear(),
        Some(Moving::Bar(bar)) => bar.finish_and_clear(),
        None => {}
    }
}

/// A moving line; it goes when this is dropped.
pub struct Status(Arc<Slot>);

impl Drop for Status {
    fn drop(&mut self) {
        clear(&self.0);
    }
}

/// Columns from which on a terminal is left to break lines by itself.
const NARROW: usize = 81;

/// Parts of a text in lines of at most so many characters, broken between words.
fn broken<'t>(parts: &[(Role, &'t str)], width: usize) -> Vec<Vec<(Role, &'t str)>> {
    let mut lines = vec![Vec::new()];
    let mut used = 0;
    for (role, text) in parts {
        for word in text.split_inclusive(' ') {
            let (shown, spaced) = (word.trim_end_matches(' ').chars().count(), word.chars().count());
            if used > 0 && used + shown > width {
                lines.push(Vec::new());
                used = 0;
            }
            if let Some(line) = lines.last_mut() {
                line.push((*role, word));
            }
            used += spaced;
        }
    }
    lines
}

/// A painted line in lines of at most so many characters, broken at blanks; sequences that paint take no room.
pub(crate) fn folded(painted: &str, width: usize, indent: &str) -> String {
    let mut text = String::with_capacity(painted.len());
    let mut used = 0;
    for (i, word) in painted.split(' ').enumerate() {
        let shown = anstream::adapter::strip_str(word).to_string().chars().count();
        if used > 0 && used + 1 + shown > width {
            text.push('\n');
            text.push_str(indent);
            used = indent.len();
        } else if i > 0 {
            text.push(' ');
            used += 1;
        }
        text.push_str(word);
        used += shown;
    }
    text
}

/// The columns of the terminal that stderr is.
#[cfg(unix)]
fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok()?;
    if size.ws_col == 0 { None } else { Some(usize::from(size.ws_col)) }
}

#[cfg(not(unix))]
fn columns() -> Option<usize> {
    None
}

/// True if the locale says that the terminal shows more than ASCII. The first of the three that is set decides.
fn has_unicode(env: &Env) -> bool {
    let set = [env::LC_ALL, env::LC_CTYPE, env::LANG].into_iter().find_map(|name| env.get(name)?.to_str());
    set.map_or(cfg!(windows), |locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// `1 file`, `2 files`.
pub fn plural(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Text as it may be shown on a terminal. Control characters could move the cursor, rename the window or hide half of a
/// command, and bidirectional marks could reorder it: all but newline and tab are written out as `\x1b`, `\u{202e}`.
pub fn visible(text: &str) -> String {
    let hostile = |c: char| (c.is_control() && c != '\n' && c != '\t') || is_hidden(c);
    if !text.contains(hostile) {
        return text.to_string();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            _ if !hostile(c) => shown.push(c),
            '\0'..='\x7f' => shown.push_str(&format!("\\x{:02x}", u32::from(c))),
            _ => shown.extend(c.escape_unicode()),
        }
    }
    shown
}

/// The same in one line: whatever ends a line or leads on in it is written out, too, and one record stays one.
pub fn in_line(text: &str) -> String {
    visible(&text.replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(vars: &[(&str, &str)]) -> Env {
        let vars: Vec<(String, String)> = vars.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        Env::from_lookup(move |name| vars.iter().find(|(k, _)| k == name).map(|(_, v)| v.into()))
    }

    #[test]
    fn colour_order_is_flag_no_color_force_terminal() {
        use ColorChoice::{Always, Auto, Never};
        let both = env(&[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")]);
        let force = env(&[("CLICOLOR_FORCE", "1")]);
        assert!(Always.resolve(&both, false));
        assert!(!Never.resolve(&force, true));
        assert!(!Auto.resolve(&both, true));
        assert!(Auto.resolve(&force, false));
        assert!(!Auto.resolve(&env(&[("CLICOLOR_FORCE", "0")]), false));
        assert!(Auto.resolve(&env(&[]), true));
        assert!(!Auto.resolve(&env(&[]), false));
        assert!(!Auto.resolve(&env(&[("TERM", "dumb")]), true));
        assert!(Auto.resolve(&env(&[("NO_COLOR", "")]), true));
    }

    #[test]
    fn a_text_is_broken_between_words_and_loses_nothing() {
        let parts = [(Role::Danger, "danger"), (Role::Plain, ": it deletes everything below the folder")];
        let lines = |width| -> Vec<String> {
            broken(&parts, width).iter().map(|line| line.iter().map(|(_, text)| *text).collect()).collect()
        };
        assert_eq!(lines(usize::MAX), ["danger: it deletes everything below the folder"]);
        assert_eq!(lines(20), ["danger: it deletes ", "everything below the ", "folder"]);
        for width in 0..60 {
            assert_eq!(lines(width).concat(), lines(usize::MAX)[0], "{width}");
        }
    }

    #[test]
    fn a_painted_line_is_folded_by_what_is_seen_of_it() {
        let word = format!("{}danger{:#}", Role::Danger.style(), Role::Danger.style());
        let line = format!("type {word} to run it, e to edit it:");
        assert_eq!(folded(&line, 80, ""), line);
        assert_eq!(folded(&line, 19, "  "), format!("type {word} to run\n  it, e to edit it:"));
        assert_eq!(folded("  a  b", 80, ""), "  a  b");
    }

    #[test]
    fn the_locale_says_whether_a_terminal_shows_more_than_ascii() {
        for (vars, wanted) in [
            (&[("LANG", "C.UTF-8")][..], true),
            (&[("LANG", "de_DE.utf8")], true),
            (&[("LC_ALL", "C"), ("LANG", "C.UTF-8")], false),
            (&[("LC_CTYPE", "en_US.UTF-8"), ("LANG", "C")], true),
            (&[], cfg!(windows)),
        ] {
            assert_eq!(has_unicode(&env(vars)), wanted, "{vars:?}");
        }
    }

    #[test]
    fn hostile_text_is_written_out() {
        assert_eq!(visible("ls\t-l\nwc"), "ls\t-l\nwc");
        assert_eq!(visible("a\x1b[2Jb\rc\x07\x7f"), "a\\x1b[2Jb\\x0dc\\x07\\x7f");
        assert_eq!(visible("rm \u{202e}fr-"), "rm \\u{202e}fr-");
        assert_eq!(visible("\u{9b}31m"), "\\u{9b}31m");
        assert_eq!(visible("naïve 日本 👩\u{200d}💻 ⚠\u{fe0f}"), "naïve 日本 👩\u{200d}💻 ⚠\u{fe0f}");
        assert_eq!(visible("r\u{ad}m"), "r\\u{ad}m");
        assert_eq!(in_line("a\nb\r\n\tc\x1b"), "a\\nb\\r\\n\\tc\\x1b");
    }
}

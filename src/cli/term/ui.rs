//! All output of the program: stdout gets only data, everything else for the user goes to stderr.

use super::color::ColorChoice;
use super::fold::{break_parts, folded};
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
use std::sync::{Arc, Mutex, PoisonError};

/// The role of a piece of text, which sets its style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A command to be run.
    Command,
    /// A good result.
    Good,
    /// Worth a second look.
    Caution,
    /// Dangerous, or an error.
    Danger,
    /// A hint, a heading.
    Accent,
    /// Less important than the text around it.
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

/// Standard output or standard error.
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
        // `always` passes bytes through, and turns escape sequences on in an old Windows console
        let sink: Box<dyn Write + Send> = if color { Box::new(AutoStream::always(raw)) } else { Box::new(raw) };
        Self { sink: Mutex::new(sink), tty, color }
    }

    /// Writes text as one piece. A formatted write to stderr, which has no buffer, would write each part by itself, and
    /// what other processes write or the user types could come in between.
    fn write(&self, text: &str) -> io::Result<()> {
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        sink.write_all(text.as_bytes())?;
        sink.flush()
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
    /// True if nothing may be drawn over: for a screen reader, or a terminal that cannot.
    plain: bool,
    unicode: bool,
    status: Arc<Slot>,
    /// True while the cursor is after an open question.
    asking: Arc<AtomicBool>,
}

impl std::fmt::Debug for Ui {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ui").field("out_tty", &self.out.tty).field("err_tty", &self.err.tty).finish_non_exhaustive()
    }
}

impl Ui {
    /// Opens the output of this process.
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

    /// True if stderr is a terminal that can be drawn over.
    pub fn may_draw(&self) -> bool {
        self.err.tty && !self.plain
    }

    /// The number of columns of stderr's terminal; 80 if it is unknown.
    pub fn columns(&self) -> usize {
        if self.err.tty { columns().unwrap_or(80) } else { 80 }
    }

    /// Writes terminal sequences, and text styled by [`Ui::paint_err`], to stderr unchanged. Returns true on success.
    pub fn draw(&self, sequences: &str) -> bool {
        self.settle();
        self.err.write(sequences).is_ok()
    }

    /// True if stdout is a terminal.
    pub fn out_is_terminal(&self) -> bool {
        self.out.tty
    }

    /// True if moving lines are shown.
    pub fn moves(&self) -> bool {
        self.moving
    }

    /// True if questions can be asked: stderr and stdin are terminals.
    pub fn can_ask(&self) -> bool {
        self.err.tty && io::stdin().is_terminal()
    }

    /// True if questions can be asked, at the terminal itself if stdin is not one.
    pub fn can_ask_at_terminal(&self) -> bool {
        self.can_ask() || self.err.tty && interrupt::has_terminal()
    }

    /// True if stdout and stderr are terminals.
    pub fn is_at_terminal(&self) -> bool {
        self.out.tty && self.err.tty
    }

    /// Styles text for stdout by its role, and makes it safe for a terminal.
    pub fn paint(&self, role: Role, text: &str) -> String {
        self.out.paint(role, text)
    }

    /// Styles text for stderr by its role, and makes it safe for a terminal.
    pub fn paint_err(&self, role: Role, text: &str) -> String {
        self.err.paint(role, text)
    }

    /// Styles text for stdout as [`Ui::paint`] does, in one line: a name, a path, an entry of a list.
    pub fn entry(&self, role: Role, text: &str) -> String {
        self.paint(role, &in_line(text))
    }

    /// Writes data and a line end to stdout, unchanged; control characters are escaped on a terminal only.
    ///
    /// # Errors
    /// If it cannot be written; a closed pipe becomes a silent [`Failure`].
    pub fn data(&self, text: &str) -> io::Result<()> {
        if self.out.tty { self.line(&visible(text)) } else { self.line(text) }
    }

    /// Writes one line to stdout whose parts are styled by [`Ui::paint`].
    ///
    /// # Errors
    /// As [`Ui::data`].
    pub fn line(&self, painted: &str) -> io::Result<()> {
        self.settle();
        self.out.write(&format!("{painted}\n"))
    }

    /// Writes one JSON document in one line to stdout.
    ///
    /// # Errors
    /// As [`Ui::data`].
    pub fn json(&self, value: &impl serde::Serialize) -> io::Result<()> {
        self.data(&serde_json::to_string(value).map_err(io::Error::other)?)
    }

    /// Writes a command to stdout: unchanged into a pipe, styled and with hidden characters escaped on a terminal.
    ///
    /// # Errors
    /// As [`Ui::data`].
    pub fn command(&self, cmd: &str) -> io::Result<()> {
        if self.out.tty { self.line(&self.out.paint(Role::Command, cmd)) } else { self.line(cmd) }
    }

    /// Writes one JSON document to stdout: indented on a terminal, else in one line.
    ///
    /// # Errors
    /// As [`Ui::data`].
    pub fn document(&self, value: &impl serde::Serialize) -> io::Result<()> {
        if !self.out.tty {
            return self.json(value);
        }
        self.data(&serde_json::to_string_pretty(value).map_err(io::Error::other)?)
    }

    /// Writes a list to stdout: with `json` as one document, else each item with `show`, or the note `nothing` if it
    /// is empty.
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

    /// Prints a fact of `--verbose` to stderr.
    pub fn fact(&self, name: &str, value: &str) {
        let head = self.paint_err(Role::Accent, &format!("{name}:"));
        self.tell(&format!("{head} {}", self.paint_err(Role::Plain, value)));
    }

    /// Prints a note about a command to stderr, indented under it; silent with `--quiet`.
    pub fn aside(&self, role: Role, text: &str) {
        self.aside_parts(&[(role, text)]);
    }

    /// Prints a note as [`Ui::aside`] does, from parts of different roles.
    pub fn aside_parts(&self, parts: &[(Role, &str)]) {
        if !self.quiet {
            // a pipe gets whole lines
            let width = if self.err.tty { self.columns().saturating_sub(3) } else { usize::MAX };
            // hidden characters take columns once they are escaped
            let parts: Vec<(Role, String)> = parts.iter().map(|(role, text)| (*role, visible(text))).collect();
            for line in break_parts(&parts, width) {
                let painted: String = line.iter().map(|(role, text)| self.err.paint(*role, text)).collect();
                self.tell(&format!("  {painted}"));
            }
        }
    }

    /// False with `--quiet`.
    pub fn is_talkative(&self) -> bool {
        !self.quiet
    }

    /// Prints a note to stderr; silent with `--quiet`.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            self.tell_folded(&visible(text));
        }
    }

    /// Prints lines of a file to stderr, which are not broken; silent with `--quiet`.
    pub fn verbatim(&self, text: &str) {
        if !self.quiet {
            self.tell(&visible(text));
        }
    }

    /// Prints a warning to stderr; silent with `--quiet`.
    pub fn warn(&self, text: &str) {
        if !self.quiet {
            self.tell_folded(&format!("{} {}", self.err.paint(Role::Caution, "warning:"), visible(text)));
        }
    }

    /// Writes a line to stderr whose parts are styled by [`Ui::paint_err`], even with `--quiet`.
    pub fn tell(&self, painted: &str) {
        self.settle();
        // a failure to write to stderr cannot be reported
        let _ = self.err.write(&format!("{painted}\n"));
    }

    /// Writes lines as [`Ui::tell`] does, broken between words to fit a terminal; what follows is indented as its line.
    pub fn tell_folded(&self, painted: &str) {
        let lines = painted.split('\n').map(|line| {
            let indent = &line[..line.len() - line.trim_start_matches(' ').len()];
            self.fold(line, indent)
        });
        self.tell(&lines.collect::<Vec<_>>().join("\n"));
    }

    /// Writes a question to stderr, without a line end.
    pub fn ask(&self, painted: &str) {
        self.settle();
        self.asking.store(true, Ordering::Relaxed);
        let _ = self.err.write(&format!("{} ", self.fold(painted, "")));
    }

    /// Breaks a line for stderr between words to fit its terminal, with `indent` before the lines that follow; a pipe
    /// gets the whole line.
    pub fn fold(&self, painted: &str, indent: &str) -> String {
        match self.err.tty {
            // the last column stays free: some terminals wrap once it is written
            true => folded(painted, self.columns().saturating_sub(1), indent),
            false => painted.to_owned(),
        }
    }

    /// Marks the question as answered: the cursor is on a new line.
    pub fn answered(&self) {
        self.asking.store(false, Ordering::Relaxed);
    }

    /// Prints an error and its hint.
    pub fn failure(&self, failure: &Failure) {
        if failure.message.is_empty() {
            return self.settle();
        }
        self.tell_folded(&format!("{} {}", self.err.paint(Role::Danger, "error:"), visible(&failure.message)));
        if let Some(hint) = &failure.hint {
            self.hint(hint);
        }
    }

    /// Prints a hint after an error.
    pub fn hint(&self, hint: &str) {
        self.tell_folded(&format!("\n{} {}", self.err.paint(Role::Accent, "hint:"), visible(hint)));
    }

    /// Shows a moving line on stderr until the guard is dropped or something else is printed; nothing without a
    /// terminal.
    pub fn status(&self, what: &'static str) -> Status {
        if self.moving {
            self.show(Moving::Spinner(Spinner::start(what, self.unicode)));
        }
        Status(self.status.clone())
    }

    /// Shows a progress bar for bytes on stderr, with rate and time left; hidden without a terminal.
    pub fn bar(&self, what: String, total: u64) -> ProgressBar {
        self.progress(what, total, "{msg} {wide_bar:.cyan} {bytes}/{total_bytes} {bytes_per_sec} {eta}")
    }

    /// Shows a progress bar for a count on stderr; hidden without a terminal.
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

    /// Removes a moving line from the terminal, so that further output begins on a clean line.
    pub fn settle(&self) {
        clear(&self.status);
    }

    fn show(&self, line: Moving) {
        self.settle();
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = Some(line);
    }

    /// Returns a function that clears the terminal from another thread before the process ends: it removes a moving
    /// line, and moves the cursor below an open question.
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

/// The moving line on the terminal; there is one at a time.
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

/// A moving line, removed when this is dropped.
pub struct Status(Arc<Slot>);

impl Drop for Status {
    fn drop(&mut self) {
        clear(&self.0);
    }
}

/// The number of columns of stderr's terminal.
#[cfg(unix)]
fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok()?;
    if size.ws_col == 0 { None } else { Some(usize::from(size.ws_col)) }
}

#[cfg(not(unix))]
fn columns() -> Option<usize> {
    None
}

/// True if the locale says that the terminal shows more than ASCII. The first of its three variables that is set
/// counts.
fn has_unicode(env: &Env) -> bool {
    let set = [env::LC_ALL, env::LC_CTYPE, env::LANG].into_iter().find_map(|name| env.get(name)?.to_str());
    set.map_or(cfg!(windows), |locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// Formats a count with its noun: `1 file`, `2 files`.
pub fn plural(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Makes text safe for a terminal. Control characters could move the cursor, rename the window or hide half of a
/// command, and bidirectional marks could reorder it: all but newline and tab are escaped as `\x1b`, `\u{202e}`.
pub fn visible(text: &str) -> String {
    let is_hostile = |c: char| (c.is_control() && c != '\n' && c != '\t') || is_hidden(c);
    if !text.contains(is_hostile) {
        return text.to_string();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            _ if !is_hostile(c) => shown.push(c),
            '\0'..='\x7f' => shown.push_str(&format!("\\x{:02x}", u32::from(c))),
            _ => shown.extend(c.escape_unicode()),
        }
    }
    shown
}

/// Makes text safe for one line of a terminal: line ends and tabs are escaped, too.
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

    /// Records what is written, one entry for each write.
    #[derive(Clone, Default)]
    struct Writes(Arc<Mutex<Vec<String>>>);

    impl Write for Writes {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().push(String::from_utf8(bytes.to_vec()).unwrap());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn each_line_and_each_question_is_written_in_one_piece() {
        let writes = Writes::default();
        let stream = || Stream { sink: Mutex::new(Box::new(writes.clone())), tty: false, color: true };
        let ui = Ui {
            out: stream(),
            err: stream(),
            quiet: false,
            moving: false,
            plain: false,
            unicode: true,
            status: Arc::default(),
            asking: Arc::default(),
        };
        ui.data("a").unwrap();
        ui.note("b");
        ui.ask("run it? [y/N]");
        ui.draw("\r");
        ui.aside(Role::Plain, "c");
        assert_eq!(*writes.0.lock().unwrap(), ["a\n", "b\n", "run it? [y/N] ", "\r", "  c\n"]);
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
    fn hostile_text_is_escaped() {
        assert_eq!(visible("ls\t-l\nwc"), "ls\t-l\nwc");
        assert_eq!(visible("a\x1b[2Jb\rc\x07\x7f"), "a\\x1b[2Jb\\x0dc\\x07\\x7f");
        assert_eq!(visible("rm \u{202e}fr-"), "rm \\u{202e}fr-");
        assert_eq!(visible("\u{9b}31m"), "\\u{9b}31m");
        assert_eq!(visible("naïve 日本 👩\u{200d}💻 ⚠\u{fe0f}"), "naïve 日本 👩\u{200d}💻 ⚠\u{fe0f}");
        assert_eq!(visible("r\u{ad}m"), "r\\u{ad}m");
        assert_eq!(in_line("a\nb\r\n\tc\x1b"), "a\\nb\\r\\n\\tc\\x1b");
    }
}

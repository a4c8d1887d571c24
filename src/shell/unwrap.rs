//! Unwraps programs that run other programs: separates their own words from the command or script that they run.

use super::effects::words::commands_in;
use super::embedded::code;
use super::find::EXECS;
use super::script::{Invocation, Word};
use super::{Dialect, builtin};
use std::ops::Range;

/// A command or script inside of a wrapper's words.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// A command, as words.
    Command(Range<usize>),
    /// A script in one word, or in several that the program joins with blanks. The dialect is `None` if it is that of
    /// the script around it.
    Script(Range<usize>, Option<Dialect>),
    /// A shell script inside of code in another language, in the word of that index: `awk 'BEGIN { system("ls") }'`.
    Call(usize, String),
}

/// The content of a wrapper's words.
#[derive(Debug, Default)]
pub(super) struct Unwrapped {
    /// The commands and scripts, in order.
    pub held: Vec<Held>,
    /// Indices of words of the form `NAME=value` that are assignments for the command.
    pub assignments: Vec<usize>,
    /// True if the command runs on another machine or in a container.
    pub remote: bool,
}

/// The way to read the operands of a wrapper after its own options.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The command follows after this number of operands of the wrapper's own.
    Rest(usize),
    /// Like `Rest`, but the words are joined and passed to `sh -c`.
    Joined(usize),
    /// A script if it is one word, a command if there are more (`watch`, `parallel`).
    OneOrJoined,
    /// A shell: its `-c` takes a script.
    Shell,
    /// The option with this letter takes a script (`su -c`, `script -c`, `flock -c`); else a command follows after
    /// this number of operands.
    Option(char, Option<usize>),
    /// `find`: commands between `-exec` and `;` or `+`.
    Find,
    /// `ssh`: a host, then words that are joined for the remote shell.
    Remote,
    /// `docker exec NAME cmd`: a verb of the list, then one operand, then the command.
    Container,
    /// `git`: the commands of `submodule foreach`, `bisect run` and `rebase --exec`.
    Git,
    /// PowerShell's own `-Command`.
    PowerShell,
    /// `cmd /c`.
    Cmd,
    /// `alias name='script'`.
    Alias,
    /// Code of another language in an argument; calls that pass a command to a shell are recognized by name.
    Code,
}

struct Wrapper {
    names: &'static [&'static str],
    form: Form,
    /// Short options that take the next word if they end their cluster.
    valued: &'static str,
    /// Long options that take the next word.
    valued_long: &'static [&'static str],
}

const fn wrapper(
    names: &'static [&'static str],
    form: Form,
    valued: &'static str,
    valued_long: &'static [&'static str],
) -> Wrapper {
    Wrapper { names, form, valued, valued_long }
}

const WRAPPERS: &[Wrapper] = &[
    wrapper(
        &["sudo"],
        Form::Rest(0),
        "CDghpRrTtUu",
        &[
            "user",
            "group",
            "host",
            "prompt",
            "chdir",
            "chroot",
            "role",
            "type",
            "close-from",
            "command-timeout",
            "other-user",
        ],
    ),
    wrapper(&["doas"], Form::Rest(0), "uC", &[]),
    wrapper(&["pkexec", "run0"], Form::Rest(0), "u", &["user"]),
    wrapper(&["env"], Form::Rest(0), "uCSa", &["unset", "chdir", "split-string", "argv0"]),
    wrapper(&["nice"], Form::Rest(0), "n", &["adjustment"]),
    wrapper(&["ionice"], Form::Rest(0), "cnpPu", &["class", "classdata", "pid"]),
    wrapper(&["chrt"], Form::Rest(1), "TPDp", &[]),
    wrapper(&["taskset"], Form::Rest(1), "", &[]),
    wrapper(
        &[
            "nohup",
            "setsid",
            "fakeroot",
            "caffeinate",
            "noglob",
            "nocorrect",
            "builtin",
            "unbuffer",
            "proxychains",
            "proxychains4",
            "torsocks",
            "torify",
            "coproc",
            "systemd-inhibit",
            "chronic",
            "not",
            "and",
            "or",
            // `time { cmd; }`, `time ! cmd`: the grammar takes these for programs
            "{",
            "!",
        ],
        Form::Rest(0),
        "",
        &[],
    ),
    wrapper(&["command"], Form::Rest(0), "", &[]),
    wrapper(&["exec"], Form::Rest(0), "a", &[]),
    wrapper(&["systemd-cat"], Form::Rest(0), "tp", &["identifier", "priority", "stderr-priority", "level-prefix"]),
    // on macOS: `arch -x86_64 cmd`; elsewhere it takes no arguments
    wrapper(&["arch"], Form::Rest(0), "de", &[]),
    wrapper(&["time"], Form::Rest(0), "fo", &["format", "output"]),
    wrapper(&["timeout", "gtimeout"], Form::Rest(1), "ks", &["kill-after", "signal"]),
    wrapper(&["stdbuf"], Form::Rest(0), "ioe", &["input", "output", "error"]),
    wrapper(&["strace", "ltrace"], Form::Rest(0), "aeEIObopPsSuUX", &["output", "attach", "trace", "expr"]),
    wrapper(
        &["systemd-run"],
        Form::Rest(0),
        "EpMHtu",
        &[
            "unit",
            "property",
            "slice",
            "uid",
            "gid",
            "setenv",
            "on-active",
            "on-calendar",
            "working-directory",
            "description",
        ],
    ),
    wrapper(&["unshare"], Form::Rest(0), "RwSG", &["root", "wd", "setuid", "setgid"]),
    wrapper(&["nsenter"], Form::Rest(0), "tSG", &["target", "setuid", "setgid"]),
    wrapper(&["chroot"], Form::Rest(1), "", &["userspec", "groups"]),
    wrapper(&["repeat"], Form::Rest(1), "", &[]),
    wrapper(&["runuser"], Form::Option('c', Some(0)), "ugGsw", &["user", "group", "shell", "command"]),
    wrapper(&["su"], Form::Option('c', None), "gGsw", &["group", "shell", "command"]),
    wrapper(&["script"], Form::Option('c', None), "oEImBO", &["command"]),
    wrapper(&["flock"], Form::Option('c', Some(1)), "wE", &["timeout", "conflict-exit-code", "command"]),
    wrapper(
        &["xargs", "gxargs"],
        Form::Rest(0),
        "IdEnPsaLJRS",
        &["arg-file", "delimiter", "max-args", "max-procs", "max-chars", "max-lines", "process-slot-var", "replace"],
    ),
    wrapper(
        &["parallel"],
        Form::OneOrJoined,
        "jnNILdaSP",
        &["jobs", "max-args", "delay", "timeout", "colsep", "arg-file", "joblog", "results", "sshlogin", "delimiter"],
    ),
    wrapper(&["watch"], Form::OneOrJoined, "nq", &["interval", "equexit", "shotsdir"]),
    wrapper(&["entr"], Form::Rest(0), "", &[]),
    wrapper(&["busybox", "toybox"], Form::Rest(0), "", &[]),
    wrapper(
        &["bash", "sh", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash"],
        Form::Shell,
        "oO",
        &["rcfile", "init-file"],
    ),
    wrapper(&["eval"], Form::Joined(0), "", &[]),
    wrapper(&["trap"], Form::Option('\0', None), "", &[]),
    wrapper(&["alias", "abbr"], Form::Alias, "", &[]),
    wrapper(&["find", "gfind", "fd", "fdfind"], Form::Find, "", &[]),
    wrapper(&["ssh", "autossh", "mosh"], Form::Remote, "BbcDEeFIiJLlmOopQRSWw", &[]),
    wrapper(
        &["docker", "podman", "kubectl", "nerdctl", "oc", "lxc", "docker-compose"],
        Form::Container,
        "aehmunvpwcl",
        &[
            "add-host",
            "attach",
            "cap-add",
            "cap-drop",
            "container",
            "cpus",
            "cpuset-cpus",
            "device",
            "dns",
            "entrypoint",
            "env",
            "env-file",
            "expose",
            "gpus",
            "group-add",
            "hostname",
            "index",
            "ip",
            "ipc",
            "label",
            "link",
            "log-driver",
            "log-opt",
            "memory",
            "memory-swap",
            "mount",
            "name",
            "namespace",
            "network",
            "pid",
            "pids-limit",
            "platform",
            "publish",
            "pull",
            "restart",
            "runtime",
            "security-opt",
            "shm-size",
            "stop-signal",
            "sysctl",
            "tmpfs",
            "ulimit",
            "user",
            "userns",
            "volume",
            "volumes-from",
            "workdir",
        ],
    ),
    wrapper(&["git"], Form::Git, "", &[]),
    wrapper(&["powershell", "pwsh"], Form::PowerShell, "", &[]),
    wrapper(&["cmd"], Form::Cmd, "", &[]),
    wrapper(
        &[
            "python",
            "python2",
            "python3",
            "pypy",
            "pypy3",
            "perl",
            "ruby",
            "node",
            "nodejs",
            "php",
            "lua",
            "luajit",
            "osascript",
            "deno",
            "bun",
            "tclsh",
        ],
        Form::Code,
        "",
        &[],
    ),
    wrapper(&["iex", "invoke-expression"], Form::Joined(0), "", &[]),
    wrapper(&["sg"], Form::Joined(1), "", &[]),
];

/// The options of container programs before their verb.
const GLOBAL_OPTIONS: Wrapper = wrapper(
    &[],
    Form::Container,
    "HclfnpsL",
    &[
        "as",
        "cluster",
        "config",
        "context",
        "env-file",
        "file",
        "host",
        "kubeconfig",
        "log-level",
        "namespace",
        "profile",
        "project-directory",
        "project-name",
        "request-timeout",
        "server",
        "token",
        "user",
    ],
);

/// True for wrappers that know the functions of the script, because they are keywords or builtins of the shell.
pub(super) fn keeps_functions(name: &str) -> bool {
    const KEYWORDS: [&str; 12] =
        ["time", "coproc", "not", "and", "or", "{", "!", "noglob", "nocorrect", "repeat", "eval", "trap"];
    KEYWORDS.contains(&name)
}

/// True for wrappers that pass appended arguments on to the command they run: `rm` of `xargs nice rm` gets all of
/// them. False for those that append the arguments themselves.
pub(super) fn passes_on(name: &str) -> bool {
    let passes = |form: Form| matches!(form, Form::Rest(_) | Form::Option(_, Some(_)) | Form::Remote | Form::Container);
    !matches!(name, "xargs" | "gxargs") && WRAPPERS.iter().any(|w| w.names.contains(&name) && passes(w.form))
}

/// True for programs that run a command in their words.
pub(super) fn is_wrapper(name: &str) -> bool {
    WRAPPERS.iter().any(|w| w.names.contains(&name))
}

/// True for `sudo -s`, `sudo -i` and `su`: if they hold no command, the shell that they open reads the input.
pub(super) fn opens_a_shell(command: &Invocation) -> bool {
    let args = command.args();
    let letters = |letter: char| {
        let cluster = |w: &Word| {
            let letters = w.text.strip_prefix('-').filter(|l| !l.starts_with('-'));
            letters.is_some_and(|l| l.contains(letter) && l.chars().all(|c| c.is_ascii_alphabetic()))
        };
        args.iter().any(cluster)
    };
    let long = |names: &[&str]| args.iter().any(|w| names.contains(&w.text.as_str()));
    match command.name() {
        Some("sudo" | "doas") => letters('s') || letters('i') || long(&["--shell", "--login"]),
        Some("su") => !letters('c') && !long(&["--command", "--help", "--version"]),
        _ => false,
    }
}

/// True for programs that accept a script on standard input.
pub(super) fn is_shell(name: &str) -> bool {
    WRAPPERS.iter().any(|w| w.names.contains(&name) && matches!(w.form, Form::Shell | Form::PowerShell))
}

/// Unwraps the words of a command; `None` if the program is no wrapper.
pub(super) fn unwrap(words: &[Word], dialect: Dialect) -> Option<Unwrapped> {
    let name = name_of(words.first()?, dialect)?;
    let mut out = Unwrapped::default();
    let commands = commands_in(words, dialect).into_iter();
    out.held.extend(commands.map(|(index, text)| Held::Call(index, text)));
    if matches!(name.as_str(), "ssh" | "scp" | "sftp" | "autossh" | "sshfs") {
        proxies(words, &mut out);
    }
    let Some(wrapper) = WRAPPERS.iter().find(|w| w.names.contains(&name.as_str())) else {
        return (!out.held.is_empty()).then_some(out);
    };
    match wrapper.form {
        Form::Find => find(words, &name, &mut out),
        Form::Shell => shell(words, &name, &mut out),
        Form::Cmd => {
            if let Some(at) = words.iter().position(|w| matches!(w.text.to_ascii_lowercase().as_str(), "/c" | "/k")) {
                out.held.push(Held::Script(at + 1..words.len(), Some(Dialect::PowerShell)));
            }
        }
        Form::PowerShell => powershell(words, &mut out),
        Form::Container => container(words, wrapper, &mut out),
        Form::Git => git(words, &mut out),
        Form::Code => code(words, &mut out),
        Form::Alias => {
            let value = |(i, w): (usize, &Word)| Some(Held::Call(i, w.text.split_once('=')?.1.to_owned()));
            out.held.extend(words.iter().enumerate().skip(1).filter_map(value));
            // fish: `alias name 'script'`
            let named = words.iter().enumerate().skip(1).filter(|(_, w)| !w.text.starts_with('-'));
            let rest: Vec<(usize, &str)> = named.skip(1).map(|(i, w)| (i, w.text.as_str())).collect();
            if dialect == Dialect::Fish
                && out.held.is_empty()
                && let Some((first, _)) = rest.first()
            {
                let text = rest.iter().map(|(_, text)| *text).collect::<Vec<_>>().join(" ");
                out.held.push(Held::Call(*first, text));
            }
        }
        _ => plain(words, &name, wrapper, &mut out),
    }
    out.held.retain(|held| match held {
        Held::Command(range) | Held::Script(range, _) => !range.is_empty() && range.end <= words.len(),
        Held::Call(..) => true,
    });
    Some(out)
}

/// Returns the program's name as used in the table.
fn name_of(word: &Word, dialect: Dialect) -> Option<String> {
    let value = word.value.as_deref()?;
    let base = value.rsplit('/').next().unwrap_or(value);
    if dialect == Dialect::PowerShell {
        let base = base.rsplit('\\').next().unwrap_or(base).to_ascii_lowercase();
        let base = base.strip_suffix(".exe").unwrap_or(&base);
        return Some(
            builtin::powershell_alias(base).filter(|c| c.starts_with("invoke-exp")).unwrap_or(base).to_owned(),
        );
    }
    Some(base.strip_suffix(".exe").unwrap_or(base).to_owned())
}

/// Returns the index of the first word that is not an option of the wrapper's own.
fn skip_options(words: &[Word], wrapper: &Wrapper, from: usize) -> usize {
    let mut at = from;
    while let Some(word) = words.get(at) {
        let text = word.text.as_str();
        if text == "--" {
            return at + 1;
        }
        if let Some(long) = text.strip_prefix("--") {
            at += 1 + usize::from(!long.contains('=') && wrapper.valued_long.contains(&long));
        } else if let Some(cluster) = text.strip_prefix('-').filter(|c| !c.is_empty()) {
            let valued = cluster.char_indices().find(|(_, c)| wrapper.valued.contains(*c));
            at += 1 + usize::from(valued.is_some_and(|(i, c)| i + c.len_utf8() == cluster.len()));
        } else {
            return at;
        }
    }
    at
}

fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !name.starts_with(|c: char| c.is_ascii_digit())
    })
}

fn plain(words: &[Word], name: &str, wrapper: &Wrapper, out: &mut Unwrapped) {
    let end = words.len();
    let mut at = skip_options(words, wrapper, 1).min(end);
    // `command -v x` only looks up x
    let looks_up = |w: &Word| matches!(w.text.as_str(), "-v" | "-V" | "-q" | "-s" | "--query" | "--search");
    if name == "command" && words[1..at].iter().any(looks_up) {
        return;
    }
    if name == "env" && split_string(&words[..at], end, out) {
        return;
    }
    if matches!(name, "sudo" | "doas") {
        // `sudo -e`, `-l`, `-v`: no command is run
        let runs_nothing =
            |w: &Word| matches!(w.text.as_str(), "-e" | "-l" | "-v" | "-K" | "--list" | "--validate" | "--edit");
        if words[1..at.min(end)].iter().any(runs_nothing) {
            return;
        }
    }
    // `env - cmd`: an empty environment
    if name == "env" && words.get(at).is_some_and(|w| w.text == "-") {
        at += 1;
    }
    if matches!(name, "env" | "sudo" | "doas") {
        while words.get(at).is_some_and(|w| is_assignment(&w.raw)) {
            out.assignments.push(at);
            at += 1;
        }
    }
    match wrapper.form {
        Form::Rest(skip) => {
            // `taskset -c 0 cmd` and `chrt -r 10 cmd` have the same number of operands; `-p` acts on a process
            if matches!(name, "taskset" | "chrt" | "ionice" | "renice") && words[1..at.min(end)].iter().any(is_pid) {
                return;
            }
            out.held.push(Held::Command((at + skip).min(end)..end));
        }
        Form::Joined(skip) => {
            let from = (at + skip).min(end);
            let from = from + usize::from(skip > 0 && words.get(from).is_some_and(|w| w.text == "-c"));
            out.held.push(Held::Script(from..end, None));
        }
        Form::OneOrJoined => {
            let stop = words[at.min(end)..].iter().position(|w| w.text.starts_with(":::") || w.text == "::::");
            let stop = stop.map_or(end, |i| at + i);
            let exec = words[1..at.min(end)].iter().any(|w| matches!(w.text.as_str(), "-x" | "--exec"));
            if stop == at {
                // `parallel ::: 'cmd' 'cmd'`: each of them is a script
                let each = stop + 1..if words.get(stop).is_some_and(|w| w.text == ":::") { end } else { stop + 1 };
                out.held.extend(each.map(|i| Held::Script(i..i + 1, Some(Dialect::Sh))));
            } else if stop > at + 1 || exec {
                out.held.push(Held::Command(at..stop));
            } else {
                out.held.push(Held::Script(at..stop, Some(Dialect::Sh)));
            }
        }
        Form::Option(letter, rest) => option_script(words, name, letter, rest, at, out),
        Form::Remote => {
            out.remote = true;
            let operand = at;
            let mut first = operand + 1;
            if first < end {
                first = skip_options(words, wrapper, first);
            }
            out.held.push(Held::Script(first.min(end)..end, Some(Dialect::Sh)));
        }
        Form::Shell
        | Form::Find
        | Form::Container
        | Form::Git
        | Form::PowerShell
        | Form::Cmd
        | Form::Code
        | Form::Alias => {}
    }
}

/// True for `-p`, alone or in a cluster.
fn is_pid(word: &Word) -> bool {
    let cluster = word.text.strip_prefix('-').filter(|c| !c.starts_with('-'));
    word.text.starts_with("--pid") || cluster.is_some_and(|c| c.contains('p'))
}

/// Reads `env -S 'cmd'`, `env -S'cmd'`, `env --split-string=cmd`. Returns true if there is one.
fn split_string(options: &[Word], end: usize, out: &mut Unwrapped) -> bool {
    for (i, word) in options.iter().enumerate().skip(1) {
        let text = word.text.as_str();
        let short = text.strip_prefix('-').filter(|c| !c.starts_with('-')).and_then(|c| c.split_once('S'));
        let attached = match (text.split_once('='), short) {
            // getopt accepts every unambiguous prefix of a long option
            (Some((long, value)), _) if long.len() > 3 && "--split-string".starts_with(long) => value,
            (None, _) if text.len() > 3 && "--split-string".starts_with(text) => "",
            (_, Some((before, value))) if !before.contains(['u', 'C', 'a']) => value,
            _ => continue,
        };
        out.held.push(match attached {
            "" => Held::Script(i + 1..end.min(i + 2), None),
            text => Held::Call(i, text.to_owned()),
        });
        return true;
    }
    false
}

/// Reads `su -c '...'`, `flock FILE cmd`, `trap '...' SIGNAL`.
fn option_script(words: &[Word], name: &str, letter: char, rest: Option<usize>, at: usize, out: &mut Unwrapped) {
    if name == "trap" {
        if words.len() > 2 && !words[1].text.starts_with('-') {
            out.held.push(Held::Script(1..2, None));
        }
        return;
    }
    // the text after the letter: the script, as in `-c'script'`, or empty if that is the next word
    fn attached_script(word: &Word, letter: char) -> Option<&str> {
        let cluster = word.text.strip_prefix('-').filter(|c| !c.starts_with('-'))?;
        let (before, script) = cluster.split_once(letter)?;
        let switches = before.chars().all(|c| matches!(c, 'l' | 'm' | 'p' | 'q' | 'e' | 'a' | 'f' | 'x' | 'n' | 's'));
        switches.then_some(script)
    }
    let is_option = |w: &Word| w.text == "--command" || attached_script(w, letter) == Some("");
    let attached = |(i, w): (usize, &Word)| attached_script(w, letter).map(|script| (i, script.to_owned()));
    if let Some(i) = words.iter().position(is_option).filter(|i| *i > 0) {
        out.held.push(Held::Script(i + 1..(i + 2).min(words.len()), Some(Dialect::Sh)));
    } else if let Some((i, script)) = words.iter().enumerate().skip(1).find_map(attached) {
        out.held.push(Held::Call(i, script));
    } else if let Some(value) = words.iter().position(|w| w.text.starts_with("--command=")) {
        // the script follows the option's name in the same word, which the builder strips
        out.held.push(Held::Script(value..value + 1, Some(Dialect::Sh)));
    } else if let Some(skip) = rest {
        out.held.push(Held::Command((at + skip).min(words.len())..words.len()));
    }
}

/// Reads `bash -lc 'script' name args`.
fn shell(words: &[Word], name: &str, out: &mut Unwrapped) {
    let mut at = 1;
    let mut has_script = false;
    while let Some(word) = words.get(at) {
        let text = word.text.as_str();
        if text == "--command" {
            out.held.push(Held::Script(at + 1..at + 2, Dialect::of_program(name)));
            return;
        }
        at += 1;
        let Some(cluster) = text.strip_prefix(['-', '+']).filter(|c| !c.is_empty() && text != "--") else {
            let script = if text == "--" { at } else { at - 1 };
            if has_script {
                out.held.push(Held::Script(script..script + 1, Dialect::of_program(name)));
            }
            return;
        };
        if cluster.starts_with('-') {
            at += usize::from(matches!(text, "--rcfile" | "--init-file"));
            continue;
        }
        has_script |= text.starts_with('-') && cluster.contains('c');
        // `-euo pipefail`: each `o` takes a word
        at += cluster.chars().filter(|c| matches!(c, 'o' | 'O')).count();
    }
}

/// Returns the text after `-x` or `-X` of `fd` in the same word: `rm` for `-xrm`, empty for `-Hx`; `None` without the
/// option.
pub(super) fn fd_exec(word: &str) -> Option<&str> {
    const VALUED: &str = "etdEjcSo";
    if let Some(long) = word.strip_prefix("--exec") {
        let long = long.strip_prefix("-batch").unwrap_or(long);
        return if long.is_empty() { Some(long) } else { long.strip_prefix('=') };
    }
    let cluster = word.strip_prefix('-').filter(|cluster| !cluster.starts_with('-'))?;
    let at = cluster.find(|c| matches!(c, 'x' | 'X') || VALUED.contains(c))?;
    cluster[at..].strip_prefix(['x', 'X'])
}

/// Reads `find ... -exec cmd {} \;`, `fd ... -x cmd`.
fn find(words: &[Word], name: &str, out: &mut Unwrapped) {
    let fd = name.starts_with("fd");
    let mut at = 1;
    while at < words.len() {
        let attached = match words[at].text.as_str() {
            text if fd => fd_exec(text),
            text if EXECS.contains(&text) => Some(""),
            _ => None,
        };
        at += 1;
        let Some(attached) = attached else { continue };
        let ends = |i: usize| words[i].text == ";" || (words[i].text == "+" && words[i - 1].text == "{}");
        let end = (at..words.len()).find(|i| ends(*i)).unwrap_or(words.len());
        if attached.is_empty() {
            out.held.push(Held::Command(at..end));
        } else {
            let rest = words[at..end].iter().map(|w| w.raw.as_str());
            let line: Vec<&str> = std::iter::once(attached).chain(rest).collect();
            out.held.push(Held::Call(at - 1, line.join(" ")));
        }
        at = end;
    }
}

/// Reads `python3 -c 'os.system("ls")'`: the commands that the code runs, as far as they are literals.
fn code(words: &[Word], out: &mut Unwrapped) {
    for (index, word) in words.iter().enumerate().skip(1).filter(|(index, _)| is_code(words, *index)) {
        let run = code::actions(&word.text).into_iter().filter_map(|action| match action {
            code::Action::Run(command) => command,
            _ => None,
        });
        out.held.extend(run.map(|script| Held::Call(index, script)));
    }
}

/// True for programs that take code of a language other than a shell's as an argument.
pub(super) fn is_interpreter(name: &str) -> bool {
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    WRAPPERS.iter().any(|w| w.form == Form::Code && (w.names.contains(&name) || w.names.contains(&bare)))
}

/// True if the word is code: it follows `-c`, `-e`, `-ne`, `--eval` or the like, or is attached to it.
pub(super) fn is_code(words: &[Word], at: usize) -> bool {
    let takes = |option: &str| match option.strip_prefix("--") {
        Some(long) => matches!(long, "eval" | "print" | "run" | "execute"),
        None => {
            option.len() < 8 && option.starts_with('-') && option.ends_with(['c', 'e', 'E', 'r', 'R', 'p', 'B', 'F'])
        }
    };
    let Some(word) = words.get(at) else { return false };
    if at == 0 {
        return false;
    }
    let behind = words[at - 1].text.as_str();
    let plain = |text: &str| text.len() > 1 && text[1..].chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if at > 1 && takes(behind) && plain(behind) && !word.text.starts_with('-') {
        return true;
    }
    // `-e'code'`, `--eval=code`
    let attached =
        word.text.strip_prefix("-e").or_else(|| word.text.strip_prefix("-c")).or_else(|| word.text.strip_prefix("-r"));
    word.text.starts_with("--eval=") || attached.is_some_and(|code| code.contains(['(', ' ', ';', '\'']))
}

/// Reads `ssh -o ProxyCommand='cmd'`, `scp '-oProxyCommand cmd'`.
fn proxies(words: &[Word], out: &mut Unwrapped) {
    const OPTION: &str = "proxycommand";
    for (index, word) in words.iter().enumerate().skip(1) {
        let text = word.text.strip_prefix("-o").unwrap_or(&word.text).trim_start();
        let named = text.get(..OPTION.len()).is_some_and(|name| name.eq_ignore_ascii_case(OPTION));
        let Some(rest) = text.get(OPTION.len()..).filter(|rest| named && rest.starts_with([' ', '=', '\t'])) else {
            continue;
        };
        let command = rest.trim_start_matches([' ', '=', '\t']);
        if !command.eq_ignore_ascii_case("none") {
            out.held.push(Held::Call(index, command.to_owned()));
        }
    }
}

/// Reads `docker exec -it NAME cmd`, `docker run IMAGE cmd`, `kubectl exec POD -- cmd`.
fn container(words: &[Word], wrapper: &Wrapper, out: &mut Unwrapped) {
    let mut verb = skip_options(words, &GLOBAL_OPTIONS, 1);
    while words.get(verb).is_some_and(|w| matches!(w.text.as_str(), "container" | "compose")) {
        verb = skip_options(words, &GLOBAL_OPTIONS, verb + 1);
    }
    if words.get(verb).is_none_or(|w| !matches!(w.text.as_str(), "exec" | "run")) {
        return;
    }
    out.remote = true;
    let mut at = (skip_options(words, wrapper, verb + 1) + 1).min(words.len());
    if words.get(at).is_some_and(|w| w.text == "--") {
        at += 1;
    } else if let Some(dashes) = words.iter().position(|w| w.text == "--") {
        at = dashes + 1;
    }
    out.held.push(Held::Command(at.min(words.len())..words.len()));
}

/// Reads `git submodule foreach 'cmd'`, `git bisect run cmd`, `git rebase -x 'cmd'`.
fn git(words: &[Word], out: &mut Unwrapped) {
    let at = |verb: &str, of: &str| words.windows(2).position(|pair| pair[0].text == verb && pair[1].text == of);
    if let Some(foreach) = at("submodule", "foreach") {
        let options = words[foreach + 2..].iter().take_while(|w| w.text.starts_with('-')).count();
        out.held.push(Held::Script(foreach + 2 + options..words.len(), Some(Dialect::Sh)));
    } else if let Some(run) = at("bisect", "run") {
        out.held.push(Held::Command(run + 2..words.len()));
    } else if let Some(config) = words.iter().position(|w| w.text == "config") {
        // `git config alias.x '!cmd'` runs later
        for (index, word) in words.iter().enumerate().skip(config) {
            out.held.extend(word.text.strip_prefix('!').map(|script| Held::Call(index, script.to_owned())));
        }
    } else if let Some(rebase) = words.iter().position(|w| w.text == "rebase") {
        for (index, word) in words.iter().enumerate().skip(rebase) {
            if let Some(script) = word.text.strip_prefix("--exec=") {
                out.held.push(Held::Call(index, script.to_owned()));
            } else if matches!(word.text.as_str(), "-x" | "--exec") {
                out.held.push(Held::Script(index + 1..index + 2, Some(Dialect::Sh)));
            }
        }
    }
}

/// Reads `powershell -NoProfile -Command ...`.
fn powershell(words: &[Word], out: &mut Unwrapped) {
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let text = word.text.to_ascii_lowercase();
        let Some(option) = text.strip_prefix(['-', '/']).filter(|o| !o.is_empty()) else {
            out.held.push(Held::Script(at..words.len(), Some(Dialect::PowerShell)));
            return;
        };
        if "command".starts_with(option) {
            out.held.push(Held::Script(at + 1..words.len(), Some(Dialect::PowerShell)));
            return;
        }
        let abbreviates = |long: &str, least: usize| option.len() >= least && long.starts_with(option);
        if abbreviates("file", 1) || abbreviates("encodedcommand", 1) && !abbreviates("executionpolicy", 2) {
            return;
        }
        let takes = abbreviates("executionpolicy", 2)
            || option == "ep"
            || abbreviates("windowstyle", 1)
            || abbreviates("version", 1);
        at += 1 + usize::from(takes);
    }
}

//! Decides whether a flag, as written, exists in the installed program. A wrong "no" would spoil a correct command,
//! so whatever the texts leave open is [`Known::Unsure`].

use super::{Entry, OptionEntry};
use caro_shell::find::EXECS;

/// Tells if a flag exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Known {
    /// The manual defines it.
    Yes,
    /// The manual is complete and does not have it.
    No,
    /// It is unknown.
    Unsure,
}

/// A flag of a command line, as the program parses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use<'e> {
    /// Index of its word among the arguments.
    pub word: usize,
    /// The flag alone: `-l` of `-la`, `--sort` of `--sort=size`.
    pub flag: String,
    /// Its argument, attached or in the next word.
    pub value: Option<String>,
    /// The manual's entry.
    pub option: Option<&'e OptionEntry>,
    /// Tells if it exists.
    pub known: Known,
}

/// Programs whose operands may look like flags, or that accept anything: modes (`chmod -x`), expressions, text.
const FREE_FORM: &[&str] = &[
    "chattr", "chmod", "echo", "expr", "test", "[", "[[", "let", "true", "false", ":", "print", "bc", "dc", "umask",
    "eval", "exec", "gcc", "cc", "g++", "c++", "clang", "ld", "awk", "gdb",
];
/// Programs whose page covers all subcommands, with flags at any position.
const ONE_PAGE: &[&str] =
    &["systemctl", "apt-get", "apt-cache", "loginctl", "hostnamectl", "timedatectl", "journalctl", "git stash"];
/// Programs that treat everything after their first operand as operands; a set of `tr` may begin with a dash.
const OPERANDS_LAST: &[&str] = &["tr", "scp"];
/// Programs whose first operand may be a cluster of options without a dash.
const WITHOUT_DASH: &[&str] = &["tar", "bsdtar", "ar", "ps"];
/// Programs that take a number after a dash for the argument of an option, which their manuals no longer mention.
/// Source: the info pages of the GNU coreutils, "obsolete syntax".
const OBSOLETE_NUMBERS: &[(&str, &str)] =
    &[("head", "-n"), ("tail", "-n"), ("nice", "-n"), ("split", "-l"), ("fold", "-w"), ("fmt", "-w")];
/// Programs whose operands may begin with a dash and consist of these letters: the modes that they take away
/// (`chmod -w`).
const MODES: &[(&str, &str)] = &[("chmod", "rwxXstugo"), ("chattr", "aAcCdDeFijmPsStTux")];
/// Placeholders for names of signals: `-SIGNAL`.
const SIGNALS: &[&str] = &["signal", "sigspec", "signame", "sig"];

impl Entry {
    /// Returns the option with exactly this name.
    pub fn option(&self, name: &str) -> Option<&OptionEntry> {
        self.options.iter().find(|option| option.names().any(|n| n == name))
    }

    /// Decides whether the flag exists, as written in a command: clusters (`-la`), attached arguments (`-n5`,
    /// `--color=auto`) and unambiguous abbreviations of long options are understood. The least certain part of a
    /// cluster counts.
    pub fn knows(&self, flag: &str) -> Known {
        let uses = self.read_word(0, flag);
        let worst = |known| uses.iter().any(|u| u.known == known);
        if worst(Known::No) {
            Known::No
        } else if uses.is_empty() || worst(Known::Unsure) {
            Known::Unsure
        } else {
            Known::Yes
        }
    }

    /// Returns the flags among the arguments of a call (without the program itself), as the program parses them.
    /// Arguments of options, operands, everything after `--`, and words of another program are no flags.
    pub fn read_args<'e>(&'e self, args: &[&str]) -> Vec<Use<'e>> {
        let name = self.command.as_str();
        let mut uses: Vec<Use<'e>> = Vec::new();
        let mut at = 0;
        while at < args.len() {
            let word = args[at];
            if word == "--" {
                break;
            }
            // after a signal, a number with a minus is a group of processes: `kill -9 -1`
            let is_group = is_digits(word) && uses.iter().any(|u| u.option.is_some_and(takes_signal));
            let flag = word.len() > 1 && word.starts_with('-') && !self.is_mode(word) && !is_group;
            if !flag {
                if at == 0 && WITHOUT_DASH.contains(&name) {
                    uses.extend(self.cluster_without_dash(word));
                }
                if let Some(operand) = self.operand(at, word) {
                    uses.push(operand);
                }
                if self.delegates && !ONE_PAGE.contains(&name) || OPERANDS_LAST.contains(&name) {
                    break;
                }
                at += 1;
                continue;
            }
            let mut found = self.read_word(at, word);
            at += 1;
            if let Some(last) = found.last_mut()
                && last.value.is_none()
                && last.option.is_some_and(OptionEntry::takes_next)
                && (self.option(&last.flag).is_some() || self.signal(&last.flag).is_none() && !is_digits(&last.flag))
                && let Some(next) = args.get(at)
                && !last.option.is_some_and(|option| self.begins_expression(option, next))
            {
                last.value = Some((*next).to_string());
                at += 1;
            }
            let last = found.last().map(|u| u.flag.clone()).unwrap_or_default();
            uses.extend(found);
            if EXECS.contains(&last.as_str()) {
                while at < args.len() && !matches!(args[at], ";" | "+" | "\\;") {
                    at += 1;
                }
            }
            if self.delegates && matches!(last.as_str(), "-c" | "-m") {
                break;
            }
        }
        for found in &mut uses {
            if let (Some(option), Some(value)) = (found.option, &found.value) {
                found.option = Some(option.form(value));
            }
        }
        uses
    }

    /// Returns the index of the argument that is a subcommand, if the program has any: the first that is neither a
    /// flag nor the argument of one.
    pub fn subcommand_at(&self, args: &[&str]) -> Option<usize> {
        if !self.delegates {
            return None;
        }
        let at = self.first_operand(args);
        let word = args.get(at)?;
        self.subcommands.iter().any(|sub| sub == word).then_some(at)
    }

    /// Returns the subcommand of a call that the texts of the program describe, with its text.
    pub fn described_verb(&self, args: &[&str]) -> Option<(&str, &str)> {
        let word = args.get(self.first_operand(args))?;
        let (name, text) = self.verbs.iter().find(|(name, _)| name == word)?;
        Some((name, text))
    }

    /// Returns the index of the first argument that is neither a flag nor the argument of one.
    fn first_operand(&self, args: &[&str]) -> usize {
        let mut at = 0;
        while at < args.len() && args[at].starts_with('-') {
            let takes_next = self
                .read_word(at, args[at])
                .last()
                .is_some_and(|u| u.value.is_none() && u.option.is_some_and(OptionEntry::takes_next));
            at += 1 + usize::from(takes_next);
        }
        at
    }

    /// Returns the flags among the arguments of a call that do not exist.
    pub fn unknown_flags<'e>(&'e self, args: &[&str]) -> Vec<Use<'e>> {
        self.read_args(args).into_iter().filter(|u| u.known == Known::No).collect()
    }

    /// Parses a word that begins with a dash; a cluster has several uses.
    pub(super) fn read_word<'e>(&'e self, at: usize, word: &str) -> Vec<Use<'e>> {
        let one = |flag: &str, value: Option<&str>, option, known| {
            vec![Use { word: at, flag: flag.to_string(), value: value.map(str::to_string), option, known }]
        };
        if word == "-" || word == "--" {
            return one(word, None, None, Known::Yes);
        }
        if let Some(option) = self.option(word) {
            return one(word, None, Some(option), Known::Yes);
        }
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        if value.is_some()
            && let Some(option) = self.option(name)
        {
            return one(name, value, Some(option), Known::Yes);
        }
        if name.starts_with("--") {
            let option = self.expand_abbreviation(name);
            let known = match option {
                Ok(Some(_)) => Known::Yes,
                Ok(None) => self.unlisted(name),
                Err(()) => Known::Unsure,
            };
            return one(name, value, option.ok().flatten(), known);
        }
        if !word.starts_with('-') {
            return if word.starts_with('+') { one(word, None, None, Known::Unsure) } else { Vec::new() };
        }
        if let Some(option) = self.number(word).or_else(|| self.signal(word)) {
            return one(word, None, Some(option), Known::Yes);
        }
        // `-eq` of test: mentioned as a whole, so not a cluster
        if self.mentions.iter().any(|m| m == word) && FREE_FORM.contains(&self.command.as_str()) {
            return one(word, None, None, Known::Unsure);
        }
        self.cluster(at, word)
    }

    /// True for an operand like `-w` of `chmod -w`, if the manual has no such option.
    fn is_mode(&self, word: &str) -> bool {
        let letters = MODES.iter().find(|(program, _)| *program == self.command).map(|(_, letters)| letters);
        let is_taken = || self.option(word).is_some();
        letters.is_some_and(|letters| word[1..].chars().all(|c| letters.contains(c)) && !is_taken())
    }

    /// Returns the option that a number after a dash means: `-NUM`, or an obsolete form.
    fn number(&self, word: &str) -> Option<&OptionEntry> {
        let named = || {
            let (_, name) = OBSOLETE_NUMBERS.iter().find(|(program, _)| *program == self.command)?;
            self.option(name)
        };
        is_digits(word).then(|| self.options.iter().find(|o| o.names().any(is_number)).or_else(named)).flatten()
    }

    /// Returns the option that `-9` or `-HUP` means, if the program accepts signals like this.
    fn signal(&self, word: &str) -> Option<&OptionEntry> {
        let body = word.strip_prefix('-')?;
        let looks_like_signal = is_digits(word) || body.len() > 1 && body.bytes().all(|b| b.is_ascii_uppercase());
        let is_placeholder = is_signal_placeholder;
        let taken = self.options.iter().flat_map(OptionEntry::names).chain(self.mentions.iter().map(String::as_str));
        if !looks_like_signal || !taken.filter(|name| !name.starts_with("--")).any(is_placeholder) {
            return None;
        }
        let own = self.options.iter().find(|o| o.names().any(|n| !n.starts_with("--") && is_placeholder(n)));
        let with_argument = || self.options.iter().filter(|o| o.argument.as_deref().is_some_and(is_placeholder));
        // one option may take the name of a signal and another one its number
        let fits = |option: &&OptionEntry| !is_digits(word) || option.text.contains("number");
        own.or_else(|| with_argument().find(fits)).or_else(|| with_argument().next())
    }

    /// True if the word after an option that takes an expression (`-not expr`) is an option itself, which begins that
    /// expression.
    fn begins_expression(&self, option: &OptionEntry, next: &str) -> bool {
        option.argument.as_deref() == Some("expr") && next.starts_with('-') && self.option(next).is_some()
    }

    /// Returns the only option with a long name that begins with `name`; an error if there are several.
    fn expand_abbreviation(&self, name: &str) -> Result<Option<&OptionEntry>, ()> {
        let mut found = self.options.iter().filter(|o| o.names().any(|n| n.starts_with(name)));
        match (found.next(), found.next()) {
            (one, None) => Ok(one),
            (_, Some(_)) => Err(()),
        }
    }

    /// Parses `-abc`: letters, the last of which may have the rest as its argument; or one name with an argument
    /// attached.
    fn cluster<'e>(&'e self, at: usize, word: &str) -> Vec<Use<'e>> {
        let piece = |flag: String, value: Option<String>, option, known| Use { word: at, flag, value, option, known };
        let attached = self
            .options
            .iter()
            .flat_map(|o| o.names().map(move |n| (n, o)))
            .filter(|(n, o)| n.len() > 2 && !n.starts_with("--") && o.argument.is_some() && word.starts_with(n))
            .max_by_key(|(n, _)| n.len());
        if let Some((name, option)) = attached {
            return vec![piece(name.to_string(), Some(word[name.len()..].to_string()), Some(option), Known::Yes)];
        }
        let mut uses = Vec::new();
        let mut rest = &word[1..];
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            let mut flag = format!("-{c}");
            if c.is_ascii_digit() && self.option(&flag).is_none() {
                let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                flag.push_str(&rest[..end]);
                rest = &rest[end..];
            }
            let Some(option) = self.option(&flag).or_else(|| self.number(&flag)) else {
                uses.push(piece(flag.clone(), None, None, self.unlisted(&flag)));
                break;
            };
            let letters =
                (is_digits(&flag) || option.takes_number()) && rest.starts_with(|c: char| c.is_ascii_alphabetic());
            let attached = option.argument.is_some() && !rest.is_empty() && !letters;
            let value = attached.then(|| rest.to_string());
            let ends = value.is_some();
            uses.push(piece(flag, value, Some(option), Known::Yes));
            if ends {
                break;
            }
        }
        let failed = uses.iter().any(|u| u.option.is_none());
        if failed && word.len() > 2 {
            // not a cluster: the word as a whole is unknown, or it may be a single name
            let no = self.mostly_words() || uses.iter().any(|u| u.known == Known::No);
            let known = if no { self.unlisted(word) } else { Known::Unsure };
            let known =
                if self.mostly_words() || uses.len() > 1 || word[1..].contains(['-', '_']) || self.has_clusters() {
                    known
                } else {
                    Known::Unsure
                };
            return vec![piece(word.to_string(), None, None, known)];
        }
        uses
    }

    /// Decides about a flag that is not in the index.
    fn unlisted(&self, flag: &str) -> Known {
        let name = self.command.as_str();
        let base = flag.split([':', '=']).next().unwrap_or(flag);
        let number = flag.trim_start_matches(['-', '+']).starts_with(|c: char| c.is_ascii_digit());
        let unsure = !self.complete
            || FREE_FORM.contains(&name)
            || number
            || matches!(flag, "--help" | "--version" | "-h" | "-V" | "-?")
            || self.mentions.iter().any(|m| m == flag || m == base)
            || self.option(base).is_some()
            || !flag.is_ascii()
            || flag.strip_prefix("--no-").is_some_and(|f| self.option(&format!("--{f}")).is_some())
            || flag.strip_prefix("-no").is_some_and(|f| self.option(&format!("-{f}")).is_some())
            || flag.strip_prefix("--").is_some_and(|f| self.option(&format!("--no-{f}")).is_some())
            // `ps -Z` is the same as `ps Z`, according to its source
            || WITHOUT_DASH.contains(&name) && flag.strip_prefix('-').is_some_and(|letter| self.option(letter).is_some())
            || self.takes_placeholders(flag);
        if unsure { Known::Unsure } else { Known::No }
    }

    /// True if a documented placeholder may stand for the flag: `-<number>`, `-SIGNAL`, `-newerXY`.
    fn takes_placeholders(&self, flag: &str) -> bool {
        // placeholders for numbers (`-NUM`) do not matter here, as numbers are never reported as unknown
        /// Ends of long names that are placeholders: `--force-things`.
        const PLACEHOLDER_ENDS: &[&str] = &["things", "thing"];
        self.options.iter().flat_map(OptionEntry::names).chain(self.mentions.iter().map(String::as_str)).any(|name| {
            let body = name.strip_prefix('-').unwrap_or(name);
            if flag.starts_with("--") {
                let stem = PLACEHOLDER_ENDS.iter().find_map(|many| name.strip_suffix(many));
                return stem.is_some_and(|stem| stem.len() > 3 && flag.starts_with(stem));
            }
            let word = SIGNALS.contains(&body.to_ascii_lowercase().as_str());
            let tail = body.trim_end_matches(['X', 'Y', 'Z', 'N']);
            let pattern = tail.len() >= 3 && tail.len() < body.len() && flag[1..].starts_with(tail);
            let numbers = ["<n>", "<num>", "<number>", "<count>", "<digit>", "<>"].contains(&body);
            body.starts_with('<') && !numbers || !name.starts_with("--") && (word || pattern)
        })
    }

    /// True if the program has long names after a single dash, as find does.
    fn mostly_words(&self) -> bool {
        let names = || self.options.iter().flat_map(OptionEntry::names);
        let words = names().filter(|n| n.len() > 3 && n.starts_with('-') && !n.starts_with("--")).count();
        words >= 5 && words * 2 > names().count()
    }

    /// True if letters can be clustered as far as the index shows: there are letters, and no words after a single
    /// dash.
    fn has_clusters(&self) -> bool {
        let names = || self.options.iter().flat_map(OptionEntry::names);
        names().filter(|n| n.len() == 2).count() >= 3
            && !names().any(|n| n.len() > 2 && n.starts_with('-') && !n[1..].starts_with(|c: char| "-<N#".contains(c)))
    }

    /// Parses `xzf` of tar, `aux` of ps, if every letter is an option.
    fn cluster_without_dash<'e>(&'e self, word: &str) -> Vec<Use<'e>> {
        let mut uses = Vec::new();
        for c in word.chars() {
            let bare = self.option(&c.to_string());
            if !c.is_ascii_alphabetic() {
                return Vec::new();
            }
            let Some(option) = bare.or_else(|| self.option(&format!("-{c}"))) else {
                return Vec::new();
            };
            uses.push(Use { word: 0, flag: c.to_string(), value: None, option: Some(option), known: Known::Yes });
        }
        uses
    }

    /// Parses `if=FILE` of dd.
    fn operand<'e>(&'e self, at: usize, word: &str) -> Option<Use<'e>> {
        let (name, value) = word.split_once('=')?;
        let named = self.options.iter().filter(|o| o.short.as_ref().is_some_and(|s| s.ends_with('='))).count();
        let flag = format!("{name}=");
        let option = self.option(&flag);
        let known = if option.is_some() {
            Known::Yes
        } else if self.complete && named >= 5 {
            Known::No
        } else {
            return None;
        };
        Some(Use { word: at, flag, value: Some(value.to_string()), option, known })
    }
}

/// True for a placeholder for the name of a signal: `signal`, `-<sig>`.
fn is_signal_placeholder(name: &str) -> bool {
    let name = name.trim_start_matches('-').trim_matches(['<', '>']).to_ascii_lowercase();
    SIGNALS.contains(&name.as_str())
}

/// True for an option that names the signal to send: `-s sigspec`, `-signal`.
fn takes_signal(option: &OptionEntry) -> bool {
    let is_short = |name: &str| !name.starts_with("--");
    option.argument.as_deref().is_some_and(is_signal_placeholder)
        || option.names().any(|name| is_short(name) && is_signal_placeholder(name))
}

/// True for `-5`.
fn is_digits(word: &str) -> bool {
    word.strip_prefix('-').is_some_and(|body| !body.is_empty() && body.bytes().all(|b| b.is_ascii_digit()))
}

/// True for `-NUM`, `-<number>`, `-#`: a placeholder for any number. `--count` is a name of its own.
fn is_number(name: &str) -> bool {
    let body = name.strip_prefix('-').unwrap_or_default().trim_matches(['<', '>']).to_ascii_lowercase();
    body == "#" || ["n", "num", "number", "count", "digit", "digits"].contains(&body.as_str()) && name.len() > 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(names: &[&str], argument: Option<&str>) -> OptionEntry {
        let long = names.iter().find(|n| n.starts_with("--")).map(|n| (*n).to_string());
        let short = names.iter().find(|n| !n.starts_with("--")).map(|n| (*n).to_string());
        OptionEntry { short, long, argument: argument.map(str::to_string), ..OptionEntry::default() }
    }

    fn entry(command: &str, options: Vec<OptionEntry>) -> Entry {
        Entry { command: command.into(), options, complete: true, ..Entry::default() }
    }

    fn ls() -> Entry {
        let mut ls = entry(
            "ls",
            vec![
                option(&["-l"], None),
                option(&["-a", "--all"], None),
                option(&["-w", "--width"], Some("COLS")),
                option(&["--color"], Some("[WHEN]")),
                option(&["--sort"], Some("WORD")),
                option(&["--size"], None),
            ],
        );
        ls.mentions = vec!["-U".into()];
        ls
    }

    #[test]
    fn letters_and_long_names_are_known() {
        for (flag, known) in [
            ("-l", Known::Yes),
            ("-la", Known::Yes),
            ("-w80", Known::Yes),
            ("-lw80", Known::Yes),
            ("--all", Known::Yes),
            ("--color=auto", Known::Yes),
            ("--col", Known::Yes),
            ("--s", Known::Unsure),
            ("--sort=size", Known::Yes),
            ("--sort-by", Known::No),
            ("--nonsense=3", Known::No),
            ("-z", Known::No),
            ("-lz", Known::No),
            ("-U", Known::Unsure),
            ("-5", Known::Unsure),
            ("--help", Known::Unsure),
            ("--no-color", Known::Unsure),
            ("-", Known::Yes),
            ("--", Known::Yes),
            ("-é", Known::Unsure),
            ("file", Known::Unsure),
        ] {
            assert_eq!(ls().knows(flag), known, "{flag}");
        }
        let partial = Entry { complete: false, ..ls() };
        assert_eq!((partial.knows("-z"), partial.knows("-l")), (Known::Unsure, Known::Yes));
    }

    #[test]
    fn arguments_and_operands_are_no_flags() {
        let unknown = |args: &[&str]| ls().unknown_flags(args).into_iter().map(|u| u.flag).collect::<Vec<_>>();
        assert_eq!(unknown(&["-w", "-z", "-l", "--", "-z"]), Vec::<String>::new());
        assert_eq!(unknown(&["-l", "-z", "x", "--nonsense"]), ["-z", "--nonsense"]);
        let mut xargs = entry("xargs", vec![option(&["-0"], None), option(&["-n"], Some("N")), option(&["-r"], None)]);
        xargs.delegates = true;
        assert_eq!(xargs.unknown_flags(&["-0", "-n", "1", "rm", "-f"]), []);
        assert_eq!(xargs.unknown_flags(&["-q", "rm", "-f"]).len(), 1);
    }

    #[test]
    fn words_after_one_dash_are_known() {
        let mut names: Vec<_> =
            ["-name", "-type", "-size", "-perm", "-exec"].iter().map(|n| option(&[n], Some("x"))).collect();
        names.extend(["-delete", "-print", "-newerXY"].iter().map(|n| option(&[n], None)));
        names[4].argument = None;
        names.push(option(&["-O"], Some("level")));
        let find = entry("find", names);
        for (flag, known) in [
            ("-name", Known::Yes),
            ("-nmae", Known::No),
            ("-O3", Known::Yes),
            ("-newermt", Known::Unsure),
            ("-delet", Known::No),
        ] {
            assert_eq!(find.knows(flag), known, "{flag}");
        }
        let args = [".", "-size", "-5k", "-exec", "grep", "-q", "-z", "x", "{}", "+", "-pirnt"];
        assert_eq!(
            find.unknown_flags(&args).into_iter().map(|u| (u.word, u.flag)).collect::<Vec<_>>(),
            [(10, "-pirnt".into())]
        );
    }

    /// The words read: `flag=value` of each use.
    fn read(entry: &Entry, args: &[&str]) -> Vec<String> {
        let shown = |u: &Use<'_>| u.value.as_ref().map_or(u.flag.clone(), |v| format!("{}={v}", u.flag));
        entry.read_args(args).iter().map(shown).collect()
    }

    #[test]
    fn numbers_and_signals_after_a_dash_are_known() {
        let grep = entry("grep", vec![option(&["-c", "--count"], None), option(&["-NUM"], None)]);
        assert_eq!(grep.read_args(&["-3", "x"])[0].option, grep.option("-NUM"));
        let pkill = entry("pkill", vec![option(&["-c", "--count"], None), option(&["-signal", "--signal"], None)]);
        for word in ["-9", "-HUP"] {
            assert_eq!(pkill.read_args(&[word, "x"])[0].option, pkill.option("--signal"), "{word}");
        }
        let mut kill = entry("kill", vec![option(&["-s"], Some("sig")), option(&["-n"], Some("sig"))]);
        kill.mentions = vec!["-sigspec".into()];
        assert_eq!(kill.read_args(&["-KILL", "7"])[0].option, kill.option("-s"));
        assert_eq!(read(&kill, &["-KILL", "7"]), ["-KILL"]);
        kill.options[0].text = "SIG is a signal name".into();
        kill.options[1].text = "SIG is a signal number".into();
        for (word, name) in [("-9", "-n"), ("-KILL", "-s")] {
            assert_eq!(kill.read_args(&[word, "7"])[0].option, kill.option(name), "{word}");
        }
        assert_eq!(read(&kill, &["-9", "-1"]), ["-9"], "a group of processes");
        assert_eq!(read(&kill, &["-s", "KILL", "-77", "-l"]), ["-s=KILL", "-l"]);
        let log =
            entry("git log", vec![option(&["-<number>", "--max-count"], Some("number")), option(&["-S"], Some("s"))]);
        assert_eq!(read(&log, &["-5", "-S", "foo"]), ["-5", "-S=foo"]);
        let head = entry("head", vec![option(&["-n", "--lines"], Some("[-]NUM"))]);
        assert_eq!((read(&head, &["-5", "f"]), head.knows("-5")), (vec!["-5".to_owned()], Known::Yes));
        let tail = entry(
            "tail",
            vec![option(&["-f", "--follow"], Some("[={name|descriptor}]")), option(&["-n", "--lines"], Some("[+]NUM"))],
        );
        assert_eq!(read(&tail, &["-20f", "x"]), ["-20", "-f"]);
        let zip = entry("zip", vec![option(&["-r"], None), option(&["-#"], None)]);
        assert_eq!(read(&zip, &["-r9", "a"]), ["-r", "-9"]);
    }

    #[test]
    fn a_mode_is_an_operand() {
        let chmod = entry("chmod", vec![option(&["-c", "--changes"], None), option(&["-R", "--recursive"], None)]);
        for (args, flags) in [
            (["-x", "f"], &[][..]),
            (["-w", "f"], &[]),
            (["-rwx", "f"], &[]),
            (["-R", "-x"], &["-R"]),
            (["-c", "f"], &["-c"]),
        ] {
            assert_eq!(read(&chmod, &args), flags, "{args:?}");
        }
        let chattr = entry("chattr", vec![option(&["-R"], None), option(&["-p"], Some("project"))]);
        assert_eq!(read(&chattr, &["-R", "-i", "f"]), ["-R"]);
    }

    #[test]
    fn letters_after_a_number_argument_are_options() {
        let diff = entry("diff", vec![option(&["-r"], None), option(&["-u"], Some("NUM")), option(&["-N"], None)]);
        assert_eq!(read(&diff, &["-ruN"]), ["-r", "-u", "-N"]);
        let letters = ["-a", "-n"].map(|n| option(&[n], None));
        let mut perl = entry("perl", letters.into());
        perl.options.extend([option(&["-l"], Some("[octnum]")), option(&["-e"], Some("line"))]);
        assert_eq!(read(&perl, &["-lane", "print"]), ["-l", "-a", "-n", "-e=print"]);
        assert_eq!(read(&perl, &["-l012"]), ["-l=012"]);
    }

    #[test]
    fn an_expression_is_no_argument_and_a_mention_no_cluster() {
        let find = entry("find", vec![option(&["-not"], Some("expr")), option(&["-name"], Some("pattern"))]);
        assert_eq!(read(&find, &["-not", "-name", "x"]), ["-not", "-name=x"]);
        let mut test = entry("test", vec![option(&["-e"], Some("FILE"))]);
        test.mentions = vec!["-eq".into()];
        assert_eq!(read(&test, &["a", "-eq", "1"]), ["-eq"]);
    }

    #[test]
    fn placeholders_match_many_names() {
        let mut dpkg = entry("dpkg", vec![option(&["--force-things"], None), option(&["-i"], None)]);
        assert_eq!((dpkg.knows("--force-all"), dpkg.knows("--farce-all")), (Known::Unsure, Known::No));
        dpkg.command = "ps".into();
        dpkg.options.push(option(&["Z"], None));
        assert_eq!((dpkg.knows("-Z"), dpkg.knows("-Y")), (Known::Unsure, Known::No));
    }

    #[test]
    fn options_without_a_dash_are_known() {
        let tar = entry("tar", vec![option(&["-x"], None), option(&["-z"], None), option(&["-f"], Some("FILE"))]);
        assert_eq!(tar.read_args(&["xzf", "a.tgz"]).len(), 3);
        assert_eq!(tar.read_args(&["archive"]), []);
        let dd =
            entry("dd", ["if=", "of=", "bs=", "count=", "seek="].iter().map(|n| option(&[n], Some("X"))).collect());
        assert_eq!(dd.unknown_flags(&["if=/dev/zero", "of=x", "blocksize=1"]).len(), 1);
    }
}

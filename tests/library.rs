//! Tests the example library pair by pair: each is complete and unique, draws no finding of our own checks on any
//! target, has its declared risk, and does what its request says in a fixture tree, in bash and in busybox.

use crate::support::{Ran, run_shell};
use caro::command::checks::{CheckContext, run};
use caro::command::inspect::{Inspector, Manuals, Subject};
use caro::host::ExecutionContext;
use caro::manual::{Manual, Setup};
#[cfg(target_os = "linux")]
use caro::shell::quote;
use caro::shell::{
    Dialect, Level, Script, Severity, Target, assess, extract_commands, is_builtin, is_read_only, parse,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A pair of request and command, with the fields that judge it; `src/command/library/mod.rs` explains them.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Pair {
    request: String,
    #[serde(default)]
    also: Vec<String>,
    cmd: String,
    macos: Option<String>,
    freebsd: Option<String>,
    busybox: Option<String>,
    powershell: Option<String>,
    #[serde(default = "safe")]
    risk: Level,
    run: Option<String>,
    #[serde(default)]
    root: bool,
    #[serde(default)]
    dir: String,
    #[serde(default)]
    before: String,
    #[serde(default)]
    code: i32,
    out: Option<String>,
    lines: Option<Vec<String>>,
    like: Option<String>,
    then: Option<String>,
}

fn safe() -> Level {
    Level::Safe
}

impl Pair {
    fn wordings(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.request.as_str()).chain(self.also.iter().map(String::as_str))
    }

    /// The commands for systems other than Linux with GNU tools, each with its target and dialect.
    fn variants(&self) -> impl Iterator<Item = (&'static str, Dialect, &str)> {
        let macos = self.macos.as_deref().unwrap_or(&self.cmd);
        [
            ("linux-busybox", Dialect::Sh, self.busybox.as_deref().unwrap_or(&self.cmd)),
            ("macos-bsd", Dialect::Zsh, macos),
            ("freebsd", Dialect::Bash, self.freebsd.as_deref().unwrap_or(macos)),
            ("windows", Dialect::PowerShell, self.powershell.as_deref().unwrap_or_default()),
        ]
        .into_iter()
        .filter(|(_, _, command)| !command.is_empty())
    }

    /// True if more than the exit status is checked.
    fn is_judged(&self) -> bool {
        let printed = self.out.as_ref().is_some_and(|o| !o.is_empty()) || self.lines.is_some();
        printed || self.like.as_ref().is_some_and(|l| l != ".*") || self.then.is_some()
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    pair: Vec<Pair>,
}

/// Reads all pairs, each with the name of its file.
fn library() -> Vec<(String, Pair)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("platform-rules/library");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    let mut pairs = Vec::new();
    for path in paths {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let file: File = toml::from_str(&std::fs::read_to_string(&path).unwrap())
            .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        pairs.extend(file.pair.into_iter().map(|pair| (name.clone(), pair)));
    }
    pairs
}

/// Words ignored when requests are compared.
const FILLERS: &str = " a an and are at be below by do does for from have i in into is it its me my of on or s the there these \
    this to what which with please show list print all every each ";

/// The set of words of a request, in lower case and without fillers.
fn words(text: &str) -> BTreeSet<String> {
    let lower = text.to_lowercase();
    let pieces = lower.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty());
    pieces.filter(|w| !FILLERS.contains(&format!(" {w} "))).map(str::to_owned).collect()
}

#[test]
fn the_library_is_large_complete_and_without_duplicates() {
    let pairs = library();
    assert!(pairs.len() >= 600, "only {} pairs", pairs.len());
    let embedded = caro::command::library::nearest("find files", Target::named("linux-gnu").unwrap(), 10_000);
    assert!(embedded.len() >= 50, "the built-in library is another one");
    let mut wrong = Vec::new();
    let mut seen: Vec<(usize, &str, BTreeSet<String>)> = Vec::new();
    for (i, (file, pair)) in pairs.iter().enumerate() {
        let mut fault = |what: String| wrong.push(format!("{file}: {}: {what}", pair.request));
        for text in pair.wordings().chain([pair.cmd.as_str()]) {
            if text.trim() != text || text.is_empty() || text.contains('\n') {
                fault(format!("`{text}` is not one trimmed line"));
            }
        }
        match &pair.run {
            Some(why) if !why.starts_with("no: ") || why.len() < 8 => fault("`run` says no reason".into()),
            Some(_) if pair.is_judged() => fault("is judged but not run".into()),
            None if pair.out.is_none() && !pair.is_judged() && pair.like.is_none() => fault("nothing judges it".into()),
            _ => {}
        }
        for text in pair.wordings() {
            let these = words(text);
            let near = seen.iter().find(|(other, _, those)| {
                let common = these.intersection(those).count();
                let union = these.len() + those.len() - common;
                common == union || (*other != i && union >= 5 && common * 100 >= union * 85)
            });
            if let Some((_, other, _)) = near {
                fault(format!("`{text}` is said already: `{other}`"));
            }
            seen.push((i, text, these));
        }
    }
    println!("{} pairs, {} wordings", pairs.len(), seen.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Known false alarms of the checks on correct commands: the finding's id and the beginning of the command.
const FALSE_ALARMS: &[(&str, &str)] = &[
    // a range or a suffix produces the requested names
    ("missing-name", "touch test{1..5}.txt"),
    ("missing-name", "for i in 1 2 3 4 5; do touch"),
    ("missing-name", "1..5 | ForEach-Object { New-Item"),
    ("missing-name", "sed -i.orig"),
    // `user.name` is a setting of git
    ("placeholder", "git config user.name"),
    // an option of all subcommands
    ("unknown-flag", "kubectl get pods -n"),
];

/// Describes the findings against a command, except hints and known false alarms; `None` if there are none.
fn findings_against(request: &str, script: &Script, target: &str, manuals: &Manuals) -> Option<String> {
    let target = Target::named(target).unwrap();
    let input = CheckContext { request, script, target, dialect: script.dialect, context: None, cwd: None, manuals };
    let known = |id: &str| FALSE_ALARMS.iter().any(|(f, start)| *f == id && script.text.starts_with(start));
    let found: Vec<_> = run(&input).into_iter().filter(|f| f.severity > Severity::Hint && !known(&f.id)).collect();
    let described: Vec<String> = found.iter().map(|f| format!("{} says {}, fix {:?}", f.id, f.why, f.fix)).collect();
    let wrong = !script.errors.is_empty() || !described.is_empty();
    wrong.then(|| format!("[{}] {request} => {}: {described:?} {:?}", target.name(), script.text, script.errors))
}

#[test]
fn commands_for_other_systems_draw_no_finding() {
    let (mut wrong, mut seen) = (Vec::new(), BTreeMap::new());
    let pairs = library();
    for (_, pair) in &pairs {
        for (target, dialect, command) in pair.variants() {
            *seen.entry(target).or_insert(0) += 1;
            wrong.extend(findings_against(&pair.request, &parse(command, dialect), target, &Manuals::new()));
        }
    }
    println!("{seen:?}");
    assert!(seen.values().all(|n| *n >= 200), "{seen:?}");
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_flag_for_linux_exists_and_every_risk_is_declared() {
    let context = Arc::new(ExecutionContext::detect(None));
    let here = context.target == Target::named("linux-gnu").unwrap();
    if !here {
        println!("flags are not looked at: this is not a Linux with GNU's tools");
    }
    let manual = here.then(|| Arc::new(Manual::open(Setup::of_process(None, None))));
    let inspector = Inspector::new(context, manual);
    let (mut wrong, mut manuals) = (Vec::new(), Manuals::new());
    for (_, pair) in library() {
        let script = parse(&pair.cmd, Dialect::Bash);
        let target = Target::named("linux-gnu").unwrap();
        let subject =
            Subject { request: &pair.request, earlier: &[], cwd: Path::new("/"), target, dialect: Dialect::Bash };
        inspector.look_up(&script, subject, &mut manuals, Duration::from_secs(10)).await;
        wrong.extend(findings_against(&pair.request, &script, "linux-gnu", &manuals));
        let risk = assess(&script);
        if risk.level != pair.risk {
            wrong.push(format!("RISK\t{}\t{:?}\t{:?}", pair.cmd, risk.level, risk.reasons.first().map(|r| &r.why)));
        }
    }
    println!("{} manuals", manuals.len());
    assert!(!here || manuals.len() >= 50, "only {} manuals were found", manuals.len());
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

/// Folders of the root directory that the fixture has copies of.
const TOPS: [&str; 4] = ["srv", "opt", "data", "backup"];

/// Redirects a line's paths in these root folders into the fixture.
fn redirect(line: &str, root: &str) -> String {
    let top = regex::Regex::new(&format!(r"(^|[^\w./~*-])/({})\b", TOPS.join("|"))).unwrap();
    top.replace_all(line, format!("${{1}}{root}/$2")).into_owned()
}

/// A copy of the fixture in which lines are run.
struct Tree<'a> {
    root: &'a str,
    pair: &'a Pair,
}

impl Tree<'_> {
    /// Runs a line in the pair's directory, in a fixed environment.
    fn run(&self, line: &str) -> Ran {
        let Self { root, pair } = self;
        // git rewrites its index when it reads, which must not change the tree that all reading pairs share
        let git_settings = if root.ends_with("/shared") {
            "GIT_OPTIONAL_LOCKS=0 GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=diff.autoRefreshIndex GIT_CONFIG_VALUE_0=false"
        } else {
            ""
        };
        let fixed = "TZ=UTC LC_ALL=C.UTF-8 TERM=dumb GIT_CONFIG_NOSYSTEM=1 LANG=C.UTF-8 EDITOR=true";
        let place = format!("cd {root}/work/{} && export HOME={root}/home/ana {fixed} {git_settings}", pair.dir);
        run_shell(&format!("{place}\n{}", redirect(line, root)), Path::new("/"))
    }

    /// Runs the pair's command, given as a line of bash; the error says how the result differs from the expected one.
    fn judge(&self, line: &str) -> Result<(), String> {
        let pair = self.pair;
        if !pair.before.is_empty() {
            self.run(&pair.before);
        }
        // the line itself compares the status: `run_shell` reports only success or failure
        let ran = self.run(&format!(
            "{line}\nstatus=$?; [ $status -eq {} ] || {{ echo \"exit status $status\" >&2; exit 1; }}",
            pair.code
        ));
        let details = format!("printed: {}\nerrors: {}", ran.stdout, ran.stderr);
        let out = ran.stdout.replace(self.root, "");
        let out = out.trim_end_matches('\n');
        let fits = pair.out.as_ref().is_none_or(|want| want.trim_end_matches('\n') == out)
            && pair.lines.as_ref().is_none_or(|want| sorted(out.lines()) == sorted(want.iter().map(String::as_str)))
            && pair
                .like
                .as_ref()
                .is_none_or(|want| regex::Regex::new(&format!("(?s)^(?:{want})$")).unwrap().is_match(out));
        if !ran.ok || !ran.stderr.is_empty() || !fits {
            return Err(details);
        }
        match &pair.then {
            Some(then) if !self.run(then).ok => Err(format!("afterwards not so: {then}\n{details}")),
            _ => Ok(()),
        }
    }
}

fn sorted<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut lines: Vec<&str> = lines.collect();
    lines.sort_unstable();
    lines
}

/// The results of the pairs.
#[derive(Default)]
struct Tally {
    judged: usize,
    ran: usize,
    skipped: Vec<String>,
    wrong: Vec<String>,
}

/// The suite runs every 18th pair; `benches/full.sh` runs all.
const SAMPLE: usize = 18;

/// Runs every `step`-th pair in a fixture of its own; pairs that only read share one. `line` returns the line of bash
/// that runs a pair, or the reason to skip it.
fn run_every(step: usize, line: impl Fn(&Pair) -> Result<String, String> + Sync) -> Tally {
    let pairs: Vec<_> = library().into_iter().step_by(step).collect();
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    let base = base.to_str().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/library/fixture.sh");
    let made = run_shell(&format!("mkdir master && bash {} {base}/master", script.display()), Path::new(base));
    assert!(made.ok, "the fixture cannot be made: {}", made.stderr);
    assert!(run_shell("cp -a master shared", Path::new(base)).ok);
    let root_user = run_shell("[ \"$(id -u)\" = 0 ]", Path::new("/")).ok;
    let next = AtomicUsize::new(0);
    let one = |i: usize, (file, pair): &(String, Pair), tally: &mut Tally| {
        let line = match &pair.run {
            Some(why) => Err(why["no: ".len()..].to_owned()),
            None if pair.root && !root_user => Err("needs root".to_owned()),
            None => line(pair),
        };
        let line = match line {
            Ok(line) => line,
            Err(why) => return tally.skipped.push(why),
        };
        // pairs that only read share one tree, which is checked at the end
        let reads = pair.then.is_none() && pair.before.is_empty() && is_read_only(&parse(&pair.cmd, Dialect::Bash));
        let root = if reads { format!("{base}/shared") } else { format!("{base}/{i}") };
        if !reads {
            let copied = run_shell(&format!("cp -a {base}/master {root}"), Path::new("/"));
            assert!(copied.ok, "{}", copied.stderr);
        }
        match (Tree { root: &root, pair }).judge(&line) {
            Err(why) => tally.wrong.push(format!("{file}: {}\n{line}\n{why}", pair.request)),
            Ok(()) if pair.is_judged() => tally.judged += 1,
            Ok(()) => tally.ran += 1,
        }
    };
    let mut all = Tally::default();
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(2, |n| n.get() + 1);
        let worker = || {
            let mut tally = Tally::default();
            loop {
                let i = next.fetch_add(1, Ordering::Relaxed);
                let Some(pair) = pairs.get(i) else { break tally };
                one(i, pair, &mut tally);
            }
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        for tally in workers.into_iter().map(|w| w.join().unwrap()) {
            all.judged += tally.judged;
            all.ran += tally.ran;
            all.skipped.extend(tally.skipped);
            all.wrong.extend(tally.wrong);
        }
    });
    // without `.git`: git refreshes its own files when it reads
    let tops = TOPS.join(" ");
    let listing = format!("find work {tops} -name .git -prune -o -printf '%p %y %m %s %T@ %l\\n' | sort");
    let same = run_shell(&format!("diff <(cd master && {listing}) <(cd shared && {listing})"), Path::new(base));
    assert!(same.ok, "what should only read has written: {}", same.stdout);
    all
}

/// The programs of a command that are neither in `dirs` nor built into the shell.
fn missing(command: &str, dialect: Dialect, dirs: &str) -> Vec<String> {
    let names = extract_commands(&parse(command, dialect));
    let path = |name: &str| which::which_in_global(name, Some(dirs)).is_ok_and(|mut found| found.next().is_some());
    names.into_iter().filter(|n| !n.contains('/') && !is_builtin(n, dialect) && !path(n)).collect()
}

fn report(what: &str, tally: &Tally) {
    let mut why: HashMap<&str, usize> = HashMap::new();
    for reason in &tally.skipped {
        *why.entry(reason).or_default() += 1;
    }
    let mut why: Vec<_> = why.into_iter().collect();
    why.sort_by_key(|(reason, n)| (std::cmp::Reverse(*n), *reason));
    let Tally { judged, ran, skipped, wrong } = tally;
    println!("{what}: {judged} run and judged by what they print or leave, {ran} run, {} skipped", skipped.len());
    println!("skipped: {why:?}");
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n\n"));
}

#[cfg(target_os = "linux")]
fn linux_pairs_do_what_their_requests_say(step: usize) {
    let path = std::env::var("PATH").unwrap();
    let tally = run_every(step, |pair| match missing(&pair.cmd, Dialect::Bash, &path).first() {
        Some(name) => Err(format!("no {name} here")),
        None => Ok(pair.cmd.clone()),
    });
    report("bash", &tally);
    assert!(tally.judged * step >= 500, "only {} pairs were judged", tally.judged);
}

#[cfg(target_os = "linux")]
fn busybox_pairs_do_what_their_requests_say(step: usize) {
    // only busybox's own programs
    let bin = tempfile::tempdir().unwrap();
    let path = bin.path().display().to_string();
    if !run_shell(&format!("busybox --install -s {}", quote(&path, Dialect::Bash)), Path::new("/")).ok {
        println!("skipped: there is no busybox here");
        return;
    }
    let tally = run_every(step, |pair| {
        let command = pair.busybox.as_ref().unwrap_or(&pair.cmd);
        if command.is_empty() {
            return Err("not for busybox".into());
        }
        match missing(command, Dialect::Sh, &path).first() {
            Some(name) => Err(format!("no {name} in busybox")),
            None => Ok(format!("PATH={path} {path}/sh -c {}", quote(command, Dialect::Bash))),
        }
    });
    report("busybox", &tally);
    assert!(tally.judged * step >= 300, "only {} pairs were judged", tally.judged);
}

#[cfg(target_os = "linux")]
#[test]
fn a_sample_of_the_pairs_for_linux_does_what_its_requests_say() {
    linux_pairs_do_what_their_requests_say(SAMPLE);
}

#[cfg(target_os = "linux")]
#[test]
fn a_sample_of_the_pairs_for_busybox_does_what_its_requests_say() {
    busybox_pairs_do_what_their_requests_say(SAMPLE);
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "minutes: benches/full.sh runs it"]
fn every_pair_for_linux_does_what_its_request_says() {
    linux_pairs_do_what_their_requests_say(1);
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "minutes: benches/full.sh runs it"]
fn every_pair_for_busybox_does_what_its_request_says() {
    busybox_pairs_do_what_their_requests_say(1);
}

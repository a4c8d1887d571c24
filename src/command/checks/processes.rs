//! What is asked of processes: `ps aux | grep sshd | awk '{print $2}'` finds the grep, too, and `ss -tln` does not say who listens.

use super::CheckContext;
use super::edit::{Edits, cluster_with, is_cluster, warning, without};
use super::words::Words;
use crate::shell::{Finding, Invocation, Os, Userland, quote};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    of_script(it)
        .or_else(|| heading(it))
        .or_else(|| tree(it))
        .or_else(|| pinned(it))
        .into_iter()
        .chain(of_sockets(it))
        .chain(of_protocol(it))
        .collect()
}

fn of_script(it: &CheckContext) -> Option<Finding> {
    let commands = &it.script.commands;
    let at = commands.iter().position(|c| c.name() == Some("ps") && c.inside.is_none())?;
    let [ps, grep, awk] = commands.get(at..at + 3)? else { return None };
    let [pattern] = grep.args() else { return None };
    let [program] = awk.args() else { return None };
    let text = pattern.value.as_deref()?;
    let plain = !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    let all = ps.args().iter().all(|w| matches!(w.text.as_str(), "aux" | "-ef" | "-aux" | "ax" | "-e" | "-A" | "-f"));
    let second: String = program.text.split_whitespace().collect();
    let piped = ps.feeds == [at + 1] && grep.feeds == [at + 2];
    let names = (ps.name(), grep.name(), awk.name()) == (Some("ps"), Some("grep"), Some("awk"));
    if !names || !piped || !plain || !all || ps.args().is_empty() || second != "{print$2}" {
        return None;
    }
    let (start, end) = (ps.words.first()?.span.start, awk.words.last()?.span.end);
    let (before, after) = (it.script.text.get(..start)?, it.script.text.get(end..)?);
    // who is ended has that name, and not only the word somewhere in the arguments; of a name 15 bytes are kept. What runs in
    // Java is called `java`
    const IN_JAVA: [&str; 8] =
        ["tomcat", "jenkins", "kafka", "elasticsearch", "zookeeper", "solr", "gradle", "catalina"];
    let ends = it.script.commands.iter().flat_map(|c| &c.words).any(|w| w.text.contains("kill"))
        && !IN_JAVA.iter().any(|name| text.to_lowercase().contains(name));
    let form = if ends && text.len() <= 15 { "pgrep" } else { "pgrep -f" };
    let fix = format!("{before}{form} {}{after}", quote(text, it.dialect));
    Some(warning(
        "finds-itself",
        pattern,
        "grep itself is a process with that word: pgrep leaves itself out",
        Some(fix),
    ))
}

/// `ps -ef` for "the process tree": whose child is whose stands in a column of numbers.
fn tree(it: &CheckContext) -> Option<Finding> {
    let words = Words::of(it.request);
    let asked = words.say(&["process tree", "processes as a tree", "tree of processes", "tree of all processes"]);
    let ps = it.script.commands.iter().find(|c| c.name() == Some("ps"))?;
    let [options] = ps.args() else { return None };
    let is_flat = matches!(options.text.as_str(), "-ef" | "-e" | "aux" | "-A" | "ax" | "-aux" | "-eF");
    let fix = Edits::new(it.script).after(options, " --forest").done();
    let is_able = it.target.os == Os::Linux && it.target.userland == Userland::Gnu;
    (asked && is_flat && is_able).then(|| warning("flat-list", options, "this is a list: --forest draws the tree", fix))
}

/// `taskset -c 0,1 1234`: without -p the number is a program to be started.
fn pinned(it: &CheckContext) -> Option<Finding> {
    let is_id = |name: &str| name.bytes().all(|b| b.is_ascii_digit());
    let is_started = |c: &&Invocation| c.via.last().is_some_and(|via| via == "taskset") && c.name().is_some_and(is_id);
    let started = it.script.commands.iter().find(is_started)?;
    let (before, options) = it.script.text.split_once("taskset ").filter(|(_, options)| options.starts_with("-c "))?;
    let fix = Some(format!("{before}taskset -p {options}"));
    let why = "without -p this starts a program of that name: -p takes a process that runs";
    Some(warning("process-as-program", started.words.first()?, why, fix))
}

/// `lsof -i :80 | awk '{print $2}' | xargs kill`: the first of the numbers is the word `PID`.
fn heading(it: &CheckContext) -> Option<Finding> {
    let commands = &it.script.commands;
    let lsof = commands.iter().find(|c| c.name() == Some("lsof") && !c.has_option(Some('t'), "terse"))?;
    let awk = it.script.reader(lsof).filter(|c| matches!(c.name(), Some("awk" | "gawk" | "mawk")))?;
    let [program] = awk.args() else { return None };
    let second: String = program.text.split_whitespace().collect();
    let fix = Edits::new(it.script).replace(program, "'NR>1 {print $2}'").done();
    let why = "the first line of lsof is a heading, and `PID` is no process";
    (second == "{print$2}").then(|| warning("heading", program, why, fix))
}

/// The program that lists sockets here, on Linux: elsewhere its letters mean something else.
fn socket_list<'a>(it: &CheckContext<'a>) -> Option<&'a Invocation> {
    let mut lists = it.script.commands.iter().filter(|c| matches!(c.name(), Some("ss" | "netstat")) && !c.remote);
    lists.next().filter(|_| it.target.os == Os::Linux)
}

/// Sockets without their processes, where the request asks for these: `-p` shows them, on Linux.
fn of_sockets(it: &CheckContext) -> Option<Finding> {
    let asked = Words::of(it.request);
    let who = asked.say(&[
        "which process",
        "what process",
        "the process",
        "processes",
        "which program",
        "what program",
        "which service",
        "pid",
        "what is using",
        "what uses",
        "who is using",
        "who listens",
        "what listens",
        "what is listening",
        "who is listening",
    ]);
    let ports = asked.say(&["port", "ports", "socket", "sockets", "listening", "listens"]);
    if !who || !ports {
        return None;
    }
    let list = socket_list(it)?;
    let shows = list.args().iter().any(|w| matches!(w.text.as_str(), "--processes" | "--program" | "--programs"));
    if shows || cluster_with(list.args(), 'p').is_some() {
        return None;
    }
    let edits = Edits::new(it.script);
    let edits = match list.args().iter().find(|w| is_cluster(w)) {
        Some(cluster) => edits.replace(cluster, &format!("{}p", cluster.text)),
        None => edits.after(list.words.first()?, " -p"),
    };
    let why = "it lists sockets without their processes: -p shows them (of other users to root only)";
    Some(warning("no-process", list.words.first()?, why, edits.done()))
}

/// Sockets of TCP and UDP, where the request speaks of one of them.
fn of_protocol(it: &CheckContext) -> Option<Finding> {
    let asked = Words::of(it.request);
    let (wanted, other, name) = match (asked.say(&["tcp"]), asked.say(&["udp"])) {
        (true, false) => ('t', 'u', "TCP"),
        (false, true) => ('u', 't', "UDP"),
        _ => return None,
    };
    if asked.say(&["not", "no", "except", "without", "but"]) {
        return None;
    }
    let list = socket_list(it)?;
    let cluster = cluster_with(list.args(), other)?;
    let mut only = without(&cluster.text, other);
    if cluster_with(list.args(), wanted).is_none() {
        only = if only.is_empty() { format!("-{wanted}") } else { format!("{only}{wanted}") };
    }
    let why = format!("the request is about {name} only: -{other} shows the others");
    Some(warning("other-protocol", cluster, why, Edits::new(it.script).replace(cluster, &only).done()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn a_process_is_pinned_and_no_program_started() {
        let fix = |command: &str| findings(check, "pin process 1234", command).into_iter().find_map(|f| f.fix);
        assert_eq!(fix("taskset -c 0,1 1234").as_deref(), Some("taskset -p -c 0,1 1234"));
        for right in ["taskset -cp 0,1 1234", "taskset -p -c 0,1 1234", "taskset -c 0 make", "taskset -c 0 sleep 10"] {
            assert_eq!(fix(right), None, "{right}");
        }
    }

    #[test]
    fn a_tree_is_drawn() {
        let fix = |request: &str, command: &str| findings(check, request, command).into_iter().find_map(|f| f.fix);
        let tree = "show the process tree";
        assert_eq!(fix(tree, "ps -ef").as_deref(), Some("ps -ef --forest"));
        for (request, right) in [(tree, "pstree -p"), (tree, "ps -ef --forest"), ("show all processes", "ps -ef")] {
            assert_eq!(fix(request, right), None, "{request}: {right}");
        }
    }

    #[test]
    fn a_heading_is_no_process() {
        let fix = |command: &str| findings(check, "", command).into_iter().find_map(|f| f.fix);
        assert_eq!(
            fix("lsof -i :3000 | awk '{print $2}' | xargs kill -9").as_deref(),
            Some("lsof -i :3000 | awk 'NR>1 {print $2}' | xargs kill -9")
        );
        assert_eq!(
            fix("kill $(lsof -i :80 | awk '{ print $2 }')").as_deref(),
            Some("kill $(lsof -i :80 | awk 'NR>1 {print $2}')")
        );
        for right in ["lsof -t -i :80 | xargs kill", "lsof -i :80 | awk 'NR>1 {print $2}'", "lsof | awk '{print $1}'"] {
            assert_eq!(fix(right), None, "{right}");
        }
    }

    #[test]
    fn sockets_are_of_the_protocol_that_was_asked_for() {
        let fix = |request: &str, command: &str| findings(check, request, command).into_iter().find_map(|f| f.fix);
        for (request, wrong, right) in [
            ("show listening TCP ports", "ss -tuln", "ss -tln"),
            ("udp ports that are open", "netstat -tuln | grep :53", "netstat -uln | grep :53"),
            ("udp sockets", "ss -t -a", "ss -u -a"),
            ("tcp sockets", "ss -t -u", "ss -t"),
        ] {
            assert_eq!(fix(request, wrong).as_deref(), Some(right));
        }
        for (request, right) in [
            ("show listening TCP ports", "ss -tln"),
            ("tcp and udp ports", "ss -tuln"),
            ("open ports, not only tcp", "ss -tuln"),
            ("listening ports", "ss -tuln"),
        ] {
            assert_eq!(fix(request, right), None, "{request}: {right}");
        }
    }

    #[test]
    fn sockets_are_shown_with_who_was_asked_for() {
        let fix =
            |request: &str, command: &str| findings(check, request, command).into_iter().next().and_then(|f| f.fix);
        for (request, wrong, right) in [
            ("which process listens on port 8080", "ss -tln | grep :8080", "ss -tlnp | grep :8080"),
            ("what is using port 80", "netstat -tuln | grep ':80 '", "netstat -tulnp | grep ':80 '"),
            ("processes with open sockets", "ss", "ss -p"),
        ] {
            assert_eq!(fix(request, wrong).as_deref(), Some(right));
        }
        for (request, right) in [
            ("which process listens on port 8080", "ss -tlnp | grep :8080"),
            ("which process listens on port 8080", "lsof -i :8080"),
            ("list open ports", "ss -tln"),
            ("which processes use the most memory", "ss -tln"),
            ("which process listens on port 8080", "ss --processes -tln"),
        ] {
            assert_eq!(fix(request, right), None, "{request}: {right}");
        }
    }

    #[test]
    fn the_search_for_a_process_is_one() {
        let fix = |command: &str| findings(check, "", command).into_iter().next().and_then(|f| f.fix);
        for (wrong, right) in [
            ("ps aux | grep sshd | awk '{print $2}'", "pgrep -f sshd"),
            ("ps -ef | grep my-app | awk '{ print $2 }' | xargs kill", "pgrep my-app | xargs kill"),
            ("ps -ef | grep my-app | awk '{print $2}' | wc -l", "pgrep -f my-app | wc -l"),
            (
                "ps aux | grep a-very-long-name | awk '{print $2}' | xargs kill",
                "pgrep -f a-very-long-name | xargs kill",
            ),
        ] {
            assert_eq!(fix(wrong).as_deref(), Some(right));
        }
        for right in [
            "ps aux | grep '[s]shd' | awk '{print $2}'",
            "ps aux | grep sshd | grep -v grep | awk '{print $2}'",
            "ps aux | grep sshd",
            "ps -o pid,cmd | grep sshd | awk '{print $2}'",
        ] {
            assert_eq!(fix(right), None, "{right}");
        }
    }
}

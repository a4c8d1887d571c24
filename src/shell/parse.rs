//! Parses a command line into a tree of programs, their words, and the wrappers around them.

use super::builder::{Builder, Cx, MAX_DEPTH, Place, Source};
pub use super::script::{
    Assignment, Construct, Function, How, Inside, Invocation, Loop, Redirect, Script, Stage, Word,
};
use super::{Dialect, fish, posix, powershell};

/// Parses a command line. Never fails: invalid parts are reported in [`Script::errors`].
///
/// ```
/// use caro_shell::{Dialect, extract_commands, parse};
/// let script = parse("sudo find . -name '*.o' -exec rm {} + | tail -3", Dialect::Bash);
/// assert_eq!(extract_commands(&script), ["sudo", "find", "rm", "tail"]);
/// assert_eq!(script.commands[2].via, ["sudo", "find"]);
/// assert!(script.errors.is_empty());
/// ```
pub fn parse(text: &str, dialect: Dialect) -> Script {
    let mut builder = Builder::new(text, dialect, walk);
    builder.walk(&Source { text, dialect, place: Place::At(0) }, &Cx::default());
    builder.standard_input();
    let mut script = builder.script;
    // a grammar that gives up on deep nesting does not say why
    script.too_deep |= !script.errors.is_empty() && open_brackets(text) > MAX_DEPTH;
    script
}

fn walk(builder: &mut Builder, source: &Source<'_>, cx: &Cx) {
    match source.dialect {
        Dialect::Bash | Dialect::Zsh | Dialect::Sh => posix::walk(builder, source, cx),
        Dialect::Fish => fish::walk(builder, source, cx),
        Dialect::PowerShell => powershell::walk(builder, source, cx),
    }
}

/// Returns the greatest number of brackets that are open at once, not counting quoted ones.
fn open_brackets(text: &str) -> usize {
    let (mut open, mut deepest, mut quote, mut escaped) = (0usize, 0, None, false);
    for c in text.chars() {
        match (c, quote) {
            _ if escaped => escaped = false,
            ('\\', None | Some('"')) => escaped = true,
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(q)) if c == q => quote = None,
            ('(' | '{', None) => open += 1,
            (')' | '}', None) => open = open.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(open);
    }
    deepest
}

/// Returns the names of all programs in the script, each once, in order of appearance. Operators, keywords and
/// functions of the script are left out; builtins are included (see [`super::is_builtin`]).
pub fn extract_commands(script: &Script) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for command in &script.commands {
        let Some(name) = command.name() else { continue };
        let own = script.functions.iter().any(|f| f.name == name);
        if !own && !matches!(name, "[" | "{" | "}") && !names.iter().any(|n| n == name) {
            names.push(name.to_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every command as `via>via>words`, for asserts on whole scripts.
    fn flat(text: &str, dialect: Dialect) -> Vec<String> {
        let script = parse(text, dialect);
        let line = |c: &Invocation| {
            let words: Vec<&str> = c.words.iter().map(|w| w.raw.as_str()).collect();
            let via = c.via.iter().map(|v| format!("{v}>")).collect::<String>();
            format!("{via}{}", words.join(" "))
        };
        script.commands.iter().map(line).collect()
    }

    fn clean(text: &str, dialect: Dialect) -> Vec<String> {
        let script = parse(text, dialect);
        assert!(script.errors.is_empty(), "{text}: {:?}", script.errors);
        for command in &script.commands {
            for word in &command.words {
                assert!(text.get(word.span.clone()).is_some(), "{text}: span {:?} of {}", word.span, word.raw);
            }
        }
        flat(text, dialect)
    }

    #[test]
    fn bash_shapes() {
        let cases: &[(&str, &[&str])] = &[
            ("ps aux | sort -k3 | head -5", &["ps aux", "sort -k3", "head -5"]),
            ("a && b || c; d & e", &["a", "b", "c", "d", "e"]),
            ("! a | b > f 2>&1", &["a", "b"]),
            ("FOO=1 BAR=$(date) cmd x", &["date", "cmd x"]),
            ("echo $(ls `pwd`) \"$(id -u)\"", &["echo $(ls `pwd`) \"$(id -u)\"", "ls `pwd`", "pwd", "id -u"]),
            ("diff <(sort a) <(sort b)", &["diff <(sort a) <(sort b)", "sort a", "sort b"]),
            ("(cd x && ls) | { cat; tac; }", &["cd x", "ls", "cat", "tac"]),
            ("for f in *.txt; do wc -l \"$f\"; done", &["wc -l \"$f\""]),
            ("while read x; do echo $x; done < f", &["read x", "echo $x"]),
            ("if [ -f x ]; then rm x; else touch x; fi", &["[ -f x ]", "rm x", "touch x"]),
            ("case $x in a) ls;; *) pwd;; esac", &["ls", "pwd"]),
            ("f() { ls; }; f", &["ls", "f"]),
            ("sudo -u root -H rm -r /x", &["sudo -u root -H", "sudo>rm -r /x"]),
            (
                "sudo VAR=1 env -i A=b nice -n 5 ls -l",
                &["sudo VAR=1", "sudo>env -i A=b", "sudo>env>nice -n 5", "sudo>env>nice>ls -l"],
            ),
            ("find . -name '*.o' -exec rm -f {} \\; -print", &["find . -name '*.o' -exec \\; -print", "find>rm -f {}"]),
            ("find . -type f -exec grep -l x {} +", &["find . -type f -exec +", "find>grep -l x {}"]),
            ("ls | xargs -0 -n 1 -I {} mv {} d/", &["ls", "xargs -0 -n 1 -I {}", "xargs>mv {} d/"]),
            ("xargs -r -P4 rm", &["xargs -r -P4", "xargs>rm"]),
            ("bash -lc 'cd /x && rm -rf *'", &["bash -lc 'cd /x && rm -rf *'", "bash>cd /x", "bash>rm -rf *"]),
            ("eval 'ls -l | wc'", &["eval 'ls -l | wc'", "eval>ls -l", "eval>wc"]),
            ("eval \"$(ssh-agent -s)\"", &["eval \"$(ssh-agent -s)\"", "eval>$(ssh-agent -s)", "eval>ssh-agent -s"]),
            ("ssh -p 22 me@host 'rm -rf /x; ls'", &["ssh -p 22 me@host 'rm -rf /x; ls'", "ssh>rm -rf /x", "ssh>ls"]),
            ("ssh host df -h", &["ssh host df -h", "ssh>df -h"]),
            ("timeout -k 5 10s curl x", &["timeout -k 5 10s", "timeout>curl x"]),
            ("watch -n 1 'ls | wc -l'", &["watch -n 1 'ls | wc -l'", "watch>ls", "watch>wc -l"]),
            ("command -v git", &["command -v git"]),
            ("command ls -l", &["command", "command>ls -l"]),
            ("time ls", &["time", "time>ls"]),
            ("busybox wget x", &["busybox", "busybox>wget x"]),
            ("docker exec -it web sh -c 'ls /'", &["docker exec -it web", "docker>sh -c 'ls /'", "docker>sh>ls /"]),
            ("cat <<EOF | sh\nrm -rf /\nEOF\n", &["cat", "sh", "sh>rm -rf /"]),
            ("bash <<'X'\nls -l\nX\n", &["bash", "bash>ls -l"]),
            ("echo 'rm -rf /' | sudo bash", &["echo 'rm -rf /'", "sudo", "sudo>bash", "sudo>bash>rm -rf /"]),
            ("bash <<< 'ls -a'", &["bash", "bash>ls -a"]),
            ("r\\m -rf $'\\x2f' \"a\"'b'", &["r\\m -rf $'\\x2f' \"a\"'b'"]),
            ("export A=b; unset A", &["export A=b", "unset A"]),
            ("[[ -f x ]] && (( i++ ))", &[]),
            ("exec 3<>/dev/tcp/h/80", &["exec"]),
            ("ls -la # rm -rf /", &["ls -la"]),
            ("a=$(curl x); echo ${a:-$(ls)}", &["curl x", "echo ${a:-$(ls)}", "ls"]),
            ("git commit -m \"a && b\"", &["git commit -m \"a && b\""]),
        ];
        for (text, want) in cases {
            assert_eq!(clean(text, Dialect::Bash), *want, "{text}");
        }
    }

    #[test]
    fn zsh_has_no_false_errors() {
        for text in [
            "ls **/*.txt(.)",
            "print -l *(.om[1,3])",
            "echo ${(f)x}",
            "diff =(ls) =(ls -a)",
            "ls >! f",
            "rm -f *.log(N)",
        ] {
            clean(text, Dialect::Zsh);
        }
    }

    #[test]
    fn fish_shapes() {
        let cases: &[(&str, &[&str])] = &[
            ("ls | sort | head -5", &["ls", "sort", "head -5"]),
            ("a && b || c; and d; or e", &["a", "b", "c", "d", "e"]),
            ("set x (curl y); echo $x $(ls)", &["set x (curl y)", "curl y", "echo $x $(ls)", "ls"]),
            ("FOO=1 ls -l", &["ls -l"]),
            ("for f in *.txt; rm \"$f\"; end", &["rm \"$f\""]),
            ("if test -f a; ls; else; pwd; end", &["test -f a", "ls", "pwd"]),
            ("env A=b cmd | xargs rm -f", &["env A=b", "env>cmd", "xargs", "xargs>rm -f"]),
            ("find . -name '*.o' -exec rm {} \\;", &["find . -name '*.o' -exec \\;", "find>rm {}"]),
            ("not ls", &["ls"]),
            ("a 2>/dev/null &| b", &["a", "b"]),
            ("ls x[a]; cat ~/x?", &["ls x[a]", "cat ~/x?"]),
        ];
        for (text, want) in cases {
            assert_eq!(clean(text, Dialect::Fish), *want, "{text}");
        }
    }

    #[test]
    fn powershell_shapes() {
        let cases: &[(&str, &[&str])] = &[
            (
                "Get-Process | Sort-Object CPU -Descending | Select-Object -First 5",
                &["Get-Process", "Sort-Object CPU -Descending", "Select-Object -First 5"],
            ),
            (
                "ls | ? { $_.Length -gt 1MB } | % { rm $_ -Force }",
                &["ls", "? { $_.Length -gt 1MB }", "% { rm $_ -Force }", "%>rm $_ -Force"],
            ),
            ("iex (iwr http://x).Content", &["iex (iwr http://x).Content", "iex>iwr http://x"]),
            ("Get-ChildItem -Path:foo -Filter *.txt 2>$null", &["Get-ChildItem -Path:foo -Filter *.txt"]),
            ("foreach ($f in ls) { Remove-Item $f }", &["ls", "Remove-Item $f"]),
            ("$x = Get-Date; git log --since=1.day", &["Get-Date", "git log --since=1.day"]),
            (
                "powershell -NoProfile -Command \"rm -r x\"",
                &["powershell -NoProfile -Command \"rm -r x\"", "powershell>rm -r x"],
            ),
            ("a && b || c", &["a", "b", "c"]),
        ];
        for (text, want) in cases {
            assert_eq!(clean(text, Dialect::PowerShell), *want, "{text}");
        }
    }

    #[test]
    fn nested_stages_are_flattened() {
        type Row = (String, Option<(usize, usize)>, Vec<usize>);
        let of = |text: &str| -> Vec<Row> {
            let script = parse(text, Dialect::Bash);
            assert!(script.errors.is_empty(), "{text}");
            let summary =
                |c: &Invocation| (c.name().unwrap().to_owned(), c.pipe.map(|p| (p.index, p.length)), c.feeds.clone());
            script.commands.iter().map(summary).collect()
        };
        let row = |name: &str, pipe, feeds: &[usize]| (name.to_owned(), pipe, feeds.to_vec());
        let three = [row("a", Some((0, 3)), &[1]), row("b", Some((1, 3)), &[2]), row("c", Some((2, 3)), &[])];
        assert_eq!(of("a | b | c"), three);
        assert_eq!(of("a | b 2>&1 | c"), three);
        let [a, b, c] = three;
        assert_eq!(of("a | b | c && d"), [a.clone(), b.clone(), c.clone(), row("d", None, &[])]);
        let after = [row("d", Some((0, 2)), &[4]), row("e", Some((1, 2)), &[]), row("f", None, &[])];
        assert_eq!(of("a | b | c && d | e || f"), [&[a, b, c][..], &after].concat());
        let script = parse("a | b 2>x | c >y && d", Dialect::Bash);
        let redirected: Vec<usize> = script.commands.iter().map(|c| c.redirects.len()).collect();
        assert_eq!(redirected, [0, 1, 1, 0]);
    }

    #[test]
    fn pipes_and_redirects() {
        let script = parse("curl -s x 2>/dev/null | (cat; tee f) | sudo sh > out 2>&1", Dialect::Bash);
        let names: Vec<_> = script.commands.iter().map(|c| c.name().unwrap_or("?")).collect();
        assert_eq!(names, ["curl", "cat", "tee", "sudo", "sh"]);
        assert_eq!(script.commands[0].feeds, [1, 2]);
        assert_eq!(script.commands[2].feeds, [3, 4]);
        assert_eq!(script.commands[0].pipe.map(|p| (p.index, p.length)), Some((0, 3)));
        assert!(script.commands[4].stdin_pipe && !script.commands[4].stdout_pipe && script.commands[0].stdout_pipe);
        assert_eq!(script.commands[0].redirects[0].operator, "2>");
        let outs: Vec<_> = script.commands[3].redirects.iter().map(|r| (r.operator.as_str(), r.writes())).collect();
        assert_eq!(outs, [(">", true), ("2>&", false)]);
        assert_eq!(parse("{ a; b; } > f; > g", Dialect::Bash).redirects.len(), 2);
    }

    #[test]
    fn words_resolve() {
        let script = parse(r#"x 'a b' "c$d" e\ f *.txt ~/g {1,2} $'\t' "\$h" '*' {}"#, Dialect::Bash);
        let seen: Vec<_> = script.commands[0].args().iter().map(|w| (w.value.as_deref(), w.text.as_str())).collect();
        let want = [
            (Some("a b"), "a b"),
            (None, "c$d"),
            (Some("e f"), "e f"),
            (None, "*.txt"),
            (None, "~/g"),
            (None, "{1,2}"),
            (Some("\t"), "\t"),
            (Some("$h"), "$h"),
            (Some("*"), "*"),
            (Some("{}"), "{}"),
        ];
        assert_eq!(seen, want);
    }

    #[test]
    fn errors_are_spans() {
        for text in ["echo \"unclosed", "echo 'unclosed", "ls | ", "ls )", "if true; then ls", "$(ls", "a && && b"] {
            let script = parse(text, Dialect::Bash);
            assert!(!script.errors.is_empty(), "{text}");
            assert!(script.errors.iter().all(|e| e.end <= text.len()), "{text}: {:?}", script.errors);
        }
        assert!(!parse("echo \"x", Dialect::Fish).errors.is_empty());
        assert!(!parse("rm \"x", Dialect::PowerShell).errors.is_empty());
    }

    #[test]
    fn an_error_names_its_piece_and_an_operator_that_nothing_follows() {
        let of = |text: &str| {
            let script = parse(text, Dialect::Bash);
            let (piece, nothing_follows) = script.error_text(&script.errors[0]);
            (piece.to_owned(), nothing_follows)
        };
        for (text, operator) in [("ls |", "|"), ("ls | ", "|"), ("ls &&", "&&"), ("a | b ||", "||")] {
            assert_eq!(of(text), (operator.to_owned(), true), "{text}");
        }
        for text in ["echo 'unclosed", "echo 'unclosed |", "if true; then ls", "$(ls"] {
            let (piece, nothing_follows) = of(text);
            assert!(!piece.is_empty() && !nothing_follows, "{text}: {piece}");
        }
    }

    #[test]
    fn wrappers_without_a_command_are_commands_themselves() {
        let lines = [
            "sudo -u",
            "env -u",
            "xargs -I",
            "timeout -k",
            "env -S",
            "ssh -p",
            "docker exec -u",
            "su -c",
            "bash -c",
            "find . -exec",
            "flock",
            "nice -n",
            "trap ''",
            "eval",
            "watch",
            "parallel",
            "sudo -u root --",
        ];
        for text in lines {
            assert_eq!(parse(text, Dialect::Bash).commands.len(), 1, "{text}");
        }
    }

    #[test]
    fn too_deep_nesting_differs_from_a_syntax_error() {
        let nested = |open: &str, close: &str, n: usize| open.repeat(n) + "ls" + &close.repeat(n);
        for (open, close) in [("(", ")"), ("$(", ")"), ("{ ", "; }"), ("(", ""), ("echo $(", ")")] {
            assert!(parse(&nested(open, close, 3_000), Dialect::Bash).too_deep, "{open}");
            assert!(!parse(&nested(open, close, 5), Dialect::Bash).too_deep, "{open}");
        }
        assert!(parse(&("sudo ".repeat(100) + "ls"), Dialect::Bash).too_deep);
        for torn in ["echo \"unclosed", "ls | ", "ls )", &format!("echo '{}", "(".repeat(500))] {
            let script = parse(torn, Dialect::Bash);
            assert!(!script.errors.is_empty() && !script.too_deep, "{torn}");
        }
    }

    #[test]
    fn huge_and_deep_inputs_terminate() {
        let texts = [
            "a && ".repeat(18_000) + "b",
            "a | ".repeat(10_000) + "b",
            "(".repeat(20_000),
            "$(".repeat(10_000) + &")".repeat(10_000),
            "sh -c \"".repeat(2_000),
            "sudo ".repeat(1_000) + "ls",
            "\"".repeat(99_999),
            "{a,".repeat(10_000),
            "`".repeat(50_001),
            "<<".repeat(3_000),
            "((".to_owned() + &"(1#".repeat(30_000),
            "\u{fffd}é漢".repeat(10_000),
        ];
        for text in &texts {
            for dialect in [Dialect::Bash, Dialect::Fish, Dialect::PowerShell] {
                let name = dialect.name();
                let start = std::time::Instant::now();
                let script = parse(text, dialect);
                assert!(start.elapsed().as_secs() < 20, "{name}: {:.20} took {:?}", text, start.elapsed());
                assert!(script.errors.iter().all(|e| e.end <= text.len()));
                let _ = extract_commands(&script);
            }
        }
        assert_eq!(parse(&"x".repeat(300_000), Dialect::Bash).errors, vec![0..300_000; 1]);
    }
}

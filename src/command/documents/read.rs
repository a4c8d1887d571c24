//! The commands of a passage, with the words that say what they do. Works on any piece of a text, line by line: a passage
//! may begin and end anywhere.
//!
//! A command is: what stands in a fence, or indented, below a line of words; a line that is nothing but `` `code` `` below one (the
//! form of tldr pages); the one piece of code in a line of words, a list's item or a table's row. In a fence each `# comment` says what
//! follows it does; where lines begin with `$ `, only they are commands. A few commands in a row are one, joined by `&&`.

use super::super::library;
use caro_intent::courtesy;

/// The most commands in a row that are one.
const IN_A_ROW: usize = 3;
/// The most bytes of a command, and of what is said of it.
const LONGEST: usize = 240;
/// What fences of commands are called, if anything.
const SHELLS: [&str; 12] =
    ["", "bash", "console", "fish", "powershell", "ps1", "pwsh", "sh", "shell", "shell-session", "terminal", "zsh"];

/// A command, and the words that may say what it does.
#[derive(Debug, PartialEq, Eq)]
pub struct Pair {
    /// Lines of the passage before its own.
    pub line: usize,
    /// Each says it.
    pub said: Vec<String>,
    /// On one line.
    pub command: String,
}

/// Every command of a passage. The last heading of its `title` says it too, where it is the only one.
pub fn pairs(text: &str, title: &str) -> Vec<Pair> {
    let mut reader = Reader::default();
    for (at, line) in text.lines().enumerate() {
        reader.line(at, line);
    }
    reader.end_block();
    let mut pairs = reader.pairs;
    let heading = words(title.rsplit(" > ").next().unwrap_or_default());
    let alone = pairs.len() == 1;
    for pair in &mut pairs {
        let with = pair.said.first().filter(|said| **said != heading).map(|said| format!("{heading} {said}"));
        // a heading of one word, as in tldr pages, is a program's name and says nothing
        if heading.contains(' ') {
            pair.said.extend(with);
            if alone && !pair.said.contains(&heading) {
                pair.said.push(heading.clone());
            }
        }
    }
    pairs.retain(|pair| !pair.said.is_empty());
    pairs
}

#[derive(Default)]
struct Reader {
    pairs: Vec<Pair>,
    /// The latest line of words.
    said: String,
    /// True behind an empty line: code that is only indented does not follow words at once.
    after_blank: bool,
    block: Option<Block>,
}

/// Lines of code.
struct Block {
    /// What closes it; nothing for indented lines.
    fence: String,
    is_shell: bool,
    lines: Vec<(usize, String)>,
}

impl Reader {
    fn line(&mut self, at: usize, line: &str) {
        let bare = line.trim();
        let after_blank = std::mem::replace(&mut self.after_blank, bare.is_empty());
        if let Some(block) = &mut self.block {
            let ends = match block.fence.as_str() {
                "" => !bare.is_empty() && !is_indented(line),
                fence => bare.starts_with(fence) && bare.trim_matches(['`', '~']).is_empty(),
            };
            if !ends {
                block.lines.push((at, bare.to_owned()));
                return;
            }
            let was_fenced = !block.fence.is_empty();
            self.end_block();
            if was_fenced {
                return;
            }
        }
        let fence: String = bare.chars().take_while(|c| matches!(c, '`' | '~')).collect();
        if fence.len() >= 3 && !bare[fence.len()..].contains('`') {
            let language = bare[fence.len()..].split([' ', '{', ',']).next().unwrap_or_default().to_lowercase();
            let is_shell = SHELLS.contains(&language.as_str());
            self.block = Some(Block { fence, is_shell, lines: Vec::new() });
        } else if after_blank
            && is_indented(line)
            && !bare.starts_with(['-', '*', '+', '|', '>'])
            && !self.said.is_empty()
        {
            self.block = Some(Block { fence: String::new(), is_shell: true, lines: vec![(at, bare.to_owned())] });
        } else if !bare.is_empty() {
            self.prose(at, bare);
        }
    }

    /// A line that is none of a block.
    fn prose(&mut self, at: usize, line: &str) {
        let pieces: Vec<&str> = line.split('`').collect();
        let [before, code, after] = pieces[..] else {
            self.said = words(line);
            return;
        };
        let around = words(&format!("{before} {after}"));
        let said = if around.is_empty() { std::mem::take(&mut self.said) } else { around };
        // one word in the middle of a sentence is a name and no command
        let at_an_end = after.trim().is_empty() || words(before).is_empty();
        if code.contains(' ') || at_an_end {
            self.push(at, code, &said);
        }
    }

    fn end_block(&mut self) {
        let Some(Block { is_shell: true, lines, .. }) = self.block.take() else { return };
        let lines = joined(lines);
        let prompted = lines.iter().any(|(_, line)| line.starts_with("$ "));
        let mut said = std::mem::take(&mut self.said);
        let mut row: Vec<(usize, String)> = Vec::new();
        let mut commands = 0;
        for (at, line) in lines {
            let line = if prompted {
                let Some(line) = line.strip_prefix("$ ") else { continue };
                line.trim()
            } else {
                line.as_str()
            };
            if let Some(comment) = line.strip_prefix('#') {
                self.end_row(&mut row, &said);
                said = words(comment);
            } else if line.is_empty() {
                // what a comment says ends here; what stands before the block holds for all of it
                if commands > 0 {
                    self.end_row(&mut row, &said);
                }
            } else {
                commands += 1;
                row.push((at, line.to_owned()));
            }
        }
        self.end_row(&mut row, &said);
    }

    fn end_row(&mut self, row: &mut Vec<(usize, String)>, said: &str) {
        let row = std::mem::take(row);
        if (1..=IN_A_ROW).contains(&row.len()) {
            let command = row.iter().map(|(_, line)| line.as_str()).collect::<Vec<_>>().join(" && ");
            self.push(row[0].0, &command, said);
        }
    }

    fn push(&mut self, line: usize, command: &str, said: &str) {
        let command = filled(command.trim());
        let is_one = !command.is_empty() && !command.starts_with(['-', '<', '#']) && !command.contains('\n');
        if is_one && command.len() <= LONGEST && said.len() <= LONGEST {
            let said = if said.is_empty() { Vec::new() } else { vec![said.to_owned()] };
            self.pairs.push(Pair { line, said, command });
        }
    }
}

fn is_indented(line: &str) -> bool {
    line.starts_with("    ") || line.starts_with('\t')
}

/// Lines that go on behind a backslash as one.
fn joined(lines: Vec<(usize, String)>) -> Vec<(usize, String)> {
    let mut whole: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (at, line) in lines {
        let (text, more) = match line.strip_suffix('\\') {
            Some(text) => (text.trim_end().to_owned(), true),
            None => (line, false),
        };
        match whole.last_mut().filter(|_| goes_on) {
            Some((_, last)) => *last = format!("{last} {text}"),
            None => whole.push((at, text)),
        }
        goes_on = more;
    }
    whole
}

/// The words of a line: without the marks of lists, headings, tables and emphasis, and without the brackets with which a tldr
/// page shows a letter's meaning (`E[x]tract`). Empty if none says anything.
fn words(line: &str) -> String {
    let line = line.trim().trim_start_matches(['#', '-', '*', '+', '>', '|', ' ']);
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let line = line[digits..].strip_prefix(['.', ')']).filter(|_| digits > 0).unwrap_or(line);
    let kept: String = line.chars().filter(|c| !matches!(c, '[' | ']' | '*' | '|')).collect();
    let kept = kept.split_whitespace().collect::<Vec<_>>().join(" ");
    let kept = kept.trim_matches(|c: char| matches!(c, ':' | '.' | '-' | '–' | '—' | ' ')).to_owned();
    let order = courtesy::without(&kept);
    if library::says_something(order) { order.to_owned() } else { String::new() }
}

/// A command whose placeholders stand for themselves: `{{path/to/file}}` and `<file>` without their marks, of
/// `{{[-x|--extract]}}` the first.
fn filled(command: &str) -> String {
    let (mut text, mut rest) = (String::with_capacity(command.len()), command);
    while let Some((before, inside, after)) = placeholder(rest) {
        text.push_str(before);
        let choice = inside.strip_prefix('[').and_then(|list| list.strip_suffix(']')).unwrap_or(inside);
        text.push_str(if choice.len() < inside.len() { choice.split('|').next().unwrap_or(choice) } else { choice });
        rest = after;
    }
    text.push_str(rest);
    text
}

/// The first placeholder, with what stands before and behind it.
fn placeholder(text: &str) -> Option<(&str, &str, &str)> {
    for (at, c) in text.char_indices() {
        let rest = &text[at..];
        if let Some(inside) = rest.strip_prefix("{{")
            && let Some(end) = inside.find("}}")
        {
            return Some((&text[..at], &inside[..end], &inside[end + 2..]));
        }
        // `<file>`, and no redirection: a name, closed at once
        if c == '<'
            && let Some((inside, after)) = rest[1..].split_once('>')
            && inside.starts_with(|c: char| c.is_ascii_alphabetic())
            && inside.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
        {
            return Some((&text[..at], inside, after));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<(String, String)> {
        pairs(text, "").into_iter().map(|p| (p.said.join(" / "), p.command)).collect()
    }

    fn expect(text: &str, wanted: &[(&str, &str)]) {
        let found = of(text);
        let found: Vec<(&str, &str)> = found.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(found, wanted, "{text}");
    }

    #[test]
    fn every_way_to_write_a_command_down_is_read() {
        let wanted = [("restart the worker", "systemctl restart worker")];
        for text in [
            "restart the worker:\n\n```sh\nsystemctl restart worker\n```\n",
            "restart the worker:\n\n    systemctl restart worker\n",
            "restart the worker:\n```console\n$ systemctl restart worker\nok\n```",
            "- restart the worker:\n\n`systemctl restart worker`\n",
            "- **restart the worker**: `systemctl restart worker`",
            "3. restart the worker - `systemctl restart worker`",
            "`systemctl restart worker` – restart the worker",
            "| restart the worker | `systemctl restart worker` |",
            "```\n# restart the worker\nsystemctl \\\n  restart worker\n```",
            // cut off before its end
            "restart the worker:\n\n```sh\nsystemctl restart worker",
        ] {
            expect(text, &wanted);
        }
    }

    #[test]
    fn a_block_has_what_its_comments_say() {
        expect(
            "Deploy:\n```bash\n# build the site\ncd site\nmake\n\n# copy it over\nrsync -a out/ box:www/\n```\n",
            &[("build the site", "cd site && make"), ("copy it over", "rsync -a out/ box:www/")],
        );
        // too much for one line, and what is no shell's
        expect("Set it all up:\n```\na 1\nb 2\nc 3\nd 4\n```\n", &[]);
        expect("Say hello:\n```python\nprint('hello')\n```\nGo on here.", &[]);
    }

    #[test]
    fn what_is_no_command_stays_out() {
        for text in [
            "the `config` file of the worker",
            "pass `--force` to it",
            "two `a b` and `c d`",
            "- restart it:\n    wait a while",
            "only words",
            "`",
            "",
            "```",
        ] {
            expect(text, &[]);
        }
        expect("show who is there: `w`", &[("show who is there", "w")]);
    }

    #[test]
    fn a_heading_says_it_where_there_is_one_command() {
        let said = |text: &str, title: &str| pairs(text, title).into_iter().map(|p| p.said).collect::<Vec<_>>();
        let text = "## Renew the certificate\n\nEvery 90 days:\n\n    certbot renew\n";
        let wanted = ["Every 90 days", "Renew the certificate Every 90 days", "Renew the certificate"];
        assert_eq!(said(text, "Box > Renew the certificate"), [wanted]);
        assert_eq!(said("## Renew it\n\n    certbot renew\n", "Box > Renew it"), [["Renew it"]]);
        assert_eq!(said("```\ncertbot renew\n```", "Renew the certificate"), [["Renew the certificate"]]);
        assert_eq!(said("```\na b\n```\n```\nc d\n```", "Renew the certificate").len(), 0, "which of them?");
        assert_eq!(said("- E[x]tract a file:\n\n`tar xf {{path/to/a.tar}}`", "tar"), [["Extract a file"]]);
    }

    #[test]
    fn placeholders_stand_for_themselves() {
        for (written, command) in [
            ("tar {{[-x|--extract]}} -f {{path/to/a.tar[.gz|.bz2]}}", "tar -x -f path/to/a.tar[.gz|.bz2]"),
            ("git switch <branch-name>", "git switch branch-name"),
            ("sort <in >out", "sort <in >out"),
            ("wc -l < {{file}} > {{out}}", "wc -l < file > out"),
            ("echo {{", "echo {{"),
            ("é <é> {{ü}}", "é <é> ü"),
        ] {
            assert_eq!(filled(written), command);
        }
    }
}

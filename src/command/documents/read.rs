//! Extracts the commands of a passage, with the words that describe them. Works line by line, as a passage may begin
//! and end anywhere in a document.
//!
//! A command is: the code in a fence, or indented, below a line of words; a line that is nothing but `` `code` ``
//! below one (the form of tldr pages); the only piece of code in a line of words, a list item or a table row. In a
//! fence each `# comment` describes the lines after it; if lines begin with `$ `, only those are commands. Up to
//! three commands in a row become one, joined by `&&`.

use super::super::library;
use caro_intent::courtesy;

/// Most commands in a row that are joined to one.
const MAX_JOINED: usize = 3;
/// Most bytes of a command, and of its description.
const MAX_BYTES: usize = 240;
/// Language tags of fences that contain commands.
const SHELLS: [&str; 12] =
    ["", "bash", "console", "fish", "powershell", "ps1", "pwsh", "sh", "shell", "shell-session", "terminal", "zsh"];

/// A command with its descriptions.
#[derive(Debug, PartialEq, Eq)]
pub struct Pair {
    /// The line of the command in the passage, from 0.
    pub line: usize,
    /// Alternative descriptions of the command.
    pub descriptions: Vec<String>,
    /// The command on one line.
    pub command: String,
}

/// Returns every command of a passage. The last heading of its `title` is a further description, alone if there is
/// only one command, and joined with the command's own.
pub fn pairs(text: &str, title: &str) -> Vec<Pair> {
    let mut reader = Reader::default();
    for (at, line) in text.lines().enumerate() {
        reader.line(at, line);
    }
    reader.end_block();
    let mut pairs = reader.pairs;
    let heading = plain_words(title.rsplit(" > ").next().unwrap_or_default());
    let is_only = pairs.len() == 1;
    for pair in &mut pairs {
        let own = pair.descriptions.first().filter(|own| **own != heading);
        let joined = own.map(|own| format!("{heading} {own}"));
        // a heading of one word, as in tldr pages, is a program's name and describes nothing
        if heading.contains(' ') {
            pair.descriptions.extend(joined);
            if is_only && !pair.descriptions.contains(&heading) {
                pair.descriptions.push(heading.clone());
            }
        }
    }
    pairs.retain(|pair| !pair.descriptions.is_empty());
    pairs
}

#[derive(Default)]
struct Reader {
    pairs: Vec<Pair>,
    /// The latest line of words.
    description: String,
    /// True after an empty line, as indented code must not follow words directly.
    after_blank: bool,
    block: Option<Block>,
}

/// A block of code.
struct Block {
    /// The fence that closes it; empty for indented code.
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
            && !self.description.is_empty()
        {
            self.block = Some(Block { fence: String::new(), is_shell: true, lines: vec![(at, bare.to_owned())] });
        } else if !bare.is_empty() {
            self.prose(at, bare);
        }
    }

    /// Reads a line outside of a block.
    fn prose(&mut self, at: usize, line: &str) {
        let pieces: Vec<&str> = line.split('`').collect();
        let [before, code, after] = pieces[..] else {
            self.description = plain_words(line);
            return;
        };
        let around = plain_words(&format!("{before} {after}"));
        let description = if around.is_empty() { std::mem::take(&mut self.description) } else { around };
        // a single word in the middle of a sentence is a name and no command
        let at_an_end = after.trim().is_empty() || plain_words(before).is_empty();
        if code.contains(' ') || at_an_end {
            self.push(at, code, &description);
        }
    }

    fn end_block(&mut self) {
        let Some(Block { is_shell: true, lines, .. }) = self.block.take() else { return };
        let lines = join_continued(lines);
        let prompted = lines.iter().any(|(_, line)| line.starts_with("$ "));
        let mut description = std::mem::take(&mut self.description);
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
                self.end_row(&mut row, &description);
                description = plain_words(comment);
            } else if line.is_empty() {
                // an empty line ends a row of commands
                if commands > 0 {
                    self.end_row(&mut row, &description);
                }
            } else {
                commands += 1;
                row.push((at, line.to_owned()));
            }
        }
        self.end_row(&mut row, &description);
    }

    fn end_row(&mut self, row: &mut Vec<(usize, String)>, description: &str) {
        let row = std::mem::take(row);
        if (1..=MAX_JOINED).contains(&row.len()) {
            let command = row.iter().map(|(_, line)| line.as_str()).collect::<Vec<_>>().join(" && ");
            self.push(row[0].0, &command, description);
        }
    }

    fn push(&mut self, line: usize, command: &str, description: &str) {
        let command = fill_placeholders(command.trim());
        let is_command = !command.is_empty() && !command.starts_with(['-', '<', '#']) && !command.contains('\n');
        if is_command && command.len() <= MAX_BYTES && description.len() <= MAX_BYTES {
            let descriptions = if description.is_empty() { Vec::new() } else { vec![description.to_owned()] };
            self.pairs.push(Pair { line, descriptions, command });
        }
    }
}

fn is_indented(line: &str) -> bool {
    line.starts_with("    ") || line.starts_with('\t')
}

/// Joins lines that are continued by a backslash.
fn join_continued(lines: Vec<(usize, String)>) -> Vec<(usize, String)> {
    let mut whole: Vec<(usize, String)> = Vec::new();
    let mut is_continued = false;
    for (at, line) in lines {
        let (text, more) = match line.strip_suffix('\\') {
            Some(text) => (text.trim_end().to_owned(), true),
            None => (line, false),
        };
        match whole.last_mut() {
            Some((_, last)) if is_continued => *last = format!("{last} {text}"),
            _ => whole.push((at, text)),
        }
        is_continued = more;
    }
    whole
}

/// Returns the words of a line, without the marks of lists, headings, tables and emphasis, the brackets of tldr pages
/// around the letter of an option (`E[x]tract`), and polite phrases. Empty if there are no words to compare.
fn plain_words(line: &str) -> String {
    let line = line.trim().trim_start_matches(['#', '-', '*', '+', '>', '|', ' ']);
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let item = if digits > 0 { line[digits..].strip_prefix(['.', ')']) } else { None };
    let text: String = item.unwrap_or(line).chars().filter(|c| !matches!(c, '[' | ']' | '*' | '|')).collect();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = text.trim_matches(|c: char| matches!(c, ':' | '.' | '-' | '–' | '—' | ' ')).to_owned();
    let order = courtesy::without(&text);
    if library::has_words(order) { order.to_owned() } else { String::new() }
}

/// Replaces placeholders by their text: `{{path/to/file}}` and `<file>` lose their marks, `{{[-x|--extract]}}`
/// becomes its first alternative.
fn fill_placeholders(command: &str) -> String {
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

/// Returns the text before the first placeholder, its content, and the text after it.
fn placeholder(text: &str) -> Option<(&str, &str, &str)> {
    for (at, c) in text.char_indices() {
        let rest = &text[at..];
        if let Some(inside) = rest.strip_prefix("{{")
            && let Some(end) = inside.find("}}")
        {
            return Some((&text[..at], &inside[..end], &inside[end + 2..]));
        }
        // `<file>` is a name between angle brackets, not a redirection
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
        pairs(text, "").into_iter().map(|p| (p.descriptions.join(" / "), p.command)).collect()
    }

    fn expect(text: &str, wanted: &[(&str, &str)]) {
        let found = of(text);
        let found: Vec<(&str, &str)> = found.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(found, wanted, "{text}");
    }

    #[test]
    fn every_form_of_a_command_is_read() {
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
    fn comments_in_a_block_describe_the_commands_after_them() {
        expect(
            "Deploy:\n```bash\n# build the site\ncd site\nmake\n\n# copy it over\nrsync -a out/ box:www/\n```\n",
            &[("build the site", "cd site && make"), ("copy it over", "rsync -a out/ box:www/")],
        );
        // too many commands for one line, and another language than shell
        expect("Set it all up:\n```\na 1\nb 2\nc 3\nd 4\n```\n", &[]);
        expect("Say hello:\n```python\nprint('hello')\n```\nGo on here.", &[]);
    }

    #[test]
    fn other_code_is_no_command() {
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
    fn a_heading_describes_a_single_command() {
        let descriptions = |text: &str, title: &str| -> Vec<Vec<String>> {
            pairs(text, title).into_iter().map(|p| p.descriptions).collect()
        };
        let text = "## Renew the certificate\n\nEvery 90 days:\n\n    certbot renew\n";
        let wanted = ["Every 90 days", "Renew the certificate Every 90 days", "Renew the certificate"];
        assert_eq!(descriptions(text, "Box > Renew the certificate"), [wanted]);
        assert_eq!(descriptions("## Renew it\n\n    certbot renew\n", "Box > Renew it"), [["Renew it"]]);
        assert_eq!(descriptions("```\ncertbot renew\n```", "Renew the certificate"), [["Renew the certificate"]]);
        assert_eq!(descriptions("```\na b\n```\n```\nc d\n```", "Renew the certificate").len(), 0, "which of them?");
        assert_eq!(descriptions("- E[x]tract a file:\n\n`tar xf {{path/to/a.tar}}`", "tar"), [["Extract a file"]]);
    }

    #[test]
    fn placeholders_become_their_text() {
        for (written, command) in [
            ("tar {{[-x|--extract]}} -f {{path/to/a.tar[.gz|.bz2]}}", "tar -x -f path/to/a.tar[.gz|.bz2]"),
            ("git switch <branch-name>", "git switch branch-name"),
            ("sort <in >out", "sort <in >out"),
            ("wc -l < {{file}} > {{out}}", "wc -l < file > out"),
            ("echo {{", "echo {{"),
            ("é <é> {{ü}}", "é <é> ü"),
        ] {
            assert_eq!(fill_placeholders(written), command);
        }
    }
}

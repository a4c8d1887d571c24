//! HTML as markdown. Only the tags are looked at, one after the other: no tree is built, so that however they are nested
//! each byte is looked at once.

use super::super::format::{Page, heading};
use html5gum::{DefaultEmitter, Token, Tokenizer};

/// Elements that no person reads, or that only lead elsewhere: their text is left out.
const SILENT: [&str; 12] = [
    "script", "style", "noscript", "template", "svg", "math", "iframe", "object", "nav", "button", "select", "textarea",
];
/// Elements that begin a block of their own.
const BLOCKS: [&str; 27] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "caption",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "header",
    "hr",
    "main",
    "ol",
    "p",
    "section",
    "summary",
    "table",
    "tr",
    "ul",
    "center",
];

/// Its text as markdown.
pub(super) fn markdown(text: &str) -> String {
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    let mut reading = Reading::default();
    for Ok(token) in Tokenizer::new_with_emitter(text, emitter) {
        match token {
            Token::StartTag(tag) => {
                let name = String::from_utf8_lossy(&tag.name);
                // in HTML no other tag is its own end
                let is_foreign = matches!(&*name, "svg" | "math");
                reading.begin(&name, tag.self_closing && is_foreign);
            }
            Token::EndTag(tag) => reading.end(&String::from_utf8_lossy(&tag.name)),
            Token::String(words) => reading.say(&String::from_utf8_lossy(&words)),
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
    }
    reading.page.end()
}

#[derive(Default)]
struct Reading {
    page: Page,
    /// The silent element that is open, and how many of its name in each other.
    silent: Option<(String, usize)>,
    /// True between `<pre>` and its end.
    as_it_is: bool,
}

impl Reading {
    fn say(&mut self, words: &str) {
        match (&self.silent, self.as_it_is) {
            (Some(_), _) => {}
            (None, true) => self.page.say_as_it_is(words),
            (None, false) => self.page.say(words),
        }
    }

    fn begin(&mut self, name: &str, closes: bool) {
        match &mut self.silent {
            Some((open, depth)) if open == name && !closes => *depth += 1,
            Some(_) => {}
            None if SILENT.contains(&name) && !closes => self.silent = Some((name.to_owned(), 1)),
            None => self.open(name),
        }
    }

    fn open(&mut self, name: &str) {
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.page.begin(&heading(level(name))),
            // the title is the heading of a page that has none of its own
            "title" => self.page.begin(&heading(1)),
            "li" => self.page.begin("- "),
            "pre" => {
                self.page.begin("");
                self.as_it_is = true;
            }
            "br" if self.as_it_is => self.page.say_as_it_is("\n"),
            "br" => self.page.say(" "),
            name if BLOCKS.contains(&name) => self.page.begin(""),
            _ => {}
        }
    }

    fn end(&mut self, name: &str) {
        if let Some((open, depth)) = &mut self.silent {
            if open == name {
                *depth -= 1;
                if *depth == 0 {
                    self.silent = None;
                }
            }
            return;
        }
        match name {
            "pre" => {
                self.as_it_is = false;
                self.page.begin("");
            }
            "td" | "th" => self.page.say(" | "),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "title" | "li" => self.page.begin(""),
            name if BLOCKS.contains(&name) => self.page.begin(""),
            _ => {}
        }
    }
}

fn level(name: &str) -> usize {
    name[1..].parse().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_lists_tables_and_code_are_kept_and_what_steers_is_not() {
        let page = "<!doctype html><html><head><title>Hut &amp; key</title><style>p { color: red }</style>
            <script>if (a < b) { document.write('<p>no</p>') }</script></head><body><nav><a href=x>Home</a></nav>
            <h1>The hut</h1><p>The key is <b>under</b>\n the  stone&nbsp;&#33;<br>Always.</p>
            <ul><li>bread<li>salt</ul><table><tr><th>day</th><th>who</th></tr><tr><td>1</td><td>Ada</td></tr></table>
            <pre>for x in a:\n    print(x)</pre><!-- not this --><h2>Way</h2>left</body></html>";
        assert_eq!(
            markdown(page),
            "# Hut & key\n\n# The hut\n\nThe key is under the stone ! Always.\n\n- bread\n- salt\n\nday | who |\n\n1 | Ada |\n\n\
             for x in a:\n    print(x)\n\n## Way\n\nleft\n"
        );
    }

    #[test]
    fn whatever_it_is_it_is_read_once_and_ends() {
        for text in
            ["", "<", "<p", "</p></p>", "<script>", "<svg><svg></svg>x</svg>y", "&", "&#x110000;", "<pre>", "\0\u{1}"]
        {
            let _ = markdown(text);
        }
        assert_eq!(markdown("<svg><svg></svg>x</svg>y"), "y\n");
        assert_eq!(markdown("<script/>x</script>y<svg/>z"), "yz\n");
        let deep = "<div>".repeat(200_000) + "bottom";
        assert_eq!(markdown(&deep), "bottom\n");
        let long = format!("<p {}>x", "a=1 ".repeat(100_000));
        assert_eq!(markdown(&long), "x\n");
    }
}

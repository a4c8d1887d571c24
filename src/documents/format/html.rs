//! Converts HTML to markdown. Reads only the sequence of tags and builds no tree, so that nested tags cost no extra
//! time.

use super::super::format::{Page, heading};
use html5gum::{DefaultEmitter, Token, Tokenizer};

/// Elements whose text is left out, as it is not content or only navigation.
const SKIPPED: [&str; 12] = [
    "script", "style", "noscript", "template", "svg", "math", "iframe", "object", "nav", "button", "select", "textarea",
];
/// Elements that begin a block.
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

/// Converts a page to markdown.
pub(super) fn markdown(text: &str) -> String {
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    let mut converter = Converter::default();
    for Ok(token) in Tokenizer::new_with_emitter(text, emitter) {
        match token {
            Token::StartTag(tag) => {
                let name = String::from_utf8_lossy(&tag.name);
                // in HTML itself, no other tag is self-closing
                let is_foreign = matches!(&*name, "svg" | "math");
                converter.begin(&name, tag.self_closing && is_foreign);
            }
            Token::EndTag(tag) => converter.end(&String::from_utf8_lossy(&tag.name)),
            Token::String(words) => converter.push(&String::from_utf8_lossy(&words)),
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
    }
    converter.page.end()
}

#[derive(Default)]
struct Converter {
    page: Page,
    /// The open element that is left out, and the nesting depth of its name.
    skipped: Option<(String, usize)>,
    /// True inside of `<pre>`.
    preformatted: bool,
}

impl Converter {
    fn push(&mut self, words: &str) {
        match (&self.skipped, self.preformatted) {
            (Some(_), _) => {}
            (None, true) => self.page.push_raw(words),
            (None, false) => self.page.push(words),
        }
    }

    fn begin(&mut self, name: &str, closes: bool) {
        match &mut self.skipped {
            Some((open, depth)) if open == name && !closes => *depth += 1,
            Some(_) => {}
            None if SKIPPED.contains(&name) && !closes => self.skipped = Some((name.to_owned(), 1)),
            None => self.open(name),
        }
    }

    fn open(&mut self, name: &str) {
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.page.begin(&heading(level(name))),
            // the title is the heading of a page without one
            "title" => self.page.begin(&heading(1)),
            "li" => self.page.begin("- "),
            "pre" => {
                self.page.begin("");
                self.preformatted = true;
            }
            "br" if self.preformatted => self.page.push_raw("\n"),
            "br" => self.page.push(" "),
            name if BLOCKS.contains(&name) => self.page.begin(""),
            _ => {}
        }
    }

    fn end(&mut self, name: &str) {
        if let Some((open, depth)) = &mut self.skipped {
            if open == name {
                *depth -= 1;
                if *depth == 0 {
                    self.skipped = None;
                }
            }
            return;
        }
        match name {
            "pre" => {
                self.preformatted = false;
                self.page.begin("");
            }
            "td" | "th" => self.page.push(" | "),
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
    fn content_is_converted_and_navigation_is_left_out() {
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
    fn any_input_terminates() {
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

//! Evaluates a row of the table for one parsed command.

use super::kind::Kind;
use super::parsed_args::ParsedArgs;
use super::row::{Opt, Program};
use crate::embedded::pure::{self, ScriptLanguage};
use crate::parse::{Invocation, Redirect, Script, Word};
use crate::pattern::Whole;
use crate::safety::stdin_texts;
use crate::unwrap::is_code;

impl Opt {
    /// True if the command has everything that this entry requires.
    fn applies(&self, read: &ParsedArgs<'_>) -> bool {
        let valued =
            |test: &dyn Fn(&str) -> bool| read.values.iter().any(|v| self.has.contains(&v.of) && test(v.text()));
        (self.has.is_empty() || read.has_any(&self.has))
            && (self.with.is_empty() || read.has_any(&self.with))
            && !read.has_any(&self.lacks)
            && self.word.as_ref().is_none_or(|p| read.line.split(' ').any(|w| p.fits(w)))
            && self.operand.as_ref().is_none_or(|p| read.operands.iter().any(|o| p.fits(o.text())))
            && self.line.as_ref().is_none_or(|p| p.fits(&read.line))
            && self.value_is.as_ref().is_none_or(|p| valued(&|v| p.fits(v)))
            && self.value_is_not.as_ref().is_none_or(|p| valued(&|v| !p.fits(v)))
    }
}

impl Program {
    /// Returns the effect on the value of an option.
    pub fn value_of(&self, option: &str, read: &ParsedArgs<'_>) -> Option<Kind> {
        let named = |o: &&Opt| o.has.iter().any(|h| h == option);
        self.option.iter().filter(named).filter(|o| o.applies(read)).find_map(|o| o.value)
    }

    /// True if this call of the program only shows something.
    pub fn only_shows(&self, read: &ParsedArgs<'_>) -> bool {
        self.shows.iter().any(|shape| shape.fits(&read.line))
    }

    /// Returns the effects of the program besides those on its operands.
    pub fn does(&self, read: &ParsedArgs<'_>) -> Vec<Kind> {
        let applying = || self.option.iter().filter(|o| o.applies(read));
        let mut kinds = match applying().find_map(|o| o.does.clone()) {
            _ if self.only_shows(read) => Vec::new(),
            _ if self.asks.iter().any(|shape| shape.fits(&read.line)) => vec![Kind::Fetch],
            _ if self.gets.iter().any(|shape| shape.fits(&read.line)) => vec![Kind::Fetch, Kind::Create],
            _ if self.by_form(read).is_some() => self.by_form(read).into_iter().collect(),
            Some(kinds) => kinds,
            None => self.by_verb(read).unwrap_or(&self.does).to_vec(),
        };
        kinds.extend(self.adds(read));
        kinds
    }

    /// True if what it prints or saves is a text from another machine, as it is there.
    pub fn relays(&self, read: &ParsedArgs<'_>) -> bool {
        match &self.relays {
            Some(shapes) => shapes.iter().any(|shape| shape.fits(&read.line)),
            None => {
                let only_asks = self.asks.iter().any(|shape| shape.fits(&read.line));
                !only_asks && self.does(read).into_iter().any(Kind::is_network)
            }
        }
    }

    /// True if what it is given leaves for another machine. A program that stays on this one does not send by asking
    /// or getting something.
    pub fn sends(&self, read: &ParsedArgs<'_>) -> bool {
        let only_gets = || self.asks.iter().chain(&self.gets).any(|shape| shape.fits(&read.line));
        !self.keeps_secrets
            && self.does(read).into_iter().any(Kind::is_network)
            && (self.does.iter().copied().chain(self.adds(read)).any(Kind::is_network) || !only_gets())
    }

    /// Returns the effects that its options and operands add, whatever else it does.
    pub fn adds(&self, read: &ParsedArgs<'_>) -> Vec<Kind> {
        self.option.iter().filter(|o| o.applies(read)).flat_map(|o| o.also.iter().copied()).collect()
    }

    /// Returns the command lines in the values of its options and in its operands, with the words that contain them.
    pub fn command_lines<'c>(&self, read: &ParsedArgs<'c>) -> Vec<(&'c Word, String)> {
        let values = read.values.iter().filter(|v| self.commands.contains(&v.of));
        let mut found: Vec<(&Word, String)> = values.map(|v| (v.word, v.text().to_owned())).collect();
        for entry in self.option.iter().filter(|o| o.applies(read)) {
            let Some(shape) = &entry.command else { continue };
            let line = |text: &str| shape.group(text).map(str::to_owned);
            if entry.has.is_empty() {
                found.extend(read.operands.iter().filter_map(|o| Some((o.word, line(o.text())?))));
            } else {
                let own = read.values.iter().filter(|v| entry.has.contains(&v.of));
                found.extend(own.filter_map(|v| Some((v.word, line(v.text())?))));
            }
        }
        found
    }

    /// True if a word of it may contain a command line.
    pub fn takes_commands(&self) -> bool {
        !self.commands.is_empty() || self.language.is_some() || self.option.iter().any(|o| o.command.is_some())
    }

    /// Returns the effect of a call that matches a form in which nothing is lost.
    fn by_form(&self, read: &ParsedArgs<'_>) -> Option<Kind> {
        let shapes = [
            (&self.makes, Kind::Create),
            (&self.records, Kind::Record),
            (&self.starts, Kind::Start),
            (&self.builds, Kind::Build),
        ];
        let fits = |shapes: &[Whole]| shapes.iter().any(|shape| shape.fits(&read.line));
        shapes.into_iter().find(|(shapes, _)| fits(shapes)).map(|(_, kind)| kind)
    }

    /// True if it only creates something new.
    pub fn only_makes(&self, read: &ParsedArgs<'_>) -> bool {
        self.by_form(read) == Some(Kind::Create)
    }

    /// True if all code that it runs is in its words, is fully understood, and only computes.
    pub fn only_computes(&self, command: &Invocation, read: &ParsedArgs<'_>) -> bool {
        let Some(language) = self.computes else { return false };
        let words = &command.words;
        let is_alone = |text: &str| self.alone.iter().any(|option| option.fits(text));
        let code: Vec<usize> = (1..words.len())
            .filter(|at| {
                is_code(words, *at) && language.takes_code(&words[*at - 1].text) && is_alone(&words[*at - 1].text)
            })
            .collect();
        let Some(first) = code.first() else { return false };
        // all other words must be options without effect, or files after the code, which it reads or gets as
        // arguments
        let mut others = (1..words.len()).filter(|at| !code.contains(at));
        let is_harmless = |at: usize| match words[at].text.as_str() {
            text if text.starts_with('-') => is_alone(text),
            text => at > *first && language != ScriptLanguage::Lua && !text.contains(['|', '<', '>', '$', '`']),
        };
        command.assignments.is_empty()
            && !read.has("-i")
            && others.all(is_harmless)
            && code.iter().all(|at| words[*at].value.as_deref().is_some_and(|text| pure::is_pure(text, language)))
    }

    /// True if the code it reads only computes: a here-document or here-string of known text, or the output of one
    /// `echo`.
    pub fn computes_what_it_reads(&self, script: &Script, index: usize) -> bool {
        let Some(language) = self.computes else { return false };
        let command = &script.commands[index];
        let feeders: Vec<&Invocation> = script.commands.iter().filter(|c| c.feeds.contains(&index)).collect();
        let redirected: Vec<&Redirect> = command.redirects.iter().filter(|r| r.operator.starts_with('<')).collect();
        let is_known = match (redirected.as_slice(), feeders.as_slice()) {
            ([one], []) => one.body.as_ref().unwrap_or(&one.target).value.is_some(),
            // the output of `echo` with other backslashes depends on the shell
            ([], [one]) => {
                matches!(one.name(), Some("echo" | "print"))
                    && one.args().iter().all(|w| w.value.as_deref().is_some_and(|text| !text.contains('\\')))
            }
            _ => false,
        };
        is_known
            && command.assignments.is_empty()
            && command.args().iter().all(|w| w.text == "-")
            && matches!(stdin_texts(script, index).as_slice(), [text] if pure::is_pure(text, language))
    }

    /// Returns the effects of its verb: of its first two operands if the table has them, else of the first.
    fn by_verb(&self, read: &ParsedArgs<'_>) -> Option<&[Kind]> {
        if self.verbs.is_empty() {
            return None;
        }
        let word = |at: usize| read.operands.get(at).map(|o| o.text());
        let Some(verb) = word(0) else { return Some(&[]) };
        let two = word(1).and_then(|second| self.verbs.get(&format!("{verb} {second}")));
        two.or_else(|| self.verbs.get(verb)).map(Vec::as_slice)
    }

    pub fn operand(&self, read: &ParsedArgs<'_>) -> Kind {
        self.by_option(read, |o| o.operands).or(self.operands).unwrap_or(Kind::Read)
    }

    pub fn first(&self, read: &ParsedArgs<'_>) -> Option<Kind> {
        self.by_option(read, |o| o.first).or(self.first)
    }

    /// Returns the effect on the operand of that index if it is the second or the third and differs from the others.
    pub fn inner(&self, at: usize, read: &ParsedArgs<'_>) -> Option<Kind> {
        match at {
            1 => self.by_option(read, |o| o.second),
            2 => self.by_option(read, |o| o.third),
            _ => None,
        }
    }

    /// Returns the effect on the working directory.
    pub fn here(&self, read: &ParsedArgs<'_>) -> Option<Kind> {
        self.by_option(read, |o| o.here)
    }

    pub fn last(&self, read: &ParsedArgs<'_>) -> Option<Kind> {
        self.by_option(read, |o| o.last).or(self.last)
    }

    fn by_option(&self, read: &ParsedArgs<'_>, of: impl Fn(&Opt) -> Option<Kind>) -> Option<Kind> {
        self.option.iter().filter(|o| o.applies(read)).find_map(of)
    }
}

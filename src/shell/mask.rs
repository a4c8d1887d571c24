//! Replaces, byte for byte, valid bash or zsh that the grammar does not know. Words are read from the original text,
//! so the mask affects only the shape of the tree. Nothing that runs a command is masked.

use super::Dialect;

/// Returns the text to give to the grammar. `extended`: the script turns `extglob` on.
pub(super) fn mask(text: &str, dialect: Dialect, extended: bool) -> String {
    let mut bytes = text.as_bytes().to_vec();
    // true inside of `(( ... ))`
    let mut arithmetic = false;
    for i in 1..bytes.len() {
        let (before, here) = (bytes[i - 1], bytes[i]);
        match bytes.get(i.wrapping_sub(2)) {
            Some(b'(') if before == b'(' => arithmetic = true,
            Some(b')') if before == b')' => arithmetic = false,
            _ => {}
        }
        match (before, here) {
            // opens one descriptor for reading and writing
            (b'<', b'>') if i < 2 || bytes[i - 2] != b'<' => bytes[i - 1..=i].copy_from_slice(b"> "),
            // `${x~~}` changes case as `${x^^}` does
            (b'~', b'}') => mark_case(&mut bytes, i),
            // `{1..}` has no end, so it is a plain word
            (b'.', b'}') => blank_open_range(&mut bytes, i),
            // `$((10#$x))`: a number with its base
            (b'0'..=b'9', b'#') if arithmetic => bytes[i] = b'+',
            (b'>', b'!') if dialect == Dialect::Zsh => bytes[i] = b'|',
            (b'=', b'(') if dialect == Dialect::Zsh && i >= 2 && bytes[i - 2] == b' ' => bytes[i - 1] = b'<',
            // glob qualifiers, `*(.om[1])`, and expansion flags, `${(f)x}`
            (b'*' | b'?' | b']' | b'{', b'(') if dialect == Dialect::Zsh => blank_parentheses(&mut bytes, i),
            (_, b'(') if dialect == Dialect::Zsh && (before.is_ascii_alphanumeric() || b"._-".contains(&before)) => {
                let word = bytes[..i].iter().rposition(|b| b.is_ascii_whitespace()).map_or(0, |p| p + 1);
                let next = bytes.get(i + 1).copied().unwrap_or(b')');
                if next != b')' && bytes[word..i].iter().any(|b| matches!(b, b'*' | b'?')) {
                    blank_parentheses(&mut bytes, i);
                }
            }
            _ => {}
        }
    }
    let extended = extended && dialect == Dialect::Bash;
    let mut scan = Scan { bytes, dialect, extended, at: 0, begins: true, depth: 0, test: None, previous: [0..0, 0..0] };
    scan.run();
    String::from_utf8(scan.bytes).unwrap_or_else(|_| text.to_owned())
}

/// Masks a bracket and its content up to the closing bracket, unless something in it would run a command.
fn blank_parentheses(bytes: &mut [u8], open: usize) {
    let close = bytes[open..].iter().take(80).position(|b| matches!(b, b')' | b'\n' | b'\'' | b'`'));
    let is_plain = |inner: &[u8]| inner.is_ascii() && !inner.windows(2).any(|pair| pair == b"$(");
    // `*(e:rm x:)`, `*(oe{rm x})`, `*(+name)` and `${(e)x}` run a command; `*.(jpe|png)` does not
    let runs = |inner: &[u8]| {
        let evaluates = |pair: &[u8]| match (pair[0], pair[1]) {
            (b'e', b')') => open > 0 && bytes[open - 1] == b'{',
            (b'e', next) => !next.is_ascii_alphanumeric() && next != b'|',
            (b'+', next) => next.is_ascii_alphabetic() || next == b'_',
            _ => false,
        };
        inner.windows(2).any(evaluates)
    };
    let is_plain = |inner: &[u8]| is_plain(inner) && !runs(inner);
    if let Some(close) = close.filter(|c| bytes[open + c] == b')' && is_plain(&bytes[open..=open + c])) {
        bytes[open..=open + close].fill(b'_');
    }
}

/// Returns the end of a bracketed pattern that cannot be a command with arguments.
fn pattern_end(bytes: &[u8], open: usize) -> Option<usize> {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"*?.[]|_-+,@".contains(b);
    let end = open + 1 + bytes.get(open + 1..)?.iter().position(|b| !plain(b))?;
    (bytes[end] == b')').then_some(end + 1)
}

/// Replaces `~~` or `~` before the brace at `end` by `^^` if a name precedes it.
fn mark_case(bytes: &mut [u8], end: usize) {
    let name_end = bytes[..end].iter().rposition(|b| *b != b'~').map_or(0, |p| p + 1);
    let name = bytes[..name_end].iter().rposition(|b| !(b.is_ascii_alphanumeric() || *b == b'_'));
    if name.is_some_and(|p| p + 1 < name_end && bytes[..=p].ends_with(b"${")) {
        bytes[name_end..end].fill(b'^');
    }
}

/// Masks `{1..}`, whose closing brace is at `end`.
fn blank_open_range(bytes: &mut [u8], end: usize) {
    let Some(open) = bytes[..end].iter().rposition(|b| *b == b'{') else { return };
    let inner = &bytes[open + 1..end];
    let plain = |b: &u8| b.is_ascii_alphanumeric();
    if inner.strip_suffix(b"..").is_some_and(|from| from.iter().all(plain)) && (open == 0 || bytes[open - 1] != b'$') {
        bytes[open] = b'_';
        bytes[end] = b'_';
    }
}

/// An open test: its depth of parentheses, and the words to mask once it is closed.
struct Test {
    double: bool,
    depth: usize,
    blank: Vec<std::ops::Range<usize>>,
}

/// Scans the words of a script.
struct Scan {
    bytes: Vec<u8>,
    dialect: Dialect,
    extended: bool,
    at: usize,
    /// True if the next word is the name of a command, or a keyword.
    begins: bool,
    depth: usize,
    test: Option<Test>,
    /// The two words before this one.
    previous: [std::ops::Range<usize>; 2],
}

impl Scan {
    fn run(&mut self) {
        while let Some(&b) = self.bytes.get(self.at) {
            match b {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\n' | b';' | b'|' | b'&' | b'(' | b')' | b'`' => self.separator(b),
                b'<' | b'>' => {
                    // in `[ ]` this is a redirection, which the grammar takes for a comparison: not masked
                    if self.test.as_ref().is_some_and(|t| !t.double && t.depth == self.depth) {
                        self.test = None;
                    }
                    self.at += 1;
                }
                b'#' => {
                    let end = self.bytes[self.at..].iter().position(|b| *b == b'\n');
                    self.at = end.map_or(self.bytes.len(), |e| self.at + e);
                }
                _ => {
                    let start = self.at;
                    self.at = self.word_end(start, false);
                    self.word(start..self.at);
                }
            }
        }
    }

    fn separator(&mut self, sign: u8) {
        match sign {
            b'(' => self.depth += 1,
            b')' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        let ends = |t: &Test| t.depth > self.depth || !t.double && t.depth == self.depth && sign != b')';
        if self.test.as_ref().is_some_and(ends) {
            self.test = None;
        }
        self.begins = true;
        self.at += 1;
    }

    /// Returns the end of the word that begins at `start`, and masks escaped operators in it. A `pattern` extends
    /// over parentheses and bars.
    fn word_end(&mut self, start: usize, pattern: bool) -> usize {
        let (mut at, mut quote, mut depth) = (start, None, 0usize);
        let mut escapes = true;
        while let Some(&b) = self.bytes.get(at) {
            match (b, quote) {
                (b'\\', _) if escapes => {
                    if quote.is_none() && self.bytes.get(at + 1).is_some_and(|next| b"()<>".contains(next)) {
                        self.bytes[at..at + 2].fill(b'_');
                    }
                    at += 1;
                }
                (b'\'' | b'"', None) => {
                    quote = Some(b);
                    // `'\'` is complete, `$'\''` is too
                    escapes = b == b'"' || at > start && self.bytes[at - 1] == b'$';
                }
                (_, Some(open)) if b == open => (quote, escapes) = (None, true),
                (_, Some(_)) => {}
                (b'(', None) if pattern => depth += 1,
                (b')', None) if pattern && depth > 0 => depth -= 1,
                (b' ' | b'\t' | b'\n' | b'\r', None) if depth == 0 => break,
                (b';' | b'|' | b'&' | b'(' | b')' | b'`' | b'<' | b'>', None) if !pattern => break,
                _ => {}
            }
            at += 1;
        }
        at.min(self.bytes.len())
    }

    fn next_word(&self, from: usize) -> usize {
        let blank = |b: &u8| !matches!(b, b' ' | b'\t');
        self.bytes[from..].iter().position(blank).map_or(self.bytes.len(), |p| from + p)
    }

    fn word(&mut self, word: std::ops::Range<usize>) {
        let begins = std::mem::take(&mut self.begins);
        let text = self.bytes[word.clone()].to_vec();
        let next = self.next_word(word.end);
        // `ls !(a)`: only as an argument, as `!(ls)` runs a command in shells without such patterns
        if self.extended
            && !begins
            && text.last().is_some_and(|b| b"!@+?*".contains(b))
            && self.bytes.get(word.end) == Some(&b'(')
        {
            if let Some(end) = pattern_end(&self.bytes, word.end) {
                self.bytes[word.end - 1..end].fill(b'_');
                self.at = end;
            }
            return;
        }
        let opens = |at: usize| matches!(self.bytes.get(at), Some(b'{' | b'('));
        let in_test = self.test.as_ref().filter(|t| t.depth == self.depth).map(|t| t.double);
        match (text.as_slice(), in_test) {
            (b"]", Some(false)) => {
                let blank = self.test.take().map(|t| t.blank).unwrap_or_default();
                blank.into_iter().chain([word.clone()]).for_each(|range| self.bytes[range].fill(b'_'));
            }
            (b"]]", Some(true)) => self.test = None,
            (b"!", Some(false)) => {
                if let Some(test) = &mut self.test {
                    test.blank.push(word.clone());
                }
            }
            (b"/" | b"~" | b"*", Some(true)) => self.bytes[word.clone()].fill(b'_'),
            (b"=~", Some(true)) => self.pattern(next),
            (b"[" | b"[[", None) if begins => {
                let double = text.len() == 2;
                self.test = Some(Test { double, depth: self.depth, blank: vec![word.clone()] });
            }
            (b"if" | b"then" | b"else" | b"elif" | b"while" | b"until" | b"do" | b"{", None) if begins => {
                self.begins = true;
            }
            (b"!", None) if begins => {
                if self.bytes.get(next) == Some(&b'{') {
                    self.bytes[word.clone()].fill(b' ');
                }
                self.begins = true;
            }
            (b"time", None) if begins => {
                let portable = self.bytes[next..].starts_with(b"-p ").then(|| self.next_word(next + 3));
                let body = portable.unwrap_or(next);
                if opens(body) || self.dialect != Dialect::Sh && self.is_compound(body) {
                    self.bytes[word.start..body].fill(b' ');
                }
                self.begins = true;
            }
            (b"coproc", None) if begins && self.dialect != Dialect::Sh => {
                let name = self.bytes[next..].iter().position(|b| !(b.is_ascii_alphanumeric() || *b == b'_'));
                let body = name.filter(|n| *n > 0).map(|n| self.next_word(next + n)).filter(|at| opens(*at));
                self.bytes[word.start..body.unwrap_or(next)].fill(b' ');
                self.begins = true;
            }
            // `for x in; do` loops over nothing
            (b"in", None) if matches!(self.bytes.get(next), Some(b';' | b'\n')) && self.names_a_loop() => {
                self.bytes[word.clone()].fill(b' ');
            }
            // `A=1 [ -d / ]`
            _ => self.begins = begins && text.contains(&b'='),
        }
        self.previous = [self.previous[1].clone(), word];
    }

    /// True if a loop, a conditional or a test begins at `at`.
    fn is_compound(&self, at: usize) -> bool {
        let text = self.bytes.get(at..).unwrap_or_default();
        let word = text.split(|b| !b.is_ascii_lowercase() && *b != b'[').next().unwrap_or_default();
        matches!(word, b"for" | b"while" | b"until" | b"if" | b"case" | b"select" | b"[[")
    }

    fn names_a_loop(&self) -> bool {
        self.bytes.get(self.previous[0].clone()).is_some_and(|word| matches!(word, b"for" | b"select"))
    }

    /// Masks the regular expression after `=~`: it may have quoted blanks and characters that the grammar does not
    /// expect. One that runs a command is left as it is.
    fn pattern(&mut self, start: usize) {
        let end = self.word_end(start, true);
        let runs = |pair: &[u8]| matches!(pair, b"$(" | b"<(" | b">(") || pair.contains(&b'`');
        if !self.bytes[start..end].windows(2).any(runs) {
            self.bytes[start..end].fill(b'_');
        }
        self.at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    fn names(text: &str, dialect: Dialect) -> Vec<String> {
        let script = parse(text, dialect);
        assert!(script.errors.is_empty(), "{text}: {:?} in {}", script.errors, mask(text, dialect, true));
        script.commands.iter().map(|c| c.words.iter().map(|w| w.raw.as_str()).collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn valid_bash_unknown_to_the_grammar_is_parsed() {
        let cases: &[(&str, &[&str])] = &[
            ("[ -d / ]", &["[ -d / ]"]),
            ("[ ! -d / ] && ls", &["[ ! -d / ]", "ls"]),
            ("if [ -w / ]; then ls; fi", &["[ -w / ]", "ls"]),
            ("[ \"$PWD\" != ~ ]", &["[ \"$PWD\" != ~ ]"]),
            ("[ -e * ] || (ls; [ a = b ])", &["[ -e * ]", "ls", "[ a = b ]"]),
            ("[[ -d ~ ]] && ls", &["ls"]),
            ("[ \"$a\" \\< \"$b\" ]", &["[ \"$a\" \\< \"$b\" ]"]),
            ("[ \\( a = a \\) -a b = b ]", &["[ \\( a = a \\) -a b = b ]"]),
            ("[ \"$(id -u)\" -eq 0 ]", &["[ \"$(id -u)\" -eq 0 ]", "id -u"]),
            ("[ -z $(ls | wc -l) ]", &["[ -z $(ls | wc -l) ]", "ls", "wc -l"]),
            ("while [ ! -f x ]; do sleep 1; done", &["[ ! -f x ]", "sleep 1"]),
            ("[[ $x =~ ^\"foo bar\" ]]; ls", &["ls"]),
            ("[[ $x =~ \\d{3} ]] && ls", &["ls"]),
            ("[[ $x =~ ^(a|b)$ || -f y ]] && ls", &["ls"]),
            ("[[ $x =~ $(cat f) ]]", &["cat f"]),
            ("echo $((10#$x))", &["echo $((10#$x))"]),
            ("case $x in *\\)*) ls;; esac", &["ls"]),
            ("for f in; do ls; done", &["ls"]),
            ("echo ${x~~} ${x~}", &["echo ${x~~} ${x~}"]),
            ("echo {1..}", &["echo {1..}"]),
            ("shopt -s extglob\nls !(a)", &["shopt -s extglob", "ls !(a)"]),
            ("bash -O extglob -c 'ls !(a)'", &["bash -O extglob -c 'ls !(a)'", "ls !(a)"]),
            ("time { ls; }", &["ls"]),
            ("time -p { ls; }", &["ls"]),
            ("time for i in 1 2; do ls; done", &["ls"]),
            ("time while read x; do ls; done < f", &["read x", "ls"]),
            ("x=1; time if true; then ls; fi", &["true", "ls"]),
            ("time [[ -f x ]]", &[]),
            ("time format x", &["time", "format x"]),
            ("! { ls; }", &["ls"]),
            ("coproc cat", &["cat"]),
            ("coproc X { cat; }", &["cat"]),
            ("gr\\\nep x f", &["gr\\\nep x f"]),
            ("find . \\( -name a -o -name b \\) -print", &["find . \\( -name a -o -name b \\) -print"]),
            ("echo [ time ! { ]", &["echo [ time ! { ]"]),
        ];
        for (text, want) in cases {
            assert_eq!(names(text, Dialect::Bash), *want, "{text}");
        }
        assert_eq!(parse("gr\\\nep x f", Dialect::Bash).commands[0].name(), Some("grep"));
    }

    #[test]
    fn invalid_text_stays_invalid_and_commands_are_found() {
        for text in ["[ -f x", "[[ -f x", "ls !(a)", "for f in; ls"] {
            assert!(!parse(text, Dialect::Bash).errors.is_empty(), "{text}");
        }
        assert_eq!(names("!(ls)", Dialect::Bash), ["ls"]);
        assert_eq!(names("echo x # extglob\n!(ls)", Dialect::Bash), ["echo x", "ls"]);
        for text in ["shopt -s extglob; ls !($(rm x))", "shopt -s extglob; if !(rm x); then ls; fi"] {
            assert!(parse(text, Dialect::Bash).commands.iter().any(|c| c.name() == Some("rm")), "{text}");
        }
        assert_eq!(names("echo $'\\'' $'(' && [ -d / ]", Dialect::Bash), ["echo $'\\'' $'('", "[ -d / ]"]);
        assert_eq!(names("[ -n $(rm -rf x) ]", Dialect::Bash)[1], "rm -rf x");
    }

    #[test]
    fn globs_that_run_commands_are_not_read_only() {
        let looks = |text: &str| crate::is_read_only(&parse(text, Dialect::Zsh));
        for text in ["ls *(e:rm x:)", "ls *(oe{rm x})", "ls *(+wipe)", "echo ${(e)line}"] {
            assert!(!looks(text), "{text}");
        }
        for text in
            ["ls *(.om[1,3])", "ls *(/)", "ls *.(jpe|png)", "ls a*(one|two)", "echo ${(f)lines}", "ls *(Lk+100)"]
        {
            assert!(looks(text), "{text}");
        }
    }
}

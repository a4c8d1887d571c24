//! Tells the effect of an option for one value: of a text with a part for each sign or letter, the part that the value
//! picks.

use super::OptionEntry;

/// The words of a test on a number that a sign decides. Source: find(1).
const COMPARED: &str = "less than, more than or exactly ";
/// The words before the sign that gives another effect. Source: head(1).
const LEADING: &str = "; with the leading ";
/// The words before another form of the option. Source: tail(1).
const OR_USE: &str = "; or use ";
/// Units of time that may stand behind the number.
const TIMES: [&str; 4] = ["seconds", "minutes", "hours", "days"];
/// Longest text of a listed letter in a sentence, in bytes.
const MAX_PART: usize = 80;

impl OptionEntry {
    /// Returns the text for a value: `less than, more than or exactly n*24 hours ago` of `+7` is `more than 7 days ago`,
    /// and `of type c:`, with a list of letters, is `of type directory` of `d`. The text itself where the value picks
    /// nothing.
    pub fn text_for(&self, value: Option<&str>) -> String {
        let picked = value.and_then(|value| {
            let number = Number::parse(value);
            let compared = || self.compared(number.as_ref()?);
            let signed = || self.signed(number.as_ref()?);
            compared().or_else(signed).or_else(|| self.listed(value))
        });
        picked.unwrap_or_else(|| self.text.clone())
    }

    /// The name of the argument, without brackets and what may follow it: `n` of `n[cwbkMG]`, `NUM` of `[-]NUM`.
    fn placeholder(&self) -> Option<&str> {
        let argument = self.argument.as_deref()?.trim_start_matches(|c: char| !c.is_alphanumeric());
        let end = argument.find(|c: char| !c.is_alphanumeric()).unwrap_or(argument.len());
        Some(&argument[..end]).filter(|name| !name.is_empty())
    }

    /// Picks one of `less than`, `more than` and `exactly`, with the number and its unit.
    fn compared(&self, number: &Number) -> Option<String> {
        let (before, after) = self.text.split_once(COMPARED)?;
        let after = after.strip_prefix(self.placeholder()?)?;
        let comparison = match number.sign {
            Some('+') => "more than",
            Some(_) => "less than",
            None => "exactly",
        };
        let digits = number.digits;
        let rest = match (after.strip_prefix("*24 hours"), after.strip_prefix(" units")) {
            (Some(rest), _) if number.unit.is_empty() => {
                format!("{} {}{rest}", digits, if digits == "1" { "day" } else { "days" })
            }
            (None, Some(rest)) if !self.choices.is_empty() => {
                format!("{digits} {}{}", self.unit(number.unit)?, without_heading(rest))
            }
            (None, _) if number.unit.is_empty() => format!("{digits}{}", in_number(after, digits)),
            _ => return None,
        };
        Some(format!("{before}{comparison} {rest}"))
    }

    /// Returns the unit of a suffix; without one, the unit that the manual calls the default.
    fn unit(&self, suffix: &str) -> Option<&str> {
        let is_meant = |(name, text): &&(String, String)| match suffix {
            "" => text.contains("default"),
            suffix => name == suffix,
        };
        let (_, text) = self.choices.iter().find(is_meant)?;
        Some(text.strip_prefix("for ").unwrap_or(text))
    }

    /// Picks the effect of a number with a sign: `print the first NUM lines; with the leading '-', print all but ...`.
    fn signed(&self, number: &Number) -> Option<String> {
        let (plain, sign, other) = match (self.text.split_once(LEADING), self.text.split_once(OR_USE)) {
            (Some((plain, rest)), _) => {
                let (sign, other) = rest.split_once(", ")?;
                (plain, sign.trim_matches(['\'', '‘', '’', '`', '"']).chars().next()?, other)
            }
            (None, Some((plain, rest))) => {
                let (form, other) = rest.split_once(" to ")?;
                (plain, form.rsplit(' ').next()?.chars().next()?, other)
            }
            (None, None) => return None,
        };
        let text = if number.sign == Some(sign) { other } else { plain };
        Some(with_value(text, self.placeholder()?, &format!("{}{}", number.digits, number.unit)))
    }

    /// Puts the listed meaning of letters in place of the argument's name.
    fn listed(&self, value: &str) -> Option<String> {
        let head = self.text.strip_suffix(':')?;
        let meaning =
            |letter: &str| self.choices.iter().find(|(name, _)| name == letter).map(|(_, text)| text.as_str());
        let meanings: Vec<&str> = value.split(',').map(meaning).collect::<Option<_>>()?;
        let name = self.placeholder()?;
        let told = with_value(head, name, &meanings.join(" or "));
        (told != head).then_some(told)
    }
}

/// A number with a sign before it and a unit behind it: `+7`, `-10k`.
struct Number<'v> {
    sign: Option<char>,
    digits: &'v str,
    unit: &'v str,
}

impl<'v> Number<'v> {
    fn parse(value: &'v str) -> Option<Self> {
        let sign = value.chars().next().filter(|c| ['+', '-'].contains(c));
        let rest = &value[sign.map_or(0, char::len_utf8)..];
        let (digits, unit) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()));
        let is_number = !digits.is_empty() && unit.chars().all(|c| c.is_ascii_alphabetic());
        is_number.then_some(Self { sign, digits, unit })
    }
}

/// Puts the unit behind a number in the singular after 1.
fn in_number(after: &str, digits: &str) -> String {
    let unit = TIMES.iter().find(|unit| after.strip_prefix(' ').is_some_and(|rest| rest.starts_with(**unit)));
    match unit {
        Some(unit) if digits == "1" => format!(" {}{}", &unit[..unit.len() - 1], &after[unit.len() + 1..]),
        _ => after.to_owned(),
    }
}

/// Removes a last sentence that only introduces a list: `The following suffixes can be used:`.
fn without_heading(text: &str) -> &str {
    match text.strip_suffix(':').and_then(|head| head.rfind(". ")) {
        Some(end) => &text[..=end],
        None => text.trim_end_matches(':'),
    }
}

/// Puts a value in place of every whole word that is the name of the argument.
fn with_value(text: &str, name: &str, value: &str) -> String {
    let mut told = String::with_capacity(text.len());
    let mut done = 0;
    for (at, _) in text.match_indices(name) {
        let is_whole =
            !text[..at].ends_with(char::is_alphanumeric) && !text[at + name.len()..].starts_with(char::is_alphanumeric);
        if is_whole && at >= done {
            told.push_str(&text[done..at]);
            told.push_str(value);
            done = at + name.len();
        }
    }
    told.push_str(&text[done..]);
    told
}

/// Shortens the meaning of a listed letter to its first clause.
pub(crate) fn short_meaning(text: &str) -> String {
    let end = ["; ", ". "].into_iter().filter_map(|end| text.find(end)).min().unwrap_or(text.len());
    let text = text[..end].trim_end_matches(['.', ';']);
    let whole = (0..=MAX_PART.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    let cut = if whole < text.len() { text[..whole].rfind(' ').unwrap_or(whole) } else { whole };
    text[..cut].to_owned()
}

#[cfg(test)]
mod tests {
    use crate::Entry;

    const PAGE: &str = "FIND(1)\n\nNAME\n       find - search\n\nSYNOPSIS\n       find [expression]\n\nTESTS\n       -mmin n\n              File's data was last modified less than, more than or exactly\n              n minutes ago.\n\n       -mtime n\n              Modified less than, more than or exactly n*24\n              hours ago. See -atime.\n\n       -links n\n              File has less than, more than or exactly n hard links.\n\n       -size n[cwbkMG]\n              File uses less than, more than or exactly n units of space,\n              rounding up.  The following suffixes can be used:\n\n              `b'    for 512-byte blocks (this is the default if no suffix is\n                     used)\n\n              `k'    for kibibytes (KiB)\n\n              The size is that of the file.\n\n       -type c\n              File is of type c:\n\n              d      directory\n\n              f      regular file\n\n              l      symbolic link; this is never true if there is\n                     -L.\n\n              To search for more than one, give a list.\n\n       -regex pattern\n              File name matches.\n";
    const HELP: &str = "Usage: head [OPTION]\n  -n, --lines=[-]NUM       print the first NUM lines instead of the first 10;\n                             with the leading '-', print all but the last\n                             NUM lines of each file\n  -c, --bytes=[+]NUM       output the last NUM bytes; or use -c +NUM to\n                             output starting with byte NUM of each file\n";

    #[test]
    fn the_value_picks_its_part_of_the_text() {
        let page = Entry::from_texts("find", Some(PAGE.as_bytes()), None);
        let help = Entry::from_texts("head", None, Some(HELP.as_bytes()));
        for (entry, flag, value, text) in [
            (&page, "-mtime", "+7", "Modified more than 7 days ago. See -atime."),
            (&page, "-mtime", "-1", "Modified less than 1 day ago. See -atime."),
            (&page, "-mtime", "0", "Modified exactly 0 days ago. See -atime."),
            (&page, "-mmin", "1", "File's data was last modified exactly 1 minute ago."),
            (&page, "-mmin", "-30", "File's data was last modified less than 30 minutes ago."),
            (&page, "-links", "+1", "File has more than 1 hard links."),
            (&page, "-size", "-10k", "File uses less than 10 kibibytes (KiB) of space, rounding up."),
            (
                &page,
                "-size",
                "3",
                "File uses exactly 3 512-byte blocks (this is the default if no suffix is used) of space, rounding up.",
            ),
            (&page, "-type", "f", "File is of type regular file"),
            (&page, "-type", "l,d", "File is of type symbolic link or directory"),
            (&help, "-n", "5", "print the first 5 lines instead of the first 10"),
            (&help, "-n", "-5", "print all but the last 5 lines of each file"),
            (&help, "-c", "1K", "output the last 1K bytes"),
            (&help, "-c", "+20", "output starting with byte 20 of each file"),
        ] {
            assert_eq!(entry.option(flag).unwrap().text_for(Some(value)), text, "{flag} {value}");
        }
        // no part is picked by a variable, an unknown letter, or of a text without parts
        for (entry, flag, value) in [
            (&page, "-mtime", "$days"),
            (&page, "-mtime", "3h"),
            (&page, "-size", "3Q"),
            (&page, "-type", "x"),
            (&page, "-regex", "-5"),
            (&help, "-n", "$n"),
        ] {
            let option = entry.option(flag).unwrap();
            assert_eq!(option.text_for(Some(value)), option.text, "{flag} {value}");
            assert_eq!(option.text_for(None), option.text);
        }
    }
}

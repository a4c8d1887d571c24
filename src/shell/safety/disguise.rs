//! Finds text that is not what it looks like: letters of other alphabets that look like Latin ones, invisible
//! characters, characters that change the direction of reading. What it looks like is assessed too, and the higher
//! risk counts.

use super::{Level, Reason, assess, reason};
use crate::effects::is_known;
use crate::parse::{Script, Word, parse};

pub(super) fn reasons(script: &Script) -> Vec<Reason> {
    if script.text.is_ascii() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for command in &script.commands {
        for (at, word) in command.words.iter().enumerate() {
            found.extend(word_reason(script, word, at == 0));
        }
    }
    let shown = fold_text(&script.text);
    if shown != script.text && !shown.trim().is_empty() {
        // folding is idempotent, so the recursion ends
        let risk = assess(&parse(&shown, script.dialect));
        let own = 0..script.text.len();
        let dangers = risk.reasons.into_iter().filter(|r| r.level == Level::Danger).take(3);
        found.extend(dangers.map(|r| {
            let why = format!("as it is shown it reads as if {}", r.why);
            Reason { span: Some(own.clone()), why, ..r }
        }));
    }
    found
}

fn word_reason(script: &Script, word: &Word, program: bool) -> Option<Reason> {
    let danger = |why: String| {
        Some(
            reason(Level::Danger, "disguise", &word.raw, word.span.clone(), why)
                .with_scope("what is read, not what runs"),
        )
    };
    if word.raw.is_ascii() {
        return None;
    }
    if word.raw.chars().any(changes_direction) {
        return danger("a sign in it turns the direction of reading: what is shown is not what runs".to_owned());
    }
    let shown = fold_text(&word.text);
    let name = shown.trim().rsplit('/').next().unwrap_or_default();
    if program && shown != word.text && is_known(name, script.dialect) {
        let what = if word.text.chars().any(is_invisible) {
            "characters that are not shown"
        } else {
            "letters of another alphabet"
        };
        return danger(format!("it looks like `{name}` and is another program: it has {what}"));
    }
    if let Some((_, rest)) = word.text.split_once("://") {
        let host = rest.split(['/', ':', '?', '#']).next().unwrap_or_default();
        let mixed = |label: &str| {
            label.chars().any(|c| c.is_ascii_alphabetic())
                && label.chars().any(|c| !c.is_ascii() && fold_char(c).is_some())
        };
        if host.split('.').any(mixed) {
            return danger(format!("the host {host} mixes alphabets: it is another than it looks like"));
        }
    }
    // `requeѕts`: letters of two alphabets in one word
    let foreign = |c: char| matches!(c, '\u{370}'..='\u{58f}') && fold_char(c).is_some();
    let runs = || word.text.split(|c: char| !c.is_alphanumeric());
    let mixes = |run: &str| {
        run.chars().any(foreign) && run.chars().any(|c| c.is_ascii_alphabetic()) && fold_text(run).is_ascii()
    };
    if !word.text.contains(char::is_whitespace)
        && let Some(run) = runs().find(|run| mixes(run))
    {
        return danger(format!("`{run}` mixes letters of two alphabets: it is not what it looks like"));
    }
    // a joiner between two emoji is visible in the result
    let mut before = None;
    let hides = word.raw.chars().any(|c| {
        let joins = c == '\u{200d}' && before.is_some_and(|b: char| !b.is_ascii());
        before = Some(c);
        is_invisible(c) && !joins
    });
    let hidden = hides && !word.quoted;
    hidden.then(|| {
        let why = "it holds characters that are not shown, so it is another word than it looks like";
        reason(Level::Caution, "disguise", &word.raw, word.span.clone(), why)
    })
}

/// Returns the text as it looks: look-alikes replaced by the letters they resemble, invisible characters removed.
fn fold_text(text: &str) -> String {
    text.chars().filter(|c| !is_invisible(*c) && !changes_direction(*c)).map(|c| fold_char(c).unwrap_or(c)).collect()
}

/// True for the characters that change the direction of reading, or end the change.
fn changes_direction(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// True for characters without a width.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}'
            | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}'
    )
}

/// Returns the ASCII character that a character looks like.
fn fold_char(c: char) -> Option<char> {
    const LOOK_ALIKES: &[(&str, char)] = &[
        ("аαɑ𝛂", 'a'),
        ("ьƄ", 'b'),
        ("сϲⅽᴄ", 'c'),
        ("ԁⅾ", 'd'),
        ("еєεҽ", 'e'),
        ("ɡց", 'g'),
        ("һհ", 'h'),
        ("іıιⅰɩ", 'i'),
        ("јϳ", 'j'),
        ("кκ", 'k'),
        ("ⅼӏℓ", 'l'),
        ("мⅿᴍ", 'm'),
        ("пոη", 'n'),
        ("оοօσ", 'o'),
        ("рρ", 'p'),
        ("ԛ", 'q'),
        ("гᴦʀ", 'r'),
        ("ѕꜱƽ", 's'),
        ("тτᴛ", 't'),
        ("υսᴜ", 'u'),
        ("ѵνᴠⅴ", 'v'),
        ("ԝѡᴡ", 'w'),
        ("хχⅹ", 'x'),
        ("уүγ", 'y'),
        ("ᴢ", 'z'),
        ("АΑ", 'A'),
        ("ВΒ", 'B'),
        ("СϹ", 'C'),
        ("ЕΕ", 'E'),
        ("НΗ", 'H'),
        ("ІΙ", 'I'),
        ("КΚ", 'K'),
        ("МΜ", 'M'),
        ("Ν", 'N'),
        ("ОΟ", 'O'),
        ("РΡ", 'P'),
        ("Ѕ", 'S'),
        ("ТΤ", 'T'),
        ("ХΧ", 'X'),
        ("ΥҮ", 'Y'),
        ("Ζ", 'Z'),
        ("‐‑‒–—―−﹣", '-'),
        ("⁄∕⧸", '/'),
        ("∣ǀ", '|'),
        ("\u{37e}", ';'),
        ("∼˜", '~'),
        ("∗⁎", '*'),
        ("․", '.'),
        ("﹥›", '>'),
        ("﹤‹", '<'),
        ("﹠", '&'),
        ("﹩", '$'),
        (
            "\u{a0}\u{2000}\u{2001}\u{2002}\u{2003}\u{2004}\u{2005}\u{2006}\u{2007}\u{2008}\u{2009}\u{200a}\u{202f}\u{205f}\u{3000}",
            ' ',
        ),
    ];
    let code = u32::from(c);
    let letter = |offset: u32| char::from_u32(offset % 26 + if (offset / 26).is_multiple_of(2) { 0x41 } else { 0x61 });
    match code {
        0xff01..=0xff5e => char::from_u32(code - 0xff01 + 0x21),
        // the letters and digits of mathematics, in all their styles
        0x1d400..=0x1d6a3 => letter((code - 0x1d400) % 52),
        0x1d7ce..=0x1d7ff => char::from_u32((code - 0x1d7ce) % 10 + 0x30),
        0x24b6..=0x24cf => char::from_u32(code - 0x24b6 + 0x41),
        0x24d0..=0x24e9 => char::from_u32(code - 0x24d0 + 0x61),
        _ if c.is_ascii() => None,
        _ => LOOK_ALIKES.iter().find(|(alike, _)| alike.contains(c)).map(|(_, own)| *own),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_alikes_are_folded_and_other_letters_stay() {
        for (text, seen) in [
            ("ｒｍ", "rm"),
            ("сurl", "curl"),
            ("𝚛𝚖 𝐑𝐌", "rm RM"),
            ("r\u{200b}m", "rm"),
            ("rm –rf", "rm -rf"),
            ("ⓡⓜ", "rm"),
        ] {
            assert_eq!(fold_text(text), seen);
        }
        for text in ["größe", "日本語", "é", "→", "ж"] {
            assert_eq!(fold_text(text), text);
        }
    }
}

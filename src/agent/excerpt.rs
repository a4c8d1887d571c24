//! What of a long text stands in a prompt, where it is known what is asked of it: its two ends, and the lines that have the
//! question's words. (Where nothing is known, [`caro_policy::compress`] keeps the ends alone.)

use super::retrieve::bm25;

/// Characters of a line at most before it is cut at the ends of its sentences.
const LINE: usize = 240;
/// What a line is worth by what the lines before it are worth, the nearest first: what is asked for stands behind the word
/// that it is asked by more often than before it.
const BEHIND: [f64; 4] = [0.6, 0.4, 0.3, 0.2];
/// The same for the lines after it.
const BEFORE: [f64; 2] = [0.3, 0.15];
/// Characters that the note on what is left out takes.
const NOTE: usize = 28;

/// About `limit` characters of a text: all of it if it fits, else its first and its last line and those that fit `question`
/// best, in their order, with notes of what is left out between them.
pub fn excerpt(text: &str, question: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    let pieces: Vec<String> = text.lines().flat_map(sentences).collect();
    let kept = chosen(&pieces, &worth(&pieces, question), limit);
    let (mut out, mut left_out) = (String::new(), 0);
    for (piece, kept) in pieces.iter().zip(kept) {
        if !kept {
            left_out += 1;
            continue;
        }
        if left_out > 0 {
            out.push_str(&format!("{}\n", note(left_out)));
        }
        left_out = 0;
        out.push_str(piece);
        out.push('\n');
    }
    if left_out > 0 {
        out.push_str(&note(left_out));
    }
    out.trim_end().to_owned()
}

/// True for an excerpt that leaves something out.
pub fn leaves_out(excerpt: &str) -> bool {
    excerpt.lines().any(|line| line.starts_with("[... ") && line.ends_with(" left out ...]"))
}

fn note(lines: usize) -> String {
    format!("[... {lines} {} left out ...]", if lines == 1 { "line" } else { "lines" })
}

/// A line as it is; one that is too long at the ends of its sentences, and where these are too long, anywhere.
fn sentences(line: &str) -> Vec<String> {
    if line.chars().count() <= LINE {
        return vec![line.to_owned()];
    }
    let mut pieces: Vec<String> = vec![String::new()];
    for word in line.split_inclusive(' ') {
        let last =
            pieces.last_mut().map(|piece| (piece.trim_end().ends_with(['.', '!', '?', ';']), piece.chars().count()));
        let full = last.is_some_and(|(ends, length)| ends && length > LINE / 4 || length + word.chars().count() > LINE);
        match pieces.last_mut().filter(|_| !full) {
            Some(piece) => piece.push_str(word),
            None => pieces.push(word.to_owned()),
        }
    }
    // one word of any length
    let cut = |piece: String| {
        let chars: Vec<char> = piece.trim_end().chars().collect();
        chars.chunks(LINE).map(|chunk| chunk.iter().collect()).collect::<Vec<String>>()
    };
    pieces.into_iter().flat_map(cut).filter(|piece| !piece.is_empty()).collect()
}

/// How well each piece fits the question, with what it has from those around it.
fn worth(pieces: &[String], question: &str) -> Vec<f64> {
    let own = bm25(question, pieces);
    let at = |i: Option<usize>| i.and_then(|i| own.get(i)).copied().unwrap_or_default();
    let with_others = |i: usize| {
        let behind: f64 = BEHIND.iter().enumerate().map(|(n, part)| part * at(i.checked_sub(n + 1))).sum();
        let before: f64 = BEFORE.iter().enumerate().map(|(n, part)| part * at(i.checked_add(n + 1))).sum();
        own[i] + behind + before
    };
    (0..pieces.len()).map(with_others).collect()
}

/// Which pieces stay: both ends, then the best, of equal ones the earlier.
fn chosen(pieces: &[String], worth: &[f64], limit: usize) -> Vec<bool> {
    let mut kept = vec![false; pieces.len()];
    let mut order: Vec<usize> = (0..pieces.len()).collect();
    order.sort_by(|a, b| worth[*b].total_cmp(&worth[*a]));
    let is_text = |i: &usize| !pieces[*i].trim().is_empty();
    let (first, last) = ((0..pieces.len()).find(is_text), (0..pieces.len()).rfind(is_text));
    let mut room = limit.saturating_sub(NOTE);
    for i in first.into_iter().chain(last).chain(order) {
        let length = pieces[i].chars().count() + 1;
        // a gap before it may be a new one, with a note of its own
        let gap = if i == 0 || kept[i - 1] { 0 } else { NOTE };
        if !kept[i] && length + gap <= room {
            kept[i] = true;
            room -= length + gap;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn notes() -> String {
        let line = |n| format!("line {n} of the notes, of no importance");
        let (before, behind): (Vec<_>, Vec<_>) = ((1..90).map(line).collect(), (90..180).map(line).collect());
        format!(
            "# Notes\n{}\n\n## Owner\n\nThat is Ada, since May.\n\n{}\nThe end.",
            before.join("\n"),
            behind.join("\n")
        )
    }

    #[test]
    fn what_is_asked_for_stays_with_both_ends() {
        let short = excerpt(&notes(), "who is the owner?", 600);
        assert!(short.starts_with("# Notes\n") && short.ends_with("The end."), "{short}");
        assert!(short.contains("## Owner\n\nThat is Ada, since May.\n"), "{short}");
        assert!(leaves_out(&short) && short.chars().count() <= 600, "{short}");
        assert!(!excerpt(&notes(), "what are notes?", 600).contains("Ada"));
    }

    #[test]
    fn what_fits_is_whole() {
        assert_eq!(excerpt("a\n\nb\n", "x", 5), "a\n\nb\n");
        assert!(!leaves_out("a [... 3 lines left out ...] b"));
    }

    #[test]
    fn a_paragraph_in_one_line_is_read_by_its_sentences() {
        let filler = "Nothing of this is of any importance to whoever reads it. ".repeat(60);
        let text = format!("{filler}The rent of the boat house is 450 a month. {filler}");
        let short = excerpt(&text, "how much is the rent of the boat house?", 500);
        assert!(short.contains("The rent of the boat house is 450 a month."), "{short}");
        assert!(short.chars().count() <= 500);
    }

    proptest! {
        #[test]
        fn it_is_short_and_takes_nothing_from_elsewhere(
            text in "([a-z é\u{4e00}.]{0,90}\n){0,60}", question in "[a-z ]{0,40}", limit in 0usize..2000
        ) {
            let short = excerpt(&text, &question, limit);
            prop_assert!(short.chars().count() <= limit.max(NOTE));
            for line in short.lines().filter(|line| !leaves_out(line)) {
                prop_assert!(text.contains(line), "{line}");
            }
        }

        #[test]
        fn one_word_of_any_length_is_no_trouble(n in 0usize..5000, limit in 100usize..1000) {
            prop_assert!(excerpt(&"x".repeat(n), "x", limit).chars().count() <= limit);
        }
    }
}

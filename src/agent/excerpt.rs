//! Shortens a long text for a prompt that asks a question about it: keeps its first and last line, and the lines that
//! match the question best. Without a question [`caro_policy::compress`] is used, which keeps both ends.

use super::retrieve::bm25;

/// Most characters of a line; a longer one is split into sentences.
const MAX_LINE: usize = 240;
/// The parts of the scores of the lines before a line that are added to its own, the nearest first. They are greater
/// than those of [`NEXT_WEIGHTS`], as an answer follows the words of its question more often than it precedes them.
const PREVIOUS_WEIGHTS: [f64; 4] = [0.6, 0.4, 0.3, 0.2];
/// The parts of the scores of the lines after a line.
const NEXT_WEIGHTS: [f64; 2] = [0.3, 0.15];
/// Most characters of the note about lines that are left out.
const NOTE_LEN: usize = 28;

/// Returns about `limit` characters of a text: all of it if it fits; else its first and last line and those that match
/// `question` best, in their order, with notes where lines are left out.
pub fn excerpt(text: &str, question: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    let pieces: Vec<String> = text.lines().flat_map(sentences).collect();
    let kept = select(&pieces, &score(&pieces, question), limit);
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

/// True if an excerpt has a note about lines that are left out.
pub fn leaves_out(excerpt: &str) -> bool {
    excerpt.lines().any(|line| line.starts_with("[... ") && line.ends_with(" left out ...]"))
}

fn note(lines: usize) -> String {
    format!("[... {lines} {} left out ...]", if lines == 1 { "line" } else { "lines" })
}

/// Splits a line that is too long into sentences, and a sentence that is too long between any two words.
fn sentences(line: &str) -> Vec<String> {
    if line.chars().count() <= MAX_LINE {
        return vec![line.to_owned()];
    }
    let mut pieces: Vec<String> = vec![String::new()];
    for word in line.split_inclusive(' ') {
        let last =
            pieces.last_mut().map(|piece| (piece.trim_end().ends_with(['.', '!', '?', ';']), piece.chars().count()));
        let added = word.chars().count();
        let full = last.is_some_and(|(ends, length)| ends && length > MAX_LINE / 4 || length + added > MAX_LINE);
        match pieces.last_mut() {
            Some(piece) if !full => piece.push_str(word),
            _ => pieces.push(word.to_owned()),
        }
    }
    // a single word may still be too long
    let cut = |piece: String| {
        let chars: Vec<char> = piece.trim_end().chars().collect();
        chars.chunks(MAX_LINE).map(|chunk| chunk.iter().collect()).collect::<Vec<String>>()
    };
    pieces.into_iter().flat_map(cut).filter(|piece| !piece.is_empty()).collect()
}

/// Scores each piece by how well it matches the question, with a part of the scores of its neighbours.
fn score(pieces: &[String], question: &str) -> Vec<f64> {
    let own = bm25(question, pieces);
    let at = |i: Option<usize>| i.and_then(|i| own.get(i)).copied().unwrap_or_default();
    let with_others = |i: usize| {
        let previous: f64 = PREVIOUS_WEIGHTS.iter().enumerate().map(|(n, part)| part * at(i.checked_sub(n + 1))).sum();
        let next: f64 = NEXT_WEIGHTS.iter().enumerate().map(|(n, part)| part * at(i.checked_add(n + 1))).sum();
        own[i] + previous + next
    };
    (0..pieces.len()).map(with_others).collect()
}

/// Marks the pieces to keep: both ends, then those with the best scores, of equal ones the earlier.
fn select(pieces: &[String], scores: &[f64], limit: usize) -> Vec<bool> {
    let mut kept = vec![false; pieces.len()];
    let mut order: Vec<usize> = (0..pieces.len()).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    let is_text = |i: &usize| !pieces[*i].trim().is_empty();
    let (first, last) = ((0..pieces.len()).find(is_text), (0..pieces.len()).rfind(is_text));
    let mut room = limit.saturating_sub(NOTE_LEN);
    for i in first.into_iter().chain(last).chain(order) {
        let length = pieces[i].chars().count() + 1;
        // a gap before the piece may need a note of its own
        let gap = if i == 0 || kept[i - 1] { 0 } else { NOTE_LEN };
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
    fn the_answer_and_both_ends_are_kept() {
        let short = excerpt(&notes(), "who is the owner?", 600);
        assert!(short.starts_with("# Notes\n") && short.ends_with("The end."), "{short}");
        assert!(short.contains("## Owner\n\nThat is Ada, since May.\n"), "{short}");
        assert!(leaves_out(&short) && short.chars().count() <= 600, "{short}");
        assert!(!excerpt(&notes(), "what are notes?", 600).contains("Ada"));
    }

    #[test]
    fn a_short_text_is_not_changed() {
        assert_eq!(excerpt("a\n\nb\n", "x", 5), "a\n\nb\n");
        assert!(!leaves_out("a [... 3 lines left out ...] b"));
    }

    #[test]
    fn a_long_line_is_split_into_sentences() {
        let filler = "Nothing of this is of any importance to whoever reads it. ".repeat(60);
        let text = format!("{filler}The rent of the boat house is 450 a month. {filler}");
        let short = excerpt(&text, "how much is the rent of the boat house?", 500);
        assert!(short.contains("The rent of the boat house is 450 a month."), "{short}");
        assert!(short.chars().count() <= 500);
    }

    proptest! {
        #[test]
        fn an_excerpt_is_short_and_consists_of_lines_of_the_text(
            text in "([a-z é\u{4e00}.]{0,90}\n){0,60}", question in "[a-z ]{0,40}", limit in 0usize..2000
        ) {
            let short = excerpt(&text, &question, limit);
            prop_assert!(short.chars().count() <= limit.max(NOTE_LEN));
            for line in short.lines().filter(|line| !leaves_out(line)) {
                prop_assert!(text.contains(line), "{line}");
            }
        }

        #[test]
        fn a_word_of_any_length_is_shortened(n in 0usize..5000, limit in 100usize..1000) {
            prop_assert!(excerpt(&"x".repeat(n), "x", limit).chars().count() <= limit);
        }
    }
}

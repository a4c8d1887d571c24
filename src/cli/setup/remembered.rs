//! `--history` and the setting `history`: how much of a conversation the model is reminded of.

use caro_agent::chat::{Limit, Originals, Remember};

/// Reads `budget`, `window:N` or `tokens:N`, with `:summary` and `:delete` behind it or not.
///
/// # Errors
/// The forms that it may have.
pub fn read(text: &str) -> Result<Remember, String> {
    let mut how = Remember::ROOM;
    let mut limit = text;
    while let Some((before, word)) = limit.rsplit_once(':') {
        match word {
            "summary" if !how.summary => how.summary = true,
            "delete" if how.originals == Originals::Keep => how.originals = Originals::Delete,
            _ => break,
        }
        limit = before;
    }
    let number = |text: &str| text.parse().ok().filter(|n| *n > 0);
    how.limit = match (limit, limit.split_once(':')) {
        ("budget", _) => Some(Limit::Room),
        (_, Some(("window", n))) => number(n).map(Limit::Messages),
        (_, Some(("tokens", n))) => number(n).map(Limit::Tokens),
        _ => None,
    }
    .ok_or("budget, window:N with a number of messages or tokens:N, each with :summary and :delete or without")?;
    Ok(how)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_history_are_read() {
        let of = |limit, summary, delete: bool| {
            let originals = if delete { Originals::Delete } else { Originals::Keep };
            Ok(Remember { limit, summary, originals })
        };
        assert_eq!(read("budget"), Ok(Remember::ROOM));
        assert_eq!(read("window:20"), of(Limit::Messages(20), false, false));
        assert_eq!(read("tokens:500:summary"), of(Limit::Tokens(500), true, false));
        assert_eq!(read("budget:delete:summary"), of(Limit::Room, true, true));
        assert_eq!(read("window:4:summary:delete"), of(Limit::Messages(4), true, true));
        for wrong in ["", "window", "window:0", "window:x", "tokens:-1", "summary", ":delete", "budget:summary:summary"]
        {
            assert!(read(wrong).unwrap_err().contains("window:N"), "{wrong}");
        }
    }
}

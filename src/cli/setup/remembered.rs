//! Parses `--history` and the setting `history`: how much of a conversation is in the prompt.

use caro_agent::chat::{Limit, Originals, Remember};

/// Parses `budget`, `window:N` or `tokens:N`, each with or without `:summary` and `:delete`.
///
/// # Errors
/// The valid forms.
pub fn read(text: &str) -> Result<Remember, String> {
    let mut remember = Remember::ROOM;
    let mut limit = text;
    while let Some((before, word)) = limit.rsplit_once(':') {
        match word {
            "summary" if !remember.summary => remember.summary = true,
            "delete" if remember.originals == Originals::Keep => remember.originals = Originals::Delete,
            _ => break,
        }
        limit = before;
    }
    let number = |text: &str| text.parse().ok().filter(|n| *n > 0);
    remember.limit = match (limit, limit.split_once(':')) {
        ("budget", _) => Some(Limit::Room),
        (_, Some(("window", n))) => number(n).map(Limit::Messages),
        (_, Some(("tokens", n))) => number(n).map(Limit::Tokens),
        _ => None,
    }
    .ok_or("budget, window:N with a number of messages or tokens:N, each with :summary and :delete or without")?;
    Ok(remember)
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

//! Whether a request speaks of the person who makes it: "my processes", "meine Commits", "我的文件".

/// Words of the first person in the languages that the taught model was taught in, and English ones for who is logged in.
const WORDS: &[&str] = &[
    "i", "i'm", "i've", "i'd", "my", "mine", "me", "myself", "we", "our", "ours", "us", "own", "current", "logged",
    "ich", "mir", "mich", "wir", "uns", "j", "je", "moi", "mon", "ma", "mes", "nous", "nos", "notre", "yo", "mi",
    "mis", "mío", "eu", "meu", "minha", "meus", "minhas", "nós",
];

/// Beginnings of such words that have endings: `mein`, `meine`, `meinen`.
const STEMS: &[&str] = &[
    "mein",
    "unser",
    "eigen",
    "aktuell",
    "angemeldet",
    "propr",
    "actuel",
    "connect",
    "nuestr",
    "propi",
    "actual",
    "noss",
    "própri",
    "atual",
    "मेर",
    "मैं",
    "मुझ",
    "हमार",
    "अपन",
];

/// The same of languages that put no blank between words.
const SIGNS: &[char] = &['我', '咱', '私', '僕', '俺'];

/// True if the request speaks of the person who makes it.
pub fn speaks_of_self(request: &str) -> bool {
    let request = request.to_lowercase();
    let mut words = request
        .split(|c: char| !(c.is_alphanumeric() || matches!(c, '\'' | '’') || is_mark(c)))
        .flat_map(|word| word.split(['\'', '’']).take(1).chain([word]));
    request.contains(SIGNS)
        || request.contains("自分")
        || request.contains("自己")
        || words.any(|word| WORDS.contains(&word) || STEMS.iter().any(|stem| word.starts_with(stem)))
}

/// True for a vowel sign of Devanagari, which is part of its word.
fn is_mark(c: char) -> bool {
    ('\u{900}'..='\u{97f}').contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_speaks_of_themselves_is_heard_in_every_language_that_is_taught() {
        for own in [
            "show my commits of today",
            "which processes did I start?",
            "I'm looking for big files",
            "files of the current user",
            "zeige meine Prozesse",
            "alle eigenen Dateien",
            "muéstrame mis archivos",
            "j'ai quels processus ?",
            "mes processus",
            "os meus ficheiros",
            "显示我的进程",
            "自分のファイルを表示",
            "मेरी फ़ाइलें दिखाओ",
        ] {
            assert!(speaks_of_self(own), "{own}");
        }
        for others in [
            "show git commits with author names",
            "files of ann",
            "list processes by user",
            "zeige alle Prozesse",
            "affiche les processus de bob",
            "列出所有进程",
            "mime types of the files here",
            "",
        ] {
            assert!(!speaks_of_self(others), "{others}");
        }
    }
}

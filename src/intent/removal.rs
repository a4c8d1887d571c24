//! Decides whether a task asks to delete something: `--yes` and a stored `always` allow removals only then. In doubt
//! the answer is no, and the user is asked.

use super::tokens::is_in;

/// Verbs that order a removal anywhere in a clause.
const REMOVE: &str = "dedupe deduplicate delete deleting discard discarding eliminate erase erasing prune pruning purge purging remove \
removing rm shred shredding uninstall unlink wipe wiping";
/// Verbs that are other words too (`an empty file`, `keep in mind`): they count only after `please` and the like, and
/// with files or folders for their object (`drop me a line`, `clear up what it does`).
const AMBIGUOUS: &str = "clean cleanup clear drop empty free keep leave tidy trash";
/// The ambiguous verbs that also mean to put the content of one file in order.
const MAY_EDIT: &str = "clean cleanup clear tidy";
/// The ambiguous verbs that order a removal only with `only` or `just` behind them.
const MAY_SPARE: &str = "keep leave";
/// Words that may stand between such a verb and its object.
const MAY_FOLLOW: &str = "just only out up";
/// Nouns for files and folders, and for what takes up room on a disk.
const STORED: &str = "archive archives artifact artifacts attachments backup backups binaries bin build builds cache caches clones clutter \
copies desktop directories directory disk documents downloads drafts drive dump dumps duplicate duplicates files folder \
folders gb garbage gigabytes images installers iso isos jpgs junk leftovers logfile logfiles log logs mb megabytes movies mp3s music \
node_modules pdfs photos pictures pngs recordings repository repo room screenshots snapshots songs space stuff subfolders symlinks \
target temp tmp trash tree txts videos wastebasket workspace zips";
/// Nouns for one file, which an edit leaves in its place.
const ONE_FILE: &str = "file link symlink";
/// Words that end the object of a verb.
const ENDS_OBJECT: &str = "about after and are as at because before behind below beside but by during for from if in inside into is it \
its larger like newer of older on onto or out over since so than that then to under unless until up what where which who with within";
/// First words of an object that something is put or left with (`drop me a line`, `leave a file there`).
const GIVES: &str = "a an her him me some them us";
/// Orders of two words.
const PAIRS: [(&str, &str); 6] =
    [("get", "rid"), ("getting", "rid"), ("throw", "away"), ("throw", "out"), ("dispose", "of"), ("do", "away")];
/// Verbs in German, French, Spanish, Portuguese, Italian and Dutch, where they may also stand at the end.
const FOREIGN_VERBS: &str = "lösche lösch löschen loesche loeschen entferne entfernen supprime supprimer supprimez efface effacer effacez \
enlève enlever enlevez borra borrar borre elimina eliminar elimine suprime suprimir apaga apagar apague remova remover exclua excluir \
cancella cancellare rimuovi rimuovere verwijder verwijderen wis";
/// Removal verbs in scripts without blanks between words, and the negations there.
const UNSPACED: [&str; 9] = ["删除", "刪除", "清空", "移除", "清除", "削除", "消して", "삭제", "지워"];
const UNSPACED_NOT: [&str; 9] = ["不", "别", "別", "勿", "没", "ない", "ません", "마", "않"];

/// Negations in English.
const NOT: &str =
    "don't dont never not no nothing none without nor neither cannot can't shouldn't mustn't instead rather";
/// Negations in the languages of [`FOREIGN_VERBS`].
const FOREIGN_NOT: &str = "nicht nichts kein keine keinen niemals nie ohne ne pas rien jamais aucun aucune sans no nada nunca ningún \
ninguno ninguna sin não nao nenhum nenhuma sem non niente nessun nessuna senza niet niets geen zonder";
/// Words after a negation that cancel it: `don't forget to delete them`.
const CANCELS_NOT: &str = "fail forget hesitate only";
/// Words that may stand between the beginning of a clause and its verb.
const MAY_PRECEDE: &str = "after afterwards ahead also and before but by can can't cannot completely could dont don't everything fail \
finally first forget go hesitate i i'd it just kindly let's lastly like must need never next not now only or please \
permanently recursively safely shall should simply that them then to up want we will would you";
/// First words of a clause that asks a question or for a report only.
const ASKING: &str = "am are count describe did display do does explain find has have how is list print show tell was were what when \
where which who whose why";

/// True if a clause of the task orders a removal. Quoted text, what others did or may do (`the deleted files`, `which
/// can I delete`) and what is forbidden do not count.
pub fn orders_removal(task: &str) -> bool {
    clauses(&unquoted(&task.to_lowercase().replace('’', "'"))).iter().any(|clause| orders_removal_in(clause))
}

fn orders_removal_in(clause: &str) -> bool {
    let has = |list: &[&str]| list.iter().any(|sign| clause.contains(sign));
    if has(&UNSPACED) {
        return !has(&UNSPACED_NOT);
    }
    let edge = |c: char| !c.is_alphanumeric() && c != '\'';
    let spelled: Vec<&str> = clause.split_whitespace().filter(|word| !word.trim_matches(edge).is_empty()).collect();
    let words: Vec<&str> = spelled.iter().map(|word| word.trim_matches(edge)).collect();
    if words.iter().any(|word| is_in(FOREIGN_VERBS, word)) {
        return !words.iter().any(|word| is_in(FOREIGN_NOT, word));
    }
    (0..words.len()).any(|at| {
        let next = words.get(at + 1).copied().unwrap_or_default();
        let unambiguous = is_in(REMOVE, words[at]) || PAIRS.contains(&(words[at], next));
        let is_ordered = unambiguous || is_in(AMBIGUOUS, words[at]) && has_stored_object(&words, &spelled, at);
        if !is_ordered {
            return false;
        }
        let begin = words[..at].iter().rposition(|word| is_in("and then but", word)).map_or(0, |joint| joint + 1);
        let before = &words[begin..at];
        // `list what I need to delete`; but `list them and delete them`
        let asks = begin == 0 && is_in(ASKING, words[0]);
        let allowed = before
            .iter()
            .all(|word| is_in(MAY_PRECEDE, word) && (unambiguous || !matches!(*word, "that" | "it" | "them")));
        let forbids = |i: usize| is_in(NOT, words[i]) && !words.get(i + 1).is_some_and(|word| is_in(CANCELS_NOT, word));
        allowed && !asks && !(begin..at).any(forbids) && !is_in(NOT, next)
    })
}

/// True if the object of the ambiguous verb at this place is stored on a disk: a path, a pattern for names, or words
/// that end with a noun for files or folders. `spelled` has the words with their signs (`*.tmp`, `build/`).
fn has_stored_object(words: &[&str], spelled: &[&str], at: usize) -> bool {
    let verb = words[at];
    let begin = (at + 1..words.len()).find(|i| !is_in(MAY_FOLLOW, words[*i])).unwrap_or(words.len());
    if is_in(MAY_SPARE, verb) && !words[at + 1..begin].iter().any(|word| matches!(*word, "only" | "just")) {
        return false;
    }
    let end = (begin..words.len()).find(|i| is_in(ENDS_OBJECT, words[*i])).unwrap_or(words.len());
    let is_put = verb == "drop" && words.get(end).is_some_and(|word| matches!(*word, "into" | "onto" | "to"));
    let Some(last) = words[begin..end].last() else { return false };
    if is_put || is_in(GIVES, words[begin]) && !matches!(verb, "free" | "clear") {
        return false;
    }
    let edits = is_in(MAY_EDIT, verb);
    let is_named = |word: &&str| {
        let name = word.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let is_folder = word.contains('/') && !name.trim_start_matches('.').contains('.');
        word.contains('*') || is_folder || !edits && (word.contains('/') || has_extension(name))
    };
    is_in(STORED, last) || !edits && is_in(ONE_FILE, last) || spelled[begin..end].iter().any(is_named)
}

/// True for the name of a file with an extension.
fn has_extension(name: &str) -> bool {
    let extension = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map(|(_, extension)| extension);
    extension.is_some_and(|text| (1..=8).contains(&text.len()) && text.chars().all(char::is_alphanumeric))
}

/// Splits a text at punctuation before a blank, as dots inside of names are no ends, and at CJK punctuation.
fn clauses(text: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        let ends = matches!(sign, '\n' | '。' | '、' | '，' | '；')
            || matches!(sign, '.' | ',' | ';' | ':' | '!' | '?')
                && signs.peek().is_none_or(|next| next.is_whitespace());
        match all.last_mut() {
            Some(last) if !ends => last.push(sign),
            _ => all.push(String::new()),
        }
    }
    all
}

/// Removes quoted text; an apostrophe inside of a word begins no quote.
fn unquoted(text: &str) -> String {
    let mut left = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['"', '`', '\'', '“', '«', '„']) {
        let (before, from) = rest.split_at(at);
        let open = from.chars().next().unwrap_or_default();
        let inside = &from[open.len_utf8()..];
        left.push_str(before);
        let word = before.chars().next_back().is_some_and(char::is_alphanumeric);
        let close = match open {
            '“' => '”',
            '„' => '“',
            '«' => '»',
            other => other,
        };
        match inside.find(close) {
            Some(end) if !word => rest = &inside[end + close.len_utf8()..],
            _ => {
                left.push(open);
                rest = inside;
            }
        }
    }
    left + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removal_orders_are_recognized() {
        for task in [
            "delete all the .bak files in here, but keep ledger.bak",
            "Please remove the folder old",
            "find the empty folders below tree and delete them",
            "list all empty files, save the list to empty.txt, and delete them",
            "Some links in tools are dead. Delete them",
            "if new.tar is there, delete old.tar",
            "could you get rid of the core dumps",
            "I want you to wipe build/",
            "don't forget to delete the copies",
            "Don’t hesitate to remove what is older than a year",
            "empty the trash folder",
            "clean up the folder build",
            "then clear the cache",
            "pack the logs and then rm them",
            "keep only the newest three backups",
            "clean up the folder",
            "tidy up my downloads",
            "please clear the npm cache",
            "drop old backups",
            "drop the backups older than a year",
            "clean out ~/Downloads and show what is left",
            "clear up some disk space",
            "free up 2 GB on this disk",
            "tidy the photos of last year",
            "empty the directory out",
            "trash all screenshots from May",
            "clean *.tmp",
            "drop old.tar.gz",
            "leave only the three newest logs",
            "lösche alle Dateien, die auf .tmp enden",
            "bitte die alten Protokolle löschen",
            "supprime les fichiers vides",
            "borra los registros de ayer",
            "删除所有日志文件",
            "古いログを削除してください",
        ] {
            assert!(orders_removal(task), "{task}");
        }
    }

    #[test]
    fn other_tasks_are_no_removal_orders() {
        for task in [
            "append a line to notes.txt",
            "update the version in README",
            "sort the lines of app.log",
            "convert a.csv to json",
            "compress the logs",
            "rename a to b",
            "count the empty lines in notes.txt",
            "find empty folders",
            "create an empty file a.txt",
            "list the files that are not to be removed",
            "which of these can I delete?",
            "tell me what I need to delete",
            "how many files were deleted according to log.txt",
            "don't delete anything",
            "copy everything new into backup, but don't delete anything",
            "delete nothing, and list the logs",
            "archive the logs without removing them",
            "never remove a.txt",
            "find the lines with \"delete me\" in it",
            "search for 'remove' in src",
            "show delete-me.txt",
            "move it to x.delete",
            "make a file clean.sh with three lines",
            "the user's clean copy is in a.txt, don't touch it",
            "tidy up the wording of README",
            "clear up what the project does",
            "clean the code style",
            "drop me a line about the project",
            "drop a file with the totals into logs",
            "drop the report into the folder out",
            "clean up notes.md",
            "tidy the file, its headings are a mess",
            "clear up the confusion about the two folders",
            "free the reader from jargon in guide.md",
            "keep the style of the files",
            "keep me posted on the backups",
            "keep only the first three lines of a.csv",
            "leave a file with the totals there",
            "leave the logs as they are",
            "empty lines in a.txt are counted where?",
            "drop the second sentence of the introduction",
            "clean up the log format in main.rs",
            "lösche nichts",
            "ne supprime pas les fichiers",
            "no borres nada, no eliminar",
            "不要删除任何文件",
            "何も削除しないでください",
            "",
        ] {
            assert!(!orders_removal(task), "{task}");
        }
    }
}

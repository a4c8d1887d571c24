//! Whether a task orders that files be taken away: what `--yes` and an `always` do not cover otherwise. Where the words leave it in
//! doubt the answer is no, and the person is asked.

use super::tokens::is_in;

/// Orders, wherever a clause gives one.
const REMOVE: &str = "dedupe deduplicate delete deleting discard discarding eliminate erase erasing prune pruning purge purging remove \
removing rm shred shredding uninstall unlink wipe wiping";
/// Orders that are other words as well (`an empty file`, `keep in mind`): nothing but `please` and its like may stand before them.
const ALSO_OTHERS: &str = "clean cleanup clear drop empty free keep leave tidy trash";
/// Orders of two words.
const PAIRS: [(&str, &str); 6] =
    [("get", "rid"), ("getting", "rid"), ("throw", "away"), ("throw", "out"), ("dispose", "of"), ("do", "away")];
/// Orders in German, French, Spanish, Portuguese, Italian and Dutch, where verbs also stand at the end.
const ELSEWHERE: &str = "lösche lösch löschen loesche loeschen entferne entfernen supprime supprimer supprimez efface effacer effacez \
enlève enlever enlevez borra borrar borre elimina eliminar elimine suprime suprimir apaga apagar apague remova remover exclua excluir \
cancella cancellare rimuovi rimuovere verwijder verwijderen wis";
/// The same in scripts without blanks, and what takes it back there.
const UNSPACED: [&str; 9] = ["删除", "刪除", "清空", "移除", "清除", "削除", "消して", "삭제", "지워"];
const UNSPACED_NOT: [&str; 9] = ["不", "别", "別", "勿", "没", "ない", "ません", "마", "않"];

/// What takes an order back.
const NOT: &str =
    "don't dont never not no nothing none without nor neither cannot can't shouldn't mustn't instead rather";
const NOT_ELSEWHERE: &str = "nicht nichts kein keine keinen niemals nie ohne ne pas rien jamais aucun aucune sans no nada nunca ningún \
ninguno ninguna sin não nao nenhum nenhuma sem non niente nessun nessuna senza niet niets geen zonder";
/// What does not, behind one of those: `don't forget to delete them`.
const BUT: &str = "fail forget hesitate only";
/// What may stand between the beginning of a clause and its order.
const BEFORE: &str = "after afterwards ahead also and before but by can can't cannot completely could dont don't everything fail \
finally first forget go hesitate i i'd it just kindly let's lastly like must need never next not now only or please \
permanently recursively safely shall should simply that them then to up want we will would you";
/// What a clause begins with that asks for no deed.
const ASKS: &str = "am are count describe did display do does explain find has have how is list print show tell was were what when \
where which who whose why";

/// True if some clause of the task orders that something be removed. What is quoted, what others did or may do (`the deleted files`,
/// `which can I delete`) and what is forbidden is no order.
pub fn orders_removal(task: &str) -> bool {
    clauses(&unquoted(&task.to_lowercase().replace('’', "'"))).iter().any(|clause| orders(clause))
}

fn orders(clause: &str) -> bool {
    let has = |list: &[&str]| list.iter().any(|sign| clause.contains(sign));
    if has(&UNSPACED) {
        return !has(&UNSPACED_NOT);
    }
    let edge = |c: char| !c.is_alphanumeric() && c != '\'';
    let words: Vec<&str> = clause.split_whitespace().map(|w| w.trim_matches(edge)).filter(|w| !w.is_empty()).collect();
    if words.iter().any(|word| is_in(ELSEWHERE, word)) {
        return !words.iter().any(|word| is_in(NOT_ELSEWHERE, word));
    }
    (0..words.len()).any(|at| {
        let next = words.get(at + 1).copied().unwrap_or_default();
        let clear = is_in(REMOVE, words[at]) || PAIRS.contains(&(words[at], next));
        if !clear && !is_in(ALSO_OTHERS, words[at]) {
            return false;
        }
        let begin = words[..at].iter().rposition(|word| is_in("and then but", word)).map_or(0, |joint| joint + 1);
        let before = &words[begin..at];
        // `list what I need to delete`; but `list them and delete them`
        let asks = begin == 0 && is_in(ASKS, words[0]);
        let told = before.iter().all(|word| is_in(BEFORE, word) && (clear || !matches!(*word, "that" | "it" | "them")));
        let forbids = |i: usize| is_in(NOT, words[i]) && !words.get(i + 1).is_some_and(|word| is_in(BUT, word));
        told && !asks && !(begin..at).any(forbids) && !is_in(NOT, next)
    })
}

/// What lies between marks that end a clause: such a one stands before a blank, and none is part of a name.
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

/// The text without what stands in quotes; an apostrophe begins none.
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
        match inside.find(close).filter(|_| !word) {
            Some(end) => rest = &inside[end + close.len_utf8()..],
            None => {
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
    fn what_is_ordered_to_be_removed() {
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
    fn what_is_not() {
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

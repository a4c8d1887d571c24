//! Finds the folders in which clients of tldr store its pages.
//!
//! Each was looked up in the client's own source or manual: tealdeer 1.9, tlrc 1.13, the Python client 3.4, the Node
//! client 3.4, the C client 1.6; the last is where packages of distributions put them.

use caro_shell::Os;
use std::path::PathBuf;

/// Folders with pages in English: those for every system and those for `os`. Only the first client with pages is
/// used, since all have the same pages. Empty if there is none.
pub fn folders(os: Os) -> Vec<PathBuf> {
    let Some(base) = directories::BaseDirs::new() else { return Vec::new() };
    let (home, cache) = (base.home_dir(), base.cache_dir());
    first_with_pages(
        &[
            cache.join("tealdeer/tldr-pages"),
            cache.join("tlrc"),
            cache.join("tldr"),
            home.join(".tldr/cache"),
            home.join(".tldrc/tldr"),
            PathBuf::from("/usr/share/tldr"),
        ],
        os,
    )
}

fn first_with_pages(clients: &[PathBuf], os: Os) -> Vec<PathBuf> {
    let system = match os {
        Os::Linux => "linux",
        Os::MacOs => "osx",
        Os::FreeBsd => "freebsd",
        Os::Windows => "windows",
    };
    // newer clients have a folder for each language
    let languages = clients.iter().flat_map(|client| ["pages.en", "pages"].map(|language| client.join(language)));
    let present = |pages: PathBuf| ["common", system].map(|part| pages.join(part)).into_iter().filter(|p| p.is_dir());
    languages.map(|pages| present(pages).collect::<Vec<_>>()).find(|found| !found.is_empty()).unwrap_or_default()
}

/// The hint if there are no pages.
pub const HINT: &str =
    "`tldr --update` fetches the pages with most clients; else name their folder: `caro knowledge ingest DIR`";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_client_with_pages_is_used_with_those_of_this_system() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        for made in ["b/pages.en/common", "b/pages.en/linux", "b/pages.en/osx", "c/pages/common", "a/other"] {
            std::fs::create_dir_all(at(made)).unwrap();
        }
        let clients = ["a", "b", "c"].map(at);
        assert_eq!(first_with_pages(&clients, Os::Linux), ["b/pages.en/common", "b/pages.en/linux"].map(at));
        assert_eq!(first_with_pages(&clients, Os::MacOs), ["b/pages.en/common", "b/pages.en/osx"].map(at));
        assert_eq!(first_with_pages(&clients[2..], Os::Windows), [at("c/pages/common")]);
        assert_eq!(first_with_pages(&clients[..1], Os::Linux), Vec::<PathBuf>::new());
    }
}

//! Tests of the layers of settings, and of faults in them.

use super::*;
use caro_model::catalog::DEFAULT_MODEL;

fn env(vars: &'static [(&str, &str)]) -> Env {
    Env::from_lookup(|name| vars.iter().find(|(k, _)| *k == name).map(|(_, v)| v.into()))
}

#[test]
fn defaults_are_valid() {
    let config = Config::load(&Dirs::default(), &Env::default(), None, &[]).unwrap();
    let settings = Settings::of(&config).unwrap();
    assert_eq!(settings.max_iterations, 2);
    assert_eq!(settings.target, None);
}

#[test]
fn flags_beat_variables_beat_the_users_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.toml");
    std::fs::write(&file, "# mine\ntimeout = 9\nrefine = \"never\"\nmax_iterations = 1\n").unwrap();
    let dirs = Dirs { config_file: Some(file.clone()), ..Dirs::default() };
    let env = env(&[("CARO_REFINE", "always"), ("CARO_MAX_ITERATIONS", "3")]);
    let config = Config::load(&dirs, &env, None, &[("max_iterations", "2".into())]).unwrap();
    assert_eq!((config.text("timeout"), config.origin("timeout")), ("9", &Origin::File(file, 2)));
    assert_eq!((config.text("refine"), config.origin("refine")), ("always", &Origin::Env("CARO_REFINE")));
    assert_eq!(config.text("max_iterations"), "2");
    assert_eq!(config.origin("max_iterations").to_string(), "--max-iterations");
}

#[test]
fn mistakes_name_file_line_and_what_was_meant() {
    let parse = |text: &str| -> Result<Vec<Line>, Failure> {
        super::parse(text, Path::new("c.toml"), 0)?.into_iter().collect()
    };
    let unknown = parse("refine = \"never\"\n\ntime-out = 3\n").unwrap_err();
    assert_eq!(unknown.message, "c.toml:3: there is no setting `time-out`");
    assert!(unknown.hint.unwrap().contains("`timeout`"));
    let far = parse("colour = \"red\"\n").unwrap_err();
    assert_eq!(far.hint.unwrap(), "`caro config` shows them all");
    let table = parse("[general]\ntimeout = 3\n").unwrap_err();
    assert_eq!(table.message, "c.toml:1: `general` is a table, and settings stand in none");
    assert!(parse("a = [").unwrap_err().message.starts_with("c.toml:1: "));
    let bare = parse("timeout = 3\nrehearse = off\n").unwrap_err();
    assert!(bare.message.starts_with("c.toml:2: "), "{}", bare.message);
    assert!(bare.hint.unwrap().contains("rehearse = \"off\""));
    assert!(parse("refine = true").unwrap_err().message.contains("takes no boolean"));
    assert!(parse("timeout = [5]").unwrap_err().message.contains("takes no array"));
    let config = Config::load(&Dirs::default(), &env(&[("CARO_TIMEOUT", "soon")]), None, &[]).unwrap();
    assert!(Settings::of(&config).unwrap_err().message.starts_with("CARO_TIMEOUT: `timeout` must be seconds"));
}

#[test]
fn a_switch_may_be_a_boolean() {
    let found = parse("rehearse = false\nresident = true\n", Path::new("c.toml"), 0).unwrap();
    let values: Vec<String> = found.into_iter().map(|line| line.unwrap().1).collect();
    assert_eq!(values, ["off", "on"]);
    let settings = |text: &str| {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        std::fs::write(&file, text).unwrap();
        let dirs = Dirs { config_file: Some(file), ..Dirs::default() };
        Settings::of(&Config::load(&dirs, &Env::default(), None, &[]).unwrap()).unwrap()
    };
    assert!(!settings("rehearse = false").rehearse && settings("rehearse = true").rehearse);
}

#[test]
fn a_project_may_set_the_target_and_tighten_but_never_loosen_or_choose_the_model() {
    let dir = tempfile::tempdir().unwrap();
    let project = |text: &str, env: &Env| {
        std::fs::write(dir.path().join(PROJECT_FILE), text).unwrap();
        Config::load(&Dirs::default(), env, Some(dir.path()), &[])
    };
    let user = env(&[("CARO_RUN_UP_TO", "caution")]);
    let config = project("target = \"macos-bsd\"\nrun_up_to = \"danger\"", &user).unwrap();
    assert_eq!((config.text("target"), config.text("run_up_to")), ("macos-bsd", "caution"));
    let config = project("run_up_to = \"safe\"", &user).unwrap();
    assert_eq!(config.text("run_up_to"), "safe");
    for (text, warning) in [
        ("\nmodel = \"openai:http://elsewhere#m\"", ".caro.toml:2: a project may not set `model`; it is passed over"),
        ("memory = \"redis\"", ".caro.toml:1: a project may not set `memory`; it is passed over"),
    ] {
        let config = project(text, &user).unwrap();
        assert_eq!((config.text("model"), config.text("memory")), (DEFAULT_MODEL, "sqlite"));
        assert!(config.warnings()[0].ends_with(warning), "{:?}", config.warnings());
    }
}

/// A project may be for a newer program, or of another author: the valid lines of its file are used.
#[test]
fn a_fault_in_a_project_is_a_warning_and_the_rest_is_used() {
    let dir = tempfile::tempdir().unwrap();
    for (bad, expected) in [
        ("glow = true", ":2: there is no setting `glow`"),
        ("refine = \"soon\"", ":2: `refine` must be one of never, evidence, always, and not `soon`"),
        ("refine = [1]", ":2: `refine` takes no array"),
        ("shell = zsh", ":2: "),
        ("= = =", ":2: "),
        ("[ui]\nglow = true", ":2: `ui` is a table"),
    ] {
        std::fs::write(dir.path().join(PROJECT_FILE), format!("target = \"macos-bsd\"\n{bad}\n")).unwrap();
        let config = Config::load(&Dirs::default(), &Env::default(), Some(dir.path()), &[]).unwrap();
        assert_eq!((config.text("target"), config.text("refine")), ("macos-bsd", "evidence"), "{bad}");
        let [warning] = config.warnings() else { panic!("{bad}: {:?}", config.warnings()) };
        assert!(
            warning.contains(&format!("{PROJECT_FILE}{expected}")) && warning.ends_with("passed over"),
            "{warning}"
        );
        Settings::of(&config).unwrap();
    }
    // an invalid value of a setting that may be made stricter counts as the strictest
    std::fs::write(dir.path().join(PROJECT_FILE), "run_up_to = \"never\"\n").unwrap();
    let config = Config::load(&Dirs::default(), &Env::default(), Some(dir.path()), &[]).unwrap();
    assert_eq!(config.text("run_up_to"), "safe");
    assert!(config.warnings()[0].contains("must be one of safe, caution, danger"), "{:?}", config.warnings());
    // in the user's own file a fault is an error
    let file = dir.path().join("config.toml");
    std::fs::write(&file, "glow = true\n").unwrap();
    let dirs = Dirs { config_file: Some(file), ..Dirs::default() };
    assert!(Config::load(&dirs, &Env::default(), None, &[]).is_err());
}

#[cfg(unix)]
#[test]
fn a_file_that_others_may_write_is_a_warning() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.toml");
    std::fs::write(&file, "timeout = 3\n").unwrap();
    let dirs = Dirs { config_file: Some(file.clone()), ..Dirs::default() };
    let warnings = |mode| {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        Config::load(&dirs, &Env::default(), None, &[]).unwrap().warnings().join("\n")
    };
    assert_eq!([0o600, 0o644, 0o444].map(warnings), [""; 3]);
    for mode in [0o620, 0o602, 0o666] {
        assert!(warnings(mode).contains(&format!("others may write {} (mode {mode:o})", file.display())));
    }
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&file, Some(4711), None).unwrap();
        assert!(warnings(0o600).contains("belongs to user 4711"));
    }
}

#[cfg(unix)]
#[test]
fn a_configuration_that_never_ends_is_an_error() {
    let dirs = Dirs { config_file: Some("/dev/zero".into()), ..Dirs::default() };
    let failure = Config::load(&dirs, &Env::default(), None, &[]).unwrap_err();
    assert!(failure.message.contains("more than 65536 bytes") && failure.hint.is_some(), "{failure:?}");
}

#[test]
fn a_password_is_not_shown() {
    for (url, shown) in [
        ("redis://me:hunter2@host:1/2", "redis://***@host:1/2"),
        ("redis://:a@b:c@host", "redis://***@host"),
        ("redis+unix:///run/r.sock?db=1&pass=hunter2", "redis+unix:///run/r.sock?db=1&pass=***"),
        ("redis+unix:///run/r.sock?db=1", "redis+unix:///run/r.sock?db=1"),
        ("none", "none"),
        // what is rejected is shown, too
        (":hunter2@db:6379/0", "***@db:6379/0"),
        ("redis//:hunter2@db", "***@db"),
        (":hunter2://x@db", "***@db"),
        ("redis://:hunter2?x@db", "redis://***@db"),
        ("redis://:hunter2pass=hunter2@db", "redis://***"),
        ("unix:/run/r.sock?pass=hun@hunter2", "***"),
        ("redis+unix:///r.sock?user=a@b&pass=hunter2", "redis+unix://***@b&pass=***"),
    ] {
        let config = Config::load(&Dirs::default(), &Env::default(), None, &[("memory_url", url.into())]).unwrap();
        assert_eq!((config.shown("memory_url").as_str(), config.text("memory_url")), (shown, url));
        let rejected = Settings::of(&config).err().map_or(String::new(), |failure| format!("{failure:?}"));
        assert!(!rejected.contains("hunter2"), "{rejected}");
    }
    let model = [("model", "/home/me@work/model.gguf"), ("workspace_url", "https://me:hunter2@host/bucket")];
    let config = Config::load(&Dirs::default(), &Env::default(), None, &model.map(|(k, v)| (k, v.into()))).unwrap();
    assert_eq!(config.shown("model"), "/home/me@work/model.gguf");
    assert_eq!(config.shown("workspace_url"), "https://***@host/bucket");
}

#[cfg(unix)]
#[test]
fn a_project_file_of_another_user_is_ignored() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: only root can give a file away");
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(PROJECT_FILE);
    std::fs::write(&file, "timeout = 3\n").unwrap();
    assert_eq!(project_file(dir.path()), Some(file.clone()));
    std::os::unix::fs::chown(&file, Some(4711), None).unwrap();
    assert_eq!(project_file(dir.path()), None);
}

#[test]
fn the_project_file_is_searched_up_to_the_top_of_the_repository() {
    let dir = tempfile::tempdir().unwrap();
    let (top, deep) = (dir.path().join("repo"), dir.path().join("repo/a/b"));
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::create_dir(top.join(".git")).unwrap();
    std::fs::write(dir.path().join(PROJECT_FILE), "").unwrap();
    assert_eq!(project_file(&deep), None);
    std::fs::write(top.join(PROJECT_FILE), "").unwrap();
    assert_eq!(project_file(&deep), Some(top.join(PROJECT_FILE)));
}

//! Parses the command line, runs the verb and returns its exit code.

use super::args::{self, Cli, Verb};
use super::flags::Common;
use super::{Cx, Dirs, Env, Exit, Failure, Interrupt, Outcome, Ui};
use crate::setup::{policy, resident};
use crate::verbs::{
    agent, artifacts, batch, bench, chat, check, completions, config, context, doctor, eval, explain, fix, forge, help,
    history, init, knowledge, manual, mcp, memory, model, perpetual, request, serve, skills, status, stop, task, tools,
    undo, uninstall, version, workspace,
};
use clap::CommandFactory;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

/// Parses the arguments, runs the verb and returns its exit code.
pub fn main() -> ExitCode {
    // before anything that starts a thread or takes time
    if let Some(code) = caro_exec::rehearse::helper_main() {
        return ExitCode::from(code);
    }
    let started = Instant::now();
    caro_exec::survive_file_size_limit();
    // before a second thread exists
    caro_model::engine::init();
    let argv: Vec<OsString> = std::env::args_os().collect();
    if let [_, word, orders] = &argv[..]
        && word == resident::WORD
    {
        return ExitCode::from(resident::run(orders).code());
    }
    let env = Env::of_process();
    if caro_exec::output_was_closed() {
        let nowhere = Failure::usage("standard output is closed: there is nowhere to write an answer to")
            .hint("nothing was done; `>/dev/null` throws away what is not wanted");
        Ui::new(&Common::default(), &env).failure(&nowhere);
        return ExitCode::from(nowhere.exit.code());
    }
    let cli = match args::parse(argv.clone()) {
        Ok(cli) => cli,
        Err(e) => {
            let printed = e.print().and_then(|()| std::io::stdout().flush());
            let ui = Ui::new(&Common::default(), &env);
            if e.use_stderr() {
                if let Some(hint) = args::hint(&argv) {
                    ui.hint(&hint);
                }
                return ExitCode::from(Exit::Usage.code());
            }
            // `--help` and `--version`
            let exit = printed.map_err(Failure::from).map_or_else(
                |failure| {
                    ui.failure(&failure);
                    failure.exit
                },
                |()| Exit::Success,
            );
            return ExitCode::from(exit.code());
        }
    };
    let ui = Ui::new(&cli.common, &env);
    let dirs = Dirs::find(&env);
    if let Some(home) = crate::dirs::relative_home() {
        ui.warn(&format!(
            "HOME is `{}`, which is not an absolute path: nothing is read from it or kept in it",
            home.display()
        ));
    }
    let cx = Cx::new(ui, env, dirs, started, Cli::command);
    let exit = match dispatch(&cli, &cx) {
        Ok(exit) => exit,
        Err(failure) => {
            cx.ui.failure(&failure);
            failure.exit
        }
    };
    ExitCode::from(exit_code(exit, cx.started_interrupt()))
}

/// The exit code of the process; of an interrupted verb, that of the signal which ended it.
fn exit_code(exit: Exit, interrupt: Option<&Interrupt>) -> u8 {
    match interrupt.and_then(Interrupt::signal_code) {
        Some(code) if exit == Exit::Interrupted => code,
        _ => exit.code(),
    }
}

/// True for verbs that rate commands: policies are read only for them.
fn rates_commands(verb: Option<&Verb>) -> bool {
    match verb {
        None => true,
        Some(verb) => matches!(
            verb,
            Verb::Agent(_)
                | Verb::Chat(_)
                | Verb::Loop(_)
                | Verb::Resume(_)
                | Verb::Batch(_)
                | Verb::Check(_)
                | Verb::Explain(_)
                | Verb::Fix(_)
                | Verb::Eval(_)
                | Verb::Mcp(_)
                | Verb::Serve(_)
                | Verb::Forge(_)
                | Verb::Task(_)
        ),
    }
}

/// Runs the verb of the command line; without a verb, the words are a request.
fn dispatch(cli: &Cli, cx: &Cx) -> Outcome {
    if rates_commands(cli.verb.as_ref()) {
        policy::load(cx)?;
    }
    match &cli.verb {
        None => request::run(&cli.request, cx),
        Some(Verb::Context(args)) => context::run(args, cx),
        Some(Verb::Explain(args)) => explain::run(args, cx),
        Some(Verb::Manual(args)) => manual::run(args, cx),
        Some(Verb::Model(args)) => model::run(args, cx),
        Some(Verb::Batch(args)) => batch::run(args, cx),
        Some(Verb::Bench(args)) => bench::run(args, cx),
        Some(Verb::Agent(args)) => agent::run(args, cx),
        Some(Verb::Chat(args)) => chat::run(args, cx),
        Some(Verb::Loop(args)) => perpetual::run(args, cx),
        Some(Verb::Task(args)) => task::run(args, cx),
        Some(Verb::Resume(args)) => agent::resume::run(args, cx),
        Some(Verb::Events(args)) => agent::events::run(args, cx),
        Some(Verb::Session(args)) => agent::session::run(args, cx),
        Some(Verb::Artifacts(args)) => artifacts::run(args, cx),
        Some(Verb::Workspace(args)) => workspace::run(args, cx),
        Some(Verb::Stats(args)) => agent::stats::run(args, cx),
        Some(Verb::Knowledge(args)) => knowledge::run(args, cx),
        Some(Verb::Memory(args)) => memory::run(args, cx),
        Some(Verb::Forge(args)) => forge::run(args, cx),
        Some(Verb::Skills(args)) => skills::run(args, cx),
        Some(Verb::Mcp(args)) => mcp::run(args, cx),
        Some(Verb::Tools(args)) => tools::run(args, cx),
        Some(Verb::Config(args)) => config::run(args, cx),
        Some(Verb::Doctor(args)) => doctor::run(args, cx),
        Some(Verb::Help(args)) => help::run(args, cx),
        Some(Verb::History(args)) => history::run(args, cx),
        Some(Verb::Own(args)) => uninstall::run(args, cx),
        Some(Verb::Completions(args)) => completions::run(args, cx),
        Some(Verb::Check(args)) => check::run(args, cx),
        Some(Verb::Fix(args)) => fix::run(args, cx),
        Some(Verb::Eval(args)) => eval::run(args, cx),
        Some(Verb::Status(args)) => status::run(args, cx),
        Some(Verb::Stop(args)) => stop::run(args, cx),
        Some(Verb::Serve(args)) => serve::run(args, cx),
        Some(Verb::Init(args)) => init::run(args, cx),
        Some(Verb::Undo(args)) => undo::run(args, cx),
        Some(Verb::Version(args)) => version::run(args, cx),
    }
}

//! The heapr command line: arguments, printing, exit codes. Only this crate prints or exits.
//!
//! Exit status: 0 done, 1 a finding or a threshold exceeded, 2 our error; `run` passes the
//! program's status through.
#![forbid(unsafe_code)]

#[macro_use]
mod plain_text;

mod busy_line;
mod command_words;
mod completions;
mod config;
mod containers;
mod diff;
mod diff_functions;
mod doctor;
mod explain;
mod export;
mod finding_text;
mod graph_contents;
mod help;
mod incidents;
mod info;
mod manual;
mod mcp;
#[cfg(test)]
mod option_names;
mod output;
mod own_arguments;
mod processes;
mod push;
mod report;
mod run;
mod serve;
mod sessions;
mod snapshot;
mod snapshot_take;
mod style;
mod symbolize;
mod thresholds;
mod top;
mod trace_file;
mod transfer;
mod version;
mod view;
mod watch;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Args as _, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: heapr_inject::RunsAlone = heapr_inject::RunsAlone { with_values: run::OPTIONS_WITH_VALUES };

/// Records, snapshots and explains the heaps of running Linux programs.
#[derive(Debug, Parser)]
#[command(name = "heapr", version = version::short(), long_version = version::long(), propagate_version = true)]
struct Arguments {
    /// Shorten no name, however long the line
    #[arg(long, global = true)]
    wide: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Trace a program from its first instruction, then print where its memory is.
    Run(Box<run::RunArguments>),
    /// Start a session in the background, with a program or on running processes.
    Start(Box<sessions::StartArguments>),
    /// Show the sessions that run, or one of them in full.
    #[command(aliases = ["list", "ls", "ps"])]
    Status(Box<sessions::StatusArguments>),
    /// Change a session: its processes, which events carry stacks; flush its file.
    Update(Box<sessions::UpdateArguments>),
    /// Show a session or a process live in the terminal: functions by live memory, growth, rate.
    Top(Box<top::TopArguments>),
    /// Record processes for as long as they run, and tell why one of them was killed.
    Watch(Box<watch::WatchArguments>),
    /// Show the incidents of `heapr watch`: who was killed, by whom, and what held the memory.
    Incidents(Box<incidents::IncidentsArguments>),
    /// Put a text into a session's trace, with the time.
    Mark(Box<sessions::MarkArguments>),
    /// End a session, complete its trace, and print where the memory is.
    Stop(Box<sessions::StopArguments>),
    /// End a session and keep nothing.
    Cancel(Box<sessions::CancelArguments>),
    /// Print the heap actions of a trace: totals, stacks, frames, images.
    Report(Box<report::ReportArguments>),
    /// Say in words why memory is as it is: what stands out, and what all of it is.
    Explain(Box<explain::ExplainArguments>),
    /// Compare two traces by stack, frame or image.
    Diff(Box<diff::DiffArguments>),
    /// Print what a trace file holds: system, session, processes, modules, chunks, loss, damage.
    Info(Box<info::InfoArguments>),
    /// Write a trace in another tool's format.
    Export(Box<export::ExportArguments>),
    /// Send a recording or session to Pyroscope, Parca or OpenTelemetry.
    Push(Box<push::PushArguments>),
    /// Answer /debug/pprof/heap for a session or a recording, as programs of Go do.
    Serve(Box<serve::ServeArguments>),
    /// Show traces and snapshots on a page in the browser.
    View(Box<view::ViewArguments>),
    /// Embed the symbols in a trace, so that it can be read on another machine.
    Symbolize(Box<symbolize::SymbolizeArguments>),
    /// Take heap snapshots of running processes, of JavaScript and of native memory; read and
    /// compare them.
    Snapshot(snapshot::SnapshotArguments),
    /// Flag programs that are to be recorded whenever they start.
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Say what works on this machine for this user, and what to change for the rest.
    Doctor(doctor::DoctorArguments),
    /// Start Node ready for snapshots, or profile a running Node.
    Node(Box<snapshot_take::NodeArguments>),
    /// Serve agents: tools to record, explain and compare heaps, by the Model Context Protocol.
    Mcp(mcp::McpArguments),
    /// Print what a shell needs to complete heapr's commands and options.
    Completions(completions::CompletionsArguments),
    /// Print the manual's page of a command, or write all pages into a folder.
    Man(manual::ManArguments),
}

/// Global options, as in [`Arguments`].
#[derive(Debug, clap::Args)]
struct GlobalOptions {
    #[arg(long, global = true)]
    wide: bool,
}

/// Parses a command line by the options of its command alone. Describing those of all commands
/// takes a fifth of the time in which a small program starts and ends. `None` if the command is
/// unknown, and if a message is due, which may name other commands.
fn parsed_alone(words: impl IntoIterator<Item = OsString>) -> Option<Arguments> {
    let mut words = words.into_iter().skip(1);
    let name = words.next()?;
    let words = [name.clone()].into_iter().chain(words);
    Some(match name.to_str()? {
        "run" => of_command(words, Command::Run)?,
        "report" => of_command(words, Command::Report)?,
        "explain" => of_command(words, Command::Explain)?,
        "diff" => of_command(words, Command::Diff)?,
        "export" => of_command(words, Command::Export)?,
        "snapshot" => of_command(words, Command::Snapshot)?,
        _ => return None,
    })
}

/// Parses a command line that begins with the name of the command.
fn of_command<A: clap::Args>(
    words: impl Iterator<Item = OsString>,
    command: impl FnOnce(A) -> Command,
) -> Option<Arguments> {
    // `--version` is known, so that it is not taken for the program to run.
    let heapr = clap::Command::new("heapr").version("as the whole says").propagate_version(true);
    let described = A::augment_args(GlobalOptions::augment_args(heapr));
    let mut found = described.try_get_matches_from(words).ok()?;
    let GlobalOptions { wide } = GlobalOptions::from_arg_matches(&found).ok()?;
    Some(Arguments { wide, command: command(A::from_arg_matches_mut(&mut found).ok()?) })
}

/// Stack that heapr's own code needs at most.
const STACK_BYTES: usize = 8 << 20;

fn main() -> ExitCode {
    heapr_inject::leave_given_limits();
    if heapr_inject::has_small_stack(STACK_BYTES as u64) {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(main_in_any_thread);
        if let Ok(thread) = thread {
            return thread.join().unwrap_or(ExitCode::from(2));
        }
    } else {
        ALLOCATOR.reserve_stack();
    }
    main_in_any_thread()
}

fn main_in_any_thread() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    if words.get(1).is_some_and(|word| word == sessions::RECORDER) {
        return ended(sessions::record(words));
    }
    if words.get(1).is_some_and(|word| word == completions::COMMAND) {
        return ended(completions::answer(words.get(2..).unwrap_or_default(), described()));
    }
    let words = command_words::normal(words);
    if let Some(typed) = command_words::tip(&words) {
        let name = words.get(1).map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
        tell!("heapr: {name}: type  {typed}");
        return ExitCode::from(2);
    }
    ended(run_command(parsed_alone(words.clone()).unwrap_or_else(|| parsed_whole(words))))
}

/// Parses a command line by the description of all commands, in the form that help shows. Ends the
/// program with a message if the words are wrong, or ask for help.
fn parsed_whole(words: Vec<OsString>) -> Arguments {
    let mut found = described().get_matches_from(words);
    Arguments::from_arg_matches_mut(&mut found).unwrap_or_else(|error| error.format(&mut described()).exit())
}

/// Returns the description of all commands, in the form that help shows.
fn described() -> clap::Command {
    help::shaped(Arguments::command())
}

fn ended(outcome: anyhow::Result<ExitCode>) -> ExitCode {
    match outcome {
        Ok(status) => status,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            tell!("heapr: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run_command(arguments: Arguments) -> anyhow::Result<ExitCode> {
    if arguments.wide {
        plain_text::set_wide();
    }
    match arguments.command {
        Command::Run(arguments) => run::run(*arguments, explain::failures),
        Command::Start(arguments) => sessions::start(*arguments),
        Command::Status(arguments) => sessions::status(&arguments),
        Command::Update(arguments) => sessions::update(*arguments),
        Command::Top(arguments) => top::run(*arguments),
        Command::Watch(arguments) => watch::run(*arguments),
        Command::Incidents(arguments) => incidents::run(&arguments),
        Command::Mark(arguments) => sessions::mark(&arguments),
        Command::Stop(arguments) => sessions::stop(*arguments),
        Command::Cancel(arguments) => sessions::cancel(&arguments),
        Command::Report(arguments) => report::run(*arguments),
        Command::Explain(arguments) => explain::run(*arguments),
        Command::Diff(arguments) => diff::run(*arguments),
        Command::Info(arguments) => info::run(*arguments),
        Command::Export(arguments) => export::run(*arguments),
        Command::Push(arguments) => push::run(*arguments),
        Command::Serve(arguments) => serve::run(*arguments),
        Command::View(arguments) => view::run(*arguments),
        Command::Symbolize(arguments) => symbolize::run(*arguments),
        Command::Snapshot(arguments) => snapshot::run(arguments),
        Command::Config(command) => config::run(command),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Node(arguments) => snapshot_take::run_node(*arguments),
        Command::Mcp(arguments) => mcp::run(arguments),
        Command::Completions(arguments) => completions::run(&arguments, described()),
        Command::Man(arguments) => manual::run(&arguments, described()),
    }
}

/// True for a broken pipe: a reader that went away (`heapr report … | head`) is not an error.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    // serde_json's error does not return the I/O error as its source.
    let kind = |cause: &(dyn std::error::Error + 'static)| match cause.downcast_ref::<std::io::Error>() {
        Some(error) => Some(error.kind()),
        None => cause.downcast_ref::<serde_json::Error>()?.io_error_kind(),
    };
    error.chain().any(|cause| kind(cause) == Some(std::io::ErrorKind::BrokenPipe))
}

#[cfg(test)]
mod tests {
    use clap::ArgAction;

    use super::*;

    /// Collects options with a fixed number of values that append when they are given again. A
    /// reader of such values would have to split them.
    fn keep_more_than_they_ask_for(command: &clap::Command, found: &mut Vec<String>) {
        for argument in command.get_arguments() {
            let Some(values) = argument.get_num_args() else { continue };
            let is_fixed = values.min_values() == values.max_values() && values.max_values() > 1;
            if is_fixed && matches!(argument.get_action(), ArgAction::Append) {
                found.push(format!("{} --{}", command.get_name(), argument.get_id()));
            }
            assert!(!command.is_args_override_self(), "{}", command.get_name());
        }
        command.get_subcommands().for_each(|command| keep_more_than_they_ask_for(command, found));
    }

    #[test]
    fn a_command_line_means_the_same_with_and_without_the_other_commands() {
        for line in [
            "heapr run true",
            "heapr run --quiet -f -o t.heapr --wide --fail-on growth --mmap -- ls -l --wide",
            "heapr run ls -l --help",
            "heapr report t.heapr --wide --size 0 9 --cull-frames a --cull-frames b",
            "heapr explain t.heapr",
            "heapr diff a.heapr b.heapr",
            "heapr export t.heapr --to pprof -o p",
            "heapr snapshot summary a.heapsnapshot --wide",
            "heapr snapshot --wide take 1 2",
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            let alone = parsed_alone(words.iter().map(OsString::from)).expect(line);
            let whole = Arguments::try_parse_from(&words).expect(line);
            assert_eq!(format!("{alone:?}"), format!("{whole:?}"), "{line}");
        }
        for line in [
            "heapr",
            "heapr run",
            "heapr run --help",
            "heapr run --version",
            "heapr report --no-such true",
            "heapr snapshot",
            "heapr snapshot help",
            "heapr snapshot summary --version",
            "heapr status",
            "heapr --wide run true",
        ] {
            assert!(parsed_alone(line.split(' ').map(OsString::from)).is_none(), "{line}");
        }
    }

    #[test]
    fn no_option_that_is_given_twice_is_dropped() {
        let mut found = Vec::new();
        let mut command = Arguments::command();
        command.build();
        keep_more_than_they_ask_for(&command, &mut found);
        assert_eq!(found, [""; 0]);
        let twice = ["heapr", "report", "t.heapr", "--size", "0", "9", "--size", "20", "30"];
        assert!(Arguments::try_parse_from(twice).is_err());
    }
}

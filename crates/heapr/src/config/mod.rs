//! `heapr config`: flags on programs that are to be traced whenever they start.

mod shell;

use heapr_table::json_text::json_lines;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand, ValueEnum};
use heapr_session::{Flag, FlagKind, FlagScope, FlagTarget, Flags};
use serde_json::{Value, json};

use crate::processes;

/// Actions on the flags.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Flag a program, until it is disabled.
    Enable(FlagArguments),
    /// Take a flag away.
    Disable(FlagArguments),
    /// Show flags: all, or whether one is set.
    Query(QueryArguments),
    /// Print what a shell sets so that your own flagged programs are traced from their first
    /// instruction, without root.
    Shell(shell::ShellArguments),
}

/// A flag.
#[derive(Debug, Args)]
pub(crate) struct FlagArguments {
    /// Kind of recording
    kind: Kind,
    #[command(flatten)]
    targets: Targets,
    #[command(flatten)]
    place: Place,
}

/// Which flags to show.
#[derive(Debug, Args)]
pub(crate) struct QueryArguments {
    /// Only flags of this kind
    kind: Option<Kind>,
    #[command(flatten)]
    targets: Targets,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Every allocation, for a trace
    Heap,
    /// The live heap, for snapshots
    Snapshot,
}

#[derive(Debug, Args)]
struct Targets {
    /// File name of the executable
    #[arg(long, value_name = "EXE")]
    name: Vec<String>,
    /// Systemd unit
    #[arg(long, value_name = "UNIT")]
    unit: Vec<String>,
    /// Flatpak application
    #[arg(long, value_name = "ID")]
    flatpak: Vec<String>,
    /// Snap
    #[arg(long, value_name = "NAME")]
    snap: Vec<String>,
    /// Control group and those below it, from the hierarchy's root
    #[arg(long, value_name = "PATH")]
    cgroup: Vec<String>,
    /// A process that runs, by its number or its program's name; the flag ends with it
    #[arg(long, value_name = "PID|NAME", value_delimiter = ',')]
    pid: Vec<String>,
}

#[derive(Debug, Args)]
struct Place {
    /// The machine's flags in place of this user's
    #[arg(long)]
    system: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// For programs: schema heapr.flags/1
    Json,
}

/// Runs it.
pub(crate) fn run(command: ConfigCommand) -> anyhow::Result<ExitCode> {
    match command {
        ConfigCommand::Enable(arguments) => change(&arguments, true),
        ConfigCommand::Disable(arguments) => change(&arguments, false),
        ConfigCommand::Query(arguments) => query(&arguments),
        ConfigCommand::Shell(arguments) => shell::run(&arguments),
    }
}

impl Targets {
    fn named(&self) -> Vec<FlagTarget> {
        let of = |names: &[String], make: fn(String) -> FlagTarget| -> Vec<FlagTarget> {
            names.iter().cloned().map(make).collect()
        };
        [
            of(&self.name, FlagTarget::Name),
            of(&self.unit, FlagTarget::Unit),
            of(&self.flatpak, FlagTarget::Flatpak),
            of(&self.snap, FlagTarget::Snap),
            of(&self.cgroup, FlagTarget::Cgroup),
        ]
        .concat()
    }

    fn is_empty(&self) -> bool {
        self.named().is_empty() && self.pid.is_empty()
    }
}

impl Place {
    fn scope(&self) -> FlagScope {
        if self.system { FlagScope::System } else { FlagScope::User }
    }
}

impl Kind {
    fn flag_kind(self) -> FlagKind {
        match self {
            Self::Heap => FlagKind::Heap,
            Self::Snapshot => FlagKind::Snapshot,
        }
    }
}

fn change(arguments: &FlagArguments, enable: bool) -> anyhow::Result<ExitCode> {
    if arguments.targets.is_empty() {
        bail!(
            "say which programs: --name EXE, --unit UNIT, --flatpak ID, --snap NAME, --cgroup PATH or --pid PID"
        );
    }
    let kind = arguments.kind.flag_kind();
    let mut targets = arguments.targets.named();
    let scope = arguments.place.scope();
    let before = Flags::load(scope)?;
    for pid in processes::named(&arguments.targets.pid, false)? {
        targets.push(if enable { FlagTarget::running(pid)? } else { process_target(&before, pid) });
    }
    targets.iter().try_for_each(FlagTarget::check)?;
    let changed = Flags::change(scope, |flags| {
        let one = |target: &FlagTarget| {
            let flag = Flag { kind, target: target.clone() };
            let is_changed = if enable { flags.enable(flag.clone())? } else { flags.disable(&flag) };
            anyhow::Ok((flag, is_changed))
        };
        targets.iter().map(one).collect::<anyhow::Result<Vec<_>>>()
    })
    .context("the flags are as they were")??;
    match arguments.place.format {
        Format::Json => {
            let of = |(flag, is_changed): &(Flag, bool)| {
                let mut value = json_of(flag, arguments.place.system);
                value["enabled"] = enable.into();
                value["changed"] = (*is_changed).into();
                value
            };
            print(&document(changed.iter().map(of).collect()))?;
        }
        Format::Text => {
            let mut text = String::new();
            for (flag, is_changed) in &changed {
                let state = match (enable, is_changed) {
                    (true, true) => "is enabled",
                    (true, false) => "was enabled already",
                    (false, true) => "is disabled",
                    (false, false) => "was not enabled",
                };
                text += &format!("{} {state}\n", describe(flag));
            }
            if enable && changed.iter().any(|(_, is_changed)| *is_changed) {
                text += "the flag is kept until it is disabled; sessions act on it: heapr start [NAME] --flagged\n";
            }
            print(&text)?;
        }
    }
    let all_done = enable || changed.iter().all(|(_, is_changed)| *is_changed);
    Ok(if all_done { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Prints flags. If a target was named that has no flag, ends with status 1.
fn query(arguments: &QueryArguments) -> anyhow::Result<ExitCode> {
    let flags = Flags::load(arguments.place.scope())?;
    let kinds: Vec<FlagKind> = match arguments.kind {
        Some(kind) => vec![kind.flag_kind()],
        None => vec![FlagKind::Heap, FlagKind::Snapshot],
    };
    let is_kind = |flag: &&Flag| kinds.contains(&flag.kind);
    let pids = processes::named(&arguments.targets.pid, false)?;
    let mut asked: Vec<(Flag, bool)> = Vec::new();
    for &kind in &kinds {
        for target in arguments.targets.named() {
            target.check()?;
            let flag = Flag { kind, target };
            let is_set = flags.all().contains(&flag);
            asked.push((flag, is_set));
        }
        for &pid in &pids {
            let flag = Flag { kind, target: process_target(&flags, pid) };
            let is_set = flags.in_force().any(|other| *other == flag);
            asked.push((flag, is_set));
        }
    }
    if arguments.targets.is_empty() {
        asked = flags.in_force().filter(is_kind).map(|flag| (flag.clone(), true)).collect();
    }
    match arguments.place.format {
        Format::Json => {
            let of = |(flag, is_set): &(Flag, bool)| {
                let mut value = json_of(flag, arguments.place.system);
                value["enabled"] = (*is_set).into();
                value
            };
            print(&document(asked.iter().map(of).collect()))?;
        }
        Format::Text if asked.is_empty() => print("no program is flagged\n")?,
        Format::Text => {
            let line = |(flag, is_set): &(Flag, bool)| {
                format!("{} is {}\n", describe(flag), if *is_set { "enabled" } else { "disabled" })
            };
            print(&asked.iter().map(line).collect::<String>())?;
        }
    }
    // Without a kind, a flag of either kind is enough.
    let is_missing = match arguments.kind {
        Some(_) => asked.iter().any(|(_, is_set)| !is_set),
        None => !asked.is_empty() && !asked.iter().any(|(_, is_set)| *is_set),
    };
    Ok(if is_missing { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// Returns the flag target of a process. If it has ended, this is the target of a flag set on it
/// before, if any.
fn process_target(flags: &Flags, pid: u32) -> FlagTarget {
    let is_it = |flag: &&Flag| matches!(flag.target, FlagTarget::Pid { pid: other, .. } if other == pid);
    let ended = || flags.all().iter().find(is_it).map(|flag| flag.target.clone());
    let target = FlagTarget::running(pid).ok().or_else(ended);
    target.unwrap_or(FlagTarget::Pid { pid, start_ticks: 0 })
}

fn describe(flag: &Flag) -> String {
    let kind = kind_name(flag.kind);
    let (field, value) = flag.target.parts();
    format!("{kind} for {field} {value}")
}

fn kind_name(kind: FlagKind) -> &'static str {
    match kind {
        FlagKind::Heap => "heap",
        FlagKind::Snapshot => "snapshot",
    }
}

fn json_of(flag: &Flag, is_system: bool) -> Value {
    let (field, value) = flag.target.parts();
    json!({
        "kind": kind_name(flag.kind),
        "target": field,
        "value": value,
        "scope": if is_system { "system" } else { "user" },
    })
}

fn document(flags: Vec<Value>) -> String {
    json_lines(&json!({ "schema": "heapr.flags/1", "flags": flags })) + "\n"
}

fn print(text: &str) -> anyhow::Result<()> {
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}

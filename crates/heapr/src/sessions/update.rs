//! `heapr update`: changes a session.

use std::process::ExitCode;

use heapr_session::{Answer, Request, SampleRate, StackEvents, Update};

use crate::processes;
use crate::run::record_arguments::parse_sample_rate;

/// Arguments of `heapr update`.
#[derive(Debug, clap::Args)]
pub(crate) struct UpdateArguments {
    /// The session, if several run
    name: Option<String>,
    /// Trace these processes too, by number or by the name of their program
    #[arg(long = "add-pid", value_name = "PID|NAME", value_delimiter = ',')]
    add_pids: Vec<String>,
    /// With --add-pid: the processes that these have started already, too
    #[arg(long, requires = "add_pids")]
    tree: bool,
    /// Let go of these processes: they run on as they were before
    #[arg(long = "remove-pid", value_name = "PID|NAME", value_delimiter = ',')]
    remove_pids: Vec<String>,
    /// Which events carry stacks from now on: some of create,alloc,realloc,free,destroy, or none
    #[arg(long = "stack-events", alias = "stacks", value_name = "EVENTS", value_parser = parse_stacks)]
    stacks: Option<StackEvents>,
    /// Sampling of allocations from now on, in a session that was started with --sample: one in so
    /// many bytes (2M), auto, off, or all
    #[arg(long, value_name = "SIZE|auto|off|all", value_parser = parse_sample_rate)]
    sample: Option<SampleRate>,
    /// Bring the file to a state that can be read now
    #[arg(long)]
    flush: bool,
}

fn parse_stacks(text: &str) -> Result<StackEvents, String> {
    StackEvents::from_text(text).map_err(|error| error.to_string())
}

pub(super) fn run(arguments: UpdateArguments) -> anyhow::Result<ExitCode> {
    let UpdateArguments { name, add_pids, tree, remove_pids, stacks, sample, flush } = arguments;
    let add_pids = processes::named(&add_pids, tree)?;
    let remove_pids = processes::named(&remove_pids, false)?;
    let update =
        Update { add_pids, remove_pids, with_children: tree, stacks, sample, flush, sample_for_ms: None };
    anyhow::ensure!(
        update != Update::default(),
        "nothing to change: give --add-pid, --remove-pid, --stack-events, --sample or --flush"
    );
    let answer = super::find(name.as_deref())?.ask(Request::Update(update))?;
    let Answer::Updated(report) = answer else { anyhow::bail!("the session's answer makes no sense") };
    for pid in &report.detached {
        tell!("heapr: process {pid} runs on untraced");
    }
    for (pid, remark) in &report.attached {
        tell!("heapr: process {pid} is traced{}{remark}", if remark.is_empty() { "" } else { ": " });
    }
    for (_, failure) in &report.failed {
        tell!("heapr: {failure}");
    }
    if let Some(failure) = &report.not_sampled {
        tell!("heapr: {failure}");
    }
    Ok(if report.failed.is_empty() && report.not_sampled.is_none() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(2)
    })
}

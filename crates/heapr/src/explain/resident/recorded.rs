//! Resident memory of a process that a session records, so that its blocks have stacks.

use anyhow::{Context as _, bail};
use heapr_session::{Answer, EARLIER_BLOCKS_MODULE, Request, SessionClient};
use heapr_table::SortRows as _;

use super::pinning::RecordedBlocks;
use super::{Resident, reading};
use crate::own_arguments::OwnArguments;
use crate::report::names::{NameArguments, TraceNames};
use crate::trace_file::open;

/// Most stacks in an answer.
const MOST_STACKS: usize = 20;

/// Reads the session's process with the most live bytes; `None` if no process lives.
pub(super) fn look(
    client: &SessionClient,
    names: &NameArguments,
    own: &OwnArguments,
) -> anyhow::Result<Option<Resident>> {
    let Answer::Status(status) = client.ask(Request::Status)? else {
        bail!("session {} gives an answer that makes no sense", client.name());
    };
    let mut alive: Vec<_> = status.processes.iter().filter(|process| process.is_alive).collect();
    alive.sort_rows_by_key(|process| std::cmp::Reverse(process.live_bytes));
    let Some(process) = alive.first() else { return Ok(None) };
    let pid = process.pid;
    let request = Request::Snapshot { name: "explain".to_owned(), pids: vec![pid], graph: None };
    let Answer::Snapshot(taken) = client.ask(request)? else {
        bail!("session {} answered something else: is it of the same heapr?", client.name());
    };
    let trace = open(std::path::Path::new(&taken.output))?;
    let snapshot = trace.snapshot(taken.number).context("the snapshot is not in the session's file")?;
    let mut blocks = RecordedBlocks::of(&trace, snapshot, pid)?;
    let mut resident = reading::read(pid, true, &mut blocks)?;
    // Blocks from before the attach were not recorded.
    let is_from_start = !trace.modules().iter().any(|module| module.path == EARLIER_BLOCKS_MODULE);
    if let Some(heap) = &mut resident.account.heap
        && is_from_start
    {
        // The session's peak is that of all its processes, so at least that of one.
        heap.peak_live_bytes = Some(status.peak_bytes);
    }
    let mut names = TraceNames::new(&trace, names);
    let mut pinned_by = blocks.pinned_by(&trace, &mut names, &own.code(&trace)?);
    pinned_by.truncate(MOST_STACKS);
    resident.pinned_by = pinned_by;
    resident.recorded = Some(blocks.known);
    if blocks.others > 0 {
        resident.limits.push(format!(
            "{} live blocks were not recorded, or came after the session's snapshot",
            heapr_table::quantity::count(blocks.others)
        ));
    }
    if alive.len() > 1 {
        resident.limits.push(format!(
            "the session has {} processes; this is the one with the most live memory (heapr explain PID for the others)",
            alive.len()
        ));
    }
    Ok(Some(resident))
}

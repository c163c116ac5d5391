//! Address space over time: how full of live blocks pages are at moments of a recording, and whose
//! blocks keep free memory.

use std::collections::{BTreeMap, HashMap};

use heapr_filters::FilterArguments;
use heapr_query::Filter;
use heapr_table::SortRows as _;
use heapr_trace::ProcessIndex;
use serde::{Deserialize, Serialize};

use super::place_moments::{Owners, Taken, of_events, of_snapshots};
use crate::error::{Error, Result};
use crate::native::{Layout, PageRun, page_bytes_of};
use crate::request::{Answer, Context, read};
use crate::trace_file::TraceFile;

/// Largest number of functions that a moment names.
const PINS_MAX: usize = 5;
/// Number of functions with a colour of their own.
const OWNERS_MAX: usize = 10;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlaceRequest {
    file: usize,
    #[serde(default)]
    filter: FilterArguments,
}

/// Function whose blocks keep free memory of pages that are at least half free.
#[derive(Serialize)]
struct PlacePin {
    /// Index in `owners`.
    owner: usize,
    free_bytes: u64,
    block_count: u64,
    block_bytes: u64,
}

/// Pages at a moment.
#[derive(Serialize)]
struct PlaceMoment {
    time_ns: u64,
    /// Number of the snapshot, of a recording without events.
    snapshot: Option<u32>,
    live_bytes: u64,
    /// Bytes of pages with live blocks, and those that are in no block.
    page_bytes: u64,
    free_bytes: u64,
    /// Bytes of the free ones in pages that are at least half free.
    half_free_bytes: u64,
    /// Resident memory at the last sample before it; null without such a sample.
    rss_bytes: Option<u64>,
    pins: Vec<PlacePin>,
    /// Live bytes of each cell, and the function with most of them: an index in `owners`, -1 for
    /// none or another one.
    cell_live_bytes: Vec<u64>,
    owner: Vec<i64>,
}

#[derive(Serialize)]
struct PlaceAnswer {
    schema: &'static str,
    /// Process of the pages; null without blocks.
    pid: Option<u32>,
    process_count: usize,
    cell_bytes: u64,
    runs: Vec<PageRun>,
    /// Names of functions; those with a colour come first.
    owners: Vec<String>,
    /// Number of functions with a colour.
    coloured: usize,
    moments: Vec<PlaceMoment>,
}

pub(super) fn place(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let request: PlaceRequest = read(body)?;
    let file = context.files.trace(request.file)?.shown(&request.filter);
    let filter = file.filter(&request.filter)?.filter;
    if filter != (Filter { pids: filter.pids.clone(), ..Filter::default() }) {
        return Err(Error::bad("filter", "the address space is told of a process alone"));
    }
    if file.trace().is_sampled() {
        return Err(Error::bad("file", "pages need all blocks, and the recording has samples of them"));
    }
    file.wait_for_names(context.cancel)?;
    let (process, process_count) = chosen_process(&file, &filter.pids);
    let key = (file.number, process, process_count);
    let found = context.files.places.get(&key, context.cancel, |is_cancelled| {
        let mut owners = Owners::default();
        let page_bytes = page_bytes_of(file.trace());
        let taken = if file.explorer.is_without_events() {
            of_snapshots(&file, process, page_bytes, &mut owners, is_cancelled)?
        } else {
            // The table of the events tells most blocks that live at no moment.
            file.wait_for_events(context.cancel)?;
            of_events(&file, process, page_bytes, &mut owners, is_cancelled)?
        };
        let answer = answer(&file, (process, process_count), page_bytes, owners.names, &taken);
        serde_json::to_vec(&answer).map_err(|error| Error::Internal(error.to_string()))
    })?;
    Ok(Answer::Json(found.to_vec()))
}

/// The process with most memory among the chosen ones, and the number of chosen ones.
fn chosen_process(file: &TraceFile, pids: &[u32]) -> (Option<ProcessIndex>, usize) {
    let trace = file.trace();
    let is_chosen = |pid: u32| pids.is_empty() || pids.contains(&pid);
    let mut peaks: BTreeMap<u32, u64> = BTreeMap::new();
    for sample in trace.resident_samples() {
        let peak = peaks.entry(sample.process.0).or_default();
        *peak = (*peak).max(sample.rss_bytes());
    }
    let numbered = (0..).zip(trace.processes()).filter(|(_, process)| is_chosen(process.pid));
    let chosen: Vec<u32> = numbered.map(|(number, _)| number).collect();
    let peak = |number: &u32| (peaks.get(number).copied().unwrap_or(0), std::cmp::Reverse(*number));
    (chosen.iter().max_by_key(|number| peak(number)).map(|&number| ProcessIndex(number)), chosen.len())
}

fn answer(
    file: &TraceFile,
    (process, process_count): (Option<ProcessIndex>, usize),
    page_bytes: u64,
    names: Vec<String>,
    taken: &[Taken],
) -> PlaceAnswer {
    // Functions in the order of their live bytes over all moments.
    let mut bytes = vec![0_u128; names.len()];
    for page in taken.iter().flat_map(|taken| &taken.pages) {
        page.by_owner.iter().for_each(|&(owner, live, _)| bytes[owner] += u128::from(live));
    }
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_rows_by_key(|&owner| std::cmp::Reverse(bytes[owner]));
    let coloured = order.len().min(OWNERS_MAX);
    let mut places: HashMap<usize, usize> =
        order.iter().take(coloured).enumerate().map(|(place, &owner)| (owner, place)).collect();
    let mut owners: Vec<String> = order.iter().take(coloured).map(|&owner| names[owner].clone()).collect();
    let layout = Layout::of(taken.iter().flat_map(|taken| &taken.pages), page_bytes);
    let moments = taken.iter().map(|taken| {
        let mut moment = moment_of(file, process, page_bytes, taken);
        let (live, owner) = layout.cells(&taken.pages, page_bytes);
        moment.cell_live_bytes = live;
        let coloured_place = |owner: Option<usize>| {
            owner.and_then(|owner| places.get(&owner)).filter(|&&place| place < coloured)
        };
        moment.owner =
            owner.into_iter().map(|owner| coloured_place(owner).map_or(-1, |&place| place as i64)).collect();
        for pin in &mut moment.pins {
            let next = owners.len();
            let place = *places.entry(pin.owner).or_insert(next);
            if place == next {
                owners.push(names[pin.owner].clone());
            }
            pin.owner = place;
        }
        moment
    });
    let moments: Vec<PlaceMoment> = moments.collect();
    PlaceAnswer {
        schema: "heapr.view.place/1",
        pid: process.and_then(|of| file.trace().processes().get(of.0 as usize)).map(|known| known.pid),
        process_count,
        cell_bytes: layout.pages_each.saturating_mul(page_bytes),
        runs: layout.runs.clone(),
        owners,
        coloured,
        moments,
    }
}

/// Sums over the pages of a moment, and the functions that keep most of what is free; their numbers
/// are those of [`Owners`].
fn moment_of(file: &TraceFile, process: Option<ProcessIndex>, page_bytes: u64, taken: &Taken) -> PlaceMoment {
    let samples = file.trace().resident_samples().iter();
    let before = samples.filter(|sample| Some(sample.process) == process && sample.time_ns <= taken.time_ns);
    let mut moment = PlaceMoment {
        time_ns: taken.time_ns,
        snapshot: taken.snapshot,
        live_bytes: 0,
        page_bytes: 0,
        free_bytes: 0,
        half_free_bytes: 0,
        rss_bytes: before.max_by_key(|sample| sample.time_ns).map(|sample| sample.rss_bytes()),
        pins: Vec::new(),
        cell_live_bytes: Vec::new(),
        owner: Vec::new(),
    };
    // By the number of the owner.
    let mut pins: Vec<PlacePin> = Vec::new();
    for page in &taken.pages {
        let all = page.count.saturating_mul(page_bytes);
        let free = all.saturating_sub(page.live_bytes);
        moment.page_bytes = moment.page_bytes.saturating_add(all);
        moment.live_bytes = moment.live_bytes.saturating_add(page.live_bytes);
        moment.free_bytes = moment.free_bytes.saturating_add(free);
        if free.saturating_mul(2) < page_bytes {
            continue;
        }
        moment.half_free_bytes = moment.half_free_bytes.saturating_add(free);
        let blocks = page.by_owner.iter().map(|(_, _, count)| count).sum::<u64>().max(1);
        for &(owner, bytes, count) in &page.by_owner {
            while pins.len() <= owner {
                let owner = pins.len();
                pins.push(PlacePin { owner, free_bytes: 0, block_count: 0, block_bytes: 0 });
            }
            let pin = &mut pins[owner];
            pin.free_bytes = pin
                .free_bytes
                .saturating_add((u128::from(free) * u128::from(count) / u128::from(blocks)) as u64);
            pin.block_count += count;
            pin.block_bytes = pin.block_bytes.saturating_add(bytes);
        }
    }
    pins.retain(|pin| pin.block_count > 0);
    pins.sort_rows_by_key(|pin| std::cmp::Reverse((pin.free_bytes, pin.block_count, pin.owner)));
    pins.truncate(PINS_MAX);
    moment.pins = pins;
    moment
}

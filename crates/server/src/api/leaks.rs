//! Memory that is not freed at the end, by stack, with age and growth.

use std::cmp::Reverse;

use heapr_explore::Age;
use heapr_filters::FilterArguments;
use heapr_query::{Group, GroupBy, Metric, Span};
use heapr_trace::Amounts;
use serde::{Deserialize, Serialize};

use super::report::{GroupJson, add_lines, group_json, matching};
use super::timeline_intervals::halves;
use crate::command_line::report_command;
use crate::error::Result;
use crate::json::{AmountsJson, TotalsJson};
use crate::page_rows::{Descending, PageRows};
use crate::request::{Answer, Context, read_with};

/// Number of moments of the growth.
const MOMENTS: usize = 16;
/// Largest number of frames of a stack in the list.
const FRAMES_MAX: usize = 16;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LeaksRequest {
    file: usize,
    #[serde(default)]
    filter: FilterArguments,
    #[serde(default)]
    sort: LeakOrder,
    #[serde(default)]
    descending: Descending,
}

/// Order of the list.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LeakOrder {
    /// By bytes.
    #[default]
    Bytes,
    /// By number of blocks.
    Count,
    /// By the share of a stack's allocations that was not freed, then by bytes.
    Unfreed,
    /// By mean age, oldest first.
    MeanAge,
    /// By the oldest block, oldest first.
    Oldest,
    /// By the newest block, newest first.
    Newest,
}

impl LeakOrder {
    /// Rank of a group, greatest first.
    fn rank(self, amounts: &Amounts, age: &Age) -> (u128, u64) {
        let Amounts { outstanding_bytes: bytes, outstanding_count: count, .. } = *amounts;
        let first = match self {
            Self::Bytes => u128::from(bytes),
            Self::Count => u128::from(count),
            // In billionths, finer than the table shows.
            Self::Unfreed => u128::from(count) * 1_000_000_000 / u128::from(amounts.total_count.max(1)),
            // Smaller times mean greater ages.
            Self::MeanAge => u128::MAX - age.sum_ns / u128::from(age.count.max(1)),
            Self::Oldest => u128::MAX - u128::from(age.oldest_ns),
            Self::Newest => u128::from(age.newest_ns),
        };
        (first, bytes)
    }
}

#[derive(Serialize)]
struct LeakJson {
    #[serde(flatten)]
    group: GroupJson,
    oldest_ns: Option<u64>,
    newest_ns: Option<u64>,
    mean_age_ns: Option<u64>,
    growth: Vec<u64>,
    /// Half of the 95 % interval of each value of `growth`, if they are estimates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    growth_plus_minus: Vec<u64>,
}

#[derive(Serialize)]
struct LeaksAnswer {
    schema: &'static str,
    command: String,
    totals: TotalsJson,
    group_count: usize,
    match_count: usize,
    all: AmountsJson,
    matched: AmountsJson,
    offset: usize,
    end_ns: u64,
    groups: Vec<LeakJson>,
}

pub(super) fn leaks(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let (request, page): (LeaksRequest, PageRows) = read_with(body)?;
    let file = context.files.trace(request.file)?.shown(&request.filter);
    // The list is about the end of the trace: moments and allocation types do not apply.
    let words =
        FilterArguments { at: None, snapshot: None, r#type: None, temporary: false, ..request.filter };
    let read = file.filter(&words)?;
    let (selection, ranking) =
        file.rank(&words, &read, GroupBy::Stacks, Metric::OutstandingBytes, context.cancel)?;
    file.wait_for_events(context.cancel)?;
    let mut groups = match page.r#match.as_str() {
        "" => ranking.groups.clone(),
        text => matching(&file, &file.explorer, &ranking.groups, GroupBy::Stacks, text),
    };
    groups.retain(|group| group.amounts.outstanding_count > 0);
    let mut matched = Amounts::default();
    groups.iter().for_each(|group| matched += &group.amounts);
    let match_count = groups.len();
    let is_cancelled = || context.cancel.is_set();
    let explorer = &file.explorer;
    let ages = explorer.ages(&read.filter, &read.cull, &is_cancelled)?;
    if !matches!(request.sort, LeakOrder::Bytes) {
        let none = Age::default();
        let age = |group: &Group| explorer.stack_key(group).and_then(|key| ages.get(&key.1)).unwrap_or(&none);
        groups.sort_by_cached_key(|group| Reverse(request.sort.rank(&group.amounts, age(group))));
    }
    let shown: Vec<&Group> = page.of(&groups, request.descending).collect();
    let stacks: Vec<u32> =
        shown.iter().map(|group| explorer.stack_key(group).map_or(0, |key| key.1)).collect();
    let duration_ns = file.trace().duration_ns();
    let whole = Span { from: 0, to: duration_ns.saturating_add(1) };
    let time = read.filter.range.map_or(whole, |range| Span { from: range.from, to: range.to.min(whole.to) });
    let growth = explorer.growth(&read.filter, &read.cull, &stacks, (time, MOMENTS), &is_cancelled)?;
    let is_estimate = file.trace().is_sampled();
    let end_ns = time.to.min(duration_ns);
    let mut rows: Vec<GroupJson> =
        shown.iter().map(|group| group_json(&file, explorer, group, FRAMES_MAX)).collect();
    add_lines(explorer, (&selection, &read.cull), &shown, &mut rows)?;
    let leaks = rows.into_iter().zip(&stacks).zip(growth).map(|((group, stack), growth)| {
        let age = ages.get(stack);
        LeakJson {
            group,
            oldest_ns: age.map(|age| age.oldest_ns),
            newest_ns: age.map(|age| age.newest_ns),
            mean_age_ns: age
                .map(|age| end_ns.saturating_sub((age.sum_ns / u128::from(age.count.max(1))) as u64)),
            growth_plus_minus: if is_estimate { halves(true, &growth.variances) } else { Vec::new() },
            growth: growth.live_bytes,
        }
    });
    crate::request::json(&LeaksAnswer {
        schema: "heapr.view.leaks/1",
        command: report_command(&file, &["--stacks", "so"], &words),
        totals: (&selection.totals).into(),
        group_count: ranking.group_count,
        match_count,
        all: (&ranking.all).into(),
        matched: (&matched).into(),
        offset: page.offset,
        end_ns,
        groups: leaks.collect(),
    })
}

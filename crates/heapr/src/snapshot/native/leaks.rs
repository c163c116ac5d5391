//! `heapr snapshot leaks`: unreachable blocks, by where they were allocated.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;

use anyhow::ensure;
use heapr_export::frame_text::frame_line;
use heapr_native::LeakKind;
use heapr_query::json::FrameJson;
use heapr_query::{CullList, FrameView, GroupBy, StackGroups};
use heapr_server::{GraphLeak, GraphLeaks};
use heapr_trace::StackIndex;
use serde_json::{Map, Value, json};

use super::block_names::{TypeSource, made_types, type_of};
use super::graph_answers::GraphAnswers;
use super::graph_file::{ChosenGraph, GraphArguments};
use super::leak_sums::{KINDS, LeakSum, LeakSums, snapshots_until};
use super::suppressions::CountedSuppressions;
use crate::output::{Format, OutputArguments, print_table};
use crate::report::names::TraceNames;
use heapr_table::SortRows as _;
use heapr_table::quantity::{bytes, count, duration, plural};
use heapr_table::{Cell, Column, Table, row};

/// Arguments of `heapr snapshot leaks`.
#[derive(Debug, clap::Args)]
pub(crate) struct LeaksArguments {
    /// A trace with a snapshot with references (heapr snapshot take --graph, heapr run
    /// --graph-at-exit)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Which kinds are listed [default: definite,possible; all as json]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "KINDS")]
    kinds: Vec<Kind>,
    /// Only blocks allocated since this snapshot of the file
    #[arg(long, value_name = "N|NAME")]
    since: Option<String>,
    /// Leaks that are not told: a file in LeakSanitizer's or Valgrind's syntax
    #[arg(long, value_name = "FILE")]
    suppress: Vec<PathBuf>,
    /// Exit with 1 if there are definite leaks
    #[arg(long)]
    fail_if_leaks: bool,
    /// Most frames of a stack as text
    #[arg(long, value_name = "N", default_value_t = 10)]
    depth: usize,
    #[command(flatten)]
    graph: GraphArguments,
    #[command(flatten)]
    output: OutputArguments,
}

/// Kinds of leaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// No reference leads to the block
    Definite,
    /// Only something doubtful does: to its middle, from memory that may be dead
    Possible,
    /// Only leaked blocks lead to it
    Indirect,
}

impl Kind {
    fn is(self, kind: LeakKind) -> bool {
        matches!(
            (self, kind),
            (Self::Definite, LeakKind::Definite)
                | (Self::Possible, LeakKind::Possible)
                | (Self::Indirect, LeakKind::Indirect)
        )
    }
}

/// Key by which leaks are summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    kind: LeakKind,
    group: Option<u32>,
    /// Index in the graph's list of types plus one; 0 if the type is unknown.
    type_number: u32,
}

/// Runs the command.
pub(crate) fn run(arguments: &LeaksArguments) -> anyhow::Result<ExitCode> {
    let suppressions = CountedSuppressions::read(&arguments.suppress)?;
    let chosen = ChosenGraph::open(&arguments.file, &arguments.graph)?;
    let since = since(&chosen, arguments.since.as_deref())?;
    let mut answers = GraphAnswers::of(chosen, &arguments.graph.names);
    let chosen = Rc::clone(&answers.chosen);
    let block_bytes = answers.block_bytes()?;
    let leaks = answers.leaks()?;
    let mut names = TraceNames::new(&chosen.trace, &arguments.graph.names);
    let groups = groups_of(&chosen, leaks, &mut names);
    let mut sums: BTreeMap<Key, LeakSum> = BTreeMap::new();
    let (mut struck, mut struck_definite_count) = (LeakSum::default(), 0);
    for (kind, sum) in leaks.all().filter(|(_, sum)| since.is_none_or(|since| sum.after_snapshots >= since)) {
        if sum.is_struck {
            struck.add(sum);
            struck_definite_count += if kind == LeakKind::Definite { sum.count } else { 0 };
            continue;
        }
        let key = Key { kind, group: groups.group_of(sum.stack()), type_number: sum.type_number };
        sums.entry(key).or_default().add(sum);
    }
    let mut suppressed = LeakSum::default();
    sums.retain(|key, sum| {
        let frames = key.group.map_or_else(Vec::new, |group| groups.frames(group));
        let is_known = suppressions.holds(&frames, sum.count);
        if is_known {
            suppressed.add(sum);
        }
        !is_known
    });
    let totals = Totals {
        struck,
        struck_definite_count,
        watched_ns: leaks.watched_ns,
        block_bytes,
        ..Totals::of(&sums, suppressed)
    };
    let stacks = sums.values().map(LeakSum::stack).collect();
    let made = made_types(&chosen.trace, &mut names, &stacks);
    let mut lines: Vec<Line<'_>> = sums
        .into_iter()
        .filter(|(key, _)| is_listed(arguments, key.kind))
        .map(|(key, sum)| Line {
            kind: key.kind,
            sum,
            type_name: told_type(&chosen, key.type_number, made.get(&sum.stack())),
            frames: key.group.map_or_else(Vec::new, |group| groups.frames(group)),
        })
        .collect();
    // Indirect leaks come after their holders.
    lines.sort_rows_by(|one, other| {
        let key = |line: &Line<'_>| (line.kind, std::cmp::Reverse((line.sum.retained_bytes, line.sum.count)));
        key(one).cmp(&key(other)).then_with(|| frame_texts(one).cmp(&frame_texts(other)))
    });
    print(arguments, &chosen, &totals, &lines, &suppressions)?;
    if let Some(advice) = names.advice().filter(|_| arguments.output.format == Format::Text) {
        tell!("heapr: {advice}");
    }
    answers.keep();
    judge(arguments, &chosen, &totals)
}

/// Returns the leaks for the page: all kinds, without those that were freed later.
pub(crate) fn shown_leaks(path: &Path, asked: &GraphArguments) -> anyhow::Result<GraphLeaks> {
    let mut answers = GraphAnswers::of(ChosenGraph::open(path, asked)?, &asked.names);
    let chosen = Rc::clone(&answers.chosen);
    let block_bytes = answers.block_bytes()?;
    let leaks = answers.leaks()?;
    let mut names = TraceNames::new(&chosen.trace, &asked.names);
    let groups = groups_of(&chosen, leaks, &mut names);
    let mut sums: BTreeMap<Key, LeakSum> = BTreeMap::new();
    for (kind, sum) in leaks.all().filter(|(_, sum)| !sum.is_struck) {
        let key = Key { kind, group: groups.group_of(sum.stack()), type_number: sum.type_number };
        sums.entry(key).or_default().add(sum);
    }
    let made = made_types(&chosen.trace, &mut names, &sums.values().map(LeakSum::stack).collect());
    let leak = |(key, sum): (Key, LeakSum)| GraphLeak {
        kind: key.kind.name(),
        stack: sum.stack(),
        count: sum.count,
        bytes: sum.bytes,
        retained_bytes: sum.retained_bytes.max(sum.bytes),
        circle_count: sum.circle_count,
        youngest_ns: sum.youngest_ns,
        oldest_ns: sum.oldest_ns,
        type_name: told_type(&chosen, key.type_number, made.get(&sum.stack())),
    };
    let mut sums: Vec<(Key, LeakSum)> = sums.into_iter().collect();
    sums.sort_rows_by_key(|(key, sum)| (key.kind, std::cmp::Reverse((sum.retained_bytes, sum.count))));
    Ok(GraphLeaks {
        leaks: sums.into_iter().map(leak).collect(),
        block_bytes,
        doubt: chosen.doubt(),
        notes: chosen.facts.notes.clone(),
    })
}

/// Returns the groups of all leaks' stacks.
fn groups_of<'t>(chosen: &'t ChosenGraph, leaks: &LeakSums, names: &mut TraceNames) -> StackGroups<'t> {
    let stacks: HashSet<StackIndex> = leaks.all().map(|(_, sum)| sum.stack()).collect();
    StackGroups::of_all(&chosen.trace, stacks, GroupBy::Stacks, &CullList::built_in(), names)
}

/// Returns the name of a type, and its evidence. `made` is told by the allocating functions.
fn told_type(
    file: &ChosenGraph,
    type_number: u32,
    made: Option<&(String, TypeSource)>,
) -> Option<(String, &'static str)> {
    let own = chosen_type(file, type_number);
    let made = made.cloned();
    // The allocating functions say more than a shape does.
    let is_shape = own.as_ref().is_some_and(|(_, source)| *source == TypeSource::Shape);
    let told = if is_shape { made.or(own) } else { own.or(made) };
    told.map(|(name, source)| (name, source.name()))
}

/// Returns the exit code by `--fail-if-leaks`.
fn judge(arguments: &LeaksArguments, chosen: &ChosenGraph, totals: &Totals) -> anyhow::Result<ExitCode> {
    let has_leaks = totals.get(LeakKind::Definite).count > 0;
    let is_undecided = chosen.facts.has_left_out && totals.get(LeakKind::Possible).count > 0;
    ensure!(
        !arguments.fail_if_leaks || has_leaks || !is_undecided,
        "{}: --fail-if-leaks cannot judge: memory of the process that is not in its core file may hold {}. Take a core with all \
         of it (/proc/PID/coredump_filter 0x7f, no MADV_DONTDUMP), or a graph of the running process (heapr snapshot take --graph \
         PID)",
        chosen.path.display(),
        plural(totals.get(LeakKind::Possible).count, "block")
    );
    Ok(if arguments.fail_if_leaks && has_leaks { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// Returns how many snapshots were taken before the first block that counts was allocated.
fn since(file: &ChosenGraph, asked: Option<&str>) -> anyhow::Result<Option<u32>> {
    let Some(text) = asked else { return Ok(None) };
    let before = heapr_filters::find_snapshot(&file.trace, text)?;
    ensure!(
        before.time_ns < file.snapshot.time_ns,
        "--since {text}: that is not before snapshot {}, which is looked at",
        file.snapshot.number
    );
    Ok(Some(snapshots_until(&file.trace, before.time_ns)))
}

fn is_listed(arguments: &LeaksArguments, kind: LeakKind) -> bool {
    match arguments.kinds.as_slice() {
        [] => kind != LeakKind::Indirect || arguments.output.format != Format::Text,
        kinds => kinds.iter().any(|wanted| wanted.is(kind)),
    }
}

fn chosen_type(file: &ChosenGraph, number: u32) -> Option<(String, TypeSource)> {
    file.facts.type_names.get((number as usize).checked_sub(1)?).map(|name| type_of(name))
}

/// Formats a line for each frame, with its location in the source.
fn frame_texts(line: &Line<'_>) -> Vec<String> {
    line.frames.iter().map(|frame| frame_line(frame, usize::MAX)).collect()
}

struct Line<'t> {
    kind: LeakKind,
    sum: LeakSum,
    /// Name of the type, and its evidence.
    type_name: Option<(String, &'static str)>,
    frames: Vec<FrameView<'t>>,
}

/// Totals over all lines.
struct Totals {
    by_kind: HashMap<LeakKind, LeakSum>,
    suppressed: LeakSum,
    /// Leaks that the recording shows to be freed later.
    struck: LeakSum,
    struck_definite_count: u64,
    watched_ns: u64,
    /// Bytes of all blocks.
    block_bytes: u64,
}

impl Totals {
    fn of(sums: &BTreeMap<Key, LeakSum>, suppressed: LeakSum) -> Self {
        let mut by_kind: HashMap<LeakKind, LeakSum> = HashMap::new();
        for (key, sum) in sums {
            by_kind.entry(key.kind).or_default().add(sum);
        }
        Self {
            by_kind,
            suppressed,
            struck: LeakSum::default(),
            struck_definite_count: 0,
            watched_ns: 0,
            block_bytes: 0,
        }
    }

    fn get(&self, kind: LeakKind) -> LeakSum {
        self.by_kind.get(&kind).copied().unwrap_or_default()
    }

    fn json(&self, file: &ChosenGraph) -> Value {
        let mut all = Map::new();
        for kind in KINDS {
            let sum = self.get(kind);
            all.insert(format!("{}_count", kind.name()), json!(sum.count));
            all.insert(format!("{}_bytes", kind.name()), json!(sum.bytes));
        }
        all.insert("suppressed_count".to_owned(), json!(self.suppressed.count));
        all.insert("suppressed_bytes".to_owned(), json!(self.suppressed.bytes));
        all.insert("struck_count".to_owned(), json!(self.struck.count));
        all.insert("struck_bytes".to_owned(), json!(self.struck.bytes));
        all.insert("struck_definite_count".to_owned(), json!(self.struck_definite_count));
        all.insert("watched_ns".to_owned(), json!(self.watched_ns));
        all.insert("not_judged_count".to_owned(), json!(file.not_judged_count()));
        all.insert("block_count".to_owned(), json!(file.facts.node_count));
        all.insert("block_bytes".to_owned(), json!(self.block_bytes));
        all.into()
    }
}

fn print(
    arguments: &LeaksArguments,
    file: &ChosenGraph,
    totals: &Totals,
    lines: &[Line<'_>],
    suppressions: &CountedSuppressions,
) -> anyhow::Result<()> {
    let met: Vec<(&str, u64)> = suppressions.met().collect();
    let format = arguments.output.format;
    if format == Format::Json {
        let shown = lines.iter().take(arguments.output.top());
        let groups: Vec<Value> = shown.map(line_json).collect();
        crate::plain_text::say_json(&json!({
            "schema": "heapr.leaks/1",
            "heap": "native",
            "file": file.path.to_string_lossy(),
            "snapshot": file.snapshot.number,
            "process": file.process_name(),
            "pause_ns": file.facts.pause_ns,
            "totals": totals.json(file),
            "groups": groups,
            "left_off": lines.len().saturating_sub(arguments.output.top()),
            "suppressions": met.iter().map(|(text, count)| json!({"pattern": text, "count": count})).collect::<Vec<_>>(),
            "doubt": file.doubt(),
            "notes": file.facts.notes,
        }));
        return Ok(());
    }
    let mut sheet = Table::new(
        "heapr.leaks/1",
        &[
            Column::text("kind", "Kind"),
            Column::count("count", "Blocks"),
            Column::bytes("bytes", "Bytes"),
            Column::bytes("retained_bytes", "With what they hold"),
            Column::ns("youngest_ns", "Youngest"),
            Column::ns("oldest_ns", "Oldest"),
            Column::text("type", "Type"),
            Column::text("type_source", "Told by"),
            Column::frames("frames", ""),
        ],
    );
    sheet.show_stacks(arguments.depth);
    sheet.rows(arguments.output.top(), lines.iter().map(cells));
    print_table(&sheet, format, &title(file, totals, &met))
}

fn title(file: &ChosenGraph, totals: &Totals, met: &[(&str, u64)]) -> Vec<String> {
    let mut title = vec![format!(
        "{}: snapshot {} at {} of {}: {}",
        file.path.display(),
        file.snapshot.number,
        duration(file.snapshot.time_ns),
        file.process_name(),
        match file.not_judged_count() {
            0 => plural(u64::from(file.facts.node_count), "block"),
            others => {
                let all = u64::from(file.facts.node_count) + others;
                format!("{} of {}", count(u64::from(file.facts.node_count)), plural(all, "block"))
            }
        },
    )];
    if file.not_judged_count() > 0 {
        title.push(format!(
            "not judged: {} of other heaps than malloc ({}): references are looked for between malloc's only",
            plural(file.not_judged_count(), "block"),
            file.other_heaps().join(", ")
        ));
    }
    let told = |kind: LeakKind, what: &str| {
        let sum = totals.get(kind);
        format!("{} in {} {what}", bytes(sum.bytes), plural(sum.count, "block"))
    };
    title.push(told(LeakKind::Definite, "leaked: nothing leads to them"));
    title.push(told(LeakKind::Indirect, "leaked with those: only they lead to them"));
    title.push(told(LeakKind::Possible, "possibly leaked: only something doubtful leads to them"));
    title.extend(file.doubt().filter(|_| totals.get(LeakKind::Possible).count > 0));
    if totals.suppressed.count > 0 {
        title.push(format!(
            "{} in {} suppressed: {}",
            bytes(totals.suppressed.bytes),
            plural(totals.suppressed.count, "block"),
            met.iter().map(|(text, count)| format!("{text} ({count})")).collect::<Vec<_>>().join(", ")
        ));
    }
    if totals.struck.count > 0 {
        title.push(format!(
            "{} in {} struck: freed later, within the {} that were recorded after the snapshot",
            bytes(totals.struck.bytes),
            plural(totals.struck.count, "block"),
            duration(totals.watched_ns)
        ));
    } else if totals.watched_ns > 0 {
        title
            .push(format!("none of them was freed in the {} recorded after it", duration(totals.watched_ns)));
    }
    title.extend(file.facts.notes.iter().map(|note| format!("not seen: {note}")));
    title.push(String::new());
    title
}

fn cells(line: &Line<'_>) -> Vec<Cell> {
    let kind = match line.sum.circle_count {
        0 => line.kind.name().to_owned(),
        _ => format!("{}, in a circle", line.kind.name()),
    };
    row![
        kind,
        line.sum.count,
        line.sum.bytes,
        line.sum.retained_bytes.max(line.sum.bytes),
        line.sum.youngest_ns,
        line.sum.oldest_ns,
        line.type_name.as_ref().map(|(name, _)| name.clone()),
        line.type_name.as_ref().map(|&(_, source)| source.to_owned()),
        frame_texts(line),
    ]
}

fn line_json(line: &Line<'_>) -> Value {
    json!({
        "kind": line.kind.name(),
        "count": line.sum.count,
        "bytes": line.sum.bytes,
        "retained_bytes": line.sum.retained_bytes.max(line.sum.bytes),
        "circle_count": line.sum.circle_count,
        "youngest_ns": line.sum.youngest_ns,
        "oldest_ns": line.sum.oldest_ns,
        "type": line.type_name.as_ref().map(|(name, _)| name),
        "type_source": line.type_name.as_ref().map(|&(_, source)| source),
        "frames": line.frames.iter().map(FrameJson::from).collect::<Vec<_>>(),
    })
}

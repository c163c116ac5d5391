//! `heapr snapshot leaks`: the blocks that nothing leads to any more, by where they were allocated.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;
use heapr_export::frame_text::frame_name;
use heapr_native::{LeakKind, Leaks, Verdicts};
use heapr_query::{CullList, FrameView, GroupBy, StackGroups, file_name};
use heapr_trace::StackIndex;
use serde_json::{Map, Value, json};

use super::block_names::made_types;
use super::graph_file::{GraphArguments, GraphFile};
use super::later_frees::LaterFrees;
use super::suppressions::CountedSuppressions;
use crate::output::{Format, OutputArguments, print_table};
use crate::report::names::TraceNames;
use heapr_table::quantity::{bytes, duration, plural};
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
    /// Nothing leads to the block
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

/// What is added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    kind: LeakKind,
    group: Option<u32>,
    /// In the graph's list plus one.
    type_number: u32,
}

/// Leaks of one kind from one place.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    count: u64,
    bytes: u64,
    retained_bytes: u64,
    circle_count: u64,
    youngest_ns: u64,
    oldest_ns: u64,
    /// Of one of them.
    stack: StackIndex,
}

/// Runs the command.
pub(crate) fn run(arguments: &LeaksArguments) -> anyhow::Result<ExitCode> {
    let suppressions = CountedSuppressions::read(&arguments.suppress)?;
    let file = GraphFile::open(&arguments.file, &arguments.graph)?;
    let since_ns = since(&file, arguments.since.as_deref())?;
    let mut names = TraceNames::new(&file.trace, &arguments.graph.names);
    let stacks: HashSet<StackIndex> = file.blocks.iter().map(|block| block.stack).collect();
    let cull = CullList::built_in();
    let groups = StackGroups::new(&file.trace, stacks, GroupBy::Stacks, &cull, &[], &mut names);
    let leaks = find_leaks(&file, &groups);
    let mut sums: BTreeMap<Key, Sum> = BTreeMap::new();
    let mut called = vec![false; file.blocks.len()];
    leaks.leaks.iter().for_each(|leak| called[leak.node as usize] = true);
    let later = LaterFrees::of(&file, |node| called[node as usize])?;
    let (mut struck, mut struck_definite_count) = (Sum::default(), 0);
    for leak in &leaks.leaks {
        let block = &file.blocks[leak.node as usize];
        if since_ns.is_some_and(|since_ns| block.alloc_ns <= since_ns) {
            continue;
        }
        if later.freed.contains(&leak.node) {
            struck.count += 1;
            struck_definite_count += u64::from(leak.kind == LeakKind::Definite);
            struck.bytes += block.size_bytes;
            continue;
        }
        let age_ns = file.age_ns(leak.node);
        let type_number = file.graph.types.get(leak.node as usize).copied().unwrap_or(0);
        let key = Key { kind: leak.kind, group: groups.group_of(block.stack), type_number };
        let sum = sums.entry(key).or_insert(Sum { youngest_ns: u64::MAX, ..Sum::default() });
        sum.count += 1;
        sum.bytes += block.size_bytes;
        sum.retained_bytes += leak.retained_bytes;
        sum.circle_count += u64::from(leak.is_circle);
        sum.youngest_ns = sum.youngest_ns.min(age_ns);
        sum.oldest_ns = sum.oldest_ns.max(age_ns);
        sum.stack = block.stack;
    }
    let mut suppressed = Sum::default();
    sums.retain(|key, sum| {
        let frames = key.group.map_or_else(Vec::new, |group| groups.frames(group));
        let is_known = suppressions.holds(&frames, sum.count);
        if is_known {
            suppressed.count += sum.count;
            suppressed.bytes += sum.bytes;
        }
        !is_known
    });
    let totals = Totals {
        struck,
        struck_definite_count,
        watched_ns: later.watched_ns,
        ..Totals::of(&sums, suppressed)
    };
    let stacks = sums.values().map(|sum| sum.stack).collect();
    let made = made_types(&file, &mut names, &stacks);
    let mut lines: Vec<Line> = sums
        .into_iter()
        .filter(|(key, _)| is_listed(arguments, key.kind))
        .map(|(key, sum)| Line {
            kind: key.kind,
            sum,
            type_name: type_of(&file, key.type_number)
                .map(|name| (name, "virtual functions"))
                .or_else(|| made.get(&sum.stack).map(|(name, source)| (name.clone(), source.name()))),
            frames: frames_of(&groups, key.group),
        })
        .collect();
    // Indirect ones go with their holders.
    lines.sort_by(|one, other| {
        let key = |line: &Line| (line.kind, std::cmp::Reverse((line.sum.retained_bytes, line.sum.count)));
        key(one).cmp(&key(other)).then_with(|| one.frames.cmp(&other.frames))
    });
    print(arguments, &file, &totals, &lines, &suppressions)?;
    if let Some(advice) = names.advice().filter(|_| arguments.output.format == Format::Text) {
        tell!("heapr: {advice}");
    }
    let has_leaks = totals.get(LeakKind::Definite).count > 0;
    Ok(if arguments.fail_if_leaks && has_leaks { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

fn since(file: &GraphFile, asked: Option<&str>) -> anyhow::Result<Option<u64>> {
    let Some(text) = asked else { return Ok(None) };
    let before = heapr_filters::find_snapshot(&file.trace, text)?;
    ensure!(
        before.time_ns < file.snapshot.time_ns,
        "--since {text}: that is not before snapshot {}, which is looked at",
        file.snapshot.number
    );
    Ok(Some(before.time_ns))
}

fn is_listed(arguments: &LeaksArguments, kind: LeakKind) -> bool {
    match arguments.kinds.as_slice() {
        [] => kind != LeakKind::Indirect || arguments.output.format != Format::Text,
        kinds => kinds.iter().any(|wanted| wanted.is(kind)),
    }
}

/// What the loader has allocated for itself: it holds some of it in ways of its own.
fn loader_groups(groups: &StackGroups<'_>) -> HashSet<Option<u32>> {
    let is_loader = |frame: &FrameView<'_>| {
        frame.module.is_some_and(|module| {
            let name = file_name(module);
            name.starts_with("ld-linux") || name.starts_with("ld-2.") || name == "ld.so"
        })
    };
    let all = (0..groups.len() as u32).filter(|&group| groups.frames(group).first().is_some_and(is_loader));
    all.map(Some).collect()
}

fn type_of(file: &GraphFile, number: u32) -> Option<String> {
    let name = file.graph.type_names.get((number as usize).checked_sub(1)?)?;
    Some(heapr_symbols::type_name(name))
}

/// The leaks of a graph.
pub(super) fn find_leaks(file: &GraphFile, groups: &StackGroups<'_>) -> Leaks {
    let of_loader = loader_groups(groups);
    let is_kept = |node: u32| of_loader.contains(&groups.group_of(file.blocks[node as usize].stack));
    let verdicts = Verdicts::of(&file.graph, is_kept);
    Leaks::of(
        &file.graph,
        &verdicts,
        |node| file.blocks[node as usize].size_bytes,
        |node| file.blocks[node as usize].alloc_ns,
    )
}

fn frames_of(groups: &StackGroups<'_>, group: Option<u32>) -> Vec<String> {
    let Some(group) = group else { return Vec::new() };
    groups.frames(group).iter().map(frame_name).collect()
}

struct Line {
    kind: LeakKind,
    sum: Sum,
    /// And what tells it.
    type_name: Option<(String, &'static str)>,
    frames: Vec<String>,
}

/// Over all places.
struct Totals {
    by_kind: HashMap<LeakKind, Sum>,
    suppressed: Sum,
    /// Freed later, as the recording shows.
    struck: Sum,
    struck_definite_count: u64,
    watched_ns: u64,
}

impl Totals {
    fn of(sums: &BTreeMap<Key, Sum>, suppressed: Sum) -> Self {
        let mut by_kind: HashMap<LeakKind, Sum> = HashMap::new();
        for (key, sum) in sums {
            let all = by_kind.entry(key.kind).or_default();
            all.count += sum.count;
            all.bytes += sum.bytes;
            all.retained_bytes += sum.retained_bytes;
        }
        Self { by_kind, suppressed, struck: Sum::default(), struck_definite_count: 0, watched_ns: 0 }
    }

    fn get(&self, kind: LeakKind) -> Sum {
        self.by_kind.get(&kind).copied().unwrap_or_default()
    }

    fn json(&self, file: &GraphFile) -> Value {
        let mut all = Map::new();
        for kind in [LeakKind::Definite, LeakKind::Possible, LeakKind::Indirect] {
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
        all.insert("block_count".to_owned(), json!(file.blocks.len()));
        all.insert(
            "block_bytes".to_owned(),
            json!(file.blocks.iter().map(|block| block.size_bytes).sum::<u64>()),
        );
        all.into()
    }
}

fn print(
    arguments: &LeaksArguments,
    file: &GraphFile,
    totals: &Totals,
    lines: &[Line],
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
            "pause_ns": file.graph.pause_ns,
            "totals": totals.json(file),
            "groups": groups,
            "left_off": lines.len().saturating_sub(arguments.output.top()),
            "suppressions": met.iter().map(|(text, count)| json!({"pattern": text, "count": count})).collect::<Vec<_>>(),
            "notes": file.graph.notes,
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

fn title(file: &GraphFile, totals: &Totals, met: &[(&str, u64)]) -> Vec<String> {
    let mut title = vec![format!(
        "{}: snapshot {} at {} of {}: {}",
        file.path.display(),
        file.snapshot.number,
        duration(file.snapshot.time_ns),
        file.process_name(),
        plural(file.blocks.len() as u64, "block"),
    )];
    let told = |kind: LeakKind, what: &str| {
        let sum = totals.get(kind);
        format!("{} in {} {what}", bytes(sum.bytes), plural(sum.count, "block"))
    };
    title.push(told(LeakKind::Definite, "leaked: nothing leads to them"));
    title.push(told(LeakKind::Indirect, "leaked with those: only they lead to them"));
    title.push(told(LeakKind::Possible, "possibly leaked: only something doubtful leads to them"));
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
    title.extend(file.graph.notes.iter().map(|note| format!("not seen: {note}")));
    title.push(String::new());
    title
}

fn cells(line: &Line) -> Vec<Cell> {
    let kind = match line.sum.circle_count {
        0 => line.kind.name().to_owned(),
        _ => format!("{}, in a circle", line.kind.name()),
    };
    row![
        kind,
        line.sum.count,
        line.sum.bytes,
        line.sum.retained_bytes,
        line.sum.youngest_ns,
        line.sum.oldest_ns,
        line.type_name.as_ref().map(|(name, _)| name.clone()),
        line.type_name.as_ref().map(|&(_, source)| source.to_owned()),
        line.frames.clone(),
    ]
}

fn line_json(line: &Line) -> Value {
    json!({
        "kind": line.kind.name(),
        "count": line.sum.count,
        "bytes": line.sum.bytes,
        "retained_bytes": line.sum.retained_bytes,
        "circle_count": line.sum.circle_count,
        "youngest_ns": line.sum.youngest_ns,
        "oldest_ns": line.sum.oldest_ns,
        "type": line.type_name.as_ref().map(|(name, _)| name),
        "type_source": line.type_name.as_ref().map(|&(_, source)| source),
        "frames": line.frames,
    })
}

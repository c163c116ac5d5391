//! Pieces of live blocks: by functions of user code, and by callers where many functions hold
//! little each.

use std::collections::HashMap;

use heapr_query::engine::{FrameId, NamedStack, SymbolTree};
use heapr_query::json::FrameJson;
use heapr_query::{FrameView, OwnCode, Owner, file_name, script_place};
use heapr_table::SortRows as _;
use heapr_table::quantity::{count, plural};
use heapr_trace::{BlockEstimate, Language, StackIndex, StackTotals, Trace};

use super::piece::{Piece, PieceKind};
use super::splintered::{Splinters, heaviest_function};
use crate::own_frames::{OwnOf, own_frames};
use crate::own_name::shown_symbol;

/// Smallest part of the live bytes for a piece of a function: one in this many.
const PIECE_PART: u64 = 50;
/// Smallest part for a piece of a function where many functions hold little each.
const SPLINTERED_PART: u64 = 10;
/// Functions of this part of the live bytes tell whether memory is splintered: one in this many.
const LARGE_PART: u64 = 20;
/// Largest number of pieces of functions, and of callers.
const FUNCTIONS_MAX: usize = 12;
const CALLERS_MAX: usize = 8;

/// Function that a stack's blocks are told for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Told<'a> {
    function: FrameId,
    /// File of the function in a language, where one name is in many files.
    file: Option<&'a str>,
    /// Package or file that the function loads.
    loads: Option<Option<&'a str>>,
}

/// A row, with its stack by names and its function.
struct Row<'a> {
    stack: StackIndex,
    node: NamedStack,
    live: BlockEstimate,
    told: Option<Told<'a>>,
    owner: Owner,
    /// True if the row is a sum of small stacks at a caller.
    is_rest: bool,
    is_taken: bool,
}

/// Sum over rows.
#[derive(Default, Clone, Copy)]
struct Sum {
    live: BlockEstimate,
    stack_count: u64,
    largest: u64,
    /// Stack of the largest row.
    stack: StackIndex,
}

impl Sum {
    fn add(&mut self, row: &Row<'_>) {
        self.live += row.live;
        self.stack_count += 1;
        if row.live.bytes.value >= self.largest {
            (self.largest, self.stack) = (row.live.bytes.value, row.stack);
        }
    }

    fn of<'r, 'a: 'r>(rows: impl Iterator<Item = &'r Row<'a>>) -> Self {
        rows.fold(Self::default(), |mut sum, row| {
            sum.add(row);
            sum
        })
    }

    fn piece(self, kind: PieceKind, label: String) -> Piece {
        Piece {
            bytes_plus_minus: self.live.bytes_plus_minus(),
            block_count: Some(self.live.count.value),
            block_count_plus_minus: self.live.count_plus_minus(),
            stack_count: self.stack_count,
            ..Piece::resident(kind, &label, self.live.bytes.value)
        }
    }
}

/// Divides live blocks into pieces, the largest first.
pub(super) fn live_pieces(
    trace: &Trace,
    tree: &SymbolTree,
    own: &OwnCode,
    (rows, rests): (&[StackTotals], &[StackTotals]),
) -> Vec<Piece> {
    let mut rows = named_rows(tree, own, rows, rests);
    let whole = Sum::of(rows.iter()).live.bytes.value;
    let mut pieces = function_pieces(trace, tree, &mut rows, whole);
    pieces.extend(caller_pieces(tree, own, &mut rows, whole));
    pieces.sort_rows_by_key(|piece| std::cmp::Reverse(piece.bytes));
    let is_without = |row: &&Row<'_>| !row.is_taken && row.stack == StackIndex::EMPTY && !row.is_rest;
    let without = Sum::of(rows.iter().filter(is_without));
    let small = Sum::of(rows.iter().filter(|row| !row.is_taken && !is_without(row)));
    if small.live.bytes.value > 0 {
        pieces.push(small_piece(&rows, small));
    }
    if without.live.bytes.value > 0 {
        pieces.push(without.piece(PieceKind::NoStack, "blocks without a stack".to_owned()));
    }
    pieces
}

fn small_piece(rows: &[Row<'_>], small: Sum) -> Piece {
    let left = rows.iter().filter(|row| !row.is_taken && row.stack != StackIndex::EMPTY);
    let mut functions: Vec<FrameId> = left.filter_map(|row| Some(row.told?.function)).collect();
    functions.sort_unstable();
    functions.dedup();
    let label = format!(
        "small stacks: {} of {}",
        count(small.stack_count),
        plural(functions.len() as u64, "function")
    );
    let has_rests = rows.iter().any(|row| row.is_rest && !row.is_taken);
    let note = if has_rests {
        "at least so many stacks: some are sums that the recording does not tell apart"
    } else {
        ""
    };
    small.piece(PieceKind::Small, label).noting(note)
}

fn named_rows<'a>(
    tree: &'a SymbolTree,
    own: &OwnCode,
    rows: &[StackTotals],
    rests: &[StackTotals],
) -> Vec<Row<'a>> {
    let nodes = rows.iter().map(|row| tree.named(row.stack)).filter(|&node| node != 0);
    let frames = own_frames(tree, own, nodes);
    let mut owners = Owners { tree, own, known: vec![None; tree.frames.count()] };
    let mut row = |totals: &StackTotals, is_rest: bool| {
        let node = tree.named(totals.stack);
        let of = frames.get(node as usize).filter(|_| node != 0 && !is_rest);
        Row {
            stack: totals.stack,
            node,
            live: totals.amounts.outstanding(),
            told: of.and_then(|of| told(&mut owners, node, of)),
            owner: of.map_or(Owner::Runtime, |of| of.owner),
            is_rest,
            is_taken: false,
        }
    };
    let all = rows.iter().map(|totals| (totals, false)).chain(rests.iter().map(|totals| (totals, true)));
    all.map(|(totals, is_rest)| row(totals, is_rest)).collect()
}

/// Owners of frames, each judged once.
struct Owners<'a, 'o> {
    tree: &'a SymbolTree,
    own: &'o OwnCode,
    known: Vec<Option<Owner>>,
}

impl Owners<'_, '_> {
    fn of(&mut self, frame: FrameId) -> Owner {
        let frames = &self.tree.frames;
        let judged = || self.own.owner(frames.module(frame), frames.symbol(frame), frames.file(frame));
        *self.known[frame.0 as usize].get_or_insert_with(judged)
    }
}

/// Function of a stack. Of a language its file is looked for, and of one that loads code what it
/// loads.
fn told<'a>(owners: &mut Owners<'a, '_>, node: NamedStack, of: &OwnOf) -> Option<Told<'a>> {
    let function = of.frame?;
    let tree = owners.tree;
    let frames = &tree.frames;
    let is_of_language = frames.module(function).is_some_and(Language::is_of);
    let mut told = Told { function, file: None, loads: of.is_loading.then_some(None) };
    if !is_of_language && !of.is_loading {
        return Some(told);
    }
    for frame in tree.frames_of(node) {
        // Functions of several files may have one name, as the code of modules of Python has.
        if frames.function(frame) == function && owners.of(frame) == of.owner {
            told.file = frames.file(frame).filter(|_| is_of_language);
            break;
        }
        // The outermost frame of a package inside of the function is what it loads.
        if of.is_loading && owners.of(frame) == Owner::Library {
            told.loads = Some(frames.file(frame).map(package_name));
        }
    }
    Some(told)
}

/// Name by which a file is loaded: `pandas` of `…/pandas/__init__.py`.
fn package_name(path: &str) -> &str {
    let name = file_name(path);
    let stem = name.split('.').next().filter(|stem| !stem.is_empty()).unwrap_or(name);
    if !matches!(stem, "__init__" | "index" | "mod" | "main") {
        return stem;
    }
    let folder = path.strip_suffix(name).map(|folder| file_name(folder.trim_end_matches('/')));
    folder.filter(|folder| !folder.is_empty()).unwrap_or(stem)
}

/// Pieces of functions that hold enough by themselves.
fn function_pieces(trace: &Trace, tree: &SymbolTree, rows: &mut [Row<'_>], whole: u64) -> Vec<Piece> {
    let mut sums: HashMap<Told<'_>, Sum> = HashMap::new();
    for row in rows.iter() {
        if let Some(told) = row.told {
            sums.entry(told).or_default().add(row);
        }
    }
    let mut sums: Vec<(Told<'_>, Sum)> = sums.into_iter().collect();
    sums.sort_rows_by_key(|(told, sum)| (std::cmp::Reverse(sum.live.bytes.value), told.function));
    let bytes = |sum: &Sum| sum.live.bytes.value;
    let large = sums.iter().map(|(_, sum)| bytes(sum)).filter(|&bytes| bytes >= (whole / LARGE_PART).max(1));
    let is_splintered = large.fold(0, u64::saturating_add) < whole / 2;
    let part = if is_splintered { SPLINTERED_PART } else { PIECE_PART };
    sums.retain(|(_, sum)| bytes(sum) >= (whole / part).max(1));
    sums.truncate(FUNCTIONS_MAX);
    for row in rows.iter_mut() {
        row.is_taken = row.told.is_some_and(|told| sums.iter().any(|(known, _)| *known == told));
    }
    let owner_of =
        |told: &Told<'_>| rows.iter().find(|row| row.told.as_ref() == Some(told)).map(|row| row.owner);
    let piece = |(told, sum): &(Told<'_>, Sum)| {
        let kind = if told.loads.is_some() { PieceKind::Loading } else { PieceKind::Function };
        let name = name_of(&tree.frames.view(told.function), told.file);
        let label = match told.loads {
            Some(Some(package)) => format!("loading of {package}, for {name}"),
            Some(None) => format!("loading, for {name}"),
            None => name,
        };
        Piece {
            frame: Some(frame_of(trace, tree, told, sum)),
            is_own: owner_of(told) == Some(Owner::Program),
            ..sum.piece(kind, label)
        }
    };
    sums.iter().map(piece).collect()
}

/// Frame of a piece, with its place if all blocks are of one stack.
fn frame_of(trace: &Trace, tree: &SymbolTree, told: &Told<'_>, sum: &Sum) -> FrameJson {
    let view = tree.frames.view(told.function);
    let is_function = |found: &FrameView<'_>| found.symbol == view.symbol && found.module == view.module;
    let views = tree.views(trace, sum.stack, tree.named(sum.stack));
    let found = views.iter().find(|found| is_function(found));
    let file = told.file.or(found.and_then(|found| found.file));
    let line = found.and_then(|found| found.line).filter(|_| sum.stack_count == 1);
    FrameJson::from(&FrameView { file, line, ..view })
}

/// Pieces of callers, each with all that it calls, of the blocks that no piece has.
fn caller_pieces(tree: &SymbolTree, own: &OwnCode, rows: &mut [Row<'_>], whole: u64) -> Vec<Piece> {
    let mut pieces = Vec::new();
    while pieces.len() < CALLERS_MAX {
        let left = rows.iter().filter(|row| !row.is_taken && row.node != 0);
        let splinters = Splinters::new(tree, left.map(|row| (row.node, row.live.bytes.value)));
        let least = (whole / PIECE_PART).max(1);
        let Some(function) = heaviest_function(tree, own, &splinters, whole) else { break };
        let is_set: Vec<bool> = (0..tree.frames.count() as u32)
            .map(|frame| tree.frames.function(FrameId(frame)) == function)
            .collect();
        let has = tree.stacks_with(&is_set);
        let is_of = |row: &Row<'_>| !row.is_taken && has.get(row.node as usize).copied().unwrap_or(false);
        let sum = Sum::of(rows.iter().filter(|row| is_of(row)));
        if sum.live.bytes.value < least {
            break;
        }
        let view = tree.frames.view(function);
        pieces.push(Piece {
            frame: Some(FrameJson::from(&FrameView { file: tree.frames.file(function), ..view })),
            is_own: own.owner(view.module, view.symbol, tree.frames.file(function)) == Owner::Program,
            ..sum.piece(PieceKind::Inclusive, format!("{}, with what it calls", name_of(&view, None)))
        });
        rows.iter_mut().filter(|row| is_of(row)).for_each(|row| row.is_taken = true);
    }
    pieces
}

/// Name of a function in texts.
fn name_of(view: &FrameView<'_>, file: Option<&str>) -> String {
    let name = match (view.symbol, view.module) {
        (Some(symbol), module) => shown_symbol(module, symbol),
        // A name that stands for allocations without a stack.
        (None, Some(module)) if view.offset == 0 => file_name(module).to_owned(),
        (None, Some(module)) => format!("{}+{:#x}", file_name(module), view.offset),
        (None, None) => format!("{:#x}", view.offset),
    };
    let script = view.symbol.and_then(script_place).map(|(_, file, _)| file);
    match file.or(script) {
        Some(file) => format!("{name} ({})", file_name(file)),
        None => name,
    }
}

//! Comparison of builds by function of user code: each stack counts once, for its own function.
//! A function with another name in a later build is paired by hand, or by its caller, its file and
//! its number of blocks.

use hashbrown::{HashMap, HashSet};

use heapr_query::json::{AmountsJson, FrameJson};
use heapr_query::{CullList, FrameView, GroupBy, Metric, OwnCode, Result, file_name, plain_symbol};
use heapr_trace::Amounts;

use crate::explorer::Explorer;
use crate::selection::Selection;

/// Largest ratio of the numbers of blocks of a function and of the one that it is paired with.
const COUNT_RATIO_MAX: u64 = 2;
/// Smallest part of all compared bytes that a function must hold to be paired by itself: one in
/// this many. Small functions are alike by chance.
const PAIRED_PART: u64 = 1000;

/// Name of all blocks without a stack.
const NO_STACK: &str = "code without a stack";

/// A build: a recording with the allocations that count.
#[derive(Debug, Clone, Copy)]
pub struct Build<'a> {
    /// Explorer of the recording.
    pub explorer: &'a Explorer,
    /// Selection of the recording.
    pub selection: &'a Selection,
    /// Frames that culling removes.
    pub cull: &'a CullList,
    /// Recognition of user code.
    pub own: &'a OwnCode,
}

/// A function in all builds.
#[derive(Debug)]
pub struct ComparedFunction {
    /// Name in each build, `None` where it holds nothing.
    pub names: Vec<Option<String>>,
    /// Frame of the function in each build, with the place in the stack that holds most.
    pub frames: Vec<Option<FrameJson>>,
    /// Amounts in each build.
    pub amounts: Vec<Amounts>,
    /// Amounts of the function's largest stack in each build.
    pub largest: Vec<Amounts>,
    /// True if the function has another name in a build.
    pub is_renamed: bool,
}

impl ComparedFunction {
    /// Growth of an amount from the first build to the last.
    #[must_use]
    pub fn growth(&self, metric: Metric) -> i128 {
        match self.amounts.as_slice() {
            [first, .., last] => metric.difference(first, last),
            _ => 0,
        }
    }

    /// Name in the last build that has the function.
    #[must_use]
    pub fn name(&self) -> &str {
        self.names.iter().rev().flatten().next().map_or(NO_STACK, String::as_str)
    }

    /// Amounts as in other answers.
    pub fn amounts_json(&self) -> impl Iterator<Item = AmountsJson> + '_ {
        self.amounts.iter().map(AmountsJson::from)
    }
}

/// Name of a function that two builds share: the module without its version, and the symbol. The
/// program is one module, whatever its file is called.
type Key = (String, String);

/// A function in one build.
struct Found {
    amounts: Amounts,
    largest: Amounts,
    frame: Option<FrameJson>,
    name: Option<String>,
    /// Functions of user code that call it.
    callers: HashSet<String>,
    most: u64,
}

/// Compares builds. `pairs`: functions with another name in a later build, as (old, new); each is a
/// symbol, with or without arguments.
///
/// # Errors
/// A trace cannot be read.
pub fn compare_functions(
    builds: &[Build<'_>],
    sort: Metric,
    pairs: &[(String, String)],
) -> Result<Vec<ComparedFunction>> {
    let sides = builds.iter().map(|build| functions_of(build, sort)).collect::<Result<Vec<_>>>()?;
    let count = sides.len();
    let mut order: Vec<Key> = Vec::new();
    let mut rows: HashMap<Key, Vec<Option<Found>>> = HashMap::new();
    for (number, side) in sides.into_iter().enumerate() {
        for (key, found) in side {
            let row = rows.entry(key.clone()).or_insert_with(|| {
                order.push(key);
                (0..count).map(|_| None).collect()
            });
            row[number] = Some(found);
        }
    }
    order.sort_unstable();
    let mut rows: Vec<Vec<Option<Found>>> = order.iter().filter_map(|key| rows.remove(key)).collect();
    let mut is_renamed = vec![false; rows.len()];
    for (old, new) in pairs {
        pair_by_hand(&mut rows, &mut is_renamed, old, new);
    }
    for number in 1..count {
        pair_renamed(&mut rows, &mut is_renamed, number, sort);
    }
    let mut compared: Vec<ComparedFunction> = rows
        .into_iter()
        .zip(is_renamed)
        .filter(|(row, _)| row.iter().any(Option::is_some))
        .map(|(row, is_renamed)| of_row(row, is_renamed))
        .collect();
    compared.sort_by_key(|function| {
        let most = function.amounts.iter().map(|amounts| sort.of(amounts)).max();
        std::cmp::Reverse((function.growth(sort).unsigned_abs(), most))
    });
    Ok(compared)
}

fn of_row(row: Vec<Option<Found>>, is_renamed: bool) -> ComparedFunction {
    let mut compared = ComparedFunction {
        names: Vec::new(),
        frames: Vec::new(),
        amounts: Vec::new(),
        largest: Vec::new(),
        is_renamed,
    };
    for found in row {
        let nothing = (None, None, [Amounts::default(); 2]);
        let (name, frame, [amounts, largest]) =
            found.map_or(nothing, |found| (found.name, found.frame, [found.amounts, found.largest]));
        compared.names.push(name);
        compared.frames.push(frame);
        compared.amounts.push(amounts);
        compared.largest.push(largest);
    }
    compared
}

/// Functions of a build, by their key.
fn functions_of(build: &Build<'_>, sort: Metric) -> Result<Vec<(Key, Found)>> {
    let explorer = build.explorer;
    let program = explorer.trace().processes().first().map(|process| process.executable.clone());
    let key_of = |frame: &FrameView<'_>| {
        let module = match frame.module {
            Some(path) if program.as_deref() == Some(path) => "(program)".to_owned(),
            Some(path) => without_version(file_name(path)).to_owned(),
            None => String::new(),
        };
        (module, frame.symbol.unwrap_or("?").to_owned())
    };
    let ranking = explorer.rank(build.selection, build.cull, GroupBy::Stacks, sort)?;
    let mut order: Vec<Key> = Vec::new();
    let mut sums: HashMap<Key, Found> = HashMap::new();
    for group in &ranking.groups {
        let frames = explorer.frames(group);
        let place = build.own.place(&frames).or((!frames.is_empty()).then_some(0));
        let frame = place.map(|place| &frames[place]);
        let key = frame.map_or_else(Key::default, key_of);
        let found = sums.entry(key.clone()).or_insert_with(|| {
            order.push(key);
            Found {
                amounts: Amounts::default(),
                largest: Amounts::default(),
                frame: None,
                name: Some(frame.map_or_else(|| NO_STACK.to_owned(), name_of)),
                callers: HashSet::new(),
                most: 0,
            }
        });
        found.amounts += &group.amounts;
        let amount = sort.of(&group.amounts);
        if found.frame.is_none() || amount > found.most {
            (found.frame, found.most) = (frame.map(FrameJson::from), amount);
            found.largest = group.amounts;
        }
        let callers = place.map_or(&[][..], |place| &frames[place + 1..]);
        let named = callers
            .iter()
            .find(|caller| caller.symbol.is_some() && caller.symbol != frame.and_then(|frame| frame.symbol));
        found.callers.extend(named.and_then(|caller| caller.symbol).map(plain_symbol));
    }
    Ok(order.into_iter().filter_map(|key| sums.remove_entry(&key)).collect())
}

/// Name of a shared library without its version: `libfoo.so` of `libfoo.so.1.2`.
fn without_version(name: &str) -> &str {
    name.find(".so").map_or(name, |at| &name[..at + 3])
}

/// Name of a function. All code of a module without names is one function.
fn name_of(frame: &FrameView<'_>) -> String {
    match (frame.symbol, frame.module) {
        (Some(symbol), _) => plain_symbol(symbol),
        // Offset 0 stands for allocations without a stack.
        (None, Some(module)) if frame.offset == 0 => file_name(module).to_owned(),
        (None, Some(module)) => format!("code without names in {}", file_name(module)),
        (None, None) => "code in no known file".to_owned(),
    }
}

/// Joins two functions that the user has named.
fn pair_by_hand(rows: &mut [Vec<Option<Found>>], is_renamed: &mut [bool], old: &str, new: &str) {
    let is = |row: &[Option<Found>], name: &str| {
        row.iter().flatten().any(|found| {
            let symbol = found.frame.as_ref().and_then(|frame| frame.symbol.as_deref());
            found.name.as_deref() == Some(name) || symbol == Some(name)
        })
    };
    let (Some(from), Some(to)) =
        (rows.iter().position(|row| is(row, old)), rows.iter().position(|row| is(row, new)))
    else {
        return;
    };
    if from != to {
        join(rows, is_renamed, from, to);
    }
}

/// Moves what a row has and another lacks into the other.
fn join(rows: &mut [Vec<Option<Found>>], is_renamed: &mut [bool], from: usize, to: usize) {
    let taken = std::mem::take(&mut rows[from]);
    let mut left: Vec<Option<Found>> = Vec::new();
    for (place, found) in taken.into_iter().enumerate() {
        left.push(match &mut rows[to][place] {
            slot @ None => {
                *slot = found;
                None
            }
            Some(_) => found,
        });
    }
    rows[from] = left;
    is_renamed[to] = true;
}

/// Pairs functions that a build lacks with functions that only it and later ones have. A pair has a
/// caller in common, the same known source file, and about as many blocks. Each function is paired
/// only if no other fits as well.
fn pair_renamed(rows: &mut [Vec<Option<Found>>], is_renamed: &mut [bool], number: usize, sort: Metric) {
    let whole = |place: usize| {
        rows.iter()
            .filter_map(|row| Some(sort.of(&row[place].as_ref()?.amounts)))
            .fold(0, u64::saturating_add)
    };
    let least = (whole(number - 1).max(whole(number)) / PAIRED_PART).max(1);
    let is_large = |found: &Found| sort.of(&found.amounts) >= least;
    let is_gone = |row: &[Option<Found>]| {
        row[number..].iter().all(Option::is_none) && row[number - 1].as_ref().is_some_and(is_large)
    };
    let is_new = |row: &[Option<Found>]| {
        row[..number].iter().all(Option::is_none) && row[number].as_ref().is_some_and(is_large)
    };
    let gone: Vec<usize> = (0..rows.len()).filter(|&at| is_gone(&rows[at])).collect();
    let new: Vec<usize> = (0..rows.len()).filter(|&at| is_new(&rows[at])).collect();
    let fits = |old: usize, new: usize| match (&rows[old][number - 1], &rows[new][number]) {
        (Some(one), Some(other)) => are_alike(one, other),
        _ => false,
    };
    let only = |mut found: Vec<usize>| if found.len() == 1 { found.pop() } else { None };
    let pairs: Vec<(usize, usize)> = gone
        .iter()
        .filter_map(|&old| {
            let other = only(new.iter().copied().filter(|&new| fits(old, new)).collect())?;
            let back = only(gone.iter().copied().filter(|&old| fits(old, other)).collect())?;
            (back == old).then_some((old, other))
        })
        .collect();
    for (old, other) in pairs {
        join(rows, is_renamed, old, other);
    }
}

fn are_alike(one: &Found, other: &Found) -> bool {
    let count = |found: &Found| found.amounts.total_count.max(found.amounts.outstanding_count);
    let (few, many) = (count(one).min(count(other)), count(one).max(count(other)));
    let file = |found: &Found| {
        found.frame.as_ref().and_then(|frame| frame.file.as_deref()).map(|path| file_stem(path).to_owned())
    };
    // Without a file, functions of one caller would be alike by chance.
    let is_same_file = match (file(one), file(other)) {
        (Some(one), Some(other)) => {
            !one.is_empty() && !other.is_empty() && (one.starts_with(&other) || other.starts_with(&one))
        }
        _ => false,
    };
    let has_symbol = |found: &Found| found.frame.as_ref().is_some_and(|frame| frame.symbol.is_some());
    is_same_file
        && has_symbol(one)
        && has_symbol(other)
        && many <= few.saturating_mul(COUNT_RATIO_MAX)
        && one.callers.intersection(&other.callers).next().is_some()
}

/// Name of a file without its ending.
fn file_stem(path: &str) -> &str {
    let name = file_name(path);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

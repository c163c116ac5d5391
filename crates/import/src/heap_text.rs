//! Text profiles by jemalloc, gperftools and Go: live and allocated amounts by stack, from samples.
//!
//! ```text
//! heap_v2/524288                                        jemalloc
//!   t*: 28106: 56637512 [0: 0]
//! @ 0x5f86da8 0x5f5a1dc
//!   t*: 13: 6688 [0: 0]
//! heap profile: 3: 300 [ 9: 900 ] @ heap_v2/524288      gperftools
//!   1: 100 [ 3: 300 ] @ 0x5f86da8 0x5f5a1dc
//! MAPPED_LIBRARIES:
//! heap profile: 4: 400 [12: 900] @ heap/1048576          Go (/debug/pprof/heap?debug=1)
//! 1: 100 [3: 300] @ 0x45d2c8 0x45d1b1
//! #  0x45d2c7  main.keep+0x47  /src/main.go:12
//! ```

use heapr_trace::{Amounts, Untold};

use crate::builder::TraceBuilder;
use crate::error::{Error, Result};
use crate::input::Input;
use crate::locations::{Frame, Range};

/// Name of the tool.
pub(crate) const JEMALLOC: &str = "jemalloc";
/// Name of the tools whose first line has counts (Go adopted the format).
pub(crate) const GPERFTOOLS: &str = "gperftools";

/// True if the first line is jemalloc's.
pub(crate) fn is_of_jemalloc(start: &[u8]) -> bool {
    start.starts_with(b"heap_v2/")
}

/// True if the first line is that of gperftools or Go.
pub(crate) fn is_of_gperftools(start: &[u8]) -> bool {
    start.starts_with(b"heap profile:")
}

/// Counts of a line: live blocks and bytes, allocated blocks and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Counts([u64; 4]);

/// Facts in the first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Head {
    /// Mean distance of samples in bytes; 1: every allocation was sampled, or it is unknown.
    period: u64,
    /// Whether the amounts are memory from the system instead of blocks.
    is_growth: bool,
}

/// A stack in the file.
struct Entry {
    /// Addresses of the calls, the innermost first.
    calls: Vec<u64>,
    counts: Counts,
    /// Frames listed behind the stack: name, file, line.
    frames: Vec<Frame>,
}

/// Reads a file of jemalloc.
pub(crate) fn read_jemalloc(input: &mut Input<'_>, builder: &mut TraceBuilder) -> Result<()> {
    read(JEMALLOC, input, builder)
}

/// Reads a file of gperftools or Go.
pub(crate) fn read_gperftools(input: &mut Input<'_>, builder: &mut TraceBuilder) -> Result<()> {
    read(GPERFTOOLS, input, builder)
}

fn read(tool: &'static str, input: &mut Input<'_>, builder: &mut TraceBuilder) -> Result<()> {
    let malformed = |offset, what: &str| Error::Malformed { tool, offset, what: what.to_owned() };
    let mut line = Vec::new();
    let mut known_head = None;
    let mut calls: Option<Vec<u64>> = None;
    let mut found: Vec<Entry> = Vec::new();
    let mut is_mapped = false;
    while let Some(offset) = input.line(&mut line)? {
        let text = String::from_utf8_lossy(&line);
        let text = text.trim();
        let addresses_of =
            |words: &str| addresses_of(words).ok_or_else(|| malformed(offset, "an address is none"));
        let counts_of =
            |words: &str| counts_of(words).ok_or_else(|| malformed(offset, "the amounts make no sense"));
        if is_mapped {
            mapped(text, builder)?;
        } else if known_head.is_none() {
            known_head = Some(head(text).ok_or_else(|| refusal(tool, offset, text))?);
        } else if text.starts_with("MAPPED_LIBRARIES:") {
            is_mapped = true;
        } else if let Some(comment) = text.strip_prefix('#') {
            if let (Some(frame), Some(entry)) = (go_frame(comment), found.last_mut()) {
                input.keep(frame.name.len() + frame.file.len() + 64)?;
                entry.frames.push(frame);
            }
        } else if let Some(addresses) = text.strip_prefix('@') {
            calls = Some(addresses_of(addresses)?);
        } else if let Some((counts, addresses)) = text.split_once('@') {
            let (counts, calls) = (counts_of(counts)?, addresses_of(addresses)?);
            input.keep(8 * calls.len() + 96)?;
            found.push(Entry { calls, counts, frames: Vec::new() });
        } else if let Some(counts) = text.strip_prefix("t*:") {
            // Counts before the first stack are the sum of all.
            if let Some(calls) = calls.take() {
                let counts = counts_of(counts)?;
                input.keep(8 * calls.len() + 96)?;
                found.push(Entry { calls, counts, frames: Vec::new() });
            }
        } else if !text.is_empty() && !text.starts_with('t') {
            builder.invalid(offset);
        }
    }
    let head = known_head.unwrap_or(Head { period: 1, is_growth: false });
    let has_totals = found.iter().any(|entry| entry.counts.0[2..] != [0, 0]);
    for entry in found {
        add(entry, head.period, builder)?;
    }
    tell(head, has_totals, builder)
}

fn add(entry: Entry, period: u64, builder: &mut TraceBuilder) -> Result<()> {
    let calls = match entry.frames.is_empty() {
        true => entry.calls,
        false => {
            let named = entry.frames.into_iter().map(|frame| builder.named("", &[], vec![frame]));
            named.collect::<Result<_>>()?
        }
    };
    let stack = builder.stack_of(&calls)?;
    let Counts([live_count, live_bytes, count, bytes]) = entry.counts;
    let (outstanding_count, outstanding_bytes) = unsampled(live_count, live_bytes, period);
    let (total_count, total_bytes) = unsampled(count, bytes, period);
    builder.add(
        stack,
        &Amounts { outstanding_count, outstanding_bytes, total_count, total_bytes, ..Amounts::default() },
    );
    Ok(())
}

/// Describes the numbers in version, notices and unknown facts.
fn tell(Head { period, is_growth }: Head, has_totals: bool, builder: &mut TraceBuilder) -> Result<()> {
    builder.tool_version = format!("(sampled every {period} bytes)");
    if period > 1 {
        builder.sampled_every(period)?;
    }
    // jemalloc counts freed memory only if configured to.
    builder.untold =
        Untold { totals: !has_totals, peak: true, reallocs: true, temporary: true, ..Untold::default() };
    let what = match (is_growth, period > 1) {
        (true, _) => "the amounts are what the allocator took from the system, and not blocks".to_owned(),
        (_, true) => format!("the amounts are estimates of samples, one in {period} bytes"),
        _ => "every allocation was sampled, or the file does not tell how".to_owned(),
    };
    let totals = if has_totals { "" } else { " and not what was freed" };
    builder.note(format!("{what}; it tells no peak{totals}: that is unknown"));
    Ok(())
}

/// Parses the part of the first line behind `@`.
fn head(text: &str) -> Option<Head> {
    let sampled = |period: u64| Some(Head { period: period.max(1), is_growth: false });
    if let Some(period) = text.strip_prefix("heap_v2/") {
        return sampled(period.trim().parse().ok()?);
    }
    let (_, way) = text.rsplit_once('@')?;
    match way.trim().split_once('/') {
        Some(("heap_v2" | "heapz_v2", period)) => sampled(period.trim().parse().ok()?),
        // The number is twice the distance in this form only.
        Some(("heap", period)) => sampled(period.trim().parse::<u64>().ok()? / 2),
        None if matches!(way.trim(), "heapprofile" | "heap" | "heap_v2" | "heapz_v2") => sampled(1),
        None if matches!(way.trim(), "growth" | "growthz") => Some(Head { period: 1, is_growth: true }),
        _ => None,
    }
}

fn refusal(tool: &'static str, offset: u64, text: &str) -> Error {
    let way = text.rsplit_once('@').map_or("", |(_, way)| way.trim());
    if way.starts_with("fragmentation") {
        let what = "this profile of gperftools is of fragmentation: heapr reads its heap and growth profiles";
        return Error::Unusable { what: what.to_owned() };
    }
    Error::Malformed {
        tool,
        offset,
        what: format!("the first line names no way of sampling that is known: {way:?}"),
    }
}

/// Parses Go's line behind a stack: `\t0x45d2c7\tmain.keep+0x47\t/src/main.go:12`.
fn go_frame(comment: &str) -> Option<Frame> {
    let mut words = comment.trim_start().split('\t').filter(|word| !word.is_empty());
    words.next()?.trim().strip_prefix("0x")?;
    let name = words.next()?.trim();
    let name = name.rsplit_once("+0x").map_or(name, |(name, _)| name);
    let (file, line) = words.next()?.trim().rsplit_once(':')?;
    Some(Frame { name: name.to_owned(), file: file.to_owned(), line: line.parse().ok()? })
}

/// Parses `13: 6688 [0: 0]`.
fn counts_of(text: &str) -> Option<Counts> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|word| !word.is_empty());
    let mut counts = Counts::default();
    for count in &mut counts.0 {
        *count = numbers.next()?.parse().ok()?;
    }
    Some(counts)
}

/// Parses return addresses into those of the calls, one byte before.
fn addresses_of(text: &str) -> Option<Vec<u64>> {
    let address = |word: &str| {
        let digits = word.strip_prefix("0x").unwrap_or(word);
        Some(u64::from_str_radix(digits, 16).ok()?.saturating_sub(1))
    };
    text.split_whitespace().map(address).collect()
}

/// Estimates the amounts that samples of a stack stand for, as jeprof does: an allocation is
/// sampled with probability `1 - exp(-size / period)`.
fn unsampled(count: u64, bytes: u64, period: u64) -> (u64, u64) {
    if count == 0 || period <= 1 {
        return (count, bytes);
    }
    let chance = -(-(bytes as f64 / count as f64) / period as f64).exp_m1();
    if chance <= 0.0 {
        return (count, bytes);
    }
    ((count as f64 / chance).round() as u64, (bytes as f64 / chance).round() as u64)
}

/// Parses a line of `/proc/PID/maps`.
fn mapped(text: &str, builder: &mut TraceBuilder) -> Result<()> {
    let mut words = text.split_whitespace();
    let (Some(range), Some(access), Some(offset)) = (words.next(), words.next(), words.next()) else {
        return Ok(());
    };
    let path = words.nth(2).unwrap_or_default();
    let Some((start, end)) = range.split_once('-') else { return Ok(()) };
    let number = |word: &str| u64::from_str_radix(word, 16).ok();
    let (Some(start_avma), Some(end_avma), Some(offset)) = (number(start), number(end), number(offset))
    else {
        return Ok(());
    };
    if !access.contains('x') || !path.starts_with('/') {
        return Ok(());
    }
    // Address in the file at which this offset is loaded. If the file is missing, the offset itself
    // is assumed.
    let svma = heapr_symbols::svma_of_offset(path.as_ref(), offset).unwrap_or(offset);
    builder.mapped(path, &[], Range { start_avma, end_avma, bias_avma: start_avma.wrapping_sub(svma) })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_stand_for_what_jeprof_says() {
        assert_eq!(unsampled(0, 0, 524_288), (0, 0));
        assert_eq!(unsampled(7, 700, 1), (7, 700));
        // 13 blocks of 514.46 bytes: each is sampled with probability 0.000981.
        let (count, bytes) = unsampled(13, 6688, 524_288);
        assert_eq!((count, bytes), (13255, 6_819_089));
        assert_eq!(counts_of(" 13: 6688 [0: 0]"), Some(Counts([13, 6688, 0, 0])));
    }

    #[test]
    fn all_heads_of_heaps_are_known() {
        let of = |way: &str| head(&format!("heap profile:  3: 300 [ 9: 900 ] @ {way}"));
        let sampled = |period| Some(Head { period, is_growth: false });
        for way in ["heapprofile", "heap"] {
            assert_eq!(of(way), sampled(1));
        }
        for way in ["heap_v2/524288", "heapz_v2/524288", "heap/1048576"] {
            assert_eq!(of(way), sampled(524_288));
        }
        assert_eq!(of("growthz"), Some(Head { period: 1, is_growth: true }));
        assert_eq!((of("contention/100"), of("fragmentationz")), (None, None));
        let frame = go_frame("\t0x45d2c7\tmain.keep+0x47\t\t/src/a b.go:12").unwrap();
        assert_eq!((frame.name.as_str(), frame.file.as_str(), frame.line), ("main.keep", "/src/a b.go", 12));
        assert_eq!(go_frame(" runtime.MemStats"), None);
    }
}

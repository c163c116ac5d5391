//! The text that jemalloc and gperftools dump: live and allocated amounts by stack, of samples.
//!
//! ```text
//! heap_v2/524288                                        jemalloc
//!   t*: 28106: 56637512 [0: 0]
//! @ 0x5f86da8 0x5f5a1dc
//!   t*: 13: 6688 [0: 0]
//! heap profile: 3: 300 [ 9: 900 ] @ heap_v2/524288      gperftools
//!   1: 100 [ 3: 300 ] @ 0x5f86da8 0x5f5a1dc
//! MAPPED_LIBRARIES:
//! ```

use heapr_trace::Amounts;

use crate::builder::TraceBuilder;
use crate::error::{Error, Result};
use crate::input::Input;
use crate::locations::Range;

/// Its name.
pub(crate) const TOOL: &str = "jemalloc";

/// The first line's start.
pub(crate) fn tells(start: &[u8]) -> bool {
    start.starts_with(b"heap_v2/") || start.starts_with(b"heap profile:")
}

/// Counts of a line: live blocks and bytes, allocated blocks and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Counts([u64; 4]);

/// Reads it.
pub(crate) fn read(input: &mut Input<'_>, builder: &mut TraceBuilder) -> Result<()> {
    let mut line = Vec::new();
    let mut period = None;
    let mut calls: Option<Vec<u64>> = None;
    let mut found: Vec<(Vec<u64>, Counts)> = Vec::new();
    let mut is_mapped = false;
    while let Some(offset) = input.line(&mut line)? {
        let text = String::from_utf8_lossy(&line);
        let text = text.trim();
        if is_mapped {
            mapped(text, builder)?;
        } else if period.is_none() {
            period = Some(head(text).ok_or_else(|| malformed(offset, "the head names no way of sampling"))?);
        } else if text.starts_with("MAPPED_LIBRARIES:") {
            is_mapped = true;
        } else if let Some(addresses) = text.strip_prefix('@') {
            calls = Some(addresses_of(addresses, offset)?);
        } else if let Some((counts, addresses)) = text.split_once('@') {
            let counts = counts_of(counts).ok_or_else(|| malformed(offset, "the amounts make no sense"))?;
            let stack = addresses_of(addresses, offset)?;
            input.keep(8 * stack.len() + 64)?;
            found.push((stack, counts));
        } else if let Some(counts) = text.strip_prefix("t*:") {
            // Before the first stack: the sum of all.
            if let Some(stack) = calls.take() {
                let counts =
                    counts_of(counts).ok_or_else(|| malformed(offset, "the amounts make no sense"))?;
                input.keep(8 * stack.len() + 64)?;
                found.push((stack, counts));
            }
        } else if !text.is_empty() && !text.starts_with('t') {
            builder.invalid(offset);
        }
    }
    let period = period.unwrap_or(1);
    for (calls, Counts([live_count, live_bytes, count, bytes])) in found {
        let stack = builder.stack_of(&calls)?;
        let (outstanding_count, outstanding_bytes) = unsampled(live_count, live_bytes, period);
        let (total_count, total_bytes) = unsampled(count, bytes, period);
        let amounts =
            Amounts { outstanding_count, outstanding_bytes, total_count, total_bytes, ..Amounts::default() };
        builder.add(stack, &amounts);
    }
    builder.tool_version = format!("(sampled every {period} bytes)");
    if period > 1 {
        builder.sampled_every(period)?;
    }
    builder.note(format!(
        "{}; it tells no peak: it is 0",
        if period > 1 {
            format!("the amounts are estimates of samples, one in {period} bytes")
        } else {
            "every allocation was sampled".to_owned()
        }
    ));
    Ok(())
}

fn malformed(offset: u64, what: &str) -> Error {
    Error::Malformed { tool: TOOL, offset, what: what.to_owned() }
}

/// Bytes between samples, on average; 1: all were taken.
fn head(text: &str) -> Option<u64> {
    if let Some(period) = text.strip_prefix("heap_v2/") {
        return period.trim().parse().ok();
    }
    let (_, way) = text.rsplit_once('@')?;
    match way.trim().split_once('/') {
        Some(("heap_v2", period)) => period.parse().ok(),
        None if way.trim() == "heapprofile" => Some(1),
        _ => None,
    }
}

/// `13: 6688 [0: 0]`.
fn counts_of(text: &str) -> Option<Counts> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|word| !word.is_empty());
    let mut counts = Counts::default();
    for count in &mut counts.0 {
        *count = numbers.next()?.parse().ok()?;
    }
    Some(counts)
}

/// Return addresses: the calls lie one before.
fn addresses_of(text: &str, offset: u64) -> Result<Vec<u64>> {
    let address = |word: &str| {
        let digits = word.strip_prefix("0x").unwrap_or(word);
        let avma = u64::from_str_radix(digits, 16).map_err(|_| malformed(offset, "an address is none"))?;
        Ok(avma.saturating_sub(1))
    };
    text.split_whitespace().map(address).collect()
}

/// What samples of a stack stand for, as jeprof has it: each of a size is seen with the chance
/// `1 - exp(-size / period)`.
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

/// A line of `/proc/PID/maps`.
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
    // Where the file says that this offset of it goes; the same, where it is not here to be asked.
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
        // 13 blocks of 514.46 bytes: each seen with a chance of 0.000981.
        let (count, bytes) = unsampled(13, 6688, 524_288);
        assert_eq!((count, bytes), (13255, 6_819_089));
        assert_eq!(counts_of(" 13: 6688 [0: 0]"), Some(Counts([13, 6688, 0, 0])));
        assert_eq!(head("heap profile:  3: 300 [ 9: 900 ] @ heapprofile"), Some(1));
        assert_eq!(head("heap profile:  3: 300 [ 9: 900 ] @ heap/1048576"), None);
    }
}

//! Variances of the totals of a recording of samples, in chunks beside those with the totals. An
//! older reader ignores them and computes variances from sums alone.

use crate::bytes::{PutBytes, Take};
use crate::course::LiveVariances;
use crate::error::Malformed;
use crate::{Course, StackTotals, Summary, Variances};

/// Number of variances of an entry. Temporary allocations are not estimated.
const VARIANCES: usize = 7;
/// Number of streams of variances by stack.
pub(crate) const STACK_VARIANCE_STREAMS: usize = VARIANCES;
/// Number of streams of the other variances: of the summary's totals, and of the course.
pub(crate) const VARIANCE_STREAMS: usize = 2;

fn columns(variances: &mut Variances) -> [&mut u64; VARIANCES] {
    [
        &mut variances.total_count,
        &mut variances.total_bytes,
        &mut variances.realloc_count,
        &mut variances.outstanding_count,
        &mut variances.outstanding_bytes,
        &mut variances.peak_count,
        &mut variances.peak_bytes,
    ]
}

/// Whether a summary has variances of samples.
pub(crate) fn has_variances(summary: &Summary) -> bool {
    let is_estimate = |&variance: &u64| variance != 0 && variance != Variances::UNKNOWN;
    let is_of_samples =
        |variances: &Variances| columns(&mut { *variances }).iter().any(|variance| is_estimate(variance));
    summary.by_heap.iter().any(|(.., totals)| is_of_samples(&totals.variances))
}

/// Encodes the variances of the totals, of those by process and heap, and of the course.
pub(crate) fn variance_streams(summary: &Summary) -> [Vec<u8>; VARIANCE_STREAMS] {
    let mut totals = Vec::new();
    let mut put = |variances: &Variances| {
        columns(&mut { *variances }).into_iter().for_each(|variance| totals.put_varint(*variance));
    };
    put(&summary.totals.variances);
    summary.by_heap.iter().for_each(|(.., of_heap)| put(&of_heap.variances));
    let mut course = Vec::new();
    let mut put = |variances: LiveVariances| {
        course.put_varint(variances.bytes_kib2);
        course.put_varint(variances.count);
    };
    for moment in &summary.course.moments {
        put(moment.variances);
        moment.rows.iter().for_each(|row| put(row.variances));
    }
    [totals, course]
}

/// Decodes the untrusted variances of a summary's totals.
pub(crate) fn take_totals_variances(stream: &[u8], summary: &mut Summary) -> Result<(), Malformed> {
    let mut take = Take::new(stream);
    let of_heaps = summary.by_heap.iter_mut().map(|(.., totals)| &mut totals.variances);
    for variances in std::iter::once(&mut summary.totals.variances).chain(of_heaps) {
        for variance in columns(variances) {
            *variance = take.varint()?;
        }
    }
    Ok(())
}

/// Decodes the untrusted variances of a course.
pub(crate) fn take_course_variances(stream: &[u8], course: &mut Course) -> Result<(), Malformed> {
    let mut take = Take::new(stream);
    for moment in &mut course.moments {
        let of_rows = moment.rows.iter_mut().map(|row| &mut row.variances);
        for variances in std::iter::once(&mut moment.variances).chain(of_rows) {
            *variances = LiveVariances { bytes_kib2: take.varint()?, count: take.varint()? };
        }
    }
    Ok(())
}

/// Encodes the variances of totals by stack as columns.
pub(crate) fn stack_variance_columns(totals: &[StackTotals]) -> [Vec<u8>; STACK_VARIANCE_STREAMS] {
    let mut streams = [const { Vec::new() }; STACK_VARIANCE_STREAMS];
    for entry in totals {
        let mut variances = entry.amounts.variances;
        for (stream, variance) in streams.iter_mut().zip(columns(&mut variances)) {
            stream.put_varint(*variance);
        }
    }
    streams
}

/// Reads the variances of totals by stack, entry by entry.
pub(crate) struct StackVariances<'a> {
    takes: [Take<'a>; STACK_VARIANCE_STREAMS],
}

impl<'a> StackVariances<'a> {
    pub(crate) fn of(streams: &'a [Vec<u8>; STACK_VARIANCE_STREAMS]) -> Self {
        Self { takes: streams.each_ref().map(|stream| Take::new(stream)) }
    }

    /// Variances of the next entry.
    pub(crate) fn next(&mut self) -> Result<Variances, Malformed> {
        let mut variances = Variances::default();
        for (variance, take) in columns(&mut variances).into_iter().zip(&mut self.takes) {
            *variance = take.varint()?;
        }
        Ok(variances)
    }
}

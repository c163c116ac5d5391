//! Stacks of threads, recognised by a stack pointer or by the thread's descriptor in them.
//!
//! ```text
//! | guard ---p | ... stack ... | thread-local data | descriptor: words with its own address |
//! ```
//! On aarch64 the thread-local data lies behind the descriptor.

use std::ops::Range;

use heapr_glibc_heap::HeapMemory;
use heapr_known::machine::HERE;
use heapr_proc::Mapping;
use heapr_proc::smaps::MappingPages;

use crate::claims::Claims;
use crate::class::{Class, ToldBy};
use crate::code_files::whole;
use crate::subject::Subject;

/// Largest size of the loader's mapping for the first thread's local data.
const FIRST_BLOCK_BYTES: u64 = 256 << 10;

/// Number of mappings whose ends are read together: 4 MiB.
const LOOKED_AT_ONCE: usize = 256;

pub(crate) fn claim(subject: &Subject, memory: &impl HeapMemory, claims: &mut Claims) {
    let mut found = Vec::new();
    let mut candidates = Vec::new();
    let mut below: Option<&Mapping> = None;
    for MappingPages { mapping, pages } in &subject.mappings {
        let guard = below.filter(|below| below.end_avma == mapping.start_avma && is_guard(below));
        below = Some(mapping);
        if !is_candidate(mapping) || !claims.is_free(mapping) {
            continue;
        }
        let is_in_use = subject.stack_pointers.iter().any(|pointer| mapping.contains(*pointer));
        if is_in_use {
            found.push(whole(mapping, Class::ThreadStacks, "threads", ToldBy::Place));
        } else if pages.rss_bytes > 0 && (guard.is_some() || mapping.bytes() <= FIRST_BLOCK_BYTES) {
            // The first thread's descriptor lies outside of its stack.
            let part = if guard.is_some() { "threads" } else { "first thread's local data" };
            candidates.push((mapping, part));
        }
    }
    for candidates in candidates.chunks(LOOKED_AT_ONCE) {
        let has_block = have_thread_blocks(candidates, memory);
        let stacks = candidates.iter().zip(has_block).filter(|(_, has_block)| *has_block);
        let claims =
            stacks.map(|((mapping, part), _)| whole(mapping, Class::ThreadStacks, *part, ToldBy::Contents));
        found.extend(claims);
    }
    claims.add_many(found);
}

fn is_candidate(mapping: &Mapping) -> bool {
    mapping.inode == 0
        && mapping.is_readable
        && mapping.is_writable
        && !mapping.is_shared
        && (mapping.name.is_empty() || mapping.name.starts_with("[anon:"))
}

fn is_guard(mapping: &Mapping) -> bool {
    mapping.inode == 0 && !mapping.is_readable && !mapping.is_writable
}

/// For each mapping, whether its upper end holds a thread's descriptor.
fn have_thread_blocks(mappings: &[(&Mapping, &str)], memory: &impl HeapMemory) -> Vec<bool> {
    /// Bytes read at the upper end of a stack, which ends with the descriptor, or with variables
    /// behind it.
    const STACK_BYTES: u64 = if HERE.descriptor.begins_below == 0 { 4 << 10 } else { 16 << 10 };
    /// Bytes read at the upper end of the first thread's local data: the descriptor and the memory
    /// behind it fit in them.
    const LOCAL_DATA_BYTES: u64 = 16 << 10;
    let ends = mappings.iter().map(|(mapping, _)| {
        let bytes = if mapping.bytes() <= FIRST_BLOCK_BYTES { LOCAL_DATA_BYTES } else { STACK_BYTES };
        mapping.start_avma.max(mapping.end_avma.saturating_sub(bytes))..mapping.end_avma
    });
    let ends: Vec<Range<u64>> = ends.collect();
    let length = |end: &Range<u64>| (end.end - end.start) as usize;
    let mut bytes = vec![0; ends.iter().map(length).sum()];
    let read = memory.read_ranges(&ends, &mut bytes);
    let mut rest = bytes.as_slice();
    let looked = ends.iter().zip(read).map(|(end, read)| {
        let (own, behind) = rest.split_at(length(end).min(rest.len()));
        rest = behind;
        HERE.descriptor.all_in(end.start, own.get(..read).unwrap_or_default()).next().is_some()
    });
    looked.collect()
}

//! Locations of a process's agent: its code and its memory.

use heapr_proc::Mapping;
use heapr_proc::page_bytes;
use heapr_wire::{BUILD_ID, INJECTION_MAGIC, INJECTION_SYMBOL, Injection};

use crate::detach::find_record;
use crate::error::{Error, Result};
use crate::memory::{ProcessMemory, TargetMemory as _};
use crate::modules::Modules;
use crate::target;

/// Locations of an agent.
pub(crate) struct AgentPlace {
    /// Code through which the allocator is called: return addresses on stacks lead there.
    pub(crate) code: Vec<(u64, u64)>,
    /// Memory of the agent, without its own mappings.
    memory: Vec<(u64, u64)>,
    /// Address and length of the agent's lists of its own mappings.
    lists: Vec<(u64, u64)>,
}

impl AgentPlace {
    /// Place of no agent.
    pub(crate) fn none() -> Self {
        Self { code: Vec::new(), memory: Vec::new(), lists: Vec::new() }
    }

    /// Reads all memory ranges of the agent at present.
    pub(crate) fn memory_now(&self, memory: &ProcessMemory) -> Vec<(u64, u64)> {
        let mapped = self.lists.iter().flat_map(|&(list_avma, count)| list_of(memory, list_avma, count));
        self.memory.iter().copied().chain(mapped).collect()
    }
}

/// All memory of the agent in a recorded process, which may be running.
///
/// # Errors
/// See [`Error`].
pub fn agent_memory(pid: u32) -> Result<Vec<(u64, u64)>> {
    let memory = ProcessMemory::open(pid).map_err(|error| match error.kind() {
        std::io::ErrorKind::PermissionDenied => target::not_permitted(pid),
        _ => Error::NoSuchProcess { pid },
    })?;
    Ok(agent_place(pid, &memory)?.memory_now(&memory))
}

/// Finds an agent that was injected, or one that the loader has loaded.
pub(crate) fn agent_place(pid: u32, memory: &ProcessMemory) -> Result<AgentPlace> {
    let mappings = memory.mappings().map_err(|_| Error::Ended { pid })?;
    if let Some(record) = find_record(pid, memory)? {
        let own = (record.start_avma, record.start_avma.wrapping_add(record.bytes));
        let islands = record.islands.iter().map(|&(start, bytes)| (start, start.wrapping_add(bytes)));
        let all: Vec<(u64, u64)> = islands.chain([own]).collect();
        let lists = vec![(record.list_avma, record.list_count)];
        return Ok(AgentPlace { code: all.clone(), memory: all, lists });
    }
    let modules = Modules::read(pid, memory)?;
    let agents = modules.list.iter().filter_map(|module| module.symbol(memory, INJECTION_SYMBOL));
    let mut place = AgentPlace { code: Vec::new(), memory: Vec::new(), lists: Vec::new() };
    for symbol in agents {
        let word = |offset: usize| memory.read_u64(symbol.address_avma.wrapping_add(offset as u64));
        if word(std::mem::offset_of!(Injection, magic)) != Ok(INJECTION_MAGIC)
            || word(std::mem::offset_of!(Injection, build_id)) != Ok(BUILD_ID)
        {
            continue;
        }
        let Some(here) = mappings.iter().position(|mapping| mapping.contains(symbol.address_avma)) else {
            continue;
        };
        let list_avma = word(std::mem::offset_of!(Injection, mappings)).unwrap_or(0);
        let list_count = word(std::mem::offset_of!(Injection, mapping_count)).unwrap_or(0);
        place.lists.push((list_avma, list_count));
        let inode = mappings[here].inode;
        for mapping in module_around(&mappings, here) {
            let range = (mapping.start_avma, mapping.end_avma);
            if mapping.is_executable && mapping.inode == inode {
                place.code.push(range);
            }
            place.memory.push(range);
        }
    }
    if place.code.is_empty() { Err(Error::NotAttached { pid }) } else { Ok(place) }
}

/// Mappings of the module to which one mapping belongs, with the anonymous one behind its data.
fn module_around(mappings: &[Mapping], here: usize) -> &[Mapping] {
    let inode = mappings[here].inode;
    let is_of_it = |mapping: &Mapping| mapping.inode == inode;
    let mut first = here;
    while first > 0
        && is_of_it(&mappings[first - 1])
        && mappings[first - 1].end_avma == mappings[first].start_avma
    {
        first -= 1;
    }
    let mut last = here;
    while let Some(next) = mappings.get(last + 1) {
        let touches = next.start_avma == mappings[last].end_avma;
        if !touches || !is_of_it(next) {
            break;
        }
        last += 1;
    }
    &mappings[first..=last]
}

/// Reads the agent's list of its own mappings.
fn list_of(memory: &ProcessMemory, list_avma: u64, count: u64) -> Vec<(u64, u64)> {
    const LIST_MAX: u64 = 1 << 16;
    let list = memory.read_vec(list_avma, count.min(LIST_MAX) as usize * 16).unwrap_or_default();
    let pairs = list.as_chunks::<16>().0.iter().map(|pair| {
        let (start, bytes) = pair.split_at(8);
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        (word(start), word(bytes))
    });
    let real = pairs.filter(|&(start, bytes)| start != 0 && bytes != 0);
    real.filter_map(|(start, bytes)| {
        Some((start, start.checked_add(bytes.checked_next_multiple_of(page_bytes())?)?))
    })
    .collect()
}

//! Memory of all processes of a control group, and what the kernel adds to it.

use std::collections::BTreeMap;
use std::io::{self, Write};

use anyhow::Context as _;
use heapr_proc::{GroupLimit, GroupMemory, group_memory, memory_limits};
use heapr_resident::Class;
use heapr_table::SortRows as _;
use heapr_table::quantity::{bytes, percent};
use heapr_table::{Column, Table, row};
use serde_json::{Value, json};

use super::reading;
use crate::explain::printed_table::{ClassTable, write_table};

/// Control group, explained.
#[derive(Debug)]
pub(super) struct Group {
    memory: GroupMemory,
    /// Limits of the group and of those above it, the nearest first.
    limits: Vec<GroupLimit>,
    processes: Vec<Process>,
    /// Bytes by class. Each page is divided by the number of its users, so that it is counted once.
    classes: BTreeMap<Class, u64>,
}

#[derive(Debug)]
struct Process {
    pid: u32,
    name: String,
    rss_bytes: u64,
    /// Proportional set size; `None` if it could not be read.
    pss_bytes: Option<u64>,
}

/// Reads the group of process `pid`.
pub(super) fn of_process(pid: u32) -> anyhow::Result<Group> {
    let memory = group_memory(pid).context(
        "no control group that counts memory is mounted, or the process's is outside of our namespace",
    )?;
    let limits = memory_limits(pid);
    let (mut processes, mut classes) = (Vec::new(), BTreeMap::new());
    for pid in &memory.pids {
        // The process may have ended, or belong to another user.
        let Ok(resident) = reading::read(*pid, false, &mut ()) else { continue };
        let is_refused = resident.account.is_of_counters;
        for line in resident.account.lines().iter().filter(|_| !is_refused) {
            *classes.entry(line.class).or_default() += line.pages.pss_bytes;
        }
        let name = resident.executable.rsplit('/').next().unwrap_or_default().to_owned();
        let pages = &resident.account.pages;
        let pss_bytes = (!is_refused).then_some(pages.pss_bytes);
        processes.push(Process { pid: *pid, name, rss_bytes: pages.rss_bytes, pss_bytes });
    }
    processes.sort_rows_by_key(|process| std::cmp::Reverse(process.pss_bytes.unwrap_or(process.rss_bytes)));
    Ok(Group { memory, limits, processes, classes })
}

impl Group {
    /// Returns what is charged to the group beside the mapped memory of its processes.
    fn kernel_parts(&self) -> Vec<(&'static str, &'static str, u64)> {
        let parts = &self.memory.parts;
        let rows = [
            (
                "page_cache",
                "page cache that no process has mapped",
                parts.file_bytes.saturating_sub(parts.mapped_file_bytes),
            ),
            ("slab_reclaimable", "names of files and inodes", parts.slab_reclaimable_bytes),
            ("slab_unreclaimable", "other kernel objects", parts.slab_unreclaimable_bytes),
            ("sockets", "buffers of sockets", parts.socket_bytes),
            ("page_tables", "page tables", parts.page_table_bytes),
            ("kernel_stacks", "kernel stacks", parts.kernel_stack_bytes),
            ("kernel_other", "the kernel's, not divided", parts.kernel_other_bytes),
            ("swap", "swapped out", parts.swapped_bytes),
        ];
        rows.into_iter().filter(|(_, _, amount)| *amount > 0).collect()
    }

    /// Returns advice if most of the memory is page cache, which is freed when memory is short.
    pub(super) fn advice(&self) -> Option<String> {
        let cache_bytes = self.memory.parts.file_bytes;
        let all = self.memory.current_bytes?;
        (cache_bytes >= 64 << 20 && cache_bytes > all / 2).then(|| {
            format!(
                "{} of the group's {} ({}) are page cache of files that were read or written: it is no leak, and is given back when memory \
                 is short",
                bytes(cache_bytes),
                bytes(all),
                percent(cache_bytes, all)
            )
        })
    }

    pub(super) fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        const MOST_PROCESSES: usize = 20;
        let charged = self.memory.current_bytes.map(bytes);
        let charged = charged.map_or_else(
            || ", and what is charged to it is unknown".to_owned(),
            |amount| format!(", {amount} charged to it"),
        );
        writeln!(out, "control group {}: {} processes{charged}", self.memory.path, self.processes.len())?;
        for limit in &self.limits {
            writeln!(
                out,
                "  {} {} (of {}): {} used, {} left with what the kernel can give back",
                if limit.is_hard { "limit" } else { "limit from which on it is slowed down" },
                bytes(limit.limit_bytes),
                limit.path,
                bytes(limit.used_bytes),
                bytes(limit.free_bytes)
            )?;
        }
        if self.limits.is_empty() {
            writeln!(out, "  no limit is set, here or in a group above that can be seen")?;
        }
        let columns = [
            Column::number("pid", "pid"),
            Column::text("name", "process"),
            Column::bytes("rss_bytes", "resident"),
            Column::bytes("pss_bytes", "its share"),
        ];
        let mut table = Table::new("heapr.explain/1", &columns);
        for process in self.processes.iter().take(MOST_PROCESSES) {
            table.row(row![process.pid, process.name.as_str(), process.rss_bytes, process.pss_bytes]);
        }
        write_table(&table, out)?;
        if self.processes.len() > MOST_PROCESSES {
            writeln!(out, "  and {} more", self.processes.len() - MOST_PROCESSES)?;
        }
        let all: u64 = self.classes.values().sum();
        let refused = self.processes.iter().filter(|process| process.pss_bytes.is_none()).count() as u64;
        let without = match refused {
            0 => String::new(),
            1 => ", without one process of which it was refused: unknown".to_owned(),
            count => format!(", without {count} processes of which it was refused: unknown"),
        };
        writeln!(out, "their memory, each page counted once: {}{without}", bytes(all))?;
        let mut table = ClassTable::new(all);
        for (class, amount) in &self.classes {
            table.class(class.label(), *amount, None::<&str>);
        }
        table.write(out)?;
        writeln!(out, "what the kernel adds:")?;
        for (_, label, amount) in self.kernel_parts() {
            writeln!(out, "  {label}: {}", bytes(amount))?;
        }
        if let Some(advice) = self.advice() {
            writeln!(out, "{advice}")?;
        }
        Ok(())
    }

    pub(super) fn json(&self) -> Value {
        let process = |process: &Process| {
            json!({
                "pid": process.pid,
                "name": process.name,
                "rss_bytes": process.rss_bytes,
                "pss_bytes": process.pss_bytes,
            })
        };
        let class = |(class, amount): (&Class, &u64)| json!({"class": class, "bytes": amount});
        let kernel = self.kernel_parts();
        let limit = |limit: &GroupLimit| {
            json!({
                "path": limit.path,
                "limit_bytes": limit.limit_bytes,
                "used_bytes": limit.used_bytes,
                "left_bytes": limit.free_bytes,
                "is_hard": limit.is_hard,
            })
        };
        json!({
            "limits": self.limits.iter().map(limit).collect::<Vec<_>>(),
            "path": self.memory.path,
            "current_bytes": self.memory.current_bytes,
            "processes": self.processes.iter().map(process).collect::<Vec<_>>(),
            "lines": self.classes.iter().map(class).collect::<Vec<_>>(),
            "kernel": kernel.iter().map(|(key, _, amount)| json!({"class": key, "bytes": amount})).collect::<Vec<_>>(),
            "advice": self.advice(),
        })
    }
}

//! Generates the tables of an invented fleet with the real reader, replay and writer:
//! `generate_fleet DIR HOSTS PROCESSES MINUTES STACKS`.
//!
//! Each host runs PROCESSES processes of five services. Each process allocates at STACKS stacks in
//! every minute. Some of the stacks retain more and more memory. Frames have no names.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use heapr_export::tables::{Recording, Table, write_tables};
use heapr_query::NoSymbols;

const SERVICES: [&str; 5] = ["gateway", "search", "billing", "feed", "cache"];
/// Number of frames of a stack.
const DEPTH: usize = 15;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [folder, numbers @ ..] = &words[..] else {
        return Err("usage: generate_fleet DIR HOSTS PROCESSES MINUTES STACKS".into());
    };
    let numbers: Vec<usize> = numbers.iter().map(|word| word.parse()).collect::<Result<_, _>>()?;
    let [hosts, processes, minutes, stacks] = numbers[..] else {
        return Err("four numbers are needed".into());
    };
    for host in 0..hosts {
        for process in 0..processes {
            write(Path::new(folder), host, process, minutes, stacks)?;
        }
    }
    Ok(())
}

/// Random numbers by xorshift64, with a fixed seed per process: the fleet is the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % limit
    }
}

/// Text of a service's code in heaptrack's format: functions and stacks, equal on all hosts.
fn code(service: &str, stacks: usize) -> String {
    let functions = stacks / 2 + DEPTH;
    let mut text = format!("v 10200 2\nX ./{service}\nI 1000 100000\ns /usr/bin/{service}\ns work.c\n");
    for number in 0..functions {
        writeln!(text, "s {service}_function_{number}").unwrap();
    }
    for number in 0..functions {
        writeln!(text, "i {:x} 1 {:x} 2 {:x}", 0x1000 + number * 16, number + 3, number + 1).unwrap();
    }
    // A trunk, with a branch for each stack. Callers have smaller numbers than callees.
    for number in 0..DEPTH - 2 {
        writeln!(text, "t {:x} {:x}", number + 1, number).unwrap();
    }
    for number in 0..stacks {
        let middle = DEPTH - 2 + number % (functions - DEPTH);
        writeln!(text, "t {:x} {:x}", middle + 1, DEPTH - 2 - number % 3).unwrap();
        writeln!(text, "t {:x} {:x}", number % functions + 1, DEPTH - 1 + 2 * number).unwrap();
    }
    for number in 0..stacks {
        writeln!(text, "a {:x} {:x}", 16 + number * 24 % 4000, DEPTH + 2 * number).unwrap();
    }
    text
}

fn write(
    folder: &Path,
    host: usize,
    process: usize,
    minutes: usize,
    stacks: usize,
) -> Result<(), Box<dyn std::error::Error>> {
    let service = SERVICES[process % SERVICES.len()];
    let mut text = code(service, stacks);
    let mut random = Random(88_172_645_463_325_252 + (host * 1000 + process) as u64);
    for minute in 0..minutes {
        writeln!(text, "c {:x}\nR {:x}", minute * 60_000 + 1000, 20_000 + minute).unwrap();
        for stack in 0..stacks {
            text.push_str(&format!("+ {stack:x}\n+ {stack:x}\n- {stack:x}\n"));
            // One stack in eight retains a block in three of four minutes, on average.
            if stack % 8 != 0 || random.below(4) == 0 {
                writeln!(text, "- {stack:x}").unwrap();
            }
        }
    }
    let trace = heapr_import::from_bytes(text.as_bytes())?;
    let name = format!("host{host:03}-{process}");
    let host = format!("host{host:03}");
    let recording = Recording {
        host: &host,
        service: Some(service),
        labels: "{}",
        file: &name,
        interval_ns: 60_000_000_000,
    };
    let mut new_file = |table: &Table| {
        let place = folder.join(table.name).join("date=2026-11-26");
        std::fs::create_dir_all(&place)?;
        Ok(Box::new(BufWriter::new(File::create(place.join(format!("{name}.parquet")))?)) as Box<dyn Write>)
    };
    write_tables(&trace, &recording, &mut NoSymbols, &mut new_file)?;
    Ok(())
}

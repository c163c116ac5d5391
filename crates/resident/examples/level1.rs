//! Times the account of a process, ten times over: `cargo run --release --example level1 -- PID`.

use heapr_glibc_heap::{Plan, Regions, regions};
use heapr_inject::StoppedProcess;
use heapr_proc::{PageMap, smaps};
use heapr_resident::{Account, Subject};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pid: u32 = std::env::args().nth(1).ok_or("usage: level1 PID")?.parse()?;
    for _ in 0..10 {
        let started = std::time::Instant::now();
        let memory = StoppedProcess::of(pid);
        let pages = PageMap::of_process(pid)?;
        let mappings = smaps::read(pid)?;
        let read = started.elapsed();
        let malloc = Plan::make(&memory).and_then(|plan| regions(&plan, &memory, &[]));
        let subject = Subject {
            mappings,
            malloc: malloc.unwrap_or_else(|_| Regions::default()),
            stack_pointers: heapr_proc::stack_pointers(pid),
            ..Subject::default()
        };
        let account = Account::of(&subject, &memory, &pages);
        let (mappings, all) = (subject.mappings.len(), started.elapsed());
        println!("{mappings} mappings, {} lines: smaps {read:?}, all {all:?}", account.lines().len());
    }
    Ok(())
}

//! Prints the rundown of an idle process: `cargo run --example rundown -- PID`.

use heapr_glibc_heap::{Plan, walk};
use heapr_inject::StoppedProcess;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pid = std::env::args().nth(1).ok_or("usage: rundown PID")?.parse()?;
    let memory = StoppedProcess::of(pid);
    let started = std::time::Instant::now();
    let plan = Plan::make(&memory)?;
    println!("glibc {}, planned in {:?}", plan.version(), started.elapsed());
    let started = std::time::Instant::now();
    let rundown = walk(&plan, &memory, &[], &mut plan.room(&memory))?;
    println!("walked in {:?}, {} arenas", started.elapsed(), rundown.arena_count());
    println!("{:?}", rundown.totals());
    for finding in rundown.findings() {
        println!("{finding}");
    }
    Ok(())
}

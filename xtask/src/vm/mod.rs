//! A virtual machine with a kernel of its own, emulated or not: heapr in it, on the processor of
//! choice. ptrace, memfd, seccomp, fork and control groups are the real kernel's there.
//!
//! ```text
//! target/vm/PROCESSOR/  root.img    Debian's packages, made once
//!                       vmlinuz     Debian's kernel       initrd  its modules for the disks
//!                       work.img    heapr and the trials, made at each run
//!                       results/    what the trials wrote
//! ```

mod machine;
mod own_tests;
mod processor;
mod programs;
mod root;

use anyhow::{Context as _, bail};

use processor::Processor;

/// Makes the machine if it is missing, boots it, runs the trials whose names have one of the words,
/// and brings their results back.
pub(crate) fn run(words: &[&str]) -> anyhow::Result<()> {
    let [processor, words @ ..] = words else { bail!("vm PROCESSOR [WORD…]: {}", Processor::names()) };
    let processor =
        Processor::named(processor).with_context(|| format!("{processor}: {}", Processor::names()))?;
    crate::packages::install(processor.packages)?;
    if !processor.is_here() {
        crate::packages::add_target(processor.target)?;
    }
    let folder = crate::root().join("target/vm").join(processor.name);
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    root::make(processor, &folder)?;
    let trials = programs::make(processor, &folder, words)?;
    machine::boot(processor, &folder)?;
    let results = folder.join("results");
    let mut failed_count = 0;
    for trial in &trials {
        let read = |end: &str| std::fs::read_to_string(results.join(format!("{trial}.{end}")));
        let outcome = read("status").unwrap_or_default();
        let is_passed = outcome.trim() == "0";
        failed_count += usize::from(!is_passed);
        println!("vm {}: {trial}: {}", processor.name, if is_passed { "passed" } else { "FAILED" });
        let text = read("txt").unwrap_or_else(|_| "the machine ended before it\n".to_owned());
        for line in text.lines().filter(|line| !is_passed || line.starts_with("= ")) {
            println!("    {line}");
        }
    }
    if failed_count > 0 {
        bail!("{failed_count} of {} trials failed: {} has their output", trials.len(), results.display());
    }
    println!("vm {}: {} trials passed: {}", processor.name, trials.len(), results.display());
    Ok(())
}

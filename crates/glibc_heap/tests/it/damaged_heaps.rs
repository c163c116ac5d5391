//! Overwritten heaps, and heaps of other allocators: each is reported, without a crash or a hang.

use std::process::{Command, Stdio};

use heapr_glibc_heap::{Error, Plan, Rundown, walk};
use heapr_inject::{ProcessMemory, StoppedProcess};
use heapr_proc::mappings;

use crate::account::{Holder, Shape};

/// Makes the rundown within a time limit: a walk must end whatever the heap claims.
fn rundown(holder: &Holder) -> Result<Rundown, Error> {
    let (pid, thread_pointers) = (holder.pid(), holder.account.thread_pointers.clone());
    heapr_testkit::within_limit("the walk", move || {
        let memory = StoppedProcess::of(pid);
        Plan::make(&memory).and_then(|plan| walk(&plan, &memory, &thread_pointers, &mut plan.room(&memory)))
    })
}

#[test]
fn an_overwritten_header_is_named_and_the_rest_is_listed() {
    for (round, size_field) in
        [0_u64, 1, 8, 0x21 + 7, 0x4141_4141_4141_4141, u64::MAX, 1 << 40 | 1, 0x11].into_iter().enumerate()
    {
        let holder = Holder::start(Shape { seed: round as u64 + 1, ..Shape::default() });
        let memory = ProcessMemory::open(holder.pid()).unwrap();
        let heap = mappings::read(holder.pid()).unwrap();
        let heap = heap.iter().find(|mapping| mapping.name == "[heap]").unwrap();
        let mut live: Vec<u64> =
            holder.account.live.keys().copied().filter(|address| heap.contains(*address)).collect();
        live.sort_unstable();
        let victim_avma = live[live.len() / 2];
        memory.write(victim_avma - 8, &size_field.to_le_bytes()).unwrap();
        let rundown = rundown(&holder).unwrap();
        assert!(!rundown.findings().is_empty(), "{size_field:#x}: nothing is said");
        let said = rundown.findings().iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        assert!(said.contains("0x"), "{said}");
        let listed: std::collections::HashSet<u64> =
            rundown.blocks().map(|block| block.address_avma).collect();
        // The lowest bit of the overwritten header says whether the block before it is live.
        let told = live.len() / 2 - usize::from(size_field & 1 == 0);
        let before = live.iter().take(told);
        assert!(before.clone().count() > 100);
        for address in before {
            assert!(
                listed.contains(address),
                "{size_field:#x} at {victim_avma:#x}: {address:#x} before the damage is missing; {said}"
            );
        }
        let found = live.iter().filter(|address| listed.contains(address)).count();
        println!("{size_field:#x}: {found} of {}", live.len());
        assert!(found * 100 >= live.len() * 98, "{size_field:#x}: {found} of {}: {said}", live.len());
    }
}

#[test]
fn a_heap_with_random_words_all_over_it_is_walked_to_an_end() {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    for seed in 1..=8 {
        let threads = seed as usize % 3;
        let holder = Holder::start(Shape { seed, threads, ..Shape::default() });
        let memory = ProcessMemory::open(holder.pid()).unwrap();
        let blocks: Vec<u64> = holder.account.live.keys().copied().collect();
        for _ in 0..300 {
            let at_avma = (blocks[next() as usize % blocks.len()] & !15).wrapping_sub(next() % 5 * 8);
            // Small numbers look like sizes, others like anything.
            let value = if next() % 2 == 0 { next() % 100_000 } else { next() };
            let _ = memory.write(at_avma, &value.to_le_bytes());
        }
        match rundown(&holder) {
            Ok(rundown) => {
                assert!(!rundown.findings().is_empty(), "seed {seed}: nothing is said");
                assert!(rundown.findings().len() < 100_000);
                let listed = rundown.blocks().count();
                assert!(listed < 50 * blocks.len(), "seed {seed}: {listed} blocks of {}", blocks.len());
            }
            Err(error) => assert!(error.to_string().contains("0x"), "{error}"),
        }
    }
}

#[test]
fn other_allocators_are_named_and_no_rundown_is_made() {
    for library in ["libjemalloc.so.2", "libtcmalloc.so.4", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"] {
        let path = format!("/usr/lib/x86_64-linux-gnu/{library}");
        if std::fs::metadata(&path).is_err() {
            heapr_testkit::not_run(format_args!("{path} is not installed"));
            continue;
        }
        let mut child =
            Command::new("sleep").arg("60").env("LD_PRELOAD", &path).stdin(Stdio::null()).spawn().unwrap();
        let memory = StoppedProcess::of(child.id());
        // Until the loader has mapped the library there is another error.
        let said = heapr_testkit::wait_until("the library is found", || match Plan::make(&memory) {
            Err(error @ Error::OtherAllocator { .. }) => Some(error.to_string()),
            _ => None,
        });
        let _ = child.kill();
        let _ = child.wait();
        let name = library.split(".so").next().unwrap();
        assert!(said.contains(name) && said.contains("not glibc's"), "{library}: {said:?}");
    }
}

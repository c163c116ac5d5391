use super::*;
use crate::made::{even_work, site, times_ns, work};

/// Judgement of a program that holds `base` KiB beside `kib`: confidence, and whether growth
/// begins late.
fn grows_beside(base: u64, kib: &[u64], work_done: &[u64]) -> Option<(Confidence, bool)> {
    let live: Vec<u64> = kib.iter().map(|kib| kib + base).collect();
    let (site, work) = (site(kib), work(&live));
    let growing = judge(&times_ns(kib.len()), work_done, &site, &work)?;
    Some((growing.confidence(&work), growing.begins_late))
}

fn grows(kib: impl Fn(u64) -> u64) -> Option<(Confidence, bool)> {
    let kib: Vec<u64> = (0..40).map(kib).collect();
    grows_beside(100, &kib, &even_work(40))
}

#[test]
fn what_rises_with_the_work_grows() {
    assert_eq!(grows(|at| at * 50), Some((Confidence::High, false)));
    // With a disturbance, and after a slow start.
    assert!(grows(|at| at * 50 + [0, 30, 10, 0][at as usize % 4]).is_some());
    assert!(grows(|at| at * at).is_some());
}

#[test]
fn what_fills_up_comes_and_goes_or_is_made_at_once_does_not_grow() {
    assert_eq!(grows(|at| 500.min(at * 40)), None, "a cache that is full");
    assert_eq!(grows(|at| at % 8 * 200), None, "batches");
    assert_eq!(grows(|at| if at < 30 { 10 } else { 900 }), None, "one step");
    assert_eq!(grows(|_| 700), None, "nothing happens");
    assert_eq!(grows(|at| 2000 - at * 40), None, "it shrinks");
    assert_eq!(grows(|at| at / 4), None, "less than is worth a word");
}

#[test]
fn growth_goes_by_the_work_and_not_by_the_time() {
    let kib: Vec<u64> = (0..40).map(|at: u64| at.min(20) * 50).collect();
    // The program waits from the middle on: it has not stopped growing.
    let waits: Vec<u64> = (0..40).map(|at: u64| at.min(20) * 1000).collect();
    assert!(grows_beside(100, &kib, &waits).is_some());
    assert_eq!(grows_beside(100, &kib, &even_work(40)), None);
}

#[test]
fn little_beside_the_most_that_was_live_must_be_steady() {
    let beside = |kib: &[u64]| {
        let live: Vec<u64> = (0..40).map(|at| if at < 12 { 90_000 } else { 3_000 }).collect();
        let (site, work) = (site(kib), work(&live));
        judge(&times_ns(40), &even_work(40), &site, &work).is_some()
    };
    let steady: Vec<u64> = (0..40).map(|at| at * 30).collect();
    let rare: Vec<u64> = (0..40).map(|at| at / 6 * 180).collect();
    assert!(beside(&steady));
    assert!(!beside(&rare));
}

#[test]
fn the_last_of_several_phases_is_told_from_what_grows_all_the_time() {
    assert_eq!(grows(|at| at.saturating_sub(24) * 60).map(|(_, late)| late), Some(true));
    assert_eq!(grows(|at| at * 30).map(|(_, late)| late), Some(false));
}

#[test]
fn what_rises_in_the_last_step_grows_however_much_work_is_in_it() {
    for windows in 7..=10 {
        let kib: Vec<u64> = (0..windows).map(|at| at * 100).collect();
        // The last step has 18 % of the work.
        let mut work_done = even_work(windows as usize);
        let before = work_done[windows as usize - 2];
        work_done[windows as usize - 1] = before + before * 18 / 82;
        assert!(grows_beside(100, &kib, &work_done).is_some(), "{windows} windows");
        let stops: Vec<u64> = (0..windows).map(|at| at.min(windows - 2) * 100).collect();
        assert_eq!(grows_beside(100, &stops, &work_done), None, "{windows} windows");
    }
}

#[test]
fn other_blocks_come_and_go_only_where_the_site_falls() {
    let kib: Vec<u64> = (0..40).map(|at| at * 50).collect();
    let least = site(&kib);
    let with = |beside: u64| {
        let all: Vec<u64> = (0..40).map(|at| at * 50 + at % 2 * beside).collect();
        let (all, work) = (site(&all), work(&kib));
        let growing = judge(&times_ns(40), &even_work(40), &least, &work).expect("it grows");
        growing.of_part(&all, StackIndex::EMPTY, 4, 39).falls()
    };
    assert!(with(200) && !with(0));
}

#[test]
fn a_few_moments_say_nothing() {
    assert_eq!(grows_beside(0, &[0, 100, 200, 300, 400], &even_work(5)), None);
    assert_eq!(grows_beside(0, &[], &[]), None);
}

#[test]
fn what_is_freed_while_the_process_waits_without_events_does_not_grow() {
    let kib: Vec<u64> = (0..40).map(|at| at * 50).collect();
    let judged = |left_kib: u64, moments: usize| {
        let mut site = site(&kib);
        site.amounts.outstanding_bytes = left_kib << 10;
        let work = WorkTime { still: (left_kib << 10, moments), ..work(&kib) };
        judge(&times_ns(40), &even_work(40), &site, &work).is_some()
    };
    assert!(!judged(0, 30) && !judged(1000, 30), "freed behind the last moment");
    assert!(judged(1950, 30), "all of it stays");
    assert!(judged(0, 0), "it is freed as the process ends");
}

#[test]
fn estimates_that_differ_by_chance_do_not_grow_and_their_noise_hides_no_growth() {
    // A sample stands for 50 KiB: half of the interval of 1 MiB is about 450 KiB.
    let judged = |kib: &dyn Fn(u64) -> u64| {
        let kib: Vec<u64> = (0..40).map(kib).collect();
        let mut site = site(&kib);
        for held in &mut site.held {
            held.variances.bytes_kib2 = (held.bytes >> 10) * 50;
        }
        judge(&times_ns(40), &even_work(40), &site, &work(&kib)).is_some()
    };
    assert!(!judged(&|at| 1000 + at * 5), "200 KiB more than 1000");
    assert!(judged(&|at| at * 50));
    assert!(judged(&|at| at * 50 + [0, 300, 0, 150][at as usize % 4]), "rises and falls of samples");
    assert!(!judged(&|at| if at < 30 { 10 } else { 3000 }), "a step that is no chance");
}

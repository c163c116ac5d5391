//! Limits are enforced, and stacks that exceed them are named.
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use heapr_test::{Recording, expect_left, expect_no_growth, expect_peak};
use heapr_testkit::not_run;

/// True if this process has `HEAPR` set to the program built with this test. The first process
/// starts it: other threads may read the first one's environment.
fn is_inner(test: &str) -> bool {
    if std::env::var_os("HEAPR").is_some() {
        return true;
    }
    let own = std::env::current_exe().unwrap();
    let built = own.ancestors().nth(2).unwrap().join("heapr");
    if !built.is_file() {
        not_run("target/…/heapr is not built: cargo build -p heapr");
        return false;
    }
    let output =
        Command::new(own).args(["--exact", test, "--nocapture"]).env("HEAPR", built).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    false
}

fn failure(work: impl FnOnce()) -> String {
    let error = catch_unwind(AssertUnwindSafe(work)).unwrap_err();
    let text = error.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| error.downcast_ref::<&str>().copied()).unwrap_or_default().to_owned()
}

#[inline(never)]
fn keep_page(kept: &mut Vec<Vec<u8>>) {
    kept.push(Vec::with_capacity(50_000));
}

#[test]
fn limits_hold_for_the_thread_that_asks() {
    if !is_inner("limits_hold_for_the_thread_that_asks") {
        return;
    }
    let peak = || drop(black_box([Vec::<u8>::with_capacity(3_000_000), Vec::with_capacity(2_000_000)]));
    expect_peak(5_000_000, peak);
    let said = failure(|| expect_peak(4_999_999, peak));
    assert!(said.starts_with("the peak is 5000000 bytes, and 4999999 are allowed:"), "{said}");
    assert!(said.contains("limits.rs:"), "{said}");

    let kept = expect_left(1_000, || Vec::<u8>::with_capacity(1_000));
    assert!(failure(|| drop(expect_left(999, || Vec::<u8>::with_capacity(1_000)))).contains("1000 bytes"));
    drop(kept);

    let mut last = Vec::new();
    expect_no_growth(|| last = black_box(Vec::<u8>::with_capacity(1_000)));
    let mut kept = Vec::new();
    let said = failure(|| expect_no_growth(|| keep_page(&mut kept)));
    assert!(said.contains("each of 30 times") && said.contains("keep_page"), "{said}");
    assert_eq!(kept.len(), 40);

    let in_a_thread = || {
        std::thread::spawn(|| drop(black_box(Vec::<u8>::with_capacity(7_000_000)))).join().unwrap();
    };
    expect_peak(1_000_000, in_a_thread);
    let ((), recording) = Recording::of_process(in_a_thread).unwrap();
    assert!((7_000_000..7_100_000).contains(&recording.peak_bytes().unwrap()));
    assert!(recording.allocation_count().unwrap() >= 1 && recording.left_bytes().unwrap() < 100_000);

    // A panic of the work is the test's own, and the session ends with it.
    assert!(failure(|| expect_peak(1, || panic!("mine {}", 1))).contains("mine 1"));
    expect_peak(1_000, || ());
}

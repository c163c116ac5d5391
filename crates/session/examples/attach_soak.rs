//! Attaches to a process and detaches from it, again and again. Prints one line of JSON: pauses in
//! microseconds, their parts, what stayed mapped, what was recorded.
use std::time::{Duration, Instant};

use heapr_session::{PauseParts, SampleRate, Session, SessionProperties};
use heapr_trace::HeapId;
use serde_json::{Value, json};

#[derive(Default)]
struct Rounds {
    pauses: Vec<Duration>,
    /// Parts of each pause; `tries` has the number of stops that it took.
    parts: Vec<PauseParts>,
    tries: Vec<u32>,
}

impl Rounds {
    fn to_json(&self) -> Value {
        let microseconds = |mut all: Vec<Duration>| {
            all.sort();
            let worst = all.last().copied().unwrap_or_default();
            json!([all.get(all.len() / 2).copied().unwrap_or_default().as_micros(), worst.as_micros()])
        };
        let part = |of: fn(&PauseParts) -> Duration| microseconds(self.parts.iter().map(of).collect());
        json!({
            "pause_us": microseconds(self.pauses.clone()),
            "stop_us": part(|parts| parts.stop),
            "settle_us": part(|parts| parts.settle),
            "check_us": part(|parts| parts.check),
            "read_heap_us": part(|parts| parts.read_heap),
            "install_us": part(|parts| parts.install),
            "resume_us": part(|parts| parts.resume),
            "tries_mean": f64::from(self.tries.iter().sum::<u32>()) / self.tries.len().max(1) as f64,
            "tries_worst": self.tries.iter().max(),
        })
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let ([_, pid, rounds, milliseconds] | [_, pid, rounds, milliseconds, _]) = arguments.as_slice() else {
        return Err("usage: attach_soak PID ROUNDS MILLISECONDS [BYTES]".into());
    };
    // Mean period of samples in bytes.
    let mean_bytes: Option<u64> = arguments.get(4).map(|mean| mean.parse()).transpose()?;
    let (pid, rounds, milliseconds): (u32, u32, u64) = (pid.parse()?, rounds.parse()?, milliseconds.parse()?);
    let folder = std::env::temp_dir().join(format!("heapr-soak-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let (mut attach, mut detach) = (Rounds::default(), Rounds::default());
    let (mut bytes_left, mut events, mut busy, mut unread, mut threads, mut modules) = (0, 0, 0, 0, 0, 0);
    let (mut unmatched, mut implied, mut invalid) = (0, 0, 0);
    let mut unmatched_elsewhere = 0;
    for round in 0..rounds {
        let mut properties = SessionProperties::new(folder.join("trace.heapr"));
        properties.overwrite = true;
        properties.sample = mean_bytes.map(|bytes| SampleRate::Every { bytes });
        let mut session = Session::start(properties)?;
        let report = session.attach(pid).map_err(|error| format!("round {round}: {error}"))?;
        attach.pauses.push(report.pause);
        attach.parts.push(report.parts);
        attach.tries.push(report.try_count);
        busy += u32::from(report.was_allocator_busy);
        let blocks_before = report.blocks_before;
        if let Some(reason) = &report.heap_unread {
            unread += 1;
            eprintln!("round {round}: {reason}");
        }
        threads = threads.max(report.thread_count);
        modules = modules.max(report.module_count);
        let end = Instant::now() + Duration::from_millis(milliseconds);
        while Instant::now() < end {
            session.step();
        }
        let report = session.detach(pid).map_err(|error| format!("round {round}: {error}"))?;
        detach.pauses.push(report.pause);
        detach.parts.push(report.parts);
        detach.tries.push(report.try_count);
        bytes_left += report.bytes_left;
        let recorded = session.stop();
        let (totals, loss) = (recorded.summary.totals, recorded.statistics.loss);
        events += recorded.summary.event_count;
        // Blocks of heaps other than malloc's from before the attach are unknown.
        let others = recorded.summary.by_heap.iter().filter(|(_, heap, _)| *heap != HeapId::MALLOC);
        let elsewhere: u64 = others.map(|(_, _, totals)| totals.unmatched_frees).sum();
        let unmatched_frees = totals.unmatched_frees.saturating_sub(elsewhere);
        unmatched += unmatched_frees;
        unmatched_elsewhere += elsewhere;
        implied += totals.implied_frees;
        invalid += loss.records_invalid + loss.events_lost;
        if unread == 0 && unmatched_frees + totals.implied_frees + loss.records_invalid > 0 {
            eprintln!(
                "round {round}: {} frees of unknown blocks, {} only implied, {loss:?}; {blocks_before} blocks before",
                unmatched_frees, totals.implied_frees,
            );
        }
    }
    std::fs::remove_dir_all(&folder)?;
    let report = json!({
        "rounds": rounds, "attach": attach.to_json(), "detach": detach.to_json(), "bytes_left": bytes_left,
        "events": events, "allocator_busy": busy, "heap_unread": unread, "frees_unmatched": unmatched,
        "frees_unmatched_elsewhere": unmatched_elsewhere, "frees_implied": implied, "lost_or_invalid": invalid,
        "threads": threads, "modules": modules,
    });
    println!("{report}");
    Ok(())
}

//! Attaches to a running process and detaches, again and again: `attach_soak PID ROUNDS MILLISECONDS`. One line at the end:
//! rounds, pauses of attach and detach in microseconds (median, worst), bytes left, events.
use std::time::{Duration, Instant};

use heapr_session::{Session, SessionProperties};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, pid, rounds, milliseconds] = arguments.as_slice() else {
        return Err("usage: attach_soak PID ROUNDS MILLISECONDS".into());
    };
    let (pid, rounds, milliseconds): (u32, u32, u64) = (pid.parse()?, rounds.parse()?, milliseconds.parse()?);
    let folder = std::env::temp_dir().join(format!("heapr-soak-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let (mut attach, mut detach) = (Vec::new(), Vec::new());
    let (mut bytes_left, mut events, mut busy, mut tries) = (0, 0, 0, 0);
    for _ in 0..rounds {
        let mut properties = SessionProperties::new(folder.join("trace.heapr"));
        properties.overwrite = true;
        let mut session = Session::start(properties)?;
        let report = session.attach(pid)?;
        attach.push(report.pause);
        busy += u32::from(report.was_allocator_busy);
        tries += report.try_count;
        let end = Instant::now() + Duration::from_millis(milliseconds);
        while Instant::now() < end {
            session.step();
        }
        let report = session.detach(pid)?;
        detach.push(report.pause);
        bytes_left += report.bytes_left;
        events += session.stop().summary.event_count;
    }
    std::fs::remove_dir_all(&folder)?;
    let of = |pauses: &mut Vec<Duration>| {
        pauses.sort();
        let worst = pauses.last().copied().unwrap_or_default();
        (pauses.get(pauses.len() / 2).copied().unwrap_or_default().as_micros(), worst.as_micros())
    };
    let ((median, worst), (detach_median, detach_worst)) = (of(&mut attach), of(&mut detach));
    println!("{rounds} {median} {worst} {detach_median} {detach_worst} {bytes_left} {events} {busy} {tries}");
    Ok(())
}

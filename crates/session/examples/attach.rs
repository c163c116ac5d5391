//! Records a running process for some seconds: `attach PID SECONDS FILE`.
use std::time::{Duration, Instant};

use heapr_session::{Session, SessionProperties};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, pid, seconds, file] = arguments.as_slice() else {
        return Err("usage: attach PID SECONDS FILE".into());
    };
    let (pid, seconds): (u32, f64) = (pid.parse()?, seconds.parse()?);
    let mut properties = SessionProperties::new(file.into());
    properties.overwrite = true;
    let mut session = Session::start(properties)?;
    let report = session.attach(pid)?;
    println!("{report:?}");
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    while Instant::now() < end {
        session.step();
    }
    println!("{:?}", session.detach(pid));
    let summary = session.stop();
    println!("{} events, {:?}", summary.summary.event_count, summary.statistics);
    Ok(())
}

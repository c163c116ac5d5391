//! Records a program with the library alone: `cargo run -p heapr-session --example record -- TRACE
//! PROGRAM [ARGS]`.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use heapr_session::{Session, SessionProperties};

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut words = std::env::args_os().skip(1);
    let (Some(output), Some(program)) = (words.next(), words.next()) else {
        eprintln!("usage: record TRACE PROGRAM [ARGS]");
        return Ok(ExitCode::from(2));
    };
    let mut properties = SessionProperties::new(PathBuf::from(output));
    properties.overwrite = true;
    let mut session = Session::start(properties)?;
    let mut child = Command::new(program).args(words).envs(session.environment_for_target()).spawn()?;
    while child.try_wait()?.is_none() {
        session.step();
    }
    let ended = session.stop();
    let totals = &ended.summary.totals;
    eprintln!(
        "{} allocations, {} frees, {} bytes at the peak, {} events lost",
        totals.alloc_count, totals.free_count, totals.peak_bytes, ended.statistics.loss.events_lost
    );
    Ok(ExitCode::SUCCESS)
}

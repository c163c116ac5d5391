//! `heapr stop` and `heapr cancel`: end sessions.

use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};

use anyhow::{Context as _, bail};
use heapr_session::{Answer, Request, StopReport};
use rustix::fs::{CWD, RenameFlags};

use crate::output::{OutputFile, already_exists};
use crate::run::summary::{self, Ending};
use crate::trace_file::open;

/// Arguments of `heapr stop`.
#[derive(Debug, clap::Args)]
pub(crate) struct StopArguments {
    /// The session, if several run
    name: Option<String>,
    /// Move the trace to this file
    #[arg(short, long, value_name = "FILE", value_parser = crate::output::file_path())]
    output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(short = 'f', long)]
    force: bool,
    /// Print nothing but errors
    #[arg(short, long)]
    quiet: bool,
}

/// Arguments of `heapr cancel`.
#[derive(Debug, clap::Args)]
pub(crate) struct CancelArguments {
    /// The session, if several run
    name: Option<String>,
}

pub(super) fn stop(arguments: StopArguments) -> anyhow::Result<ExitCode> {
    let session = super::find(arguments.name.as_deref())?;
    if let Some(output) = &arguments.output {
        // Checked before the session ends, because an ended session cannot continue.
        check_destination(output, arguments.force)?;
    }
    let Answer::Stopped(report) = session.ask(Request::Stop)? else {
        bail!("the session's answer makes no sense")
    };
    let mut output = PathBuf::from(&report.output);
    if let Some(wanted) = &arguments.output {
        put(&output, wanted, arguments.force)
            .with_context(|| format!("the trace is complete, but stays in {}", output.display()))?;
        output.clone_from(wanted);
    }
    if let Some(error) = &report.write_error {
        warn!("{} is incomplete: {error}", output.display());
    }
    if !arguments.quiet {
        print(&report, &output)?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn cancel(arguments: &CancelArguments) -> anyhow::Result<ExitCode> {
    let session = super::find(arguments.name.as_deref())?;
    session.ask(Request::Cancel)?;
    Ok(ExitCode::SUCCESS)
}

fn print(report: &StopReport, output: &Path) -> anyhow::Result<()> {
    let totals = open(output)?.summary_totals()?.unwrap_or_default().totals;
    let ending = Ending {
        event_count: report.event_count,
        wall_ns: report.wall_ns,
        process_count: report.process_count,
        events_lost: report.events_lost,
        status: report.wait_status.map(ExitStatus::from_raw),
        totals,
    };
    summary::print(&ending, output)
}

fn check_destination(output: &Path, may_overwrite: bool) -> anyhow::Result<()> {
    match fs::symlink_metadata(output) {
        Ok(facts) if facts.is_symlink() => {
            bail!("{} is a symbolic link, and heapr writes through none", output.display())
        }
        Ok(facts) if !facts.is_file() => bail!("{} is no file", output.display()),
        Ok(_) if !may_overwrite => {
            return Err(already_exists(output));
        }
        _ => {}
    }
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        bail!("{} is no directory", folder.display());
    }
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK)
        .with_context(|| format!("cannot write into {}", folder.display()))
}

/// Moves the trace; copies it if the target is another file system.
fn put(from: &Path, to: &Path, may_overwrite: bool) -> anyhow::Result<()> {
    let is_same = fs::canonicalize(to).is_ok_and(|to| fs::canonicalize(from).is_ok_and(|from| from == to));
    if is_same {
        return Ok(());
    }
    let flags = if may_overwrite { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
    match rustix::fs::renameat_with(CWD, from, CWD, to, flags) {
        Ok(()) => return Ok(()),
        // Another file system, or one without RENAME_NOREPLACE.
        Err(rustix::io::Errno::XDEV | rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {}
        Err(error) => {
            return Err(io::Error::from(error)).with_context(|| format!("cannot make {}", to.display()));
        }
    }
    let mut source = fs::File::open(from).with_context(|| format!("cannot read {}", from.display()))?;
    let mut target = OutputFile::create(to, may_overwrite)?;
    let cannot = || format!("cannot write {}", to.display());
    io::copy(&mut source, &mut target).with_context(cannot)?;
    target.keep()?;
    fs::remove_file(from).with_context(|| format!("cannot remove {}", from.display()))
}

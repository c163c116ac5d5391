//! Errors of creating the trace file, as advice for the user.

use std::io::ErrorKind;

use rustix::io::Errno;

use crate::output::already_exists;

/// True if a session could not start for a reason that the user did not cause. Examples are a
/// resource limit, or an unwritable folder when no output was named.
pub(crate) fn keeps_heapr_out(error: &heapr_session::Error, is_output_named: bool) -> bool {
    const WANTS: [Errno; 8] = [
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOMEM,
        Errno::AGAIN,
        Errno::NOSPC,
        Errno::FBIG,
        Errno::DQUOT,
        Errno::PERM,
    ];
    let is_want = |code: Option<i32>| WANTS.iter().any(|want| code == Some(want.raw_os_error()));
    match error {
        heapr_session::Error::Output { source: heapr_trace::Error::Io { source, .. }, .. } => {
            is_want(source.raw_os_error()) || !is_output_named && source.kind() != ErrorKind::AlreadyExists
        }
        heapr_session::Error::Pool { .. }
        | heapr_session::Error::NoRoom { .. }
        | heapr_session::Error::NoAgentDirectory { .. } => true,
        _ => false,
    }
}

/// Converts an error of the start into advice.
pub(crate) fn explain(error: heapr_session::Error, output: &std::path::Path) -> anyhow::Error {
    if let heapr_session::Error::Output { source: heapr_trace::Error::Io { source, .. }, .. } = &error {
        if source.kind() == ErrorKind::AlreadyExists {
            return already_exists(output);
        }
        const ELOOP: i32 = 40;
        if source.raw_os_error() == Some(ELOOP) {
            return anyhow::anyhow!("{} is a symbolic link, and heapr writes through none", output.display());
        }
        return anyhow::anyhow!("cannot write {}: {source}", output.display());
    }
    error.into()
}

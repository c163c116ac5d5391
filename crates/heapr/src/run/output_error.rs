//! What a user is told when the trace file cannot be made.

use std::io::ErrorKind;

/// The error of a start as advice.
pub(crate) fn explain(error: heapr_session::Error, output: &std::path::Path) -> anyhow::Error {
    if let heapr_session::Error::Output { source: heapr_trace::Error::Io { source, .. }, .. } = &error {
        if source.kind() == ErrorKind::AlreadyExists {
            return anyhow::anyhow!(
                "{} exists: name another file with -o, or overwrite it with -f",
                output.display()
            );
        }
        const ELOOP: i32 = 40;
        if source.raw_os_error() == Some(ELOOP) {
            return anyhow::anyhow!("{} is a symbolic link, and heapr writes through none", output.display());
        }
        return anyhow::anyhow!("cannot write {}: {source}", output.display());
    }
    error.into()
}

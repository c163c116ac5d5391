//! `heapr mcp`: a server for agents, over standard input and output.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;

use crate::version;

/// Arguments of `heapr mcp`.
#[derive(Debug, clap::Args)]
pub(crate) struct McpArguments {
    /// Let it start programs, attach to processes and take snapshots of them; without it only what
    /// reads is allowed
    #[arg(long)]
    allow_attach: bool,
    /// Folder for traces and snapshots [default: a new one among the temporary files]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(arguments: McpArguments) -> anyhow::Result<ExitCode> {
    let folder = match arguments.folder {
        Some(folder) => folder.canonicalize().with_context(|| format!("no folder {}", folder.display()))?,
        None if arguments.allow_attach => new_folder()?,
        // Without `allow_attach` no file is written.
        None => std::env::temp_dir(),
    };
    heapr_mcp::serve(heapr_mcp::Options {
        // The running program itself, even if its file is replaced meanwhile.
        program: "/proc/self/exe".into(),
        version: version::short().to_owned(),
        may_attach: arguments.allow_attach,
        folder,
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Creates a folder that only this user can read. It stays, so that recordings can be opened later.
fn new_folder() -> anyhow::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt as _;
    let above = std::env::temp_dir();
    for number in 0..1000 {
        let folder = above.join(format!("heapr-mcp-{}-{number}", std::process::id()));
        match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(|| format!("cannot make {}", folder.display())),
        }
    }
    anyhow::bail!("no free name for a folder in {}", above.display())
}

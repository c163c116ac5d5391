//! Programs of `victims/dotnet/heaps`, and the runtimes that they run on.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Growing, cannot_run_here};

/// Folder of the runtimes beside a `dotnet`.
const RUNTIMES: &str = "shared/Microsoft.NETCore.App";

/// Returns the `dotnet` programs that `HEAPR_DOTNETS` names, separated by colons. Without one the
/// test is reported as left out.
#[must_use]
pub fn dotnets() -> Vec<PathBuf> {
    let named = std::env::var_os("HEAPR_DOTNETS").unwrap_or_default();
    let found: Vec<PathBuf> = std::env::split_paths(&named).filter(|path| path.is_file()).collect();
    if found.is_empty() {
        cannot_run_here("HEAPR_DOTNETS names no .NET (a program `dotnet`)");
    }
    found
}

/// Program of .NET that runs until this value is dropped.
#[derive(Debug)]
pub struct DotnetProgram {
    program: Growing,
    _folder: tempfile::TempDir,
}

impl DotnetProgram {
    /// Compiles the program `main` in the folder `name` by Mono's `mcs`, starts it on a runtime,
    /// and waits until it is ready. `None`: there is no compiler.
    ///
    /// # Panics
    /// Panics if it cannot be compiled or started.
    #[must_use]
    pub fn start(dotnet: &Path, name: &str, main: &str, words: &[&str]) -> Option<Self> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../victims/dotnet/heaps").join(name);
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join(format!("{main}.exe"));
        let version = version(dotnet).expect("the version of the runtime");
        let compiled = Command::new("mcs")
            .arg(format!("-out:{}", program.display()))
            .arg(source.join(format!("{main}.cs")))
            .status();
        let Ok(compiled) = compiled else {
            cannot_run_here("no compiler for C# is installed (mono-mcs)");
            return None;
        };
        assert!(compiled.success(), "{main}.cs");
        let options = format!(
            r#"{{"runtimeOptions":{{"framework":{{"name":"Microsoft.NETCore.App","version":"{version}"}}}}}}"#
        );
        std::fs::write(folder.path().join(format!("{main}.runtimeconfig.json")), options).expect("a file");
        let mut command = Command::new(dotnet);
        command.arg(program).args(words).env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1");
        Some(Self { program: Growing::of(command).expect("the program is ready"), _folder: folder })
    }

    /// Makes the program grow by a step, and waits until it has done so.
    ///
    /// # Panics
    /// Panics if the program has ended.
    pub fn step(&mut self) {
        self.program.step();
    }

    /// Process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.program.pid()
    }
}

/// Version of the runtime beside a `dotnet`, by the name of its folder.
fn version(dotnet: &Path) -> Option<String> {
    let runtimes = dotnet.canonicalize().ok()?.with_file_name(RUNTIMES);
    let mut folders = std::fs::read_dir(runtimes).ok()?.flatten();
    folders.find_map(|folder| {
        let name = folder.file_name().into_string().ok()?;
        name.starts_with(|first: char| first.is_ascii_digit()).then_some(name)
    })
}

//! Programs of `victims/deaths`, compiled once.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Context as _;

/// Programs by the name that stands in a death's command.
pub(super) struct Programs {
    folder: tempfile::TempDir,
    shared: PathBuf,
}

/// Programs in C and C++.
const COMPILED: [&str; 6] = ["leak.cc", "spike.c", "tmpfs.c", "sockets.c", "steady.c", "throws.cc"];
/// Programs in Java.
const CLASSES: [&str; 2] = ["Direct.java", "Heap.java"];
/// Address space of the program that throws, in KiB.
const ADDRESS_SPACE_KIB: u64 = 200_000;

impl Programs {
    /// Compiles what these commands run.
    pub(super) fn built(commands: &[&str]) -> anyhow::Result<Self> {
        let is_run = |name: &str| commands.iter().any(|command| command.contains(name));
        let victims = victims();
        let folder = tempfile::tempdir()?;
        for source in COMPILED {
            let compiler = if source.ends_with(".cc") { "g++" } else { "gcc" };
            let program = folder.path().join(source.split('.').next().unwrap_or(source));
            let mut command = Command::new(compiler);
            command.args(["-g", "-O1", "-fno-builtin", "-o"]).arg(program).arg(victims.join(source));
            crate::run(&mut command)?;
        }
        if is_run("{classes}") {
            let mut javac = Command::new("javac");
            javac.args(["-g", "-d"]).arg(folder.path().join("classes"));
            crate::run(javac.args(CLASSES.map(|name| victims.join(name))))?;
        }
        if is_run("{rust}") {
            let mut cargo = crate::cargo();
            cargo.args(["build", "--release", "--quiet", "--target-dir"]).arg(target());
            crate::run(cargo.arg("--manifest-path").arg(victims.join("rust/Cargo.toml")))?;
        }
        let shared = PathBuf::from("/dev/shm").join(format!("heapr-deaths-{}", std::process::id()));
        std::fs::create_dir(&shared).with_context(|| shared.display().to_string())?;
        Ok(Self { folder, shared })
    }

    /// Words of a command.
    pub(super) fn command(&self, text: &str) -> anyhow::Result<Vec<String>> {
        // The interpreter itself: a script that searches for it would be another program.
        let python =
            crate::output_of(Command::new("python3").args(["-c", "import sys; print(sys.executable)"]))?;
        let mut text = text.replace("{victims}", &victims().to_string_lossy());
        let limited = format!("prlimit --as={} {{throws}}", ADDRESS_SPACE_KIB << 10);
        text = text.replace("{throws-limited}", &limited).replace("{shared}", &self.shared.to_string_lossy());
        text = text.replace("python3 ", "{python} ").replace("{python}", python.trim());
        text = text.replace("{classes}", &self.folder.path().join("classes").to_string_lossy());
        text = text.replace("{rust}", &target().join("release/death-rust").to_string_lossy());
        for source in COMPILED {
            let name = source.split('.').next().unwrap_or(source);
            text = text.replace(&format!("{{{name}}}"), &self.folder.path().join(name).to_string_lossy());
        }
        Ok(text.split(' ').map(str::to_owned).collect())
    }

    /// Removes files that a program has left in tmpfs.
    pub(super) fn clean(&self) {
        for entry in std::fs::read_dir(&self.shared).into_iter().flatten().flatten() {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.shared);
    }
}

fn victims() -> PathBuf {
    crate::root().join("victims/deaths")
}

/// Folder of the build of the program in Rust, which is kept.
fn target() -> PathBuf {
    crate::root().join("target/deaths")
}

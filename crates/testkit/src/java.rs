//! Programs of `victims/java/heaps`, and the installed development kits that they run on.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Growing, not_run};

/// Returns the installed Java development kits with HotSpot. Without one the test is reported as
/// left out.
#[must_use]
pub fn java_kits() -> Vec<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten();
    let mut kits: Vec<PathBuf> = folders
        .filter_map(|folder| folder.path().canonicalize().ok())
        .filter(|kit| kit.join("bin/javac").is_file() && kit.join("bin/java").is_file())
        .filter(|kit| kit.join("lib/server").is_dir() && !kit.join("lib/j9vm").exists())
        .collect();
    kits.sort();
    kits.dedup();
    if kits.is_empty() {
        not_run("no Java development kit with HotSpot is installed");
    }
    kits
}

/// Program of Java that runs until this value is dropped.
#[derive(Debug)]
pub struct JavaProgram {
    program: Growing,
    kit: PathBuf,
    _classes: tempfile::TempDir,
}

impl JavaProgram {
    /// Compiles the program `main` in the folder `name`, starts it with options of the virtual
    /// machine, and waits until it is ready.
    ///
    /// # Panics
    /// Panics if it cannot be compiled or started.
    #[must_use]
    pub fn start(kit: &Path, name: &str, main: &str, options: &[&str]) -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../victims/java/heaps").join(name);
        let classes = tempfile::tempdir().expect("a folder");
        let compiled = Command::new(kit.join("bin/javac"))
            .env_remove("JAVA_TOOL_OPTIONS")
            .env_remove("JDK_JAVAC_OPTIONS")
            .arg("-d")
            .arg(classes.path())
            .arg(source.join(format!("{main}.java")))
            .status()
            .expect("the compiler starts");
        assert!(compiled.success(), "{main}.java");
        let mut command = Command::new(kit.join("bin/java"));
        command
            .env_remove("JAVA_TOOL_OPTIONS")
            .env_remove("JDK_JAVA_OPTIONS")
            .env_remove("_JAVA_OPTIONS")
            .args(["-Xmx256m", "-XX:+UseSerialGC", "-cp"])
            .arg(classes.path())
            .args(options)
            .arg(main)
            .args((name == "class-loader").then(|| format!("{}/", classes.path().display())))
            .current_dir(classes.path());
        let program = Growing::of(command).expect("the program is ready");
        Self { program, kit: kit.to_owned(), _classes: classes }
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

    /// Has the virtual machine write its live objects to a file.
    ///
    /// # Panics
    /// Panics if it does not.
    pub fn dump(&self, file: &Path) {
        let asked = Command::new(self.kit.join("bin/jcmd"))
            .env_remove("JAVA_TOOL_OPTIONS")
            .arg(self.pid().to_string())
            .arg("GC.heap_dump")
            .arg(file)
            .output()
            .expect("jcmd starts");
        assert!(asked.status.success() && file.is_file(), "{asked:?}");
    }
}

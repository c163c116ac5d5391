//! Programs and files that the jobs need. They are made anew for each measurement, by the measured
//! program, so that one that reads only older files can be measured, too.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

/// Libraries of the program that maps many.
const LIBRARIES: usize = 40;
/// Source that clang compiles: some 200,000 allocations.
const SOURCE: &str = "#include <map>\n#include <string>\nstd::map<std::string, int> counts;\n\
                      int main() { counts[\"a\"]++; return int(counts.size()); }\n";

/// Sizes of the inputs.
#[derive(Debug)]
pub(super) struct Scale {
    /// Units of `benches/make_snapshot.js`, of half a MB each; `None`: there are no snapshots.
    snapshot_units: Option<&'static str>,
    /// Two commands whose recordings are the inputs of the jobs that read traces.
    recorded: [&'static [&'static str]; 2],
    /// Functions of each of the forty libraries.
    functions: usize,
}

impl Scale {
    /// Realistic sizes.
    pub(super) const WHOLE: Self = Self {
        snapshot_units: Some("20"),
        recorded: [
            &["clang++", "-O1", "-c", "-o", "/dev/null", "{source}"],
            &["clang++", "-O0", "-c", "-o", "/dev/null", "{source}"],
        ],
        functions: 20_000,
    };
    /// Sizes for a build without optimization.
    pub(super) const SMALL: Self = Self {
        snapshot_units: None,
        recorded: [&["{events}", "deep", "10000"], &["{events}", "deep", "8000"]],
        functions: 2_000,
    };
}

/// Folders in which programs are searched.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The inputs of the jobs, in a folder that is removed with this value. Its path is as long on each
/// machine, and commands have no environment but the one made here: counts grow with both.
#[derive(Debug)]
pub(super) struct Inputs {
    folder: tempfile::TempDir,
    /// Values of the names in braces.
    values: BTreeMap<&'static str, String>,
}

impl Inputs {
    /// Makes all that the jobs need.
    pub(super) fn make(heapr: &str, scale: &Scale) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("heapr-counts-").tempdir().context("a folder")?;
        std::fs::create_dir(folder.path().join("cache")).context("its cache")?;
        let mut inputs = Self { folder, values: BTreeMap::new() };
        inputs.take_heapr(heapr)?;
        inputs.make_programs(scale)?;
        inputs.make_traces(scale)?;
        if let Some(units) = scale.snapshot_units {
            inputs.make_snapshots(units)?;
        }
        Ok(inputs)
    }

    /// The program that is measured: a copy without what only debuggers read, as Valgrind takes
    /// long to read it, too.
    pub(super) fn heapr(&self) -> String {
        self.file("heapr").display().to_string()
    }

    fn take_heapr(&self, heapr: &str) -> anyhow::Result<()> {
        crate::run(Command::new("strip").args(["-o", &self.heapr(), heapr]))
    }

    /// A file of the folder.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Removes what commands have written, and with `is_all` their saved answers, too.
    pub(super) fn forget(&self, is_all: bool) -> anyhow::Result<()> {
        let kept = is_all.then_some("cache/heapr");
        for name in ["exported", "exported.tables"].into_iter().chain(kept) {
            let path = self.file(name);
            let removed =
                if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
            match removed {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| path.display().to_string());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Replaces the names in braces; an error for a name without a value.
    pub(super) fn filled(&self, words: &[&str]) -> anyhow::Result<Vec<String>> {
        let filled = |word: &&str| match word.strip_prefix('{').and_then(|word| word.strip_suffix('}')) {
            Some(name) => self.values.get(name).cloned().with_context(|| format!("there is no {name} here")),
            None => Ok((*word).to_owned()),
        };
        words.iter().map(filled).collect()
    }

    /// Returns a command that finds no cache, session or trace outside of the folder.
    pub(super) fn command(&self, words: &[String]) -> Command {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env_clear().env("PATH", PATH).env("HOME", self.folder.path()).env("LC_ALL", "C.UTF-8");
        command.env("XDG_CACHE_HOME", self.file("cache")).env("HEAPR_RUNTIME_DIR", self.file("cache"));
        command.env("PYTHONHASHSEED", "0").env("PYTHONMALLOC", "malloc");
        command
    }

    fn set(&mut self, name: &'static str, path: &Path) {
        self.values.insert(name, path.display().to_string());
    }

    fn make_programs(&mut self, scale: &Scale) -> anyhow::Result<()> {
        use std::os::unix::fs::PermissionsExt as _;

        std::fs::set_permissions(self.file("cache"), std::fs::Permissions::from_mode(0o700))?;
        let events = self.file("events");
        let source = crate::root().join("benches/events.c");
        crate::run(Command::new("gcc").args(["-O1", "-g", "-o"]).arg(&events).arg(source))?;
        self.set("events", &events);
        self.make_libraries(scale.functions)?;
        Ok(())
    }

    /// A program that maps many libraries, of each of which it uses nothing.
    fn make_libraries(&mut self, functions: usize) -> anyhow::Result<()> {
        let mut text = String::from(".section .note.GNU-stack\n.text\n");
        for function in 0..functions {
            let name = format!("library_function{function}");
            // Writing to a String cannot fail.
            let _ = write!(text, ".globl {name}\n.type {name},@function\n{name}: .cfi_startproc\nret\n");
            let _ = write!(text, ".cfi_endproc\n.size {name}, .-{name}\n");
        }
        let (source, object) = (self.file("library.s"), self.file("library.o"));
        std::fs::write(&source, text)?;
        crate::run(Command::new("gcc").arg("-c").arg("-o").arg(&object).arg(&source))?;
        let (source, forty) = (self.file("forty.c"), self.file("forty"));
        std::fs::write(&source, "int main(void) { return 0; }\n")?;
        let empty = self.file("empty.c");
        std::fs::write(&empty, "")?;
        let libraries: Vec<PathBuf> =
            (0..LIBRARIES).map(|number| self.file(&format!("library{number}.so"))).collect();
        let link = |library: &Path, object: &Path| {
            crate::run(Command::new("gcc").args(["-shared", "-Wl,--build-id", "-o"]).arg(library).arg(object))
        };
        // Linked with empty libraries, because the real ones would take a minute.
        for library in &libraries {
            link(library, &empty)?;
        }
        crate::run(
            Command::new("gcc").arg("-Wl,--no-as-needed").arg("-o").arg(&forty).arg(&source).args(&libraries),
        )?;
        for library in &libraries {
            link(library, &object)?;
        }
        self.set("forty", &forty);
        Ok(())
    }

    fn make_traces(&mut self, scale: &Scale) -> anyhow::Result<()> {
        let heapr = self.heapr();
        let source = self.file("small.cc");
        std::fs::write(&source, SOURCE)?;
        self.set("source", &source);
        for (name, command) in ["trace", "other"].into_iter().zip(scale.recorded) {
            let trace = self.file(&format!("{name}.heapr"));
            let words =
                [&heapr, "run", "--quiet", "-f", "-o", &trace.display().to_string(), "--"].map(str::to_owned);
            crate::run(&mut self.command(&[words.to_vec(), self.filled(command)?].concat()))?;
            self.set(name, &trace);
        }
        self.set("out", &self.file("exported"));
        self.set("folder", &self.file("exported.tables"));
        self.make_graph()
    }

    /// A trace with a graph; a program that is too old for graphs leaves the jobs of it out.
    fn make_graph(&mut self) -> anyhow::Result<()> {
        let graph = self.file("graph.heapr");
        let words = [&self.heapr(), "run", "--quiet", "--graph-at-exit", "-f", "-o"].map(str::to_owned);
        let rest = self.filled(&["{events}", "list", "5000"])?;
        let words = [words.to_vec(), vec![graph.display().to_string(), "--".into()], rest].concat();
        let output = self.command(&words).output().context("heapr run --graph-at-exit")?;
        if output.status.success() {
            self.set("graph", &graph);
        }
        Ok(())
    }

    fn make_snapshots(&mut self, units: &str) -> anyhow::Result<()> {
        let (before, after) = (self.file("a.heapsnapshot"), self.file("a.heapsnapshot.2"));
        let script = crate::root().join("benches/make_snapshot.js");
        crate::run(Command::new("node").arg(script).arg(&before).args([units, "--grow", "2"]))?;
        if !after.exists() {
            bail!("{} was not written", after.display());
        }
        self.set("v8_before", &before);
        self.set("v8", &after);
        Ok(())
    }
}

//! Names for a query: from the trace's embedded symbols, the modules' files, and perf maps of JIT
//! code.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use heapr_query::{FrameSink, SourceFrame, SymbolSource};
use heapr_session::{HeldMadeCode, HeldModule};
use heapr_symbols::{MadeCode, ModuleKey, NamedFrame, SymbolOptions, SymbolTable, Symbolizer, read_perf_map};
use heapr_trace::{ModuleIndex, ProcessIndex, Trace};
use rustix::fs::{Mode, OFlags};

use super::nameless_modules::NamelessModules;

/// Largest perf map that is read, in bytes.
const PERF_MAP_BYTES_MAX: u64 = 256 << 20;

/// Beginning of the path that stands for a process's code outside of all modules; its index
/// follows.
const RUN_TIME_CODE: &str = "[process ";

/// Sources of names.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct NameArguments {
    /// Directory with modules or debug files; may be given several times
    #[arg(long, value_name = "DIR")]
    pub(crate) symbol_path: Vec<PathBuf>,
    /// Root of the recorded machine's files
    #[arg(long, value_name = "DIR")]
    pub(crate) sysroot: Option<PathBuf>,
    /// Files of modules that are not at their paths.
    #[arg(skip)]
    pub(crate) files: HashMap<ModuleKey, PathBuf>,
}

/// Names addresses of one trace.
#[derive(Debug)]
pub(crate) struct TraceNames {
    symbolizer: Symbolizer,
    keys: Vec<ModuleKey>,
    pids: Vec<u32>,
    made_code: HashMap<u32, Arc<MadeCode>>,
    /// Symbol tables for a bundle: embedded symbols, and those resolved since.
    pub(crate) tables: BTreeMap<ModuleKey, SymbolTable>,
    keeps_tables: bool,
    /// Modules that are resolved; `None` for all.
    only: Option<Vec<ModuleKey>>,
    nameless: NamelessModules,
}

impl TraceNames {
    pub(crate) fn new(trace: &Trace, arguments: &NameArguments) -> Self {
        Self::of_files(trace, arguments, arguments.files.clone())
    }

    /// Makes names from what the recorder holds: files of modules whose paths lead elsewhere, and
    /// JIT code. No other module is resolved.
    pub(crate) fn of_held(trace: &Trace, held: &[HeldModule], made: &[HeldMadeCode]) -> Self {
        let files = held.iter().map(|held| {
            let key = ModuleKey { path: PathBuf::from(&held.path), build_id: held.build_id.clone() };
            (key, PathBuf::from(format!("/proc/self/fd/{}", held.file.as_raw_fd())))
        });
        let files: HashMap<ModuleKey, PathBuf> = files.collect();
        let only = Some(files.keys().cloned().collect());
        let made_code = made.iter().map(|held| (held.pid, Arc::clone(&held.code))).collect();
        Self { only, made_code, ..Self::of_files(trace, &NameArguments::default(), files) }
    }

    fn of_files(trace: &Trace, arguments: &NameArguments, files: HashMap<ModuleKey, PathBuf>) -> Self {
        let options = SymbolOptions {
            symbol_paths: arguments.symbol_path.clone(),
            sysroot: arguments.sysroot.clone(),
            files,
            ..SymbolOptions::default()
        };
        let mut symbolizer = Symbolizer::new(options);
        if let Ok(Some(bundle)) = trace.embedded_symbols() {
            symbolizer.use_bundle(&bundle);
        }
        let keys = trace
            .modules()
            .iter()
            .map(|module| ModuleKey { path: PathBuf::from(&module.path), build_id: module.build_id.clone() });
        Self {
            symbolizer,
            keys: keys.collect(),
            pids: trace.processes().iter().map(|process| process.pid).collect(),
            made_code: HashMap::new(),
            tables: BTreeMap::new(),
            keeps_tables: false,
            only: None,
            nameless: NamelessModules::default(),
        }
    }

    /// Returns the allocated types that the compiler recorded at calls. Keys are the module and the
    /// return address of the call in its file.
    pub(crate) fn allocation_types(
        &self,
        calls: impl IntoIterator<Item = (String, u64)>,
    ) -> HashMap<(String, u64), String> {
        let mut by_module: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        calls.into_iter().for_each(|(module, svma)| by_module.entry(module).or_default().push(svma));
        let mut types = HashMap::new();
        for (module, svmas) in by_module {
            let Some(key) = self.keys.iter().find(|key| key.path == Path::new(&module)) else { continue };
            let found = self.symbolizer.allocation_types(key, &svmas);
            let named = svmas.iter().zip(found);
            types.extend(named.filter_map(|(&svma, name)| Some(((module.clone(), svma), name?))));
        }
        types
    }

    /// Returns advice on modules that have no names.
    pub(crate) fn advice(&self) -> Option<String> {
        self.nameless.advice()
    }

    /// Saves resolved names in `tables`. Files are read even for modules with embedded names,
    /// because they may have more.
    pub(crate) fn keep_tables(mut self) -> Self {
        self.keeps_tables = true;
        let embedded = self.symbolizer.embedded();
        self.tables = embedded.map(|(key, table)| (key.clone(), table.clone())).collect();
        self
    }

    /// Adds to the saved table of a module the names from its files, and returns the table.
    fn keep(&mut self, key: &ModuleKey, svmas: &[u64]) -> Option<&SymbolTable> {
        if let Ok(found) = self.symbolizer.resolve_from_files(key, svmas) {
            // Without a build-id the file may be another one than the recorded one.
            let lines_count = !key.build_id.is_empty();
            self.tables.entry(key.clone()).or_default().improve(&found, svmas, lines_count);
        }
        self.tables.get(key)
    }
}

/// Reads a perf map: a regular file of this user or of root, up to a limit. Any user can create a
/// file, pipe or link of this name in `/tmp`.
fn map_file(path: &Path) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let metadata = file.metadata().ok()?;
    let is_trusted = [0, rustix::process::geteuid().as_raw()].contains(&metadata.uid());
    if !metadata.is_file() || !is_trusted {
        return None;
    }
    read_map_file(file)
}

fn read_map_file(file: File) -> Option<Vec<u8>> {
    if file.metadata().ok()?.len() > PERF_MAP_BYTES_MAX {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(PERF_MAP_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

impl SymbolSource for TraceNames {
    fn resolve(&mut self, module: ModuleIndex, svmas: &[u64], sink: &mut FrameSink<'_>) {
        let Some(key) = self.keys.get(module.0 as usize).cloned() else { return };
        if self.only.as_ref().is_some_and(|only| !only.contains(&key)) {
            return;
        }
        let resolved;
        let table = if self.keeps_tables {
            let Some(kept) = self.keep(&key, svmas) else { return };
            kept
        } else {
            resolved = self.symbolizer.resolve(&key, svmas);
            self.nameless.see(&key, svmas, &resolved);
            let Ok(table) = &resolved else { return };
            table
        };
        let mut frames = Vec::new();
        for (number, &svma) in svmas.iter().enumerate() {
            let Some(found) = table.frames(svma).filter(|found| !found.is_empty()) else { continue };
            frames.clear();
            frames.extend(found.iter().map(|frame| SourceFrame {
                symbol: table.symbol(frame),
                file: table.file(frame),
                line: (frame.line() != 0).then(|| frame.line()),
                is_inlined: frame.is_inlined(),
            }));
            sink(number, &frames);
        }
    }

    fn resolve_unmapped(&mut self, process: ProcessIndex, avmas: &[u64], sink: &mut FrameSink<'_>) {
        let Some(&pid) = self.pids.get(process.0 as usize) else { return };
        let key = run_time_code_of(process);
        let embedded = self.symbolizer.embedded_of(&key);
        let embedded_frame = |avma: u64| {
            let table = embedded?;
            let frame = table.frames(avma)?.last()?;
            let symbol = table.symbol(frame)?;
            let line = Some(frame.line()).filter(|&line| line != 0);
            Some(SourceFrame { symbol: Some(symbol), file: table.file(frame), line, is_inlined: false })
        };
        let code = self.made_code.entry(pid).or_insert_with(|| {
            let path = PathBuf::from(format!("/tmp/perf-{pid}.map"));
            let (functions, old) = read_perf_map(&map_file(&path).unwrap_or_default(), 0);
            Arc::new(MadeCode::new(functions, old))
        });
        let mut nameless = 0;
        for (number, &avma) in avmas.iter().enumerate() {
            // Embedded names go first: the pid may belong to another process by now, and does on
            // another machine.
            if let Some(frame) = embedded_frame(avma) {
                sink(number, &[frame]);
            } else if let Some(place) = code.find(avma) {
                let (symbol, file, line) = (Some(&*place.name), place.file, place.line);
                sink(number, &[SourceFrame { symbol, file, line, is_inlined: false }]);
            } else {
                nameless += 1;
            }
        }
        // If the process has a map, code outside of it is rarely worth a name.
        if embedded.is_none() && nameless == avmas.len() {
            self.nameless.see_made_code(pid, nameless);
        }
        if self.keeps_tables {
            let frames = avmas.iter().filter_map(|&avma| {
                let place = code.find(avma)?;
                let file = place.file.map(str::to_owned);
                let symbol = Some(place.name.into_owned());
                Some((avma, vec![NamedFrame { symbol, file, line: place.line, is_inlined: false }]))
            });
            let found = SymbolTable::of_frames(frames);
            if !found.is_empty() {
                self.tables.entry(key).or_default().improve(&found, avmas, true);
            }
        }
    }
}

/// Returns the key that stands in a bundle for a process's JIT code, with its running addresses. No
/// module has such a path, so readers that do not know it never look it up.
fn run_time_code_of(process: ProcessIndex) -> ModuleKey {
    ModuleKey { path: PathBuf::from(format!("{RUN_TIME_CODE}{}]", process.0)), build_id: Vec::new() }
}

/// Whether the key of a bundle's table is a module.
pub(crate) fn is_module(key: &ModuleKey) -> bool {
    !key.path.as_os_str().as_encoded_bytes().starts_with(RUN_TIME_CODE.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_regular_file_is_taken_for_a_perf_map() {
        let scratch = tempfile::tempdir().unwrap();
        let place = |name: &str| scratch.path().join(name);
        std::fs::write(place("map"), "10 10 f\n").unwrap();
        assert_eq!(map_file(&place("map")).unwrap(), b"10 10 f\n");
        std::os::unix::fs::symlink(place("map"), place("link")).unwrap();
        assert_eq!(map_file(&place("link")), None);
        rustix::fs::mknodat(rustix::fs::CWD, place("pipe"), rustix::fs::FileType::Fifo, Mode::RUSR, 0)
            .unwrap();
        assert_eq!(map_file(&place("pipe")), None);
        let large = File::create(place("large")).unwrap();
        large.set_len(PERF_MAP_BYTES_MAX + 1).unwrap();
        assert_eq!(map_file(&place("large")), None);
        assert_eq!(map_file(&place("missing")), None);
    }
}

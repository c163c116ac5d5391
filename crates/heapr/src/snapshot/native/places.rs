//! Names of locations outside of blocks: variables, stack frames, registers, mappings.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use heapr_known::machine::HERE;
use heapr_native::OF_MODULE;
use heapr_query::file_name;
use heapr_symbols::{DataSymbols, ThreadLocals};
use heapr_trace::{Process, RootArea, RootClass};

use super::graph_file::GraphFile;

fn area_name(area: &RootArea) -> String {
    let thread = || match area.name.as_str() {
        "" => format!("thread {}", area.tid),
        name => format!("thread {} \"{name}\"", area.tid),
    };
    let range = || format!("{:#x}-{:#x}", area.start_avma, area.end_avma);
    match area.class {
        RootClass::Registers => format!("{} registers", thread()),
        RootClass::Stack | RootClass::Frame => format!("{} stack", thread()),
        RootClass::ThreadLocal if area.tid == 0 => format!("{} {}", area.name, range()),
        RootClass::ThreadLocal => match of_module(area) {
            Some((path, name)) => format!("thread {} \"{name}\", TLS {}", area.tid, file_name(path)),
            None => format!("{} thread-local memory", thread()),
        },
        RootClass::Global => format!("{} data", file_name(&area.name)),
        RootClass::Mapping if area.name.is_empty() => format!("mapping {}", range()),
        RootClass::Mapping => format!("{} {}", area.name, range()),
        RootClass::Shared => format!("shared {} {}", area.name, range()),
        RootClass::Untracked => format!("blocks that were not recorded {}", range()),
        RootClass::Unknown if !area.name.is_empty() && area.start_avma == 0 => area.name.clone(),
        RootClass::Unknown => format!("between blocks {}", range()),
        RootClass::Kernel => format!("kernel: {}", area.name),
        RootClass::LeftOut if area.name.is_empty() => {
            format!("perhaps memory that is not in the core file {}", range())
        }
        RootClass::LeftOut => format!("perhaps {}, which is not in the core file", area.name),
        RootClass::Other(number) => format!("root of kind {number} {}", range()),
    }
}

/// Returns the module whose thread-local variables an area has, and the thread's name.
fn of_module(area: &RootArea) -> Option<(&str, &str)> {
    area.name.strip_prefix(OF_MODULE)?.split_once('\n')
}

/// Names of locations in root areas.
pub(super) struct Places<'f> {
    file: &'f GraphFile,
    /// Data symbols by path.
    symbols: HashMap<String, DataSymbols>,
    functions: HashMap<String, DataSymbols>,
    /// Thread-local variables of the program.
    thread_locals: Option<ThreadLocals>,
    /// Thread-local symbols by path of their module.
    module_locals: HashMap<String, DataSymbols>,
    /// Load bias by path of a module, for modules whose bias the recording does not have.
    biases: HashMap<String, Option<u64>>,
    /// File that a path leads to. The loader's path of a library differs from the kernel's if a
    /// folder or the library is a link.
    real_paths: HashMap<String, PathBuf>,
    /// Address of the descriptor of each thread.
    descriptors: HashMap<u32, u64>,
}

/// Beginning of the name of memory behind a module's data.
pub(super) const BEHIND_MODULE: &str = "memory behind ";

/// Returns the path of the program on this machine: a core may be read with a program at another
/// path.
fn program_path(file: &GraphFile, process: &Process) -> String {
    let name = file_name(&process.executable);
    let modules = || file.trace.modules().iter();
    let same = modules().find(|module| module.path == process.executable);
    let named = || modules().find(|module| file_name(&module.path) == name);
    same.or_else(named).map_or_else(|| process.executable.clone(), |module| module.path.clone())
}

fn variable_of_thread(path: &str, name: &str, offset: u64) -> String {
    let module = file_name(path);
    match offset {
        0 => format!("TLS {module}!{name}"),
        offset => format!("TLS {module}!{name}+{offset:#x}"),
    }
}

impl<'f> Places<'f> {
    pub(super) fn of(file: &'f GraphFile) -> Self {
        let areas = file.graph.areas.iter();
        let local = areas.filter(|area| area.class == RootClass::ThreadLocal && area.tid != 0);
        let local = local.filter(|area| of_module(area).is_none());
        let program = file.trace.processes().get(file.process.0 as usize);
        let thread_locals = program.and_then(|it| ThreadLocals::of(Path::new(&program_path(file, it))));
        Self {
            file,
            symbols: HashMap::new(),
            functions: HashMap::new(),
            thread_locals,
            module_locals: HashMap::new(),
            biases: HashMap::new(),
            real_paths: HashMap::new(),
            descriptors: local.map(|area| (area.tid, area.start_avma)).collect(),
        }
    }

    pub(super) fn name(&mut self, area: &RootArea, offset_bytes: u64) -> String {
        let plain = || format!("+{offset_bytes:#x}");
        match area.class {
            RootClass::Registers => HERE
                .registers
                .names
                .get((offset_bytes / 8) as usize)
                .map_or_else(|| "vector register".to_owned(), |&name| name.to_owned()),
            RootClass::Global => {
                self.variable(area, area.start_avma.wrapping_add(offset_bytes)).unwrap_or_else(plain)
            }
            RootClass::Kernel => "data".to_owned(),
            RootClass::Stack | RootClass::ThreadLocal => {
                self.thread_local(area, offset_bytes).unwrap_or_else(plain)
            }
            _ => plain(),
        }
    }

    /// Names a thread-local variable, as in `TLS program!t_cache+0x18`.
    pub(super) fn thread_local(&mut self, area: &RootArea, offset_bytes: u64) -> Option<String> {
        if let Some((path, _)) = of_module(area) {
            // The area of a module that is in a block is the whole block.
            let symbols = self.module_locals.entry(path.to_owned());
            let symbols = symbols.or_insert_with_key(|path| DataSymbols::thread_locals_of(Path::new(path)));
            let (name, offset) = symbols.find(offset_bytes).filter(|_| area.start_avma != area.end_avma)?;
            return Some(variable_of_thread(path, &name, offset));
        }
        if area.class != RootClass::Stack {
            return None;
        }
        let descriptor_avma = self.descriptors.get(&area.tid)?;
        let before_bytes = descriptor_avma.checked_sub(area.start_avma.wrapping_add(offset_bytes))?;
        let (name, offset) = self.thread_locals.as_ref()?.find(before_bytes)?;
        let program = self.file.trace.processes().get(self.file.process.0 as usize)?;
        let program = program_path(self.file, program);
        Some(variable_of_thread(&program, &name, offset))
    }

    /// Names a whole area, as in `thread 12 "worker", frame 3 handle()+0x41`.
    pub(super) fn area_name(&mut self, area: &RootArea) -> String {
        let mut parts = area.name.splitn(3, ' ');
        let (Some(number), Some(address), Some(name)) = (parts.next(), parts.next(), parts.next()) else {
            return area_name(area);
        };
        match (area.class, u64::from_str_radix(address, 16)) {
            (RootClass::Frame, Ok(pc_avma)) => {
                let place = self.code(pc_avma, number != "0").unwrap_or_else(|| format!("{pc_avma:#x}"));
                format!("thread {} \"{name}\", frame {number} {place}", area.tid)
            }
            _ => area_name(area),
        }
    }

    /// Names code, as in `handle()+0x41` or `libfoo.so+0x1234`. `is_after_call`: the address before
    /// is looked up, because a call may be the last instruction of its function.
    fn code(&mut self, avma: u64, is_after_call: bool) -> Option<String> {
        let trace = &self.file.trace;
        let mapping = trace.mappings().iter().find(|mapping| {
            mapping.process == self.file.process && (mapping.start_avma..mapping.end_avma).contains(&avma)
        })?;
        let path = &trace.modules().get(mapping.module.0 as usize)?.path;
        let svma = avma.wrapping_sub(mapping.bias_avma);
        let functions = self
            .functions
            .entry(path.clone())
            .or_insert_with_key(|path| DataSymbols::functions_of(Path::new(path)));
        let back = u64::from(is_after_call);
        Some(match functions.find(svma.wrapping_sub(back)) {
            Some((name, offset)) => format!("{name}+{:#x}", offset + back),
            None => format!("{}+{svma:#x}", file_name(path)),
        })
    }

    /// Names a variable, as in `libfoo.so!g_cache+0x18`.
    fn variable(&mut self, area: &RootArea, avma: u64) -> Option<String> {
        let bias_avma = self.recorded_bias(area, avma).or_else(|| self.told_bias(area))?;
        let symbols = symbols_of(&mut self.symbols, &area.name);
        let svma = avma.wrapping_sub(bias_avma);
        let module = file_name(&area.name);
        // The kernel merges a module's data with memory that touches it.
        if symbols.is_behind(svma) {
            let (start_avma, end_avma) = (area.start_avma, area.end_avma);
            let offset_bytes = avma.wrapping_sub(start_avma);
            return Some(format!("{BEHIND_MODULE}{module} {start_avma:#x}-{end_avma:#x}+{offset_bytes:#x}"));
        }
        Some(match symbols.find(svma) {
            Some((name, 0)) => format!("{module}!{name}"),
            Some((name, offset)) => format!("{module}!{name}+{offset:#x}"),
            None => format!("{module}+{svma:#x}"),
        })
    }

    /// Returns the load bias of a module from the recording.
    fn recorded_bias(&mut self, area: &RootArea, avma: u64) -> Option<u64> {
        let trace = &self.file.trace;
        let mut nearest: Option<(u64, u64)> = None;
        for mapping in trace.mappings() {
            if mapping.process != self.file.process || mapping.start_avma > avma {
                continue;
            }
            let Some(module) = trace.modules().get(mapping.module.0 as usize) else { continue };
            let is_nearer = nearest.is_none_or(|(start_avma, _)| start_avma < mapping.start_avma);
            if is_nearer && self.is_same_file(&module.path, &area.name) {
                nearest = Some((mapping.start_avma, mapping.bias_avma));
            }
        }
        nearest.map(|(_, bias_avma)| bias_avma)
    }

    fn is_same_file(&mut self, one: &str, other: &str) -> bool {
        let mut real = |path: &str| -> PathBuf {
            let known = self.real_paths.entry(path.to_owned());
            known.or_insert_with(|| std::fs::canonicalize(path).unwrap_or_else(|_| path.into())).clone()
        };
        one == other || real(one) == real(other)
    }

    /// Returns the load bias of a module without recorded calls, from its mapped parts.
    fn told_bias(&mut self, area: &RootArea) -> Option<u64> {
        let Self { biases, symbols, file, .. } = self;
        *biases.entry(area.name.clone()).or_insert_with(|| {
            let of_it = file.graph.areas.iter();
            let of_it = of_it.filter(|it| it.class == RootClass::Global && it.name == area.name);
            let parts: Vec<(u64, u64)> = of_it.map(|it| (it.start_avma, it.end_avma)).collect();
            symbols_of(symbols, &area.name).bias(&parts)
        })
    }
}

fn symbols_of<'s>(known: &'s mut HashMap<String, DataSymbols>, path: &str) -> &'s DataSymbols {
    known.entry(path.to_owned()).or_insert_with(|| DataSymbols::of(Path::new(path)))
}

//! Code between a user's line and its blocks: the library that the line calls, and the package that
//! the library belongs to.

use heapr_query::{CullList, FrameView, Owner, file_name, script_place};
use heapr_trace::StackIndex;

use crate::own_name::shown_symbol;
use crate::recording::Recording;

/// Largest number of frames of the evidence.
const SHOWN_MAX: usize = 7;
/// Smallest share of a site's growth that comes through a library, for the library to be named
/// where the largest stack does not pass it.
const PART_MIN: f64 = 0.25;
/// Largest number of stacks that are examined for such a library.
const STACKS_MAX: usize = 256;

/// Path from a user's line to the allocation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Through {
    /// Innermost function of a library, with its package: `hiredis.so!Reader_gets (hiredis 2.1.0)`.
    /// `None`: no library lies in between.
    pub(crate) library: Option<String>,
    /// True if only a part of the blocks comes through the library.
    is_in_part: bool,
    /// Sentence with the functions from the line down to the allocation.
    pub(crate) path: Option<String>,
}

impl Through {
    /// Takes the library of a part of the blocks, if the path itself passes none.
    pub(crate) fn or_in_part(self, library: impl FnOnce() -> Option<String>) -> Self {
        match self.library {
            Some(_) => self,
            None => Self { library: library(), is_in_part: true, ..self },
        }
    }

    /// Inserts the library behind a name: `f (a.py:3), through lib.so!g (lib 1.0),`.
    pub(crate) fn named(&self, name: String) -> String {
        match &self.library {
            Some(library) if self.is_in_part => format!("{name}, in part through {library},"),
            Some(library) => format!("{name}, through {library},"),
            None => name,
        }
    }
}

/// Frames of one module or source file that follow one another: the outermost and the innermost.
struct Run<'v> {
    module: &'v str,
    entry: &'v FrameView<'v>,
    last: &'v FrameView<'v>,
    owner: Owner,
}

impl Recording<'_> {
    /// Path from a stack's own frame to its allocation.
    pub(crate) fn through(&self, stack: StackIndex) -> Through {
        let views = self.tree.views(self.trace, stack, self.tree.named(stack));
        let Some(own) = self.own.place(&views) else { return Through::default() };
        let cull = CullList::built_in();
        let is_named = |view: &&FrameView<'_>| {
            view.symbol.is_some() && !cull.matches(view.module, view.symbol) && !self.is_glue(view)
        };
        let inner: Vec<&FrameView<'_>> = views[..own].iter().filter(is_named).collect();
        let is_users = self.owner_of(&views[own]) == Owner::Program;
        let library = self.own.place(&views[..own]).map(|place| &views[place]);
        let library = library.filter(|_| is_users).or_else(|| {
            // Without a library, the language's own one is told: not a part of the user's function,
            // as `<dictcomp>` is.
            let is_other = |view: &&FrameView<'_>| view.is_of_language() && view.file != views[own].file;
            inner.iter().copied().find(is_other).filter(|_| is_users)
        });
        let library = library.map(|view| self.in_package(view, &views[..own]));
        Through { library, path: self.path(&views[own], &inner), ..Through::default() }
    }

    /// Library through which a part of the growth comes that is worth a word, and whose function
    /// holds most of that part. `stacks`: those that grow, the largest first.
    pub(crate) fn part_through(&self, stacks: &[(StackIndex, u64)]) -> Option<String> {
        let all = stacks.iter().fold(0_u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
        let mut parts: Vec<(String, String, u64)> = Vec::new();
        for &(stack, bytes) in stacks.iter().take(STACKS_MAX) {
            let views = self.tree.views(self.trace, stack, self.tree.named(stack));
            let Some(own) = self.own.place(&views) else { continue };
            let Some(place) = self.own.place(&views[..own]) else { continue };
            if self.owner_of(&views[own]) != Owner::Program {
                continue;
            }
            let view = &views[place];
            let key = self.package(view).unwrap_or_else(|| module_of(view).to_owned());
            match parts.iter_mut().find(|(known, ..)| *known == key) {
                Some((.., sum)) => *sum = sum.saturating_add(bytes),
                None => parts.push((key, self.in_package(view, &views[..own]), bytes)),
            }
        }
        let (_, name, bytes) = parts.into_iter().max_by_key(|(.., bytes)| *bytes)?;
        (bytes as f64 >= all as f64 * PART_MIN).then_some(name)
    }

    fn owner_of(&self, view: &FrameView<'_>) -> Owner {
        self.own.owner(view.module, view.symbol, view.file)
    }

    /// Whether a frame only runs or loads code, or allocates for the runtime: it tells nothing of
    /// what the code does.
    fn is_glue(&self, view: &FrameView<'_>) -> bool {
        const GLUE: &[&str] =
            &["_PyEval_", "PyEval_", "rb_vm_", "vm_exec", "Interpreter", "zend_execute", "execute_ex"];
        self.own.is_loader(view.module, view.symbol, view.file)
            || view.symbol.is_some_and(|symbol| {
                GLUE.iter().any(|start| symbol.starts_with(start))
                    || symbol.contains("alloc") && self.owner_of(view) == Owner::Runtime
            })
    }

    /// Name of a frame with its package, and with the one that the user's line calls, if that is
    /// another. `inner`: the frames below the line.
    fn in_package(&self, view: &FrameView<'_>, inner: &[FrameView<'_>]) -> String {
        let name = frame_name(view);
        let Some(package) = self.package(view) else { return name };
        let libraries = inner.iter().rev().filter(|view| self.owner_of(view) == Owner::Library);
        credited(&name, &package, libraries.filter_map(|view| self.package(view)))
    }

    /// Package of a frame's code. Crates are told by their source: they are part of the program.
    pub(crate) fn package(&self, view: &FrameView<'_>) -> Option<String> {
        let of_source = |file: &&str| {
            view.is_of_language()
                || ["/registry/src/", "/.cargo/git/", "/go/pkg/mod/"].iter().any(|part| file.contains(part))
        };
        let script = view.symbol.and_then(script_place).map(|(_, file, _)| file);
        let source = view.file.filter(of_source).or(script.filter(|_| view.module.is_none()));
        let file = source.or(view.module.filter(|_| !view.is_of_language()))?;
        self.packages.package_of(file)
    }

    /// Sentence with the functions from the own frame inwards. Of functions of one module that
    /// follow one another, the outermost and the innermost are told.
    fn path(&self, own: &FrameView<'_>, inner: &[&FrameView<'_>]) -> Option<String> {
        let mut runs: Vec<Run<'_>> = Vec::new();
        for &view in inner.iter().rev() {
            let owner = self.owner_of(view);
            let module = module_of(view);
            match runs.last_mut() {
                Some(run) if run.module == module => run.last = view,
                _ => runs.push(Run { module, entry: view, last: view, owner }),
            }
        }
        // An interpreter between two libraries only passes the call on.
        let count = runs.len();
        let mut place = 0;
        runs.retain(|run| {
            place += 1;
            run.owner != Owner::Runtime || run.entry.is_of_language() || place == count
        });
        let mut names: Vec<String> = Vec::new();
        let mut add = |name: String| {
            if names.last() != Some(&name) {
                names.push(name);
            }
        };
        for run in &runs {
            add(frame_name(run.entry));
            add(frame_name(run.last));
        }
        if names.is_empty() {
            return None;
        }
        if names.len() > SHOWN_MAX {
            let rest = names.split_off(names.len() - (SHOWN_MAX - 2));
            names.truncate(2);
            names.push("…".to_owned());
            names.extend(rest);
        }
        Some(format!("{} calls {}", frame_name(own), names.join(" > ")))
    }
}

/// Name of a frame with its package, and with the outermost of the packages that call it, the
/// outermost first.
fn credited(name: &str, package: &str, mut callers: impl Iterator<Item = String>) -> String {
    match callers.next().filter(|caller| caller != package) {
        Some(caller) => format!("{name} ({package}, for {caller})"),
        None => format!("{name} ({package})"),
    }
}

fn module_of<'v>(view: &'v FrameView<'v>) -> &'v str {
    match view.is_of_language() {
        true => view.file.unwrap_or_default(),
        false => view.module.unwrap_or_default(),
    }
}

/// Name of a frame: `lib.so!f`, or `C.f (c.py:3)` for a language's.
fn frame_name(view: &FrameView<'_>) -> String {
    let Some(symbol) = view.symbol else {
        return match view.module {
            Some(module) => format!("{}+{:#x}", file_name(module), view.offset),
            None => format!("{:#x}", view.offset),
        };
    };
    let name = shown_symbol(view.module, symbol);
    match (view.module, view.file, view.line) {
        (Some(_), Some(file), Some(line)) if view.is_of_language() => {
            format!("{name} ({}:{line})", file_name(file))
        }
        (Some(module), ..) if !view.is_of_language() => format!("{}!{name}", file_name(module)),
        _ => name,
    }
}

#[test]
fn the_package_that_the_user_calls_is_named_beside_the_one_that_allocates() {
    let credited = |callers: &[&str]| {
        credited("libxml2.so.2!xmlNewDoc", "libxml2 2.9.14", callers.iter().map(|&name| name.to_owned()))
    };
    assert_eq!(
        credited(&["nokogiri 1.13.10", "libxml2 2.9.14"]),
        "libxml2.so.2!xmlNewDoc (libxml2 2.9.14, for nokogiri 1.13.10)"
    );
    let alone = "libxml2.so.2!xmlNewDoc (libxml2 2.9.14)";
    assert_eq!(credited(&["libxml2 2.9.14", "libz 1.2"]), alone);
    assert_eq!(credited(&[]), alone);
}

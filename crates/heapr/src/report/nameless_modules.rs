//! Modules without names: the reason, and advice.

use std::collections::{BTreeMap, BTreeSet};

use heapr_query::file_name;
use heapr_symbols::{ModuleKey, SymbolTable, Unresolved};

/// Most modules that are listed by name; the rest are counted.
const SHOWN_MAX: usize = 4;

/// Fewest nameless addresses of JIT code that are reported.
const MADE_CODE_MIN: usize = 16;

/// Origin of a file, by which its names can be got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    /// A package of pip, which is built without names by its authors.
    Wheel,
    /// A package of npm.
    NodeModule,
    /// A package of RubyGems.
    Gem,
    /// The system, or the user.
    Other,
}

impl Origin {
    const ALL: [Self; 4] = [Self::Wheel, Self::NodeModule, Self::Gem, Self::Other];

    fn of(path: &str) -> Self {
        match path {
            path if path.contains("/site-packages/") => Self::Wheel,
            path if path.contains("/node_modules/") => Self::NodeModule,
            path if path.contains("/gems/") => Self::Gem,
            _ => Self::Other,
        }
    }

    /// Phrase that says what gives the names of such files, of which `first` is one.
    fn remedy(self, first: &str) -> String {
        match self {
            Self::Wheel => {
                "pip install --no-binary PACKAGE builds it with names (CFLAGS=-g: with lines)".to_owned()
            }
            Self::NodeModule => {
                "npm rebuild --build-from-source PACKAGE builds it with names, where it can be built"
                    .to_owned()
            }
            Self::Gem => "gem install PACKAGE --platform ruby builds it with names".to_owned(),
            Self::Other => format!(
                "a debug package ({first}-dbgsym, -debuginfo), DEBUGINFOD_URLS or --symbol-path DIR would give them"
            ),
        }
    }
}

/// Modules and JIT code for which no names were found.
#[derive(Debug, Default)]
pub(crate) struct NamelessModules {
    /// Reason and origin by file name.
    found: BTreeMap<String, (String, Origin)>,
    /// Pids of processes whose JIT code has no names.
    made_code: BTreeSet<u32>,
}

impl NamelessModules {
    /// Records the outcome of a module's lookup.
    pub(crate) fn see(&mut self, key: &ModuleKey, svmas: &[u64], found: &Result<SymbolTable, Unresolved>) {
        // A path without a slash is not a file: the kernel's page of code, or a name by heapr.
        let path = key.path.to_string_lossy();
        if !path.contains('/') {
            return;
        }
        let why = match found {
            Err(reason) => reason.to_string(),
            Ok(table) => {
                let named = svmas.iter().filter(|&&svma| table.has_name(svma)).count();
                if named * 4 >= svmas.len() - named {
                    return;
                }
                "it is stripped".to_owned()
            }
        };
        self.found.insert(file_name(&path).to_owned(), (why, Origin::of(&path)));
    }

    /// Records JIT code of a process that has no names: `count` addresses.
    pub(crate) fn see_made_code(&mut self, pid: u32, count: usize) {
        // A few addresses alone are not from a compiler.
        if count >= MADE_CODE_MIN {
            self.made_code.insert(pid);
        }
    }

    /// Returns the advice in one line; `None` if all have names.
    pub(crate) fn advice(&self) -> Option<String> {
        let parts: Vec<String> = self.of_modules().into_iter().chain(self.of_made_code()).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    fn of_made_code(&self) -> Option<String> {
        let pid = self.made_code.first()?;
        Some(format!(
            "no names of the code that process {pid} made while it ran: /tmp/perf-{pid}.map is not there (node \
             --perf-basic-prof writes it; heapr symbolize FILE keeps its names in the file)"
        ))
    }

    fn of_modules(&self) -> Option<String> {
        let of_origin = |origin: Origin| {
            let found: Vec<(&str, &str)> = self
                .found
                .iter()
                .filter(|(_, (_, own))| *own == origin)
                .map(|(name, (why, _))| (name.as_str(), why.as_str()))
                .collect();
            let (first, _) = found.first()?;
            let mut parts: Vec<String> =
                found.iter().take(SHOWN_MAX).map(|(name, why)| format!("{name} ({why})")).collect();
            if let Some(more @ 1..) = found.len().checked_sub(SHOWN_MAX) {
                parts.push(format!("{more} more"));
            }
            Some(format!("no names of functions for {}: {}", parts.join(", "), origin.remedy(first)))
        };
        let told: Vec<String> = Origin::ALL.into_iter().filter_map(of_origin).collect();
        (!told.is_empty()).then(|| told.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(path: &str) -> ModuleKey {
        ModuleKey { path: path.into(), build_id: Vec::new() }
    }

    #[test]
    fn what_has_no_names_is_told_once_with_the_reason() {
        let mut nameless = NamelessModules::default();
        nameless.see(&key("/lib/libc.so.6"), &[1, 2], &Ok(SymbolTable::of_names([(1, "f")])));
        nameless.see(&key("[vdso]"), &[1], &Err(Unresolved::NoFile));
        assert_eq!(nameless.advice(), None);
        nameless.see(&key("/bin/tar"), &[1, 2], &Ok(SymbolTable::default()));
        nameless.see(&key("/opt/tar"), &[7], &Ok(SymbolTable::default()));
        nameless.see(&key("/tmp/x.so"), &[1], &Err(Unresolved::NoFile));
        let advice = nameless.advice().unwrap();
        assert!(
            advice.starts_with(
                "no names of functions for tar (it is stripped), x.so (the file is not there): "
            )
        );
        for number in 0..9 {
            nameless.see(&key(&format!("/{number}")), &[1], &Err(Unresolved::BuildIdMismatch));
        }
        assert!(nameless.advice().unwrap().contains(", 7 more: "));
    }

    #[test]
    fn a_package_of_a_language_gets_its_names_otherwise_than_the_systems() {
        let advice = |path: &str| {
            let mut nameless = NamelessModules::default();
            nameless.see(&key(path), &[1], &Ok(SymbolTable::default()));
            nameless.advice().unwrap()
        };
        assert!(
            advice("/venv/lib/python3.11/site-packages/a.so").contains("pip install --no-binary PACKAGE")
        );
        assert!(advice("/app/node_modules/b/b.node").contains("npm rebuild --build-from-source"));
        assert!(advice("/var/lib/gems/3.1.0/gems/c-1/lib/c.so").contains("--platform ruby"));
        let several = ["/x/site-packages/a.so", "/usr/lib/libb.so.1"];
        let mut nameless = NamelessModules::default();
        several.iter().for_each(|path| nameless.see(&key(path), &[1], &Ok(SymbolTable::default())));
        let told = nameless.advice().unwrap();
        assert!(
            told.contains("for a.so (it is stripped): pip") && told.contains("(libb.so.1-dbgsym"),
            "{told}"
        );
    }

    #[test]
    fn code_made_at_run_time_is_told_where_its_map_is_gone() {
        let mut nameless = NamelessModules::default();
        nameless.see_made_code(7, 3);
        assert_eq!(nameless.advice(), None);
        nameless.see_made_code(7, 40);
        assert!(nameless.advice().unwrap().contains("/tmp/perf-7.map is not there"));
    }
}

//! Modules without names: the reason, and advice.

use std::collections::{BTreeMap, BTreeSet};

use heapr_query::file_name;
use heapr_symbols::{ModuleKey, SymbolTable, Unresolved};

/// Most modules that are listed by name; the rest are counted.
const SHOWN_MAX: usize = 4;

/// Fewest nameless addresses of JIT code that are reported.
const MADE_CODE_MIN: usize = 16;

/// Modules and JIT code for which no names were found.
#[derive(Debug, Default)]
pub(crate) struct NamelessModules {
    /// Reasons by file name.
    found: BTreeMap<String, String>,
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
        self.found.insert(file_name(&path).to_owned(), why);
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
        let (first, _) = self.found.first_key_value()?;
        let mut parts: Vec<String> =
            self.found.iter().take(SHOWN_MAX).map(|(name, why)| format!("{name} ({why})")).collect();
        if let Some(more @ 1..) = self.found.len().checked_sub(SHOWN_MAX) {
            parts.push(format!("{more} more"));
        }
        Some(format!(
            "no names of functions for {}: a debug package ({first}-dbgsym, -debuginfo), DEBUGINFOD_URLS or \
             --symbol-path DIR would give them",
            parts.join(", ")
        ))
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
    fn code_made_at_run_time_is_told_where_its_map_is_gone() {
        let mut nameless = NamelessModules::default();
        nameless.see_made_code(7, 3);
        assert_eq!(nameless.advice(), None);
        nameless.see_made_code(7, 40);
        assert!(nameless.advice().unwrap().contains("/tmp/perf-7.map is not there"));
    }
}

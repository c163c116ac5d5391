//! Go program or library in a process.

use std::path::{Path, PathBuf};

use heapr_glibc_heap::HeapMemory as _;
use heapr_inject::{ProcessMemory, StoppedProcess, TargetMemory as _};
use heapr_proc::mappings;
use heapr_symbols::{GoPlaces, GoProgram, svma_of_offset};

/// Availability of Go's heap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GoSeen {
    /// Runtime takes samples at this mean period in bytes.
    Every(u64),
    /// Runtime keeps no account, because nothing in the program requests one. In programs that
    /// heapr starts it is switched on.
    SwitchedOff,
    /// Account cannot be read, for this reason.
    Unreadable(String),
}

/// Module that contains Go's runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GoTarget {
    /// Path of the file as the process names it.
    pub(crate) path: PathBuf,
    pub(crate) bias_avma: u64,
    pub(crate) version: String,
    /// Addresses of the runtime's account; `None` if unknown.
    pub(crate) places: Option<GoPlaces>,
}

impl GoTarget {
    pub(crate) fn new(path: &Path, bias_avma: u64, program: GoProgram) -> Self {
        let GoProgram { version, places } = program;
        Self { path: path.to_owned(), bias_avma, version, places }
    }

    /// Returns the program of a process that nothing can be loaded into, if it is a Go program.
    pub(crate) fn of_program(pid: u32) -> Option<Self> {
        let file = heapr_proc::folder(pid).join("exe");
        let program = GoProgram::read(&file)?;
        let path = heapr_proc::executable(pid).ok()?;
        let mappings = mappings::read(pid).ok()?;
        let first = mappings.iter().find(|mapping| Path::new(&mapping.name) == path)?;
        let bias_avma = first.start_avma.wrapping_sub(svma_of_offset(&file, first.file_off)?);
        Some(Self::new(&path, bias_avma, program))
    }

    /// Makes the runtime keep its account, even if nothing in the program requests it. Must run
    /// before any of the program's own code, because the runtime checks once.
    pub(crate) fn switch_on(&self, pid: u32) {
        let Some(unwanted_svma) = self.places.map(|places| places.unwanted_svma).filter(|&svma| svma != 0)
        else {
            return;
        };
        let Ok(memory) = ProcessMemory::open(pid) else { return };
        let place_avma = self.bias_avma.wrapping_add(unwanted_svma);
        let mut byte = [0];
        // The byte must be a Boolean that is true.
        if memory.read(place_avma, &mut byte).is_ok() && byte == [1] {
            let _ = memory.write(place_avma, &[0]);
        }
    }

    /// Checks what can be read of the heap in a process.
    pub(crate) fn seen(&self, pid: u32) -> GoSeen {
        if let Some(why) = self.unreadable() {
            return GoSeen::Unreadable(why);
        }
        let rate_svma = self.places.map_or(0, |places| places.rate_svma);
        let mut mean = [None];
        StoppedProcess::of(pid).read_words(&[self.bias_avma.wrapping_add(rate_svma)], &mut mean);
        match mean {
            [Some(0)] => GoSeen::SwitchedOff,
            [Some(mean_bytes)] => GoSeen::Every(mean_bytes),
            [None] => GoSeen::Unreadable("it may not be read".to_owned()),
        }
    }

    /// Reason for which the account cannot be read, as the end of a sentence.
    pub(crate) fn unreadable(&self) -> Option<String> {
        const LAST_KNOWN: u32 = 26;
        const FIRST_KNOWN: u32 = 16;
        if self.places.is_none() {
            return Some("neither the symbols nor the code of its file tell where it is".to_owned());
        }
        let minor = self.version.strip_prefix("go1.")?.split('.').next()?;
        let digits: String = minor.chars().take_while(char::is_ascii_digit).collect();
        let minor: u32 = digits.parse().ok()?;
        let is_known = (FIRST_KNOWN..=LAST_KNOWN).contains(&minor);
        (!is_known).then(|| format!("the runtime of {} is not known", self.version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_is_not_known_is_said() {
        let places = GoPlaces { buckets_svma: 8, rate_svma: 8, cycle_svma: 0, unwanted_svma: 0 };
        let program = |version: &str| GoProgram { version: version.to_owned(), places: Some(places) };
        let of = |version: &str| GoTarget::new(Path::new("/it"), 0, program(version)).unreadable();
        // An unknown version string is accepted; the content must then be plausible.
        assert_eq!([of("go1.19.8"), of("go1.26rc1"), of("")], [None, None, None]);
        assert_eq!(of("go1.99").as_deref(), Some("the runtime of go1.99 is not known"));
        assert!(of("go1.9").is_some());
    }
}

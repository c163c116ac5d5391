//! Kinds of mappings: code, data of a module, anonymous memory; and operations on lists of ranges.

use heapr_known::runtimes::{self, Runtime};
use heapr_proc::Mapping;

/// Ranges of code and data of modules.
#[derive(Debug, Clone, Default)]
pub struct Regions {
    code: Vec<(u64, u64)>,
    data: Vec<(u64, u64)>,
    /// Whether CPython is among the modules.
    pub(crate) has_python: bool,
}

impl Regions {
    /// Builds the ranges from the mappings of a process, by address.
    pub fn of(mappings: &[Mapping]) -> Self {
        let range = |mapping: &Mapping| (mapping.start_avma, mapping.end_avma);
        let code = mappings.iter().filter(|mapping| mapping.is_executable).map(range);
        let is_data = |mapping: &&Mapping| mapping.inode != 0 && !mapping.is_shared && mapping.is_readable;
        let file_name = |mapping: &Mapping| mapping.name.rsplit('/').next().unwrap_or_default().to_owned();
        let is_python =
            |name: &str| runtimes::of_file(name).is_some_and(|row| row.runtime == Runtime::Python);
        Self {
            code: code.collect(),
            data: mappings.iter().filter(is_data).map(range).collect(),
            has_python: mappings.iter().any(|mapping| mapping.inode != 0 && is_python(&file_name(mapping))),
        }
    }

    /// Creates regions with data only.
    #[cfg(test)]
    pub(crate) fn made(data: Vec<(u64, u64)>) -> Self {
        Self { data, ..Self::default() }
    }

    /// Whether an address lies in code.
    pub(crate) fn is_code(&self, address_avma: u64) -> bool {
        holds(&self.code, address_avma)
    }

    /// Whether an address lies in a private mapping of a file.
    pub(crate) fn is_data_of_module(&self, address_avma: u64) -> bool {
        holds(&self.data, address_avma)
    }
}

/// Whether any of the ranges, which are by address, holds an address.
fn holds(ranges: &[(u64, u64)], address_avma: u64) -> bool {
    let behind = ranges.partition_point(|&(_, end_avma)| end_avma <= address_avma);
    ranges.get(behind).is_some_and(|&(start_avma, _)| start_avma <= address_avma)
}

/// Whether a mapping is anonymous and private.
pub(crate) fn is_private_anonymous(mapping: &Mapping) -> bool {
    mapping.inode == 0 && !mapping.is_shared && !is_of_kernel(mapping)
}

/// Whether the kernel made the mapping.
pub(crate) fn is_of_kernel(mapping: &Mapping) -> bool {
    ["[vdso]", "[vvar]", "[vvar_vclock]", "[vsyscall]"].contains(&mapping.name.as_str())
}

/// Whether a mapping is memory of a device, which must not be read.
fn is_of_device(mapping: &Mapping) -> bool {
    let is_below = |folder: &str| mapping.name.starts_with(folder);
    ["/dev/", "/sys/", "/proc/bus/"].into_iter().any(is_below)
        && !["/dev/shm/", "/dev/zero", "/dev/hugepages"].into_iter().any(is_below)
}

/// Whether a mapping is the program's and may be read: not the kernel's, a device's or the
/// recorder's buffers.
pub fn is_looked_through(mapping: &Mapping) -> bool {
    !is_of_kernel(mapping) && !is_of_device(mapping) && !mapping.name.contains("memfd:heapr-pool")
}

/// Rest of a range without `taken`, which is sorted and does not overlap.
pub(crate) fn without(range: (u64, u64), taken: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let (mut start_avma, end_avma) = range;
    let mut left = Vec::new();
    let first = taken.partition_point(|&(_, taken_end_avma)| taken_end_avma <= start_avma);
    for &(taken_avma, taken_end_avma) in &taken[first..] {
        if taken_avma >= end_avma {
            break;
        }
        if taken_avma > start_avma {
            left.push((start_avma, taken_avma));
        }
        start_avma = start_avma.max(taken_end_avma);
    }
    if start_avma < end_avma {
        left.push((start_avma, end_avma));
    }
    left
}

#[cfg(test)]
mod tests {
    use heapr_proc::ranges::joined;

    use super::*;

    #[test]
    fn what_is_taken_is_left_out() {
        let taken = joined(vec![(30, 40), (10, 20), (20, 25), (90, 90)]);
        assert_eq!(taken, [(10, 25), (30, 40)]);
        assert_eq!(without((0, 50), &taken), [(0, 10), (25, 30), (40, 50)]);
        assert_eq!(without((12, 35), &taken), [(25, 30)]);
        assert_eq!(without((11, 25), &taken), []);
        assert_eq!(without((41, 50), &taken), [(41, 50)]);
    }
}

//! `/proc/PID/maps`: what is mapped where, and where there is room.

/// One mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start_avma: u64,
    /// Behind the last.
    pub end_avma: u64,
    /// May be read.
    pub is_readable: bool,
    /// May be written.
    pub is_writable: bool,
    /// May be executed.
    pub is_executable: bool,
    /// Shared with other processes.
    pub is_shared: bool,
    /// Offset in the file.
    pub file_off: u64,
    /// Inode; 0 for anonymous memory.
    pub inode: u64,
    /// Path, `[heap]`, or empty.
    pub name: String,
}

impl Mapping {
    /// Size.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.end_avma.saturating_sub(self.start_avma)
    }

    /// Whether it holds an address.
    #[must_use]
    pub fn contains(&self, address_avma: u64) -> bool {
        (self.start_avma..self.end_avma).contains(&address_avma)
    }
}

/// The mappings of a process, by address.
///
/// # Errors
/// It is gone, or may not be looked at.
pub fn read(pid: u32) -> std::io::Result<Vec<Mapping>> {
    let text = std::fs::read(format!("/proc/{pid}/maps"))?;
    Ok(String::from_utf8_lossy(&text).lines().filter_map(parse_line).collect())
}

/// `start-end perms offset device inode   name`.
fn parse_line(line: &str) -> Option<Mapping> {
    let mut parts = line.splitn(6, ' ');
    let (start, end) = parts.next()?.split_once('-')?;
    let permissions = parts.next()?.as_bytes();
    let file_off = u64::from_str_radix(parts.next()?, 16).ok()?;
    let _device = parts.next()?;
    let inode = parts.next()?.parse().ok()?;
    let name = parts.next().unwrap_or_default().trim_start().to_owned();
    Some(Mapping {
        start_avma: u64::from_str_radix(start, 16).ok()?,
        end_avma: u64::from_str_radix(end, 16).ok()?,
        is_readable: permissions.first() == Some(&b'r'),
        is_writable: permissions.get(1) == Some(&b'w'),
        is_executable: permissions.get(2) == Some(&b'x'),
        is_shared: permissions.get(3) == Some(&b's'),
        file_off,
        inode,
        name,
    })
}

/// The mapping that holds an address, from a list by address.
#[must_use]
pub fn find(mappings: &[Mapping], address_avma: u64) -> Option<&Mapping> {
    let behind = mappings.partition_point(|mapping| mapping.end_avma <= address_avma);
    mappings.get(behind).filter(|mapping| mapping.contains(address_avma))
}

/// Lowest address that is given out (`vm.mmap_min_addr` is at most this on every distribution).
const LOWEST_AVMA: u64 = 0x1_0000;
/// Highest address of the lower half with four page-table levels.
const HIGHEST_AVMA: u64 = 0x7fff_ffff_f000;

/// Room that is left for a heap or a stack to grow.
const GROWTH_BYTES: u64 = 1 << 30;

/// The free range of `bytes` that is nearest to `near_avma`, so that all of it lies within `distance` of it.
#[must_use]
pub(crate) fn room_near(mappings: &[Mapping], near_avma: u64, bytes: u64, distance: u64) -> Option<u64> {
    let mut best: Option<(u64, u64)> = None;
    let ends = std::iter::once((0, LOWEST_AVMA, ""))
        .chain(mappings.iter().map(|mapping| (mapping.start_avma, mapping.end_avma, mapping.name.as_str())));
    let starts = mappings
        .iter()
        .map(|mapping| (mapping.start_avma, mapping.name.as_str()))
        .chain(std::iter::once((HIGHEST_AVMA, "")));
    for ((_, gap_start, below), (gap_end, above)) in ends.zip(starts) {
        // The heap grows into the gap above it, a stack into the gap below it: both keep their distance.
        let gap_start = if below == "[heap]" { gap_start.saturating_add(GROWTH_BYTES) } else { gap_start };
        let gap_end = gap_end.min(HIGHEST_AVMA);
        let gap_end =
            if above.starts_with("[stack") { gap_end.saturating_sub(GROWTH_BYTES) } else { gap_end };
        if gap_end < gap_start.saturating_add(bytes) {
            continue;
        }
        for start in [gap_end - bytes, gap_start] {
            let farthest = near_avma.abs_diff(start).max(near_avma.abs_diff(start + bytes));
            if farthest <= distance && best.is_none_or(|(least, _)| farthest < least) {
                best = Some((farthest, start));
            }
        }
    }
    best.map(|(_, start)| start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(start_avma: u64, end_avma: u64, name: &str) -> Mapping {
        parse_line(&format!("{start_avma:x}-{end_avma:x} r-xp 00001000 fe:00 77                 {name}"))
            .unwrap()
    }

    #[test]
    fn a_line_with_spaces_in_its_path_is_read() {
        let line = "7f00-8000 rw-s 00002000 00:01 1234                       /tmp/a b (deleted)";
        let parsed = parse_line(line).unwrap();
        assert_eq!((parsed.start_avma, parsed.end_avma, parsed.file_off), (0x7f00, 0x8000, 0x2000));
        assert!(parsed.is_readable && parsed.is_writable && !parsed.is_executable && parsed.is_shared);
        assert_eq!((parsed.inode, parsed.name.as_str()), (1234, "/tmp/a b (deleted)"));
    }

    #[test]
    fn room_is_found_below_the_module_and_not_above_the_heap() {
        let mappings =
            [mapping(0x5000_0000, 0x5001_0000, "/bin/x"), mapping(0x5002_0000, 0x5003_0000, "[heap]")];
        let found = room_near(&mappings, 0x5000_8000, 0x1000, 1 << 30).unwrap();
        assert!(found == 0x4fff_f000 || found == 0x5001_0000, "{found:#x}");
        let mappings =
            [mapping(0x1_0000, 0x5001_0000, "/bin/x"), mapping(0x5001_0000, 0x5003_0000, "[heap]")];
        assert_eq!(room_near(&mappings, 0x5000_8000, 0x1000, 1 << 30), None);
    }

    #[test]
    fn this_process_sees_its_own_memory() {
        use crate::{ProcessMemory, TargetMemory as _};
        let memory = ProcessMemory::open(std::process::id()).unwrap();
        let (first, second) = (0x1122_3344_5566_7788_u64, *b"a string\0");
        assert_eq!(memory.read_u64(&raw const first as u64), Ok(first));
        assert_eq!(memory.read_string(second.as_ptr() as u64, 100), Ok(b"a string".to_vec()));
        let (mut one, mut two) = ([0; 8], [0; 4]);
        let mut pieces = [(&raw const first as u64, &mut one[..]), (second.as_ptr() as u64, &mut two[..])];
        memory.read_batch(&mut pieces).unwrap();
        assert_eq!((u64::from_le_bytes(one), &two), (first, b"a st"));
        assert!(memory.read_u64(8).is_err());
        let mappings = memory.mappings().unwrap();
        let here = find(&mappings, this_process_sees_its_own_memory as *const () as u64).unwrap();
        assert!(here.is_executable);
    }
}

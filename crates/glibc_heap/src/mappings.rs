//! Kinds of mappings that the walk distinguishes.

use heapr_proc::Mapping;

/// Whether a mapping is private anonymous memory that the program may write.
pub(super) fn is_private_anonymous(mapping: &Mapping) -> bool {
    mapping.inode == 0
        && !mapping.is_shared
        && mapping.is_readable
        && mapping.is_writable
        && (mapping.name.is_empty() || mapping.name.starts_with("[anon:"))
}

/// Whether a mapping is memory by brk.
pub(super) fn is_brk(mapping: &Mapping) -> bool {
    mapping.name == "[heap]"
}

/// Last part of the file's path, without the kernel's suffix for deleted files.
pub(super) fn file_name(mapping: &Mapping) -> &str {
    let path = mapping.name.strip_suffix(" (deleted)").unwrap_or(&mapping.name);
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_anonymous_memory_counts_and_brk_and_shared_memory_do_not() {
        let mapping = |name: &str, is_shared| Mapping {
            start_avma: 0x1000,
            end_avma: 0x2000,
            is_readable: true,
            is_writable: true,
            is_executable: false,
            is_shared,
            file_off: 0,
            inode: 0,
            name: name.to_owned(),
        };
        assert!(is_private_anonymous(&mapping("", false)));
        assert!(is_private_anonymous(&mapping("[anon: glibc: malloc]", false)));
        assert!(!is_private_anonymous(&mapping("", true)));
        assert!(!is_private_anonymous(&mapping("[heap]", false)));
        assert!(is_brk(&mapping("[heap]", false)));
        assert_eq!(file_name(&mapping("/opt/a b/libx.so (deleted)", false)), "libx.so");
    }
}

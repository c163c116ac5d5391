//! Names as their languages write them.

/// The demangled name: Rust (legacy and v0, without the hash), C++; others as they are.
pub(crate) fn demangle(name: &str) -> String {
    // A version that the linker has appended (`malloc@@GLIBC_2.2.5`) is not part of the name.
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    if name.starts_with("_Z") || name.starts_with("__Z") {
        // A hostile name may demangle to something huge: the length bounds what is tried.
        const NAME_BYTES_MAX: usize = 8192;
        let options = cpp_demangle::DemangleOptions::default();
        let demangled = (name.len() <= NAME_BYTES_MAX)
            .then(|| cpp_demangle::Symbol::new(name).ok()?.demangle_with_options(&options).ok())
            .flatten();
        if let Some(demangled) = demangled {
            return demangled;
        }
    }
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn names_are_written_as_in_their_languages() {
        assert_eq!(
            demangle("_ZNSt6vectorIiSaIiEE9push_backERKi"),
            "std::vector<int, std::allocator<int> >::push_back(int const&)"
        );
        assert_eq!(
            demangle("_ZN5alloc5alloc15exchange_malloc17h0123456789abcdefE"),
            "alloc::alloc::exchange_malloc"
        );
        assert_eq!(demangle("_RNvC6_123foo3bar"), "123foo::bar");
        assert_eq!(demangle("malloc@@GLIBC_2.2.5"), "malloc");
        assert_eq!(demangle("main"), "main");
    }
}

//! Descriptors that a recorder in the background has from who started it: locks, pipes and sockets
//! that others wait for.

use heapr_ring::sys::Descriptor;

/// The descriptors, beyond the three standard ones, that this process began with.
#[derive(Debug)]
pub struct InheritedDescriptors(Vec<i32>);

impl InheritedDescriptors {
    /// Those that are open now; to be called before anything else is opened.
    #[must_use]
    pub fn now() -> Self {
        let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let numbers: Vec<i32> = numbers.filter(|&number| number > 2).collect();
        // The list itself was read through one of them, which is closed by now.
        let is_open = |number: &i32| std::fs::read_link(format!("/proc/self/fd/{number}")).is_ok();
        Self(numbers.into_iter().filter(is_open).collect())
    }

    /// Closes them.
    pub fn close(self) {
        self.0.into_iter().map(Descriptor::from_number).for_each(drop);
    }
}

//! Descriptors that a recorder in the background inherits from its starter: locks, pipes and
//! sockets that other processes wait for.

use heapr_ring::sys::Descriptor;

/// Descriptors with which this process began, beyond the three standard ones.
#[derive(Debug)]
pub struct InheritedDescriptors(Vec<i32>);

impl InheritedDescriptors {
    /// Lists the open descriptors; call it before anything else is opened.
    #[must_use]
    pub fn now() -> Self {
        let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let numbers: Vec<i32> = numbers.filter(|&number| number > 2).collect();
        // The listing itself used a descriptor, which is closed by now.
        let is_open = |number: &i32| std::fs::read_link(format!("/proc/self/fd/{number}")).is_ok();
        Self(numbers.into_iter().filter(is_open).collect())
    }

    /// Closes the descriptors.
    pub fn close(self) {
        self.0.into_iter().map(Descriptor::from_number).for_each(drop);
    }
}

//! Writes into the file what was found of embedded allocators.

use crate::recorder::Recorder;
use crate::recorder::inside::{Inside, Looked};

impl Recorder {
    /// Takes the results of searches in a process. Returns the notices for the file.
    pub(crate) fn take_inside(&mut self, place: usize, now_ns: u64) -> Vec<String> {
        let process = &self.processes[place];
        let key = (process.slot, process.generation);
        let (mut texts, mut targets) = (Vec::new(), Vec::new());
        for mut looked in self.looked.extract_if(.., |looked| looked.key == key) {
            if let Some(look) = looked.memory.take() {
                self.processes[place].looks.push((now_ns, look));
            }
            self.processes[place].inside.extend(looked.inside.modules.iter().cloned());
            targets.extend(looked.inside.go.take());
            for name in names_of(&looked.inside) {
                let outcome = self.sink.writer.statistic(
                    &format!("functions recorded of {name}"),
                    if looked.failure.is_some() { 0 } else { looked.hooked_count as u64 },
                );
                self.sink.keep(outcome);
            }
            texts.append(&mut looked.inside.remarks);
            texts.extend(complaint(&looked));
        }
        targets.into_iter().for_each(|target| self.take_go(place, target));
        texts
    }
}

/// Texts like `jemalloc in server`, one per allocator.
fn names_of(inside: &Inside) -> Vec<String> {
    let of_module = |module: &crate::InsideModule| {
        let file = module.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        module.allocators.iter().map(move |found| format!("{} in {file}", found.name)).collect::<Vec<_>>()
    };
    inside.modules.iter().flat_map(of_module).collect()
}

/// Notice about functions of an embedded allocator that are not recorded.
fn complaint(looked: &Looked) -> Option<String> {
    let names = names_of(&looked.inside);
    if names.is_empty() {
        return None;
    }
    let names = names.join(", ");
    if let Some(failure) = &looked.failure {
        return Some(format!("it has an allocator inside ({names}) that is not recorded: {failure}"));
    }
    let (first, reason) = looked.not_hooked.first()?;
    let more = match looked.not_hooked.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!("it has an allocator inside ({names}); not recorded of it: {first}{more}, because {reason}"))
}

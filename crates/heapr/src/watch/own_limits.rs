//! Limits that a process has by itself: of its address space, and of its language's heap.

use heapr_filters::quantity::parse_bytes;
use heapr_incident::{Account, AtOutOfMemory, Limited, OwnLimit, RuntimeLimit};
use heapr_proc::{Fields, command_line, soft_limit, variable};

/// Share of the limit from which the heap is read at each reading, in hundredths.
const NEAR_PERCENT: u64 = 60;

/// Limit of a language's heap, and what happens there, by the program's options.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct OwnLimits {
    heap: Option<HeapLimit>,
    /// Options by which a Java program ends at an OutOfMemoryError.
    pub(super) at_out_of_memory: Vec<AtOutOfMemory>,
}

/// Class of resident memory that V8's limit is of.
const V8_CLASS: &str = "v8_heap";

#[derive(Debug, Clone, PartialEq, Eq)]
struct HeapLimit {
    /// Key of the class of resident memory that the limit is of.
    class: &'static str,
    heap: &'static str,
    set_by: String,
    limit_bytes: u64,
}

impl OwnLimits {
    /// Reads the options of a process.
    pub(super) fn of(pid: u32) -> Self {
        let mut words = command_line(pid);
        for name in ["NODE_OPTIONS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"] {
            let more = variable(pid, name).unwrap_or_default();
            words.extend(more.split_ascii_whitespace().map(str::to_owned));
        }
        Self::of_words(&words)
    }

    fn of_words(words: &[String]) -> Self {
        let v8 = |(place, word): (usize, &String)| {
            let word = word.replace('_', "-");
            let rest = word.strip_prefix("--max-old-space-size")?;
            let value = match rest.strip_prefix('=') {
                Some(value) => value.to_owned(),
                None if rest.is_empty() => words.get(place + 1)?.clone(),
                None => return None,
            };
            let limit_bytes = value.parse::<u64>().ok()?.checked_mul(1 << 20)?;
            let set_by = "--max-old-space-size".to_owned();
            Some(HeapLimit { class: V8_CLASS, heap: "V8's heap", set_by, limit_bytes })
        };
        let java = |(_, word): (usize, &String)| {
            let value = word.strip_prefix("-Xmx").or_else(|| word.strip_prefix("-XX:MaxHeapSize="))?;
            let limit_bytes = parse_bytes(value).ok()?;
            Some(HeapLimit { class: "jvm_heap", heap: "Java's heap", set_by: "-Xmx".to_owned(), limit_bytes })
        };
        let find = |parse: &dyn Fn((usize, &String)) -> Option<HeapLimit>| {
            words.iter().enumerate().filter_map(parse).last()
        };
        let options = [AtOutOfMemory::Exit, AtOutOfMemory::Crash];
        let is_given = |option: &AtOutOfMemory| words.iter().any(|word| word == option.option());
        Self {
            heap: find(&v8).or_else(|| find(&java)),
            at_out_of_memory: options.into_iter().filter(is_given).collect(),
        }
    }

    /// Heap and limit at an account.
    pub(super) fn runtime(&self, account: Option<&Account>) -> Option<RuntimeLimit> {
        let limit = self.heap.as_ref()?;
        let line = account?.lines.iter().find(|line| line.class == limit.class)?;
        let amount = Limited { used_bytes: line.bytes, limit_bytes: limit.limit_bytes };
        Some(RuntimeLimit {
            heap: limit.heap.to_owned(),
            set_by: limit.set_by.clone(),
            amount,
            expected_bytes: None,
        })
    }

    /// Limits that are worth a warning as they come near. A heap of Java also fills up with
    /// garbage.
    pub(super) fn told(
        &self,
        account: Option<&Account>,
        space: Option<Limited>,
    ) -> impl Iterator<Item = (OwnLimit, Limited)> {
        let is_v8 = self.heap.as_ref().is_some_and(|heap| heap.class == V8_CLASS);
        let heap = self.runtime(account).filter(|_| is_v8).map(|runtime| (OwnLimit::V8Heap, runtime.amount));
        heap.into_iter().chain(space.map(|space| (OwnLimit::AddressSpace, space)))
    }

    /// Whether the heap is so near its limit that each reading counts.
    pub(super) fn is_near(&self, account: Option<&Account>) -> bool {
        // 0 is no limit: V8's option has this meaning.
        let is_near = |amount: Limited| {
            amount.limit_bytes > 0 && amount.used_bytes >= amount.limit_bytes / 100 * NEAR_PERCENT
        };
        self.runtime(account).is_some_and(|runtime| is_near(runtime.amount))
    }
}

/// Mapped bytes of a process, with its limit of them: the most so far, and those of this moment.
pub(super) fn address_space(pid: u32) -> Option<(Limited, Limited)> {
    let limit_bytes = soft_limit(pid, "Max address space")?;
    let fields = Fields::of_process(pid).ok()?;
    let of = |name| Some(Limited { used_bytes: fields.bytes(name)?, limit_bytes });
    Some((of("VmPeak")?, of("VmSize")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(words: &str) -> Option<(&'static str, u64)> {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        OwnLimits::of_words(&words).heap.map(|limit| (limit.class, limit.limit_bytes >> 20))
    }

    #[test]
    fn options_of_v8_and_of_java_are_read() {
        assert_eq!(limit("node --max-old-space-size=256 a.js"), Some(("v8_heap", 256)));
        assert_eq!(limit("node --max_old_space_size 64 a.js"), Some(("v8_heap", 64)));
        assert_eq!(limit("java -Xmx1g -Xmx512m -jar a.jar"), Some(("jvm_heap", 512)));
        assert_eq!(limit("node --max-old-space-size-x=1 a.js"), None);
        assert_eq!(limit("java -Xmx"), None);
        let words = ["java", "-XX:+CrashOnOutOfMemoryError", "-jar", "a.jar"].map(str::to_owned);
        assert_eq!(OwnLimits::of_words(&words).at_out_of_memory, [AtOutOfMemory::Crash]);
    }
}

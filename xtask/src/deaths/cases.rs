//! Table of deaths: programs of `victims/deaths`, their limits, and words of the right sentence.

/// Death that is tried.
pub(super) struct Death {
    pub(super) name: &'static str,
    /// Limit of the group in MiB.
    pub(super) limit_mib: u64,
    /// Command; `{…}` stand for what `built` makes and for the folders.
    pub(super) command: &'static str,
    /// Further command, in the group or in a neighbour's.
    pub(super) other: Other,
    /// Words of the first sentence, all of which must be in it; `|` separates equal ones.
    pub(super) expected: &'static [&'static str],
    /// Further words for `heapr watch`.
    pub(super) watch: &'static [&'static str],
}

/// Further event of a death.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Other {
    None,
    /// Program in another group below the same limit.
    Neighbour(&'static str),
    /// Limit in MiB that is set once the program holds its memory; the file `more` follows.
    Lowered(u64),
}

const KERNEL: &str = "killed by the kernel";

/// All deaths; the first fourteen are those of the acceptance, the others end by themselves.
pub(super) const DEATHS: &[Death] = &[
    death("cpp-leak", 128, "{leak}", &[KERNEL, "OrderCache::remember"]),
    Death {
        watch: &["--graph"],
        ..death(
            "python-dict",
            128,
            "python3 {victims}/dictionary.py",
            &[KERNEL, "remember (dictionary.py|orders"],
        )
    },
    death(
        "node-heap",
        256,
        "node --max-old-space-size=100 {victims}/heap.js",
        &["ended by itself|ended at", "its own limit of 100"],
    ),
    death("node-buffers", 256, "node {victims}/buffers.js", &[KERNEL, "keepUpload (buffers.js"]),
    death(
        "jvm-direct",
        256,
        "java -Xmx64m -XX:MaxDirectMemorySize=1g -XX:+PreserveFramePointer -cp {classes} Direct",
        &[KERNEL, "keepUpload|allocateDirect|direct buffer"],
    ),
    death("jvm-heap", 192, "java -Xmx1g -cp {classes} Heap", &[KERNEL, "JVM heap"]),
    death("ruby-texts", 128, "ruby {victims}/texts.rb", &[KERNEL, "remember (texts.rb"]),
    death("spike", 128, "{spike}", &[KERNEL, "load_all"]),
    death("workers", 192, "{python} {victims}/workers.py", &[KERNEL, "render (workers.py", "of 4 processes"]),
    death("tmpfs", 64, "{tmpfs} {shared}/grows", &[KERNEL, "tmpfs"]),
    death("sockets", 64, "{sockets}", &[KERNEL, "socket"]),
    death("rust-jemalloc", 128, "{rust}", &[KERNEL, "remember"]),
    Death {
        other: Other::Neighbour("{leak}"),
        // The kernel kills the one that does not eat.
        ..death("neighbour", 160, "choom -n 900 -- {steady} 60", &[KERNEL, "of leak (|in leak ("])
    },
    Death {
        other: Other::Lowered(64),
        ..death(
            "lowered-limit",
            256,
            "{steady} 100 60",
            &[KERNEL, "(lowered from 256.0 MiB after", "load_table"],
        )
    },
    death(
        "bad-alloc",
        512,
        "{throws-limited}",
        &["SIGABRT", "address space|an allocation that failed", "load_part"],
    ),
    death(
        "jvm-exit-on-oom",
        512,
        "java -Xmx64m -XX:+UseSerialGC -XX:+ExitOnOutOfMemoryError -cp {classes} Heap",
        &["its own limit of 64"],
    ),
    death(
        "jvm-crash-on-oom",
        512,
        "java -Xmx64m -XX:+UseSerialGC -XX:+CrashOnOutOfMemoryError -cp {classes} Heap",
        &["its own limit of 64"],
    ),
    death(
        "jvm-uncaught-oom",
        512,
        "java -Xmx64m -XX:+UseSerialGC -cp {classes} Heap",
        &["its own limit of 64"],
    ),
];

const fn death(
    name: &'static str,
    limit_mib: u64,
    command: &'static str,
    expected: &'static [&'static str],
) -> Death {
    Death { name, limit_mib, command, other: Other::None, expected, watch: &[] }
}

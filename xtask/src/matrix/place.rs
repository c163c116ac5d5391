//! Folder of the programs: built ones, and packages of Python and npm.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::Context as _;

use super::rows::Program;

/// Source of the programs in Rust with an allocator of their own, by feature.
const RUST: &str = include_str!("holds.rs");
const MANIFEST: &str = r#"[package]
name = "holds"
version = "0.1.0"
edition = "2021"
[[bin]]
name = "holds"
path = "holds.rs"
[features]
sys = []
jem = ["dep:tikv-jemallocator"]
mi = ["dep:mimalloc"]
sn = ["dep:snmalloc-rs"]
[dependencies]
tikv-jemallocator = { version = "0.6", optional = true }
mimalloc = { version = "0.1", optional = true }
snmalloc-rs = { version = "0.3", optional = true }
[workspace]
"#;

/// Programs in C: name, build command, source.
const C: [(&str, &str, &str); 7] = [
    ("musl", "musl-gcc -O1", PLAIN),
    ("musl-static", "musl-gcc -O1 -static", PLAIN),
    ("static-c", "gcc -O1 -static", PLAIN),
    ("tcmalloc", "gcc -O1 -fno-builtin -ltcmalloc_minimal", PLAIN),
    ("slices", "gcc -O1 $(pkg-config --cflags glib-2.0) -lglib-2.0", SLICES),
    ("apr", "gcc -O1 $(pkg-config --cflags apr-1) -lapr-1", APR),
    ("talloc", "gcc -O1 -ltalloc", TALLOC),
];
const PLAIN: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void *kept[40000];
int main(void) {
    for (int i = 0; i < 40000; i++) { kept[i] = malloc(200); memset(kept[i], 1, 200); }
    for (int i = 0; i < 40000; i += 2) free(kept[i]);
    puts("done");
    return 0;
}
"#;
const SLICES: &str = r#"
#include <glib.h>
#include <string.h>
int main(void) {
    GList *all = NULL;
    for (int i = 0; i < 200000; i++) all = g_list_prepend(all, memset(g_slice_alloc(48), 1, 48));
    return g_list_length(all) != 200000;
}
"#;
const APR: &str = r#"
#include <apr_general.h>
#include <apr_pools.h>
#include <string.h>
int main(void) {
    apr_pool_t *pool;
    apr_initialize();
    apr_pool_create(&pool, NULL);
    for (int i = 0; i < 100000; i++) memset(apr_palloc(pool, 100), 1, 100);
    return 0;
}
"#;
const TALLOC: &str = r#"
#include <talloc.h>
#include <string.h>
int main(void) {
    void *pool = talloc_pool(NULL, 24 << 20);
    for (int i = 0; i < 400; i++) {
        void *request = talloc_size(pool, 200);
        for (int j = 0; j < 200; j++) memset(talloc_size(request, 100), 1, 100);
        if (i % 2) talloc_free(request);
    }
    return 0;
}
"#;

/// Folder of all programs.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) folder: PathBuf,
}

impl Place {
    /// Creates the folder, and builds the programs that can be built.
    pub(super) fn new() -> anyhow::Result<Self> {
        let place = Self { folder: crate::root().join("target/matrix") };
        let built = place.built();
        std::fs::create_dir_all(&built)?;
        place.build_rust(&built)?;
        for (name, compiler, source) in C {
            if !built.join(name).exists() {
                let file = built.join(name).with_extension("c");
                std::fs::write(&file, source)?;
                // If a dependency is missing, the row is left out.
                let (words, libraries): (Vec<&str>, Vec<&str>) =
                    compiler.split(' ').partition(|word| !word.starts_with("-l"));
                let line = format!("{} -o {name} {name}.c {}", words.join(" "), libraries.join(" "));
                place.shell(&line, &built)?;
            }
        }
        Ok(place)
    }

    pub(super) fn built(&self) -> PathBuf {
        self.folder.join("built")
    }

    /// Builds the programs in Rust, including a statically linked one.
    fn build_rust(&self, built: &Path) -> anyhow::Result<()> {
        let project = self.folder.join("holds");
        std::fs::create_dir_all(&project)?;
        std::fs::write(project.join("Cargo.toml"), MANIFEST)?;
        std::fs::write(project.join("holds.rs"), RUST)?;
        for name in ["sys", "jem", "mi", "sn", "static"] {
            if built.join(name).exists() {
                continue;
            }
            let (feature, flags) =
                if name == "static" { ("sys", "-C target-feature=+crt-static") } else { (name, "") };
            let line = format!(
                "env -u CARGO_TARGET_DIR RUSTFLAGS='{flags}' cargo build --quiet --release --features {feature} \
                 && cp target/release/holds {}",
                built.join(name).display()
            );
            self.shell(&line, &project)?;
        }
        Ok(())
    }

    /// Installs the packages of some programs: from Debian, PyPI and npm.
    pub(super) fn install(&self, programs: &[Program]) -> anyhow::Result<()> {
        let all: Vec<&str> =
            programs.iter().flat_map(|program| &program.packages).map(String::as_str).collect();
        let of = |prefix: &str| -> String {
            let names: Vec<&str> = all.iter().filter_map(|name| name.strip_prefix(prefix)).collect();
            names.join(" ")
        };
        let debian: Vec<&str> = all.iter().copied().filter(|name| !name.contains(':')).collect();
        let lines = [
            format!(
                "DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends {}",
                debian.join(" ")
            ),
            format!("[ -d venv ] || python3 -m venv venv; venv/bin/pip install -q {}", of("pip:")),
            format!("mkdir -p npm; cd npm; npm install --silent --no-fund --no-audit {}", of("npm:")),
        ];
        for line in lines {
            // Packages that cannot be installed are left out.
            self.shell(&line, &self.folder)?;
        }
        Ok(())
    }

    /// Runs a shell command with the folders in its environment.
    pub(super) fn shell(&self, line: &str, folder: &Path) -> anyhow::Result<Output> {
        self.command("sh", folder).args(["-c", line]).output().with_context(|| format!("cannot run {line}"))
    }

    /// Returns a command with the folders in its environment.
    pub(super) fn command(&self, program: impl AsRef<std::ffi::OsStr>, folder: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(folder)
            .env("BUILT", self.built())
            .env("VENV", self.folder.join("venv"))
            .env("NPM", self.folder.join("npm/node_modules/.bin"));
        command
    }

    /// Whether a program is installed.
    pub(super) fn has(&self, program: &Program) -> anyhow::Result<bool> {
        let line = format!("command -v {}", program.needs);
        Ok(self.shell(&line, &self.folder)?.status.success())
    }

    /// Creates an empty folder to run a program in.
    pub(super) fn fresh(&self) -> anyhow::Result<PathBuf> {
        let folder = self.folder.join("run");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder)?;
        Ok(folder)
    }
}

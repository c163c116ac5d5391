//! `heapr --version`: the build, and what is built in.

use std::sync::LazyLock;

static SHORT: LazyLock<String> = LazyLock::new(|| {
    let version = env!("CARGO_PKG_VERSION");
    match option_env!("HEAPR_COMMIT").filter(|commit| !commit.is_empty()) {
        Some(commit) => format!("{version} ({commit})"),
        None => version.to_owned(),
    }
});

static LONG: LazyLock<String> = LazyLock::new(|| {
    let library = if cfg!(target_env = "musl") { "musl" } else { "glibc" };
    let kind = if cfg!(debug_assertions) { ", not optimized" } else { "" };
    let page = if heapr_server::has_page() { "built in" } else { "not built in" };
    let agent_kib = heapr_session::agent_bytes() / 1024;
    format!(
        "{}\nbuilt for   Linux, {}, {library}{kind}\nagent       built in, {agent_kib} KiB\npage        {page}",
        short(),
        std::env::consts::ARCH,
    )
});

/// Version and commit in one line. Packages set the commit; daily builds do not, because a commit
/// would rebuild everything.
pub(crate) fn short() -> &'static str {
    &SHORT
}

/// Version and commit, then platform, agent and page.
pub(crate) fn long() -> &'static str {
    &LONG
}

//! Maintenance commands of the project: `cargo xtask check-deps | check-agent | test | bench …`.
#![forbid(unsafe_code)]

mod agent_code;
mod bench;
mod book;
mod check_agent;
mod check_deps;
mod check_words;
mod comment_width;
mod comments;
mod deaths;
mod dependency_policy;
mod dist;
mod emulated;
mod function_shape;
mod fuzz;
mod header;
mod known_names;
mod matrix;
mod memory_group;
mod miri;
mod module_circles;
mod packages;
mod processor_words;
mod release;
mod soak_attach;
mod soak_graph_kills;
mod soak_healthy;
mod soak_kills;
mod soak_languages;
mod soak_servers;
mod soak_snapshot;
mod soak_watch;
mod soak_watch_idle;
mod sources;
mod suite;
mod ui_circles;
mod unused_sources;
mod vm;

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};

const USAGE: &str = "usage: cargo xtask COMMAND

  answers [--rounds N] [--mode run|attach|sample] [--in FOLDER] [NAME…]
                         memory problems of published packages (victims/answers): whether heapr, or the program
                         that the variable HEAPR names, says the cause
  book                   the book and all documents as pages for a browser, in target/book
  check-deps             dependency directions between the crates, where unsafe and printing may be,
                         comments that are too wide, files that know the processor, second lists of known names
  check-words            how comments and help texts begin, how long their sentences are, what they say
  check-agent [FILE]     what the built agent exports and imports; no panic is linked into it; no floating
                         point, and no register that is not saved
  check-dependencies     whether all that heapr is made of comes from the registry, once, with a licence that is
                         allowed, and stands in docs/dependencies.md
  check-licences         whether the licences of all that heapr is made of are allowed
  deaths [--rounds N] [NAME…]
                         deaths for lack of memory in control groups made here, as root: whether the first sentence
                         of heapr watch (the variable HEAPR names another program) has the true cause
  deaths --lives N       whether programs meet their limits at the same request with a watch as without one
  dist [--binary FILE] [--target TARGET] [--only tar,deb,rpm,wheel,npm,image,static] [--check] [--twice]
                         every package that can be made here, from a build for glibc 2.28 or from a program that
                         is there; the static one from a build for musl. SHA256SUMS and manifest.json beside them.
                         --target: for another processor (aarch64-unknown-linux-gnu), from a program that is there.
                         --check installs and uses each: Debian 11 to 13 (as root), a venv, an npm project,
                         containers (podman), a root with nothing but musl. --twice: two builds are equal
  emulated [--where-possible] [all | WORD…]
                         heapr built for aarch64, and the victims under qemu-aarch64: thirteen of them and the lints,
                         all, or those whose names have a word; needs rustup's library of the target, and root, as it
                         registers the emulator in the kernel (binfmt_misc). --where-possible: says what is missing
  fuzz [--seconds N] TARGET…
                         readers of data from outside under libFuzzer and the address sanitizer, two minutes each
                         (fuzz/fuzz_targets): runs, code that was reached, what was found
  header [--check]       crates/capi/heapr.h from the C API; or whether it is right
  matrix [--install] [--small] [--merge] [NAME…]
                         real programs under heapr run and heapr start --pid, and what of their memory is
                         explained; writes docs/coverage.md
  miri                   tests of some crates under Miri, where this machine has it
  packages               the system packages that build, tests and benchmarks need, one a line
  test [FILTER]          installs what the tests need (apt-get, only what is missing) and runs all of them
  release VERSION [--dry-run] [--binary FILE]
                         version, changelog, commit, tag, all packages with checksums, and target/dist/publish, which
                         sends them to the registries. --dry-run: the same on a copy of the sources
  soak attach [ROUNDS [PROGRAM…]]  attach to programs at work and detach, with pauses and speed
  soak graph-kills [ROUNDS [PROGRAM]]
                         every other graph of seven programs killed at a random moment: nothing is left
  soak graph-confirm [SECONDS [FOLDER [PROGRAM…]]]
                         graphs of eight real programs: no block that was called leaked is freed afterwards
  soak healthy [MINUTES [bare] [NAME…]]
                         six servers at constant load near 80 % of their limits under heapr watch: no incident, none
                         is killed. bare: the same without a watch
  soak watch [DEATHS]    deaths one after the other under one watch, its recorder killed at random moments: an incident
                         each, and the folder within its bound
  soak watch-idle [PROCESSES [MINUTES]]
                         a watch of idle processes, of one group and of a group each: processor time and memory
  soak kills [ROUNDS [SEED]]
                         recorder, command or program killed at random moments: nobody else is harmed
  soak languages [STACKS [py|js|java|rb|php|pl|lua]]
                         kept frames of languages compared with whole readings, 500,000 of each
  soak python-heap [STOPS]
                         the heap of a Python that allocates, collects and resizes, read at 200 moments
  soak snapshot [MINUTES]  a session in snapshot mode on a server at work: the recorder's memory
  vm aarch64|x86_64 [WORD…]
                         a virtual machine with Debian's kernel and packages, made once: heapr in it, attaching included.
                         Its trials (xtask/src/vm/trials), or those whose names have a word; CRATE::FILTER: a crate's tests;
                         CRATE/TEST::FILTER: those of its folder tests/TEST, as heapr/it::victims::
  bench overhead [--rounds N] [--only PROGRAM,…]
                         time added by heapr and by heaptrack, bytes per event
  bench disabled [--rounds N] [--only PROGRAM,…]
                         the agent loaded but switched off, against no agent
  bench sampling [--rounds N] [--only PROGRAM,…]
                         what --sample adds to programs, beside jemalloc's own; the recorder of ten processes
  bench languages [--rounds N] [--only PROGRAM,…]
                         what frames of Python add to an event, beside memray; six minutes at most
  bench attach           speed of programs after a detach, and attached to against started
  bench instructions     the agent's instructions per event, counted by Valgrind: hardly any noise
  bench counts [--debug] [--write | --first] [WORD…]
                         instructions, system calls and memory of fixed jobs, held against benches/counts.tsv; --write
                         sets the lines, --first the column of the commit that all are compared with (`HEAPR` names a program);
                         --debug: of the debug build, on smaller inputs, held against benches/counts-debug.tsv, as CI does
  bench scaling          the agent's time per event with one thread and with four
  bench report           heapr report against heaptrack_print on the same run
  bench export           heapr export in each format against heapr report: processor time and memory
  bench view [large] [server]
                         heapr view: first picture, all panels for ranges and filters, the page; with 100 M events
                         and a snapshot of 1 GB; or without the page
  bench live             snapshots of ten million live blocks: time, the program's waits, the recorder's memory
  bench graphs [pause] [load] [analysis]
                         graphs of native heaps: how long a process with a gigabyte stands still, what redis
                         loses while its copy is read, ten million blocks
  bench managed [NAME…]  heapr snapshot take of a Python with one and five million objects, beside guppy3,
                         questions on its file, beside memlab,
                         and of the packages in benches/managed_programs.py, with their first suspects
  bench hprof [1] [10]   heapr snapshot of heap dumps of Java of 1 and 10 GB: the first answer, also within 1.2
                         and 5 GB of memory, and the second question
  bench memory [NAME…]   memory of the agent and of the recorder, beside heaptrack and memray
  bench snapshots        heapr snapshot against memlab on V8 snapshots of 140 MB and 1 GB
  bench billion [EVENTS] a file of a billion events through the real writer, and its report
  bench all              all of these but the billion; writes the tables of docs/performance.md";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["check-deps"] => check_deps::run(),
        ["check-words"] => check_words::run(),
        ["check-agent"] => check_agent::run(None),
        ["check-agent", file] => check_agent::run(Some(file)),
        ["answers", ref names @ ..] => run_answers(names),
        ["book"] => write_book(),
        ["check-dependencies"] => dependency_policy::run(),
        ["check-licences"] => dist::check_licences(),
        ["deaths", ref words @ ..] => deaths::run(words),
        ["dist", ref rest @ ..] => dist::run(rest),
        ["release", ref rest @ ..] => release::run(rest),
        ["emulated", ref words @ ..] => emulated::run(words),
        ["vm", ref words @ ..] => vm::run(words),
        ["fuzz", ref words @ ..] => fuzz::run(words),
        ["header"] => header::run(false),
        ["header", "--check"] => header::run(true),
        ["soak", "attach", ref rest @ ..] => soak_attach::run(rest),
        ["soak", "graph-kills", ref rest @ ..] => soak_graph_kills::run(rest),
        ["soak", "graph-confirm", ref rest @ ..] => soak_graph_kills::confirm(rest),
        ["soak", "kills", ref rest @ ..] => soak_kills::run(rest),
        ["soak", "languages", ref rest @ ..] => soak_languages::run(rest),
        ["soak", "python-heap"] => soak_python_heap("200"),
        ["soak", "python-heap", stops] => soak_python_heap(stops),
        ["soak", "healthy", ref rest @ ..] => soak_healthy::run(rest),
        ["soak", "watch", ref rest @ ..] => soak_watch::run(rest),
        ["soak", "watch-idle", ref rest @ ..] => soak_watch_idle::run(rest),
        ["soak", "snapshot", ref rest @ ..] => soak_snapshot::run(rest),
        ["matrix", ref words @ ..] => matrix::run(words),
        ["miri"] => miri::run(),
        ["packages"] => packages::print(),
        ["test", ref filter @ ..] => packages::install_missing().and_then(|()| suite::run(filter)),
        ["bench", ref what @ ..] => bench::run(what),
        // Measuring process of the benchmarks; see bench/measured_run.rs.
        ["measure", result, ref command @ ..] => bench::measure(result, command),
        _ => Err(anyhow::anyhow!("{USAGE}")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Records the programs of `victims/answers` and judges the answers: see `docs/answers.md`.
fn run_answers(names: &[&str]) -> anyhow::Result<()> {
    let heapr = std::env::var_os("HEAPR").map_or_else(|| root().join("target/release/heapr"), PathBuf::from);
    let status =
        Command::new(root().join("victims/answers/run-answers")).args(names).env("HEAPR", heapr).status();
    anyhow::ensure!(
        status.context("victims/answers/run-answers")?.success(),
        "something false is said, or too few causes stand first"
    );
    Ok(())
}

/// Runs the test of stopped programs with more stops, on `HEAPR_PYTHONS` or `python3`.
fn soak_python_heap(stops: &str) -> anyhow::Result<()> {
    let words = ["test", "-p", "heapr-managed", "--test", "it", "--", "--nocapture", "stops::a_program"];
    run(cargo().args(words).env("HEAPR_STOPS", stops))
}

fn write_book() -> anyhow::Result<()> {
    let folder = root().join("target/book");
    println!("{} documents: {}/index.html", book::write(&folder)?, folder.display());
    Ok(())
}

/// Version of the workspace, which all packages have: that of `Cargo.toml`.
fn version() -> anyhow::Result<String> {
    let text = std::fs::read_to_string(root().join("Cargo.toml")).context("Cargo.toml")?;
    Ok(release::version_in(&text).context("Cargo.toml has no version of the workspace")?.to_owned())
}

/// Root of the repository.
fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(PathBuf::from).unwrap_or(here)
}

fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs a command that must succeed.
fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    if !status.success() {
        bail!("{command:?}: {status}");
    }
    Ok(())
}

/// Returns the output of a command that must succeed.
fn output_of(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

//! `heapr view`: opens files, serves the page, opens the browser or says how to reach it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use heapr_server::{Files, Limits, Server, ServerOptions, Source, StaticChoices, write_static};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::browser;
use super::host::CommandLineHost;
use super::sources::sources;
use crate::incidents::last_minutes;
use crate::output::OutputFile;
use crate::own_arguments::OwnArguments;
use crate::report::names::NameArguments;
use crate::snapshot::managed::dump_file::DumpArguments;
use crate::snapshot::v8::source_maps::SourceMapArguments;
use heapr_filters::ShownFrames;
use heapr_filters::quantity::parse_bytes;
use heapr_table::quantity::bytes;

/// Arguments of `heapr view`.
#[derive(Debug, clap::Args)]
pub(crate) struct ViewArguments {
    /// Traces, heap snapshots, heap dumps of Java and Ruby, files of other tools, names of running
    /// sessions. They end in .heapr, .heapsnapshot, .heaptimeline, .hprof, .heapprofile, also .gz
    /// and .zst. Other tools are heaptrack, massif, DHAT, jemalloc, pprof and V8 [default: the
    /// session that runs, or the newest trace here]
    #[arg(value_name = "FILE|NAME")]
    files: Vec<PathBuf>,
    /// Only print the address
    #[arg(long)]
    no_open: bool,
    /// Port on 127.0.0.1; 0: any free one [default: one that follows from the files' names, so that
    /// a copied address holds at the next start]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Write one page that needs no server, to be attached to a report, instead of serving
    #[arg(long = "static", value_name = "OUT.html", conflicts_with_all = ["no_open", "port"])]
    static_page: Option<PathBuf>,
    /// Largest size of that page; what tells least is left out
    #[arg(long, value_name = "BYTES", default_value = "16M", value_parser = parse_bytes, requires = "static_page")]
    max_size: u64,
    /// Source lines of the program's own frames are in that page
    #[arg(long, requires = "static_page")]
    sources: bool,
    /// Folders, command lines, names of the machine and texts of a heap are left out of that page
    #[arg(long, requires = "static_page", conflicts_with = "sources")]
    anonymous: bool,
    /// Note that the page shows above its views; may be given several times
    #[arg(long, value_name = "TEXT", requires = "static_page")]
    note: Vec<String>,
    /// Overwrite that page if it exists
    #[arg(short, long, requires = "static_page")]
    force: bool,
    #[command(flatten)]
    names: NameArguments,
    #[command(flatten)]
    own: OwnArguments,
    /// Frames shown of stacks in a language (Python, JavaScript, …): all, all without the
    /// interpreter's, or native ones; the page can change it
    #[arg(long, value_enum, default_value_t, value_name = "mixed|own|native", help_heading = "Filters")]
    lang_frames: ShownFrames,
    #[command(flatten)]
    source_maps: SourceMapArguments,
    #[command(flatten)]
    dumps: DumpArguments,
}

/// Runs the command.
pub(crate) fn run(arguments: ViewArguments) -> anyhow::Result<ExitCode> {
    arguments.source_maps.apply();
    arguments.dumps.apply();
    // Only this user can read the folder, which is removed when the page ends.
    let folder = tempfile::tempdir().context("cannot make a directory for heaps")?;
    let (sources, graphs) = sources(&arguments.files, folder.path())?;
    let host = Arc::new(CommandLineHost {
        names: arguments.names,
        own: arguments.own,
        shown: arguments.lang_frames,
        folder: folder.path().to_owned(),
        is_static: arguments.static_page.is_some(),
        graphs,
    });
    let files = Files::open_sources(&sources, host, Limits::default());
    if let Some(path) = &arguments.static_page {
        let wanted = StaticChoices {
            page_bytes: arguments.max_size,
            has_sources: arguments.sources,
            is_anonymous: arguments.anonymous,
            notes: arguments.note,
        };
        return write(&files, path, arguments.force, &wanted);
    }
    files.refuse_unreadable()?;
    let server = match arguments.port {
        Some(port) => Server::bind(files, ServerOptions { port })?,
        // Another view of the same files has the port: use any other.
        None => Server::bind(Arc::clone(&files), ServerOptions { port: steady_port(&arguments.files) })
            .or_else(|_| Server::bind(files, ServerOptions::default()))?,
    };
    // An incident's recording opens on its last minutes.
    let minutes = match sources.as_slice() {
        [Source::File(path)] => last_minutes(path),
        _ => None,
    };
    let url = server.url() + &minutes.map(|address| format!("#{address}")).unwrap_or_default();
    say!("{url}");
    let is_opened = !arguments.no_open && browser::open(&url, folder.path());
    if !is_opened {
        let port = server.address().port();
        tell!("heapr: open this address in a browser; from another machine first run there:");
        tell!("  ssh -N -L {port}:127.0.0.1:{port} {}", browser::ssh_target());
    }
    if is_opened {
        tell!(
            "heapr: the browser is asked to open it; one that may not read {} needs the address above",
            folder.path().display()
        );
    }
    tell!("heapr: Ctrl-C ends it");
    server.run(until_signal()?)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns a port that is the same for the same files, below the kernel's ephemeral ports.
fn steady_port(files: &[PathBuf]) -> u16 {
    const FIRST: u64 = 20_000;
    const COUNT: u64 = 8_000;
    // FNV-1a, because the sum must be the same in each version of heapr.
    let mut sum = 0xcbf2_9ce4_8422_2325_u64;
    for file in files {
        let path = std::path::absolute(file).unwrap_or_else(|_| file.clone());
        for byte in path.as_os_str().as_encoded_bytes().iter().chain(b"\0") {
            sum = (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    (FIRST + sum % COUNT) as u16
}

/// Writes the static page.
fn write(files: &Files, path: &Path, may_replace: bool, wanted: &StaticChoices) -> anyhow::Result<ExitCode> {
    let mut output = OutputFile::create(path, may_replace)?;
    let busy = crate::busy_line::begin("reading");
    let mut progress = |what: &str| busy.say(what);
    let page = write_static(files, wanted, &mut progress)?;
    output.write_all(&page).with_context(|| format!("cannot write {}", path.display()))?;
    let path = output.keep()?;
    tell!(
        "heapr: wrote {} ({}); it shows what the program does: look who may see it",
        path.display(),
        bytes(page.len() as u64)
    );
    Ok(ExitCode::SUCCESS)
}

/// Returns a future that is ready when SIGINT or SIGTERM arrives.
pub(crate) fn until_signal() -> anyhow::Result<impl Future<Output = ()> + Send + 'static> {
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    let (told, tells) = futures_channel();
    std::thread::spawn(move || {
        signals.forever().next();
        told.tell();
    });
    Ok(tells)
}

/// Returns a future and the handle by which another thread completes it.
fn futures_channel() -> (Told, Tells) {
    let shared = Arc::new(std::sync::Mutex::new((false, None::<std::task::Waker>)));
    (Told(Arc::clone(&shared)), Tells(shared))
}

type Shared = Arc<std::sync::Mutex<(bool, Option<std::task::Waker>)>>;

struct Told(Shared);

struct Tells(Shared);

impl Told {
    fn tell(self) {
        let mut shared = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        shared.0 = true;
        if let Some(waker) = shared.1.take() {
            waker.wake();
        }
    }
}

impl Future for Tells {
    type Output = ();

    fn poll(self: std::pin::Pin<&mut Self>, context: &mut std::task::Context<'_>) -> std::task::Poll<()> {
        let mut shared = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if shared.0 {
            return std::task::Poll::Ready(());
        }
        shared.1 = Some(context.waker().clone());
        std::task::Poll::Pending
    }
}

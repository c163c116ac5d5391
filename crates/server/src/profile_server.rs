//! `/debug/pprof/heap` as Go's programs answer it. `go tool pprof URL` and scrapers of such
//! addresses can read a session of any program.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::Response;

use crate::error::{Error, Result};

/// Names of the profiles, as Go calls them.
const NAMES: [&str; 2] = ["heap", "allocs"];
/// Path of the profiles.
const PATH: &str = "/debug/pprof/";
/// Largest number of profiles made at once; further requests wait.
const AT_ONCE: usize = 2;

/// Makes the profile of a name: gzipped pprof, or an error text.
pub type MakeProfile = dyn Fn(&str) -> std::result::Result<Vec<u8>, String> + Send + Sync;

/// Makes the text of `/metrics`, in the form that Prometheus scrapes, or an error text.
pub type MakeMetrics = dyn Fn() -> std::result::Result<String, String> + Send + Sync;

/// Path of the metrics.
const METRICS_PATH: &str = "/metrics";

/// A listening socket.
pub struct ProfileServer {
    listener: TcpListener,
    shared: Shared,
}

impl std::fmt::Debug for ProfileServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ProfileServer").field("address", &self.shared.address).finish_non_exhaustive()
    }
}

#[derive(Clone)]
struct Shared {
    address: SocketAddr,
    make: Arc<MakeProfile>,
    metrics: Option<Arc<MakeMetrics>>,
}

impl ProfileServer {
    /// Opens the socket.
    ///
    /// # Errors
    /// Fails if the address is in use or does not belong to this machine.
    pub fn bind(address: SocketAddr, make: Arc<MakeProfile>) -> Result<Self> {
        let listen_error = |source| Error::Listen { port: address.port(), source };
        let listener = TcpListener::bind(address).map_err(listen_error)?;
        let address = listener.local_addr().map_err(listen_error)?;
        Ok(Self { listener, shared: Shared { address, make, metrics: None } })
    }

    /// Serves `/metrics`, too.
    #[must_use]
    pub fn with_metrics(mut self, metrics: Arc<MakeMetrics>) -> Self {
        self.shared.metrics = Some(metrics);
        self
    }

    /// URL of the heap profile.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}{PATH}heap", self.shared.address)
    }

    /// Serves until `until` is ready.
    ///
    /// # Errors
    /// Fails if the system refuses threads or the socket.
    pub fn run(self, until: impl Future<Output = ()> + Send + 'static) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(AT_ONCE)
            .enable_all()
            .build()
            .map_err(Error::Run)?;
        let Self { listener, shared } = self;
        let outcome = runtime.block_on(async move {
            listener.set_nonblocking(true)?;
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let served = axum::serve(listener, Router::new().fallback(answer).with_state(shared));
            tokio::select! {
                served = async { served.await } => served,
                () = until => Ok(()),
            }
        });
        runtime.shutdown_background();
        outcome.map_err(Error::Run)
    }
}

async fn answer(State(shared): State<Shared>, method: Method, uri: Uri, headers: HeaderMap) -> Response {
    if !is_for(shared.address, &headers) {
        return text(StatusCode::MISDIRECTED_REQUEST, "the request is for another host");
    }
    if method != Method::GET && method != Method::HEAD {
        return text(StatusCode::METHOD_NOT_ALLOWED, "profiles can only be read");
    }
    if let (METRICS_PATH, Some(metrics)) = (uri.path(), &shared.metrics) {
        let metrics = Arc::clone(metrics);
        return match tokio::task::spawn_blocking(move || metrics()).await {
            Ok(Ok(lines)) => text(StatusCode::OK, lines.trim_end()),
            Ok(Err(why)) => text(StatusCode::INTERNAL_SERVER_ERROR, &why),
            Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, "making the metrics has failed"),
        };
    }
    let Some(name) = uri.path().strip_prefix(PATH).filter(|name| NAMES.contains(name)) else {
        let is_list = uri.path().trim_end_matches('/') == PATH.trim_end_matches('/') || uri.path() == "/";
        let status = if is_list { StatusCode::OK } else { StatusCode::NOT_FOUND };
        return text(status, &format!("profiles: {PATH}heap, {PATH}allocs"));
    };
    // `gc` and `seconds` have no meaning here: all frees are seen, and a profile shows this moment.
    if uri
        .query()
        .is_some_and(|query| query.split('&').any(|part| part.starts_with("debug=") && part != "debug=0"))
    {
        return text(StatusCode::BAD_REQUEST, "profiles are binary here: leave out debug");
    }
    let (make, name) = (Arc::clone(&shared.make), name.to_owned());
    match tokio::task::spawn_blocking(move || make(&name)).await {
        Ok(Ok(bytes)) => {
            let mut response = Response::new(Body::from(bytes));
            for (key, value) in [
                (header::CONTENT_TYPE, "application/octet-stream"),
                (header::CONTENT_DISPOSITION, "attachment; filename=\"heap.pb.gz\""),
                (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
                (header::CACHE_CONTROL, "no-store"),
            ] {
                response.headers_mut().insert(key, HeaderValue::from_static(value));
            }
            response
        }
        Ok(Err(why)) => text(StatusCode::INTERNAL_SERVER_ERROR, &why),
        Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, "making the profile has failed"),
    }
}

/// Whether a request is for this server. On the loopback only its own names count: another site's
/// page cannot use a name that resolves to 127.0.0.1.
fn is_for(address: SocketAddr, headers: &HeaderMap) -> bool {
    if !address.ip().is_loopback() {
        return true;
    }
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let own = [address.to_string(), format!("localhost:{}", address.port())];
    own.iter().any(|own| own == host) && !headers.contains_key(header::ORIGIN)
}

fn text(status: StatusCode, text: &str) -> Response {
    let mut response = Response::new(Body::from(format!("{text}\n")));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

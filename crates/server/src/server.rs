//! The listener; each query runs on a thread of the pool.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;

use crate::access::Access;
use crate::api;
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::files::Files;
use crate::page;
use crate::request::{Answer, Context};
use crate::static_page;
use crate::token::Token;

/// Largest body of a request, in bytes.
const BODY_BYTES_MAX: usize = 1 << 20;
/// Largest number of queries at once; further ones wait. Each may use a processor fully, and
/// several share a pass over the events.
const QUERIES_AT_ONCE: usize = 16;
/// Least size of compressed answers, in bytes. On the loopback sending bytes costs less than
/// compressing them; through ssh it costs more.
const COMPRESSED_FROM_BYTES: usize = 1 << 20;

/// Options of the listener.
#[derive(Debug, Clone, Copy, Default)]
pub struct ServerOptions {
    /// Port on 127.0.0.1; 0: any free one.
    pub port: u16,
}

/// A listening socket.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    access: Access,
    files: Arc<Files>,
}

#[derive(Debug, Clone)]
struct Shared {
    access: Access,
    files: Arc<Files>,
}

impl Server {
    /// Opens the socket; requests wait until [`Server::run`].
    ///
    /// # Errors
    /// Fails if the port is in use, or the system gives no random bytes.
    pub fn bind(files: Arc<Files>, options: ServerOptions) -> Result<Self> {
        let listen_error = |source| Error::Listen { port: options.port, source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).map_err(listen_error)?;
        let port = listener.local_addr().map_err(listen_error)?.port();
        Ok(Self { listener, access: Access { port, token: Token::random()? }, files })
    }

    /// Address of the socket.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.access.port).into()
    }

    /// Token of this start.
    #[must_use]
    pub fn token(&self) -> &Token {
        &self.access.token
    }

    /// URL of the page, with the token.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/?token={}", self.address(), self.access.token.as_str())
    }

    /// Serves until `until` is ready.
    ///
    /// # Errors
    /// Fails if the system refuses threads or the socket.
    pub fn run(self, until: impl Future<Output = ()> + Send + 'static) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(QUERIES_AT_ONCE)
            .enable_all()
            .build()
            .map_err(Error::Run)?;
        let Self { listener, access, files } = self;
        let outcome = runtime.block_on(async move {
            listener.set_nonblocking(true)?;
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let served = axum::serve(listener, router(Shared { access, files }));
            tokio::select! {
                served = async { served.await } => served,
                () = until => Ok(()),
            }
        });
        runtime.shutdown_background();
        outcome.map_err(Error::Run)
    }
}

fn router(shared: Shared) -> Router {
    Router::new()
        .fallback(serve)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(from_fn_with_state(shared.clone(), guard))
        .with_state(shared)
}

/// Refuses requests from other sites, and adds the security headers.
async fn guard(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    let mut response = match shared.access.check_site(request.headers()) {
        Ok(()) => next.run(request).await,
        Err((status, message)) => refusal(status, message),
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, page::CONTENT_SECURITY_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

async fn serve(
    State(shared): State<Shared>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let Some(name) = uri.path().strip_prefix("/api/") else {
        return serve_page(&shared, &method, &uri, &headers);
    };
    if let Err((status, message)) = shared.access.check_token(&headers) {
        return refusal(status, message);
    }
    let is_get = method == Method::GET && name == "files";
    let is_json =
        headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).is_some_and(|value| {
            value.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
        });
    // A form of another site cannot send JSON: one more barrier.
    if !is_get && (method != Method::POST || !is_json) {
        return refusal(
            StatusCode::BAD_REQUEST,
            "send POST with Content-Type: application/json (or GET /api/files)",
        );
    }
    let cancel = Cancel::default();
    let _guard = cancel.guard();
    let accepts_gzip = accepts_gzip(&headers);
    let name = name.to_owned();
    let files = Arc::clone(&shared.files);
    let work = tokio::task::spawn_blocking(move || {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| match name.as_str() {
            "page" => static_page::page(&Context { files: &files, cancel: &cancel }, &body),
            name => api::answer(&files, name, &body, &cancel),
        }));
        outcome
            .unwrap_or_else(|_| Err(Error::Internal("the query has failed".to_owned())))
            .and_then(|answer| packed(answer, accepts_gzip))
    });
    match work.await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => error_response(&error),
        Err(_) => error_response(&Error::Internal("the query's thread has ended".to_owned())),
    }
}

fn serve_page(shared: &Shared, method: &Method, uri: &Uri, headers: &HeaderMap) -> Response {
    if method != Method::GET && method != Method::HEAD {
        return refusal(StatusCode::METHOD_NOT_ALLOWED, "the page can only be read");
    }
    let token = uri
        .query()
        .into_iter()
        .flat_map(|query| query.split('&'))
        .find_map(|part| part.strip_prefix("token="));
    if let Some(token) = token {
        return if shared.access.token.is(token) {
            let cookie =
                format!("{}={token}; Path=/; HttpOnly; SameSite=Strict", shared.access.cookie_name());
            response(
                StatusCode::SEE_OTHER,
                &[(header::LOCATION, "/"), (header::SET_COOKIE, &cookie)],
                Vec::new(),
            )
        } else {
            refusal(
                StatusCode::UNAUTHORIZED,
                "the token is wrong: open the address that heapr view has printed (each start has its own)",
            )
        };
    }
    let Some(file) = page::file(uri.path()) else {
        return refusal(StatusCode::NOT_FOUND, "there is no such page");
    };
    let plain = || {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(file.gzip), &mut bytes).map(|_| bytes)
    };
    let kind = (header::CONTENT_TYPE, file.content_type);
    let cache = (header::CACHE_CONTROL, "no-cache");
    if accepts_gzip(headers) {
        response(StatusCode::OK, &[kind, cache, (header::CONTENT_ENCODING, "gzip")], file.gzip.to_vec())
    } else {
        response(StatusCode::OK, &[kind, cache], plain().unwrap_or_default())
    }
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted =
        headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accepted.split(',').any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        name.trim().eq_ignore_ascii_case("gzip") && weight.replace(' ', "") != "q=0"
    })
}

fn packed(answer: Answer, accepts_gzip: bool) -> Result<Response> {
    let (kind, name, bytes) = match answer {
        Answer::Json(bytes) => ("application/json", None, bytes),
        Answer::File { name, bytes } => ("application/octet-stream", Some(name), bytes),
    };
    let disposition = name.map(|name| {
        let plain: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' })
            .collect();
        format!("attachment; filename=\"{plain}\"")
    });
    let mut headers = vec![(header::CONTENT_TYPE, kind)];
    headers.extend(disposition.as_deref().map(|disposition| (header::CONTENT_DISPOSITION, disposition)));
    if accepts_gzip && bytes.len() >= COMPRESSED_FROM_BYTES {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let outcome = encoder.write_all(&bytes).and_then(|()| encoder.finish());
        let bytes = outcome.map_err(|error| Error::Internal(error.to_string()))?;
        headers.push((header::CONTENT_ENCODING, "gzip"));
        return Ok(response(StatusCode::OK, &headers, bytes));
    }
    Ok(response(StatusCode::OK, &headers, bytes))
}

fn error_response(error: &Error) -> Response {
    let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response(status, &[(header::CONTENT_TYPE, "application/json")], error.body())
}

fn refusal(status: StatusCode, message: &str) -> Response {
    let body = serde_json::json!({ "error": message, "offset": null, "field": null }).to_string();
    response(status, &[(header::CONTENT_TYPE, "application/json")], body.into_bytes())
}

fn response(status: StatusCode, headers: &[(header::HeaderName, &str)], body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(name.clone(), value);
        }
    }
    response
}

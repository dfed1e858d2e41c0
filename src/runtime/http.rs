//! HTTP/1.1 for the operator, on one ordinary thread of its own. Bodies of requests are not read.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::Semaphore;
use tokio::task::LocalSet;

use crate::base::Trouble;

/// Connections at a time; more wait until one of them ends.
const CONNECTIONS_MAX: usize = 64;
/// How long a head may take to come, also behind an answer: then the connection is closed.
const HEAD_PATIENCE: Duration = Duration::from_secs(10);
/// How long one connection may last in all.
const CONNECTION_MAX: Duration = Duration::from_secs(60);
const PAUSE_AFTER_TROUBLE: Duration = Duration::from_millis(100);

/// A listening socket whose thread does not run yet.
pub struct HttpListener(TcpListener);

/// What is asked for: `GET` and a path without its query.
pub struct HttpRequest {
    pub method: String,
    pub path: String,
}

pub struct HttpAnswer {
    pub status: u16,
    pub content_type: &'static str,
    pub body: String,
}

/// Listens at `address`.
/// Errors: `AddrInUse` when another process does.
pub fn bind(address: SocketAddr) -> Result<HttpListener, Trouble> {
    let bind = || {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(HttpListener(listener))
    };
    bind().map_err(|cause| Trouble::new("listen at", address.to_string(), cause))
}

/// Serves until the process ends. `handle` runs on the new thread; requests of different connections overlap.
pub fn serve<H, F>(listener: HttpListener, handle: H) -> Result<(), Trouble>
where
    H: Fn(HttpRequest) -> F + Send + 'static,
    F: Future<Output = HttpAnswer> + 'static,
{
    let trouble = |cause| Trouble::new("start", "the operator's thread", cause);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(trouble)?;
    let run = move || runtime.block_on(LocalSet::new().run_until(accept(listener, Rc::new(handle))));
    std::thread::Builder::new()
        .name("http".to_owned())
        .spawn(move || {
            if let Err(error) = run() {
                tracing::warn!(%error, "no metrics are shown any more");
            }
        })
        .map_err(trouble)?;
    Ok(())
}

async fn accept<H, F>(listener: HttpListener, handle: Rc<H>) -> io::Result<()>
where
    H: Fn(HttpRequest) -> F + 'static,
    F: Future<Output = HttpAnswer> + 'static,
{
    let listener = tokio::net::TcpListener::from_std(listener.0)?;
    let places = Rc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let place = Rc::clone(&places);
        let Ok(()) = place.acquire().await.map(tokio::sync::SemaphorePermit::forget) else { return Ok(()) };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(_) => {
                place.add_permits(1);
                tokio::time::sleep(PAUSE_AFTER_TROUBLE).await;
                continue;
            }
        };
        let handle = handle.clone();
        tokio::task::spawn_local(async move {
            let service = service_fn(move |request| answer(handle.clone(), request));
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEAD_PATIENCE);
            let serving = http.serve_connection(TokioIo::new(stream), service);
            // What a peer sends wrong, or that it went away, is its own matter.
            let _ = tokio::time::timeout(CONNECTION_MAX, serving).await;
            place.add_permits(1);
        });
    }
}

async fn answer<H, F>(
    handle: Rc<H>,
    request: hyper::Request<Incoming>,
) -> Result<hyper::Response<Full<Bytes>>, Infallible>
where
    H: Fn(HttpRequest) -> F,
    F: Future<Output = HttpAnswer>,
{
    let asked = HttpRequest { method: request.method().to_string(), path: request.uri().path().to_owned() };
    let answer = handle(asked).await;
    let mut response = hyper::Response::new(Full::new(Bytes::from(answer.body)));
    *response.status_mut() =
        hyper::StatusCode::from_u16(answer.status).unwrap_or(hyper::StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(answer.content_type));
    Ok(response)
}

//! HTTP/1.1 for the operator, on one ordinary thread of its own. Bodies of requests are not read.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, StatusCode};
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

/// What is asked for: a path without its query.
pub struct HttpRequest {
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
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        let mut refused =
            hyper::Response::new(Full::new(Bytes::from_static(b"only GET and HEAD are answered\n")));
        *refused.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return Ok(refused);
    }
    // hyper leaves the body of an answer to HEAD out.
    let answer = handle(HttpRequest { path: request.uri().path().to_owned() }).await;
    let mut response = hyper::Response::new(Full::new(Bytes::from(answer.body)));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(answer.content_type));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    fn serving() -> SocketAddr {
        let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = listener.0.local_addr().unwrap();
        let handle = async |request: HttpRequest| match request.path.as_str() {
            "/odd" => HttpAnswer { status: 7, content_type: "text/plain", body: String::new() },
            path => HttpAnswer { status: 200, content_type: "text/x-path", body: path.to_owned() },
        };
        serve(listener, handle).unwrap();
        address
    }

    fn answers(address: SocketAddr, requests: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(3 * HEAD_PATIENCE)).unwrap();
        stream.write_all(requests.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.to_lowercase()
    }

    #[test]
    fn the_handler_gets_the_path_and_its_answer_is_sent() {
        let answer = answers(serving(), "GET /a/b?c=d HTTP/1.0\r\n\r\n");
        assert!(answer.starts_with("http/1.0 200 ok\r\n") && answer.ends_with("\r\n\r\n/a/b"), "{answer}");
        assert!(answer.contains("content-type: text/x-path\r\n"), "{answer}");
    }

    #[test]
    fn several_requests_of_one_connection_are_answered_in_order() {
        let requests =
            "GET /1 HTTP/1.1\r\nhost: a\r\n\r\nGET /2 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
        let answer = answers(serving(), requests);
        assert_eq!(answer.matches("200 ok").count(), 2);
        assert!(answer.find("/1") < answer.find("/2"), "{answer}");
    }

    #[test]
    fn a_status_that_http_does_not_know_is_an_error_of_the_server() {
        assert!(answers(serving(), "GET /odd HTTP/1.0\r\n\r\n").starts_with("http/1.0 500"));
    }

    #[test]
    fn an_address_that_is_taken_is_refused_with_its_name() {
        let taken = serving();
        let trouble = bind(taken).err().expect("it is taken").to_string();
        assert!(trouble.contains(&taken.to_string()), "{trouble}");
    }
}

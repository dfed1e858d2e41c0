//! The operator's HTTP of the real binary: what it counts, when it is ready, and what it does not put up with.

#[path = "clients/broker.rs"]
#[allow(dead_code, reason = "the clients' tests use more of it")]
mod broker;
#[path = "sim/client.rs"]
#[allow(dead_code, reason = "the simulation's tests use more of it")]
mod client;
#[path = "clients/command.rs"]
#[allow(dead_code, reason = "the clients' tests use more of it")]
mod command;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_lite::future::block_on;
use prometheus_parse::{Scrape, Value};

use broker::{Broker, free_port};
use client::{Answer, Client, Loopback};
use onrush::metrics::{Kind, METRICS};

const PATIENCE: Duration = Duration::from_secs(30);

fn start(settings: &[&str]) -> (Broker, SocketAddr) {
    let http = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let listener = format!("onrush.http.listener={http}");
    let settings: Vec<&str> = settings.iter().copied().chain([listener.as_str()]).collect();
    (Broker::start(&settings), http)
}

/// Head and body of the answer; `None`: nobody listens, or the connection was closed without one.
fn ask(http: SocketAddr, method: &str, path: &str) -> Option<(String, String)> {
    let mut stream = TcpStream::connect(http).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = format!("{method} {path} HTTP/1.1\r\nHost: {http}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.to_owned(), body.to_owned()))
}

fn status(head: &str) -> &str {
    head.split(' ').nth(1).expect("a status line")
}

fn scrape(http: SocketAddr) -> Scrape {
    let (head, body) = ask(http, "GET", "/metrics").expect("metrics");
    assert_eq!(status(&head), "200");
    assert!(head.to_lowercase().contains("content-type: text/plain; version=0.0.4"), "{head}");
    Scrape::parse(body.lines().map(|line| Ok(line.to_owned()))).expect("Prometheus's text format")
}

/// Over all shards, of the series with this label.
fn sum(scrape: &Scrape, name: &str, label: Option<(&str, &str)>) -> u64 {
    let of_name = scrape.samples.iter().filter(|sample| sample.metric == name);
    let labelled =
        of_name.filter(|sample| label.is_none_or(|(key, value)| sample.labels.get(key) == Some(value)));
    let counts = labelled.map(|sample| match &sample.value {
        Value::Counter(count) | Value::Gauge(count) | Value::Untyped(count) => *count,
        Value::Histogram(buckets) => buckets.last().expect("the bucket of all").count,
        Value::Summary(_) => panic!("{name} is a summary"),
    });
    counts.sum::<f64>() as u64
}

/// `lines` requests of one record each, one that is refused, and a Fetch of all and of nothing that is there.
fn produce_and_fetch(broker: &Broker, topic: &str, lines: u64) {
    let address: SocketAddr = broker.address().parse().unwrap();
    block_on(async {
        let mut client = Client::connect(&Loopback, address).await.unwrap();
        while client.partitions_with_leader(topic).await.unwrap() == 0 {}
        for line in 0..lines {
            let answer = client.produce(topic, 0, &format!("line {line}")).await.unwrap();
            assert_eq!(answer, Answer::Done(i64::try_from(line).unwrap()));
        }
        assert_eq!(client.produce(topic, 99, "nowhere").await.unwrap(), Answer::Refused(3));
        let Answer::Done(fetched) = client.fetch(topic, 0, 0).await.unwrap() else { panic!("refused") };
        assert_eq!(fetched.len() as u64, lines);
        assert_eq!(client.fetch(topic, 0, 1_000).await.unwrap(), Answer::Refused(1));
    });
}

#[test]
fn what_is_counted_is_what_a_client_did() {
    let (broker, http) = start(&["num.partitions=1"]);
    let before = scrape(http);
    produce_and_fetch(&broker, "counted", 40);
    let after = scrape(http);
    let more = |name: &str, label: Option<(&str, &str)>| sum(&after, name, label) - sum(&before, name, label);
    assert_eq!(more("onrush_produced_batches_total", None), 40);
    assert_eq!(more("onrush_produced_records_total", None), 40);
    let written = broker.bytes_of("counted");
    assert_eq!(more("onrush_produced_bytes_total", None), written);
    assert!(more("onrush_commit_window_bytes_total", None) >= written, "besides the broker's own records");
    assert_eq!(more("onrush_fetched_bytes_total", None), written);
    let by_way = |way| more("onrush_sent_file_bytes_total", Some(("way", way)));
    assert_eq!(["sendfile", "copied", "cold"].map(by_way).iter().sum::<u64>(), written);
    assert_eq!(more("onrush_requests_total", Some(("api", "Produce"))), 41);
    assert_eq!(more("onrush_requests_total", Some(("api", "Fetch"))), 2);
    let unknown = Some(("error", "UNKNOWN_TOPIC_OR_PARTITION"));
    assert_eq!(more("onrush_produce_errors_total", unknown), 1);
    assert_eq!(more("onrush_produce_errors_total", None), 1);
    assert_eq!(more("onrush_fetch_errors_total", Some(("error", "OFFSET_OUT_OF_RANGE"))), 1);
    assert_eq!(more("onrush_fetch_errors_total", None), 1);
    for stage in ["produce_decode", "produce_append", "produce_durable", "produce_encode", "produce_send"] {
        assert_eq!(more("onrush_stage_seconds", Some(("stage", stage))), 41, "{stage}");
    }
    let windows = |way| more("onrush_commit_windows_total", Some(("way", way)));
    let ways = ["journal", "written_through", "new_names", "mixed", "os"].map(windows);
    assert_eq!(ways.iter().sum::<u64>(), more("onrush_commit_window_seconds", None));
    assert_eq!(
        (ways[1], ways[2] >= 1),
        (0, true),
        "the first batch of a partition brings new names: {ways:?}"
    );
    assert_eq!(sum(&after, "onrush_partitions", None), 2, "with the metadata log");
}

#[test]
fn every_metric_of_the_table_is_shown_with_its_type() {
    let (broker, http) = start(&["num.partitions=1"]);
    produce_and_fetch(&broker, "shown", 1);
    let scrape = scrape(http);
    for metric in METRICS {
        let sample = scrape.samples.iter().find(|sample| sample.metric == metric.name);
        let sample = sample.unwrap_or_else(|| panic!("{} is not shown", metric.name));
        let is_of_kind = match metric.kind {
            Kind::Counter => matches!(sample.value, Value::Counter(_)),
            Kind::Gauge => matches!(sample.value, Value::Gauge(_)),
            Kind::Histogram => matches!(sample.value, Value::Histogram(_)),
        };
        assert!(is_of_kind, "{sample:?}");
        let labels = ["shard"].into_iter().chain(metric.label);
        labels.for_each(|label| assert!(sample.labels.get(label).is_some(), "{sample:?}"));
    }
    let known = |name: &str| METRICS.iter().any(|metric| name.starts_with(metric.name));
    assert!(scrape.samples.iter().all(|sample| known(&sample.metric)));
}

#[test]
fn a_broker_is_ready_from_its_start_to_its_stop_and_alive_as_long_as_it_is_there() {
    let (mut broker, http) = start(&[]);
    assert_eq!(ask(http, "GET", "/ready").map(|(head, _)| status(&head).to_owned()), Some("200".to_owned()));
    broker.stop();
    assert_eq!(ask(http, "GET", "/live"), None);
    let is_over = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let mut seen: Vec<(String, String)> = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                if let Some((head, body)) = ask(http, "GET", "/ready")
                    && seen.last().is_none_or(|(_, last)| *last != body)
                {
                    seen.push((status(&head).to_owned(), body));
                }
                if let Some((head, _)) = ask(http, "GET", "/live") {
                    assert_eq!(status(&head), "200");
                }
            }
            seen
        });
        broker.start_again();
        command::wait_until("it is ready", || {
            ask(http, "GET", "/ready").is_some_and(|(head, _)| status(&head) == "200")
        });
        broker.stop();
        is_over.store(true, Ordering::Relaxed);
        looking.join().unwrap()
    });
    // How much of it is seen is a matter of time; the order is not.
    let order = ["the broker has not started yet\n", "ready\n", "the broker stops\n"];
    let places = seen.iter().filter(|(_, body)| !body.contains("does not answer")).map(|(status, body)| {
        assert_eq!(status == "200", body == "ready\n", "{seen:?}");
        order.iter().position(|known| known == body).unwrap_or_else(|| panic!("{body}"))
    });
    assert!(places.is_sorted(), "{seen:?}");
}

#[test]
fn what_is_not_there_is_404_and_only_get_and_head_are_answered() {
    let (_broker, http) = start(&[]);
    let answer = |method, path| ask(http, method, path).expect("an answer");
    assert_eq!(status(&answer("GET", "/").0), "404");
    assert_eq!(status(&answer("GET", "/metrics/").0), "404");
    assert_eq!(answer("GET", "/live?verbose").1, "live\n");
    let (head, body) = answer("HEAD", "/live");
    assert_eq!((status(&head), body.as_str()), ("200", ""));
    assert!(head.to_lowercase().contains("content-length: 5"), "{head}");
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let (head, _) = answer(method, "/live");
        assert_eq!(status(&head), "405");
        assert!(head.to_lowercase().contains("allow: get, head"), "{head}");
    }
    let mut stream = TcpStream::connect(http).unwrap();
    stream.write_all(b"no HTTP at all\r\n\r\n").unwrap();
    let mut refusal = String::new();
    stream.read_to_string(&mut refusal).unwrap();
    assert!(refusal.is_empty() || refusal.starts_with("HTTP/1.1 400"), "{refusal}");
}

#[test]
fn those_above_the_bound_wait_and_who_sends_no_head_is_closed() {
    const CONNECTIONS_MAX: usize = 64;
    let (_broker, http) = start(&[]);
    let mut silent: Vec<TcpStream> =
        (0..CONNECTIONS_MAX).map(|_| TcpStream::connect(http).unwrap()).collect();
    silent.iter_mut().for_each(|stream| stream.write_all(b"GET /live HTT").unwrap());
    let mut waiting = TcpStream::connect(http).unwrap();
    waiting.write_all(b"GET /live HTTP/1.0\r\n\r\n").unwrap();
    waiting.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    assert!(waiting.read(&mut [0; 1]).is_err(), "all places are taken");
    drop(silent.pop());
    waiting.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut answer = String::new();
    waiting.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("live\n"), "{answer}");
    for mut stream in silent {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).expect("it is closed before the patience of this test is over");
    }
    assert!(ask(http, "GET", "/live").is_some());
}

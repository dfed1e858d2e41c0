//! What it costs to read a request: the walk over its body alone, and with the message crate's decoding. A Produce with
//! one batch of 64 KiB, as shippers send it, and a Fetch of 100 partitions.

use std::hint::black_box;

use bytes::{Bytes, BytesMut};
use criterion::{Criterion, criterion_group, criterion_main};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{ApiKey, FetchRequest, ProduceRequest};
use kafka_protocol::protocol::Encodable;
use onrush::protocol::shape::{shape_of, sound_body};
use onrush::protocol::{RequestHeader, decode_body};

const VERSION: i16 = 13;

fn body(request: &impl Encodable) -> Bytes {
    let mut body = BytesMut::new();
    request.encode(&mut body, VERSION).expect("the request has an encoding");
    body.freeze()
}

fn produce() -> Bytes {
    let records = Bytes::from(vec![7; 64 << 10]);
    let partition = PartitionProduceData::default().with_records(Some(records));
    let topic = TopicProduceData::default().with_partition_data(vec![partition]);
    body(&ProduceRequest::default().with_acks(-1).with_topic_data(vec![topic]))
}

fn fetch() -> Bytes {
    let partitions = (0..100).map(|partition| FetchPartition::default().with_partition(partition));
    let topic = FetchTopic::default().with_partitions(partitions.collect());
    body(&FetchRequest::default().with_topics(vec![topic]))
}

fn read_requests(criterion: &mut Criterion) {
    for (key, body) in [(ApiKey::Produce, produce()), (ApiKey::Fetch, fetch())] {
        let shape = shape_of(key).expect("both have a shape");
        let header = RequestHeader { key, version: VERSION, correlation_id: 1, client_id: None };
        let mut group = criterion.benchmark_group(format!("{key:?}"));
        group.bench_function("walk", |bencher| {
            bencher.iter(|| sound_body(shape, VERSION, black_box(body.clone())).expect("a sound body"));
        });
        group.bench_function("walk and decode", |bencher| {
            bencher.iter(|| decode_body(&header, black_box(body.clone())).expect("a sound body"));
        });
        group.finish();
    }
}

criterion_group!(benches, read_requests);
criterion_main!(benches);

use std::future::Future;
use std::pin::Pin;

use kafka_protocol::protocol::Encodable;

use crate::protocol::{RequestHeader, encode_response};
use crate::runtime::{SendQueue, SendSegment};

/// What a request comes to.
pub enum Outcome<F> {
    Answer(SendQueue<F>),
    /// An answer that was due before all that the request brought is written; its bytes are held until `written` is over.
    AnswerBeforeWritten {
        answer: SendQueue<F>,
        written: Pin<Box<dyn Future<Output = ()>>>,
    },
    /// Nothing is to be sent (Produce with acks=0).
    Silent,
    /// The connection is closed, for the reason given.
    Close(String),
}

impl<F> Outcome<F> {
    /// The answer `body` to `header`, in the request's own version.
    pub fn answer(header: &RequestHeader, body: &impl Encodable) -> Outcome<F> {
        match encode_response(header, body) {
            Some(bytes) => {
                let mut queue = SendQueue::new();
                queue.push(SendSegment::Memory(bytes));
                Outcome::Answer(queue)
            }
            None => Outcome::Close(format!(
                "the answer to {:?} version {} has no encoding",
                header.key, header.version
            )),
        }
    }
}

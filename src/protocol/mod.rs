//! Kafka's wire format: frames, headers, which versions are served, errors as codes, and the encoders that leave the
//! record bytes out.

mod error;
mod fetch_response;
mod frame;
mod request;
mod response;
pub mod shape;
mod share_fetch_response;
mod versions;

pub use error::{ErrorCode, append_code, delete_records_code, query_code, share_code, share_state_code};
pub use fetch_response::{AbortedTransaction, FetchAnswer, PartitionAnswer, TopicAnswer, encode_fetch};
pub use frame::{FRAME_LENGTH_BYTES, FrameRefusal, announced_frame_bytes, take_frame};
pub use kafka_protocol::messages::{ApiKey, RequestKind};
pub use request::{RequestHeader, RequestRefusal, client_id_of_refused, decode_body, read_header};
pub use response::{encode_response, encode_response_in};
pub use share_fetch_response::{
    ShareFetchAnswer, SharePartitionAnswer, ShareTopicAnswer, encode_share_fetch,
};
pub use versions::{ServedVersions, is_served, served_versions, served_versions_of};

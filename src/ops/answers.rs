use std::time::Duration;

use crate::metrics::{CONTENT_TYPE, Names, ShardSnapshot, exposition};
use crate::protocol::{ApiKey, ErrorCode};
use crate::runtime::http::{HttpAnswer, HttpRequest};
use crate::runtime::questions::Asker;

/// How long a shard is given to show itself.
const PATIENCE: Duration = Duration::from_secs(2);

/// Answers one request. `/metrics`: of the shards that answer in time; `/live`: always; `/ready`: 503 with the reason while
/// clients cannot be served.
pub async fn answer(asker: &Asker<ShardSnapshot>, request: &HttpRequest) -> HttpAnswer {
    match request.path.as_str() {
        "/live" => plain(200, "live"),
        "/ready" => match why_not_ready(&asker.ask(PATIENCE).await) {
            None => plain(200, "ready"),
            Some(why) => plain(503, &why),
        },
        "/metrics" => {
            let shards: Vec<ShardSnapshot> = asker.ask(PATIENCE).await.into_iter().flatten().collect();
            HttpAnswer { status: 200, content_type: CONTENT_TYPE, body: exposition(&shards, NAMES) }
        }
        _ => plain(404, "not found; there are /metrics, /live and /ready"),
    }
}

const NAMES: Names = Names { api: api_name, error: error_name };

/// As Kafka writes it: `NOT_LEADER_OR_FOLLOWER`.
fn error_name(code: i16) -> String {
    let known = match ErrorCode::try_from_code(code) {
        None | Some(ErrorCode::Unknown(_)) => return code.to_string(),
        Some(known) => known,
    };
    let mut name = String::new();
    for letter in format!("{known:?}").chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}

fn api_name(key: i16) -> String {
    ApiKey::try_from(key).map_or_else(|_| key.to_string(), |key| format!("{key:?}"))
}

fn plain(status: u16, text: &str) -> HttpAnswer {
    HttpAnswer { status, content_type: "text/plain; charset=utf-8", body: format!("{text}\n") }
}

/// By shard; `None`: it did not answer.
fn why_not_ready(shards: &[Option<ShardSnapshot>]) -> Option<String> {
    if let Some(silent) = shards.iter().position(Option::is_none) {
        return Some(format!("shard {silent} does not answer"));
    }
    let any = |is: fn(&ShardSnapshot) -> bool| shards.iter().flatten().any(is);
    let why = if any(|shard| shard.is_stopping) {
        "the broker stops"
    } else if any(|shard| shard.is_log_folder_offline) {
        "the log folder is offline: a write or a sync has failed"
    } else if !any(|shard| shard.is_serving) {
        "the broker has not started yet"
    } else {
        return None;
    };
    Some(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_called_as_in_kafka() {
        assert_eq!(error_name(6), "NOT_LEADER_OR_FOLLOWER");
        assert_eq!(error_name(3), "UNKNOWN_TOPIC_OR_PARTITION");
        assert_eq!(error_name(-1), "UNKNOWN_SERVER_ERROR");
        assert_eq!(error_name(30_000), "30000");
    }

    #[test]
    fn a_broker_is_ready_when_every_shard_answers_and_one_of_them_takes_connections() {
        let shard = || Some(ShardSnapshot::default());
        let serving = || Some(ShardSnapshot { is_serving: true, ..ShardSnapshot::default() });
        let why = |shards: &[Option<ShardSnapshot>]| why_not_ready(shards).unwrap_or_default();
        assert_eq!(why(&[shard(), serving()]), "");
        assert_eq!(why(&[serving(), None]), "shard 1 does not answer");
        assert_eq!(why(&[shard(), shard()]), "the broker has not started yet");
        let offline = ShardSnapshot { is_log_folder_offline: true, ..ShardSnapshot::default() };
        assert!(why(&[serving(), Some(offline)]).contains("offline"));
        let stopping = ShardSnapshot { is_stopping: true, ..ShardSnapshot::default() };
        assert_eq!(why(&[serving(), Some(stopping)]), "the broker stops");
    }
}

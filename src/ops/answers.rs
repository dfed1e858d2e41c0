use std::time::Duration;

use crate::metrics::{CONTENT_TYPE, ShardSnapshot, exposition};
use crate::protocol::ApiKey;
use crate::runtime::http::{HttpAnswer, HttpRequest};
use crate::runtime::questions::Asker;

/// How long a shard is given to show itself.
const PATIENCE: Duration = Duration::from_secs(2);

/// Answers one request. `/metrics`: of the shards that answer in time; `/live`: always; `/ready`: 503 with the reason while
/// clients cannot be served.
pub async fn answer(asker: &Asker<ShardSnapshot>, request: &HttpRequest) -> HttpAnswer {
    let known = ["/metrics", "/live", "/ready"].contains(&request.path.as_str());
    match request.path.as_str() {
        _ if !known => plain(404, "not found; there are /metrics, /live and /ready"),
        _ if request.method != "GET" => plain(405, "only GET is answered"),
        "/live" => plain(200, "live"),
        "/ready" => match why_not_ready(&asker.ask(PATIENCE).await) {
            None => plain(200, "ready"),
            Some(why) => plain(503, &why),
        },
        _ => {
            let shards: Vec<ShardSnapshot> = asker.ask(PATIENCE).await.into_iter().flatten().collect();
            HttpAnswer { status: 200, content_type: CONTENT_TYPE, body: exposition(&shards, api_name) }
        }
    }
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

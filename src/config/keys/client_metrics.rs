use super::*;

keys! {
    /// What a subscription to clients' metrics is about (KIP-714). No client is asked for its metrics yet.
    CLIENT_METRICS:
    "interval.ms", Int, "300000", Any, ClusterWide, Ignored,
        "How often a client sends its metrics, from 100 to 3600000.";
    "match", List, "", ClientMatch, ClusterWide, Ignored,
        "Which clients are asked, as property=pattern pairs; empty: all.";
    "metrics", List, "", Any, ClusterWide, Ignored,
        "Beginnings of the names of the metrics; * is all, empty none.";
}

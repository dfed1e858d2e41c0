use super::*;

keys! {
    /// Onrush's own.
    ONRUSH:
    "onrush.durability", String, "disk", OneOf(&["disk", "os"]), ReadOnly, Served,
        "What an acknowledgement means: disk, the records outlive a power cut; os, they outlive the broker's end only.";
    "onrush.journal.file.bytes", Long, "8388608", Between(65_536, 67_108_864), ReadOnly, Served,
        "Size of each of a core's journal files, of which there are up to 16 where onrush.durability is disk.";
    "onrush.disk.reserve.bytes", Long, "1073741824", AtLeast(0), ReadOnly, Served,
        "Free bytes of the data folder's file system that producers must leave, at most a tenth of it; below, produce is refused until there is room again.";
    "onrush.scrub.bytes.per.second", Long, "8388608", AtLeast(0), ClusterWide, Served,
        "How fast segments that are no longer written to are read again in the background, to find what the disk has damaged; shared out to the cores; 0: not at all.";
    "onrush.scrub.interval.ms", Long, "604800000", AtLeast(1), ClusterWide, Served,
        "How long after one round of reading all segments again the next one begins, counted from beginning to beginning.";
    "onrush.cores", String, none, NotEmpty, ReadOnly, Served,
        "Cores to run on, one shard each, such as 0-3 or 0,2; unset: all this process may use.";
    "onrush.http.listener", String, "127.0.0.1:9644", Any, ReadOnly, Served,
        "Where operators find /metrics, /live and /ready over HTTP, address:port; empty: nowhere.";
    "onrush.memory", Long, "-1", AtLeast(-1), ReadOnly, Served,
        "Bytes for buffers, queues and caches, parted evenly between the shards; -1: 64 MiB for each shard.";
    "onrush.advertise", String, "node", OneOf(&["node", "cores"]), ReadOnly, Served,
        "What clients see: node, one broker; cores, a broker for each core with the port named in onrush.advertise.ports.";
    "onrush.advertise.ports", String, none, NotEmpty, ReadOnly, Served,
        "Ports of the shards where onrush.advertise is cores, such as 9093-9096 or 9093,9095; one for each core.";
    "onrush.router.core", Int, "-1", AtLeast(-1), ReadOnly, Served,
        "Core that only accepts connections and hands them on to the shards, worth it above 4 cores; -1: the first shard does that too.";
    "onrush.spin.before.park.us", Int, "0", Between(0, 1000), ReadOnly, Served,
        "How long an idle core looks for more work before it sleeps.";
    "onrush.stall.warn.ms", Long, "10", AtLeast(0), ReadOnly, Served,
        "How long one piece of work may hold a core, and everything else on it up, before the log and a metric tell of it; 0: neither does.";
}

use crate::base::{ClusterId, DirectoryId, NodeId, TopicId};

/// `meta.properties` of a data folder: whose it is. `version` 1, `node.id`, `cluster.id`, `directory.id`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FolderProperties {
    pub node_id: NodeId,
    pub cluster_id: ClusterId,
    /// Told apart from every other data folder by this; Kafka before 3.7 wrote none.
    pub directory_id: Option<DirectoryId>,
}

impl FolderProperties {
    pub fn to_text(&self) -> String {
        let mut text = format!("version=1\nnode.id={}\ncluster.id={}\n", self.node_id, self.cluster_id);
        if let Some(directory_id) = self.directory_id {
            text.push_str(&format!("directory.id={directory_id}\n"));
        }
        text
    }

    /// Reads version 1; the error says in words what does not hold.
    pub fn parse(text: &str) -> Result<FolderProperties, String> {
        let value = |name: &str| property(text, name);
        match value("version") {
            Some("1") => {}
            Some(version) => return Err(format!("version {version} is not known (1 is)")),
            None => return Err("no version".into()),
        }
        let node_id = value("node.id").ok_or("no node.id")?;
        let cluster_id = value("cluster.id").filter(|id| !id.is_empty()).ok_or("no cluster.id")?;
        Ok(FolderProperties {
            node_id: NodeId(node_id.parse().map_err(|_| format!("node.id {node_id:?} is not a number"))?),
            cluster_id: ClusterId(cluster_id.into()),
            directory_id: value("directory.id").and_then(DirectoryId::parse),
        })
    }
}

/// `partition.metadata` of a partition's folder: `version: 0` and `topic_id: …`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartitionMetadata {
    pub topic_id: TopicId,
}

impl PartitionMetadata {
    pub fn to_text(self) -> String {
        format!("version: 0\ntopic_id: {}", self.topic_id)
    }
    /// `None`: damaged, or a version not known.
    pub fn parse(text: &str) -> Option<PartitionMetadata> {
        if property(text, "version") != Some("0") {
            return None;
        }
        Some(PartitionMetadata { topic_id: TopicId::parse(property(text, "topic_id")?)? })
    }
}

/// The value of `name` in `name=value` or `name: value` lines; `#` begins a comment line.
fn property<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let (key, value) = line.split_once(['=', ':'])?;
        (key.trim() == name).then(|| value.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_properties_of_a_folder_made_by_kafka_are_read() {
        let text = "#\n#Mon Nov 30 18:19:19 UTC 2026\nnode.id=1\ndirectory.id=xdcgPM87PWfOTrgDiVQHXg\nversion=1\ncluster.id=cFsghJxgQgCL3x0R81zxGA\n";
        let properties = FolderProperties::parse(text).unwrap();
        assert_eq!(properties.node_id, NodeId(1));
        assert_eq!(&*properties.cluster_id.0, "cFsghJxgQgCL3x0R81zxGA");
        assert_eq!(properties.directory_id, DirectoryId::parse("xdcgPM87PWfOTrgDiVQHXg"));
        assert_eq!(FolderProperties::parse(&properties.to_text()), Ok(properties));
    }

    #[test]
    fn properties_that_lack_something_say_what() {
        for (text, fault) in [
            ("", "no version"),
            ("version=0\nbroker.id=1\n", "version 0 is not known (1 is)"),
            ("version=1\ncluster.id=x\n", "no node.id"),
            ("version=1\nnode.id=one\ncluster.id=x\n", "node.id \"one\" is not a number"),
            ("version=1\nnode.id=1\n", "no cluster.id"),
        ] {
            assert_eq!(FolderProperties::parse(text), Err(fault.to_string()));
        }
    }

    #[test]
    fn partition_metadata_is_what_kafka_writes() {
        let text = "version: 0\ntopic_id: as5BcIPMRUea_j2VfSTw6Q";
        let metadata = PartitionMetadata::parse(text).unwrap();
        assert_eq!(metadata.topic_id.to_string(), "as5BcIPMRUea_j2VfSTw6Q");
        assert_eq!(metadata.to_text(), text);
        assert_eq!(PartitionMetadata::parse("version: 1\ntopic_id: as5BcIPMRUea_j2VfSTw6Q"), None);
        assert_eq!(PartitionMetadata::parse("version: 0\n"), None);
        assert_eq!(PartitionMetadata::parse("version: 0\ntopic_id: as5B"), None);
    }
}

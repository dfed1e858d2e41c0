//! What the metadata says, carried out on this shard: which partitions it holds, and with which settings.

use std::rc::Rc;
use std::time::Duration;

use super::Shard;
use super::replica::Replica;
use super::settings::producer_limits;
use crate::base::{LeaderEpoch, Offset, TopicName, TopicPartition, Trouble};
use crate::config::{CleanupPolicy, TopicConfig};
use crate::metadata::{
    Delta, METADATA_TOPIC, OFFSETS_TOPIC, Record, ReplayError, ResourceType, SHARE_TOPIC, TRANSACTION_TOPIC,
};
use crate::runtime::Runtime;
use crate::storage::{DeletedPartition, partition_folder_name, retire_folders};

/// The controller of a single node has led since ever.
pub const METADATA_LEADER_EPOCH: LeaderEpoch = LeaderEpoch(0);

impl<R: Runtime> Shard<R> {
    /// Folds `records`, which stand in the metadata log from `base_offset` on, into this shard's image, and carries out
    /// what they change for the partitions that `owns` says are this shard's. When it returns, a deleted topic's folders
    /// have names that no new topic can meet, and no checkpoint speaks of its partitions.
    pub async fn apply_metadata(
        self: &Rc<Self>,
        base_offset: Offset,
        records: &[Record],
        owns: impl Fn(TopicPartition) -> bool,
    ) -> Result<(), ReplayError> {
        let delta = self.image.borrow_mut().apply(base_offset, records)?;
        self.configs_changed(&delta);
        if !delta.partitions_created.is_empty() || !delta.topics_removed.is_empty() {
            self.topics_version.set(base_offset.0);
        }
        for partition in &delta.partitions_created {
            if owns(*partition) {
                self.add_replica(*partition);
            }
        }
        for partition in &delta.partitions_changed {
            if let Some(replica) = self.replica(*partition) {
                let leader_epoch =
                    self.image.borrow().partition(*partition).map(|partition| partition.leader_epoch);
                replica.leader_epoch.set(leader_epoch.unwrap_or(replica.leader_epoch.get()));
                self.lead(&replica);
            }
        }
        let removed = delta.topics_removed.iter().flat_map(|topic| {
            let of_topic = |index| TopicPartition { topic_id: topic.id, partition: index };
            topic.partitions.iter().copied().map(of_topic)
        });
        self.remove_replicas(removed.filter(|partition| owns(*partition))).await;
        if !delta.topics_removed.is_empty() {
            let gone: Vec<_> =
                delta.topics_removed.iter().map(|topic| (topic.name.clone(), topic.id)).collect();
            self.topics_gone(&gone);
            self.share_state_topics_gone(&gone);
            self.forget_dead_checkpoints().await;
        }
        Ok(())
    }

    /// The settings in force for a topic: its own where it has them, else the broker's.
    pub fn topic_config(&self, topic: &str) -> Rc<TopicConfig> {
        if let Some(config) = self.topic_configs.borrow().get(topic) {
            return config.clone();
        }
        let image = self.image.borrow();
        let config = Rc::new(self.config().topic(image.topic_overrides(topic)));
        self.topic_configs.borrow_mut().insert(TopicName::new(topic), config.clone());
        config
    }

    fn configs_changed(&self, delta: &Delta) {
        for topic in &delta.topics_removed {
            self.topic_configs.borrow_mut().remove(topic.name.as_str());
        }
        for resource in &delta.configs_changed {
            match resource.resource_type {
                ResourceType::Topic => drop(self.topic_configs.borrow_mut().remove(resource.name.as_str())),
                _ => self.topic_configs.borrow_mut().clear(),
            }
        }
        if delta.configs_changed.is_empty() {
            return;
        }
        if delta.configs_changed.iter().any(|resource| resource.resource_type == ResourceType::Broker) {
            self.follow_broker_settings();
        }
        for replica in self.replicas.borrow().values() {
            self.configure(replica);
        }
    }

    /// Takes the broker's settings anew from the image. What does not go together stays as it was: the controller refuses
    /// that, so Kafka or another version has written it.
    fn follow_broker_settings(&self) {
        let image = self.image.borrow();
        let config = self.config();
        let of_all = image.overrides(ResourceType::Broker, "");
        let of_this = image.overrides(ResourceType::Broker, &config.node_id.to_string());
        match config.with_dynamic(of_all, of_this) {
            Ok(config) => drop(self.config.replace(Rc::new(config))),
            Err(error) => tracing::warn!(%error, "settings of the metadata log are passed over"),
        }
    }

    /// Puts the settings in force into `replica`. The metadata log has those it was opened with, always.
    pub(super) fn configure(&self, replica: &Replica<R>) {
        if replica.topic_name.as_str() != METADATA_TOPIC {
            replica.set_config(self.topic_config(replica.topic_name.as_str()));
            replica.rules.borrow_mut().set_producer_limits(producer_limits(&self.config()));
        }
    }

    fn add_replica(self: &Rc<Self>, partition: TopicPartition) {
        let image = self.image.borrow();
        let topic =
            image.topic(partition.topic_id).expect("a partition's topic is in the image it was created in");
        let leader_epoch = image.partition(partition).expect("the partition was just created").leader_epoch;
        let coordinates_groups = topic.name.as_str() == OFFSETS_TOPIC;
        let coordinates_transactions = topic.name.as_str() == TRANSACTION_TOPIC;
        let keeps_share_state = topic.name.as_str() == SHARE_TOPIC;
        let (name, folder) = (topic.name.clone(), partition_folder_name(&topic.name, partition.partition));
        drop(image);
        let config = self.topic_config(name.as_str());
        let folder = self.config().log_dir.join(folder);
        let replica =
            Replica::new(partition, name, folder, leader_epoch, config, producer_limits(&self.config()));
        self.replicas.borrow_mut().insert(partition, Rc::new(replica));
        if coordinates_groups {
            self.begin_coordinating(partition);
        }
        if coordinates_transactions {
            self.begin_coordinating_transactions(partition);
        }
        if keeps_share_state {
            self.begin_keeping_share_state(partition);
        }
    }

    /// Holds the log of the cluster's metadata, which no record of that log speaks of.
    pub fn host_metadata_log(&self, partition: TopicPartition) {
        let name = TopicName::new(METADATA_TOPIC);
        let folder = self.config().log_dir.join(partition_folder_name(&name, partition.partition));
        // What the cluster consists of is not a matter of age.
        let cleanup_policy = CleanupPolicy::default();
        let config = TopicConfig { cleanup_policy, ..self.config().topic_defaults.clone() };
        let limits = producer_limits(&self.config());
        let replica = Replica::new(partition, name, folder, METADATA_LEADER_EPOCH, Rc::new(config), limits);
        self.replicas.borrow_mut().insert(partition, Rc::new(replica));
    }

    /// Ends every wait on the partitions and, once nobody writes in them, moves their folders out of the way; what is in them
    /// goes later.
    async fn remove_replicas(self: &Rc<Self>, partitions: impl Iterator<Item = TopicPartition>) {
        let mut removed = Vec::new();
        for partition in partitions {
            let Some(replica) = self.replicas.borrow_mut().remove(&partition) else { continue };
            self.end_coordinating(partition);
            self.end_coordinating_transactions(partition);
            self.end_keeping_share_state(partition);
            replica.deleted.set(true);
            replica.give_up();
            removed.push(replica);
        }
        for replica in &removed {
            replica.folder_use.end().await;
        }
        if let Err(trouble) = self.retire_folders_of(&removed).await {
            tracing::warn!(%trouble, "a deleted partition's folder is still there; the next start sets it aside");
            self.mind_failed_sync(&trouble);
        }
    }

    /// Takes the replicas' folders out of use; what is in them goes after `file.delete.delay.ms`.
    pub(super) async fn retire_folders_of(&self, replicas: &[Rc<Replica<R>>]) -> Result<(), Trouble> {
        let deleted = |replica: &Rc<Replica<R>>| {
            let delay_ms = u64::try_from(replica.config.borrow().file_delete_delay_ms).unwrap_or(0);
            DeletedPartition {
                topic: replica.topic_name.clone(),
                partition: replica.partition.partition,
                delay: Duration::from_millis(delay_ms),
            }
        };
        let deleted: Vec<_> = replicas.iter().map(deleted).collect();
        retire_folders(&self.runtime, &self.config().log_dir, &deleted).await
    }
}

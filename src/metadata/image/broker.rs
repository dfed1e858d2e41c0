use uuid::Uuid;

use crate::base::{BrokerEpoch, DirectoryId, NodeId};
use crate::metadata::records::{
    BrokerEndpoint, BrokerRegistrationChangeRecord, FeatureRange, RegisterBrokerRecord,
};

/// One broker as it last registered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BrokerImage {
    pub id: NodeId,
    pub broker_epoch: BrokerEpoch,
    pub incarnation_id: Uuid,
    pub endpoints: Vec<BrokerEndpoint>,
    pub features: Vec<FeatureRange>,
    pub rack: Option<String>,
    pub fenced: bool,
    pub in_controlled_shutdown: bool,
    pub log_dirs: Vec<DirectoryId>,
    /// `None`: the broker does not say.
    pub cordoned_log_dirs: Option<Vec<DirectoryId>>,
}

impl BrokerImage {
    pub(super) fn new(record: &RegisterBrokerRecord) -> BrokerImage {
        BrokerImage {
            id: record.broker_id,
            broker_epoch: record.broker_epoch,
            incarnation_id: record.incarnation_id,
            endpoints: record.endpoints.clone(),
            features: record.features.clone(),
            rack: record.rack.clone(),
            fenced: record.fenced,
            in_controlled_shutdown: record.in_controlled_shutdown,
            log_dirs: record.log_dirs.clone(),
            cordoned_log_dirs: record.cordoned_log_dirs.clone(),
        }
    }
    pub(super) fn merge(&mut self, record: &BrokerRegistrationChangeRecord) {
        self.fenced = record.fenced.applied_to(self.fenced);
        self.in_controlled_shutdown = record.in_controlled_shutdown.applied_to(self.in_controlled_shutdown);
        if let Some(log_dirs) = &record.log_dirs {
            self.log_dirs.clone_from(log_dirs);
        }
        if record.cordoned_log_dirs.is_some() {
            self.cordoned_log_dirs.clone_from(&record.cordoned_log_dirs);
        }
    }

    /// May lead and take new partitions.
    pub fn is_active(&self) -> bool {
        !self.fenced && !self.in_controlled_shutdown
    }
    /// Where clients of the listener `name` find the broker.
    pub fn endpoint(&self, name: &str) -> Option<&BrokerEndpoint> {
        self.endpoints.iter().find(|endpoint| endpoint.name == name)
    }
}

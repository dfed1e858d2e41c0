//! The record batches of a workload, made before the load.

use std::sync::Arc;

use super::batch::Template;
use super::contents::Contents;
use super::settings::Workload;

/// Enough that no batch comes twice in a row, few enough to stay in the processor's cache beside everything else.
const BYTES_MAX: usize = 2 << 20;
const COUNT_MAX: usize = 64;
const COUNT_MIN: usize = 4;
/// What a record of usual size needs beside its key and its value.
const RECORD_OVERHEAD: usize = 9;

/// Batches to send; each partition has its own where records have keys.
pub struct Templates {
    templates: Vec<Arc<Template>>,
    /// 1 when all partitions share the batches.
    partitions: usize,
    mean_records: f64,
    mean_bytes: f64,
}

impl Templates {
    /// Errors: what `Contents::new` says.
    pub fn new(workload: &Workload) -> Result<Templates, String> {
        let partition_count = workload.topic.partitions;
        let mut contents = Contents::new(&workload.records, partition_count)?;
        let mut make = |partition: i32| batch(workload, &mut contents, partition);
        let first = make(0);
        let templates: Vec<Arc<Template>>;
        let partitions;
        if workload.records.keys > 0 {
            partitions = partition_count as usize;
            templates = (0..partition_count).map(|at| Arc::new(make(at))).collect();
        } else {
            partitions = 1;
            let count = (BYTES_MAX / first.length().max(1)).clamp(COUNT_MIN, COUNT_MAX);
            templates = (0..count).map(|_| Arc::new(make(0))).collect();
        }
        let count = templates.len() as f64;
        let mean_records = templates.iter().map(|batch| f64::from(batch.record_count())).sum::<f64>() / count;
        let mean_bytes = templates.iter().map(|batch| batch.length() as f64).sum::<f64>() / count;
        Ok(Templates { templates, partitions, mean_records, mean_bytes })
    }

    /// The `turn`th batch that goes to `partition`.
    pub fn get(&self, partition: i32, turn: usize) -> &Arc<Template> {
        let own = self.templates.len() / self.partitions;
        let partition = if self.partitions == 1 { 0 } else { partition as usize };
        &self.templates[partition * own + turn % own]
    }

    pub fn mean_records(&self) -> f64 {
        self.mean_records
    }

    pub fn mean_bytes(&self) -> f64 {
        self.mean_bytes
    }
}

fn batch(workload: &Workload, contents: &mut Contents, partition: i32) -> Template {
    let producers = &workload.producers;
    let mut records = Vec::new();
    let mut bytes = super::batch::header::LENGTH;
    loop {
        let content = contents.next_for(partition);
        let key_bytes = content.key.as_ref().map_or(0, Vec::len);
        bytes += RECORD_OVERHEAD + key_bytes + super::batch::STAMP_LENGTH + content.payload.len();
        if producers.batch_records == 0 && !records.is_empty() && bytes > producers.batch_bytes {
            break;
        }
        records.push(content);
        if records.len() == producers.batch_records {
            break;
        }
    }
    Template::new(&records, producers.compression)
}

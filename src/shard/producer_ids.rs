use crate::base::ProducerId;

/// What is left of the block of producer ids that one shard may give.
#[derive(Debug)]
pub struct ProducerIds {
    next: ProducerId,
    /// Exclusive.
    end: ProducerId,
}

impl Default for ProducerIds {
    fn default() -> ProducerIds {
        ProducerIds { next: ProducerId(0), end: ProducerId(0) }
    }
}

impl ProducerIds {
    pub fn is_empty(&self) -> bool {
        self.next >= self.end
    }
    /// Takes the next id, if one is left.
    pub fn take(&mut self) -> Option<ProducerId> {
        let id = self.next;
        let given = !self.is_empty();
        self.next = ProducerId(id.0 + i64::from(given));
        given.then_some(id)
    }
    /// Starts a new block; `end` is exclusive.
    pub fn refill(&mut self, first: ProducerId, end: ProducerId) {
        *self = ProducerIds { next: first, end };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_gives_each_id_once() {
        let mut ids = ProducerIds::default();
        assert_eq!(ids.take(), None);
        ids.refill(ProducerId(5), ProducerId(7));
        assert_eq!([ids.take(), ids.take(), ids.take()], [Some(ProducerId(5)), Some(ProducerId(6)), None]);
        assert!(ids.is_empty());
    }
}

use crate::base::{Map, Monotonic};

use super::event::{Effect, TimerKey};

/// The deadlines that count. Heartbeats move one back again and again, so the engine's timer is let run to the older
/// deadline and then set anew: a heartbeat costs the engine nothing.
#[derive(Debug, Default)]
pub(super) struct Timers {
    armed: Map<TimerKey, Armed>,
}

#[derive(Debug)]
struct Armed {
    deadline: Monotonic,
    /// When the engine will say that it fired, never after `deadline`.
    wake: Monotonic,
}

impl Timers {
    pub fn arm(&mut self, key: TimerKey, deadline: Monotonic, effects: &mut Vec<Effect>) {
        match self.armed.get_mut(&key) {
            Some(armed) if armed.wake <= deadline => armed.deadline = deadline,
            _ => {
                self.armed.insert(key.clone(), Armed { deadline, wake: deadline });
                effects.push(Effect::ArmTimer { key, deadline });
            }
        }
    }

    pub fn cancel(&mut self, key: TimerKey, effects: &mut Vec<Effect>) {
        if self.armed.remove(&key).is_some() {
            effects.push(Effect::CancelTimer { key });
        }
    }

    /// Whether the deadline of `key` has really passed. If so the timer is gone, else it is set to what remains.
    pub fn fired(&mut self, key: &TimerKey, now: Monotonic, effects: &mut Vec<Effect>) -> bool {
        let Some(armed) = self.armed.get_mut(key) else { return false };
        if now >= armed.deadline {
            self.armed.remove(key);
            return true;
        }
        armed.wake = armed.deadline;
        effects.push(Effect::ArmTimer { key: key.clone(), deadline: armed.deadline });
        false
    }

    pub fn cancel_all(&mut self, effects: &mut Vec<Effect>) {
        let mut keys: Vec<TimerKey> = self.armed.drain().map(|(key, _)| key).collect();
        keys.sort_unstable();
        effects.extend(keys.into_iter().map(|key| Effect::CancelTimer { key }));
    }

    pub fn is_armed(&self, key: &TimerKey) -> bool {
        self.armed.contains_key(key)
    }
}

use super::times::Times;

/// How long the tasks of one core held it, each time one of them ran: nothing else runs meanwhile.
#[derive(Clone, Default, Debug)]
pub struct TurnTimes {
    pub turns: Times,
}

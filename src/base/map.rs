/// Hash map whose order is the same in every run, so that a seeded simulation repeats itself.
pub type Map<K, V> = std::collections::HashMap<K, V, foldhash::fast::FixedState>;

/// Hash set whose order is the same in every run.
pub type Set<K> = std::collections::HashSet<K, foldhash::fast::FixedState>;

//! The bit fields of allowed operations (KIP-430): bit N stands for Kafka's `AclOperation` with code N.
//! There are no access rules yet: whoever asks is told all that the kind of resource has.

/// What stands when the client did not ask. Never 0, which would mean "none".
pub const NOT_ASKED: i32 = i32::MIN;
/// Read, write, create, delete, alter, describe, describe configs, alter configs.
pub const TOPIC: i32 = bits(&[3, 4, 5, 6, 7, 8, 10, 11]);
/// Read, delete, describe, describe configs, alter configs.
pub const GROUP: i32 = bits(&[3, 6, 8, 10, 11]);
/// Create, alter, describe, cluster action, describe configs, alter configs, idempotent write.
pub const CLUSTER: i32 = bits(&[5, 7, 8, 9, 10, 11, 12]);

const fn bits(codes: &[u32]) -> i32 {
    let mut field = 0;
    let mut i = 0;
    while i < codes.len() {
        field |= 1 << codes[i];
        i += 1;
    }
    field
}

use super::Malformed;

/// Most bytes of a 32-bit varint.
pub(super) const VARINT_BYTES_MAX: usize = 5;
/// Most bytes of a 64-bit varint.
pub(super) const VARLONG_BYTES_MAX: usize = 10;

const TOO_LONG: Malformed = Malformed("a variable-length number does not end");
const CUT: Malformed = Malformed("a record ends inside a variable-length number");

/// Takes a zigzag varint of at most 5 bytes off the front. As in Kafka's `ByteUtils`, bits above 32 are dropped.
#[inline]
pub(super) fn take_varint(bytes: &mut &[u8]) -> Result<i32, Malformed> {
    unsigned(VARINT_BYTES_MAX, || take_byte(bytes)).map(zigzag_int)
}

/// Takes a zigzag varint of at most 10 bytes off the front.
#[inline]
pub(super) fn take_varlong(bytes: &mut &[u8]) -> Result<i64, Malformed> {
    unsigned(VARLONG_BYTES_MAX, || take_byte(bytes)).map(zigzag_long)
}

/// Reads seven bits a byte, least significant first, until a byte without the top bit.
#[inline]
pub(super) fn unsigned<E: From<Malformed>>(
    bytes_max: usize,
    mut next: impl FnMut() -> Result<u8, E>,
) -> Result<u64, E> {
    let mut value = 0;
    for i in 0..bytes_max {
        let byte = next()?;
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(TOO_LONG.into())
}

pub(super) fn zigzag_int(raw: u64) -> i32 {
    let raw = raw as u32;
    (raw >> 1).cast_signed() ^ -(raw & 1).cast_signed()
}

pub(super) fn zigzag_long(raw: u64) -> i64 {
    (raw >> 1).cast_signed() ^ -(raw & 1).cast_signed()
}

pub(super) fn put_varint(out: &mut Vec<u8>, value: i32) {
    put_varlong(out, i64::from(value));
}

pub(super) fn put_varlong(out: &mut Vec<u8>, value: i64) {
    let mut raw = zigzag(value);
    while raw >= 0x80 {
        out.push(raw as u8 | 0x80);
        raw >>= 7;
    }
    out.push(raw as u8);
}

/// Bytes that `put_varlong` writes; the same for a 32-bit value.
pub(super) fn varlong_bytes(value: i64) -> usize {
    let bits = (64 - (zigzag(value) | 1).leading_zeros()) as usize;
    bits.div_ceil(7)
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}

#[inline]
fn take_byte(bytes: &mut &[u8]) -> Result<u8, Malformed> {
    let (first, rest) = bytes.split_first().ok_or(CUT)?;
    *bytes = rest;
    Ok(*first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_back_as_written() {
        let edges = [0, 1, -1, 63, 64, -64, -65, 8191, 8192, i64::from(i32::MAX), i64::from(i32::MIN)];
        for value in edges.into_iter().chain([i64::MAX, i64::MIN]) {
            let mut bytes = Vec::new();
            put_varlong(&mut bytes, value);
            assert_eq!(bytes.len(), varlong_bytes(value), "{value}");
            assert_eq!(take_varlong(&mut &bytes[..]), Ok(value));
            if let Ok(value) = i32::try_from(value) {
                let mut rest = &bytes[..];
                assert_eq!(take_varint(&mut rest), Ok(value));
                assert!(rest.is_empty());
            }
        }
    }

    #[test]
    fn a_number_that_does_not_end_is_refused() {
        assert_eq!(take_varint(&mut &[0x80; 6][..]), Err(TOO_LONG));
        assert_eq!(take_varlong(&mut &[0xff; 12][..]), Err(TOO_LONG));
        assert_eq!(take_varint(&mut &[0x80][..]), Err(CUT));
        assert_eq!(take_varint(&mut &[][..]), Err(CUT));
    }
}

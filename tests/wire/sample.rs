//! Request bodies of any shape, made up.

use onrush::protocol::shape::{Field, Kind, Shape};

use crate::seeded::Seeded;

/// How large the parts of a body become.
#[derive(Clone, Copy)]
pub struct Sizes {
    /// Items of the arrays that are not inside another one, at most.
    pub outer_items_max: u64,
    pub inner_items_max: u64,
    pub text_bytes_max: u64,
}

/// A few of everything.
pub const SMALL: Sizes = Sizes { outer_items_max: 3, inner_items_max: 3, text_bytes_max: 12 };

/// A body of `version` with every field there, none null.
pub fn body(shape: Shape, version: i16, sizes: Sizes, numbers: &mut Seeded) -> Vec<u8> {
    let flexible = version >= shape.flexible_from;
    let mut writer = Writer { bytes: Vec::new(), version, flexible, sizes, depth: 0, numbers };
    writer.structure(shape.fields);
    writer.bytes
}

struct Writer<'a> {
    bytes: Vec<u8>,
    version: i16,
    flexible: bool,
    sizes: Sizes,
    /// How many arrays stand around.
    depth: usize,
    numbers: &'a mut Seeded,
}

impl Writer<'_> {
    fn structure(&mut self, fields: &[Field]) {
        let (tagged, plain): (Vec<&Field>, Vec<&Field>) =
            fields.iter().filter(|field| field.is_in(self.version)).partition(|field| field.tag.is_some());
        plain.iter().for_each(|field| self.value(&field.kind));
        if self.flexible {
            self.varint(tagged.len());
            for (field, tag) in tagged.iter().filter_map(|field| Some((field, field.tag?))) {
                self.varint(tag as usize);
                let before = std::mem::take(&mut self.bytes);
                self.value(&field.kind);
                let value = std::mem::replace(&mut self.bytes, before);
                self.varint(value.len());
                self.bytes.extend_from_slice(&value);
            }
        }
    }

    fn value(&mut self, kind: &Kind) {
        match kind {
            // The low bit alone of a byte, so that a bool comes back as it was.
            Kind::Fixed(1) => self.bytes.push((self.numbers.number() & 1) as u8),
            Kind::Fixed(count) => {
                let number = self.numbers.bytes(*count);
                self.bytes.extend_from_slice(&number);
            }
            Kind::Text => {
                let count = self.numbers.below(self.sizes.text_bytes_max + 1) as usize;
                self.length(count, 2);
                let text = (0..count).map(|_| b'a' + self.numbers.below(26) as u8);
                self.bytes.extend(text);
            }
            Kind::Bytes => {
                let count = self.numbers.below(self.sizes.text_bytes_max + 1) as usize;
                self.length(count, 4);
                let bytes = self.numbers.bytes(count);
                self.bytes.extend_from_slice(&bytes);
            }
            Kind::Values(value) => self.items(|writer| writer.value(&value.kind)),
            Kind::Structures(fields) => self.items(|writer| writer.structure(fields)),
            Kind::Structure(fields) => self.structure(fields),
            Kind::NullableStructure(fields) => {
                self.bytes.push(1);
                self.structure(fields);
            }
        }
    }

    fn items(&mut self, mut item: impl FnMut(&mut Self)) {
        let sizes = self.sizes;
        let items_max = if self.depth == 0 { sizes.outer_items_max } else { sizes.inner_items_max };
        let count = if self.depth == 0 { items_max } else { self.numbers.below(items_max + 1) };
        self.length(count as usize, 4);
        self.depth += 1;
        (0..count).for_each(|_| item(self));
        self.depth -= 1;
    }

    fn length(&mut self, length: usize, plain_bytes: usize) {
        if self.flexible {
            self.varint(length + 1);
        } else {
            self.bytes.extend_from_slice(&(length as u32).to_be_bytes()[4 - plain_bytes..]);
        }
    }

    fn varint(&mut self, mut value: usize) {
        while value >= 0x80 {
            self.bytes.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}

use std::iter::Peekable;
use std::str::Chars;

/// One `key=value` of a property file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Property {
    pub name: String,
    pub value: String,
    /// Line of the file on which it begins, from 1.
    pub line: usize,
}

/// A backslash-u that is not followed by four hexadecimal digits, or half of a surrogate pair.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MalformedEscape {
    pub line: usize,
}

/// Reads the syntax of Java's property files: `#` and `!` begin a comment line, a backslash at its end joins the next
/// line, `=`, `:` or white space part name and value, `\t \n \r \f \uXXXX` stand for themselves.
/// A name may come twice; the later one counts. Source: `java.util.Properties.load`.
pub fn parse_properties(text: &str) -> Result<Vec<Property>, MalformedEscape> {
    let mut properties = Vec::new();
    let mut lines = text.lines().map(|line| line.trim_end_matches('\r')).enumerate();
    while let Some((index, first)) = lines.next() {
        let mut logical = first.trim_start_matches(is_blank).to_owned();
        if logical.is_empty() || logical.starts_with(['#', '!']) {
            continue;
        }
        while ends_with_continuation(&logical) {
            logical.pop();
            let Some((_, next)) = lines.next() else { break };
            logical.push_str(next.trim_start_matches(is_blank));
        }
        let property = parse_logical_line(&logical).ok_or(MalformedEscape { line: index + 1 })?;
        properties.push(Property { name: property.0, value: property.1, line: index + 1 });
    }
    Ok(properties)
}

fn is_blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\u{c}')
}

/// An odd number of backslashes at the end.
fn ends_with_continuation(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

fn parse_logical_line(line: &str) -> Option<(String, String)> {
    let mut letters = line.chars().peekable();
    let name = read_until(&mut letters, |letter| is_blank(letter) || matches!(letter, '=' | ':'))?;
    while letters.next_if(|letter| is_blank(*letter)).is_some() {}
    if letters.next_if(|letter| matches!(letter, '=' | ':')).is_some() {
        while letters.next_if(|letter| is_blank(*letter)).is_some() {}
    }
    let value = read_until(&mut letters, |_| false)?;
    Some((name, value))
}

/// Reads up to the first unescaped letter that ends the word. `None`: a malformed escape.
fn read_until(letters: &mut Peekable<Chars<'_>>, ends: impl Fn(char) -> bool) -> Option<String> {
    // UTF-16, because an escape may name half of a surrogate pair.
    let mut units = Vec::new();
    let push = |units: &mut Vec<u16>, letter: char| {
        units.extend_from_slice(letter.encode_utf16(&mut [0; 2]));
    };
    while let Some(letter) = letters.next_if(|letter| !ends(*letter)) {
        if letter != '\\' {
            push(&mut units, letter);
            continue;
        }
        match letters.next() {
            Some('t') => push(&mut units, '\t'),
            Some('n') => push(&mut units, '\n'),
            Some('r') => push(&mut units, '\r'),
            Some('f') => push(&mut units, '\u{c}'),
            Some('u') => units.push(read_hexadecimal(letters)?),
            Some(other) => push(&mut units, other),
            None => {}
        }
    }
    String::from_utf16(&units).ok()
}

fn read_hexadecimal(letters: &mut Peekable<Chars<'_>>) -> Option<u16> {
    (0..4).try_fold(0, |number, _| {
        let digit = letters.next()?.to_digit(16)?;
        Some(number << 4 | u16::try_from(digit).expect("a digit is below 16"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        let properties = parse_properties(text).expect("well-formed");
        properties.into_iter().map(|property| (property.name, property.value)).collect()
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn equals_sign_colon_and_blanks_part_name_and_value() {
        let expected = vec![pair("a", "1")];
        for text in ["a=1", "a:1", "a 1", "a\t1", "a = 1", "  a : 1", "a  1", "a\u{c}=\u{c}1"] {
            assert_eq!(pairs(text), expected, "{text:?}");
        }
        assert_eq!(pairs("a==1\nb= =2\nc::3"), [pair("a", "=1"), pair("b", "=2"), pair("c", ":3")]);
        assert_eq!(pairs("a\nb="), [pair("a", ""), pair("b", "")]);
    }

    #[test]
    fn comments_and_empty_lines_are_skipped_but_only_at_the_beginning_of_a_line() {
        assert_eq!(pairs("# a=1\n ! b=2\n\n \t\nc=3 # x"), [pair("c", "3 # x")]);
    }

    #[test]
    fn an_odd_number_of_backslashes_joins_the_next_line() {
        assert_eq!(
            pairs("a=1,\\\n   2,\\\r\n\t3\nb=\\\\\nc=4"),
            [pair("a", "1,2,3"), pair("b", "\\"), pair("c", "4")]
        );
        // A joined line is never a comment, and a backslash at the end of the file joins nothing.
        assert_eq!(pairs("a=1\\\n#2\\"), [pair("a", "1#2")]);
    }

    #[test]
    fn escapes_stand_for_their_letter() {
        assert_eq!(pairs(r"a\=b\:c\ d=\t\u0041\u00e9\x\\"), [pair("a=b:c d", "\tAéx\\")]);
        assert_eq!(pairs(r"a=\ud83d\ude00"), [pair("a", "😀")]);
        for malformed in ["a=1\nb=\\u12", "a=1\nb=\\u12g4", "a=1\nb=\\ud83d"] {
            assert_eq!(parse_properties(malformed), Err(MalformedEscape { line: 2 }), "{malformed}");
        }
    }

    #[test]
    fn a_value_keeps_the_blanks_at_its_end_and_a_property_knows_its_line() {
        let properties = parse_properties("\n# x\na=1 \nb=\\\n2\nc=3").expect("well-formed");
        let lines: Vec<_> = properties.iter().map(|property| property.line).collect();
        assert_eq!(lines, [3, 4, 6]);
        assert_eq!(properties[0].value, "1 ");
    }
}

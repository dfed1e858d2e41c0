//! Patterns of subscriptions, in RE2's syntax as RE2/J takes it, which Apache Kafka uses. Each is put into words that the
//! `regex` crate reads the same way; what only that crate knows (`&&` in a class, `\<`, the flag `x`) is a literal or refused here.

use std::iter::Peekable;
use std::str::Chars;

use regex::Regex;

use crate::base::Set;
use crate::group::GroupError;

/// Most that a repetition may count to.
const REPEAT_MAX: u32 = 1000;
/// Deepest nesting of groups.
const DEPTH_MAX: usize = 200;

const POSIX_CLASSES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "word", "xdigit",
];

/// Compiles a pattern that is to match a topic's whole name, in linear time. Error: `InvalidRegularExpression`.
pub(super) fn compile(expression: &str) -> Result<Regex, GroupError> {
    let mut translation = Translation::new(expression);
    let whole = translation.translate().map(|()| format!(r"\A(?:{})\z", translation.out));
    whole.and_then(|whole| Regex::new(&whole).ok()).ok_or(GroupError::InvalidRegularExpression)
}

/// The last thing that a repetition may follow.
#[derive(Clone, Copy)]
struct Operand {
    /// Where it begins in what is written.
    start: usize,
    /// It is a repetition itself, which another must not follow.
    repeated: bool,
}

struct Translation<'a> {
    rest: Peekable<Chars<'a>>,
    out: String,
    /// Where the groups that are open begin.
    open: Vec<usize>,
    operand: Option<Operand>,
    names: Set<String>,
}

/// `None`: the pattern is not sound.
impl Translation<'_> {
    fn new(expression: &str) -> Translation<'_> {
        Translation {
            rest: expression.chars().peekable(),
            out: String::new(),
            open: Vec::new(),
            operand: None,
            names: Set::default(),
        }
    }

    fn translate(&mut self) -> Option<()> {
        while let Some(next) = self.rest.next() {
            match next {
                '(' => self.open_group()?,
                ')' => self.close_group()?,
                '|' => {
                    self.out.push('|');
                    self.operand = None;
                }
                '*' => self.repeat("*")?,
                '+' => self.repeat("+")?,
                '?' => self.repeat("?")?,
                '{' => self.counted()?,
                '.' | '^' | '$' => self.put(&next.to_string()),
                '[' => {
                    let class = self.class()?;
                    self.put(&class);
                }
                '\\' => self.escape()?,
                literal => self.put(&literal_text(literal)),
            }
        }
        self.open.is_empty().then_some(())
    }

    /// Writes something that may be repeated.
    fn put(&mut self, text: &str) {
        self.operand = Some(Operand { start: self.out.len(), repeated: false });
        self.out.push_str(text);
    }

    fn take(&mut self, wanted: char) -> bool {
        self.rest.next_if_eq(&wanted).is_some()
    }

    /// Takes `text` if it is what comes next.
    fn take_text(&mut self, text: &str) -> bool {
        let mut ahead = self.rest.clone();
        let comes = text.chars().all(|wanted| ahead.next() == Some(wanted));
        if comes {
            self.rest = ahead;
        }
        comes
    }

    /// What stands before `end`, which is taken, too. `None`: it does not come.
    fn take_until(&mut self, end: char) -> Option<String> {
        let mut text = String::new();
        loop {
            match self.rest.next()? {
                next if next == end => return Some(text),
                next => text.push(next),
            }
        }
    }

    fn open_group(&mut self) -> Option<()> {
        let mut opening = "(".to_owned();
        if self.take('?') {
            if self.take_text("P<") || self.take('<') {
                let name = self.take_until('>')?;
                let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
                if name.is_empty() || !name.chars().all(is_word) || !self.names.insert(name) {
                    return None;
                }
            } else {
                let (flags, ends) = self.flags()?;
                if ends {
                    if !flags.is_empty() {
                        self.out.push_str(&format!("(?{flags})"));
                    }
                    return Some(());
                }
                opening = format!("(?{flags}:");
            }
        }
        if self.open.len() == DEPTH_MAX {
            return None;
        }
        self.open.push(self.out.len());
        self.out.push_str(&opening);
        self.operand = None;
        Some(())
    }

    /// Flags up to a colon, or up to the parenthesis that closes them.
    fn flags(&mut self) -> Option<(String, bool)> {
        let mut flags = String::new();
        loop {
            match self.rest.next()? {
                flag @ ('i' | 'm' | 's' | 'U') => {
                    // The `regex` crate takes each once only.
                    if !flags.contains(flag) {
                        flags.push(flag);
                    }
                }
                '-' if !flags.contains('-') => flags.push('-'),
                ':' if !flags.ends_with('-') => return Some((flags, false)),
                ')' if !flags.ends_with('-') => return Some((flags, true)),
                _ => return None,
            }
        }
    }

    fn close_group(&mut self) -> Option<()> {
        let start = self.open.pop()?;
        self.out.push(')');
        self.operand = Some(Operand { start, repeated: false });
        Some(())
    }

    /// Repeats what was written last.
    fn repeat(&mut self, operator: &str) -> Option<()> {
        let operand = self.operand.filter(|operand| !operand.repeated)?;
        // A group of its own, lest an operator be read together with what stands before it.
        self.out.insert_str(operand.start, "(?:");
        self.out.push(')');
        self.out.push_str(operator);
        if self.take('?') {
            self.out.push('?');
        }
        self.operand = Some(Operand { start: operand.start, repeated: true });
        Some(())
    }

    /// `{3}`, `{3,}` or `{3,5}`; anything else is a brace.
    fn counted(&mut self) -> Option<()> {
        let before = self.rest.clone();
        let Some((least, most)) = self.take_until('}').as_deref().and_then(bounds) else {
            self.rest = before;
            self.put(&literal_text('{'));
            return Some(());
        };
        if least > REPEAT_MAX || most.is_some_and(|most| most > REPEAT_MAX || most < least) {
            return None;
        }
        match most {
            Some(most) => self.repeat(&format!("{{{least},{most}}}")),
            None => self.repeat(&format!("{{{least},}}")),
        }
    }

    fn escape(&mut self) -> Option<()> {
        let text = match *self.rest.peek()? {
            'A' => r"\A".to_owned(),
            'z' => r"\z".to_owned(),
            'b' => r"(?-u:\b)".to_owned(),
            'B' => r"(?-u:\B)".to_owned(),
            'Q' => {
                self.rest.next();
                self.quoted();
                return Some(());
            }
            'p' | 'P' => {
                let class = self.unicode_class()?;
                self.put(&class);
                return Some(());
            }
            perl => match perl_class(perl) {
                Some(class) => class.to_owned(),
                None => {
                    let literal = self.escaped()?;
                    self.put(&literal_text(literal));
                    return Some(());
                }
            },
        };
        self.rest.next();
        self.put(&text);
        Some(())
    }

    /// Everything up to `\E`, or to the end, as it stands.
    fn quoted(&mut self) {
        while !self.take_text(r"\E") {
            match self.rest.next() {
                Some(literal) => self.put(&literal_text(literal)),
                None => return,
            }
        }
    }

    /// `pL`, `PL`, `p{Greek}` or `p{^Greek}`, behind the backslash.
    fn unicode_class(&mut self) -> Option<String> {
        let kind = self.rest.next()?;
        let name = match self.rest.next()? {
            '{' => self.take_until('}')?,
            letter => letter.to_string(),
        };
        let plain = name.strip_prefix('^').unwrap_or(&name);
        let is_named = plain.starts_with(|first: char| first.is_ascii_uppercase())
            && plain.chars().all(|letter| letter.is_ascii_alphabetic() || letter == '_');
        if !is_named {
            return None;
        }
        let negated = (kind == 'P') != (plain != name);
        let kind = if negated { 'P' } else { 'p' };
        Some(match plain {
            "Any" => format!(r"\{kind}{{Any}}"),
            category if category.len() <= 2 => format!(r"\{kind}{{gc={category}}}"),
            script => format!(r"\{kind}{{sc={script}}}"),
        })
    }

    /// One character that is written behind a backslash, which is taken already.
    fn escaped(&mut self) -> Option<char> {
        match self.rest.next()? {
            first @ '1'..='7' => {
                // One digit alone would refer back to a group.
                self.rest.peek().filter(|next| next.is_digit(8))?;
                self.octal(first)
            }
            '0' => self.octal('0'),
            'x' => self.hexadecimal(),
            'a' => Some('\x07'),
            'f' => Some('\x0c'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'v' => Some('\x0b'),
            literal if !literal.is_ascii_alphanumeric() => Some(literal),
            _ => None,
        }
    }

    fn octal(&mut self, first: char) -> Option<char> {
        let mut value = first.to_digit(8)?;
        for _ in 0..2 {
            match self.rest.next_if(|next| next.is_digit(8)) {
                Some(digit) => value = value * 8 + digit.to_digit(8)?,
                None => break,
            }
        }
        char::from_u32(value)
    }

    fn hexadecimal(&mut self) -> Option<char> {
        let digits = if self.take('{') {
            self.take_until('}')?
        } else {
            [self.rest.next()?, self.rest.next()?].iter().collect()
        };
        let sound = !digits.is_empty() && digits.chars().all(|digit| digit.is_ascii_hexdigit());
        let value = u32::from_str_radix(&digits, 16).ok().filter(|_| sound)?;
        char::from_u32(value)
    }

    /// A class, behind its bracket.
    fn class(&mut self) -> Option<String> {
        let mut class = "[".to_owned();
        if self.take('^') {
            class.push('^');
        }
        let mut is_first = true;
        while is_first || self.rest.peek() != Some(&']') {
            is_first = false;
            if let Some(named) = self.posix_class()? {
                class.push_str(&named);
                continue;
            }
            let mut ahead = self.rest.clone();
            if ahead.next() == Some('\\') {
                let kind = ahead.next()?;
                if let Some(perl) = perl_class(kind) {
                    self.rest = ahead;
                    class.push_str(perl);
                    continue;
                }
                if matches!(kind, 'p' | 'P') {
                    self.rest.next();
                    class.push_str(&self.unicode_class()?);
                    continue;
                }
            }
            let low = self.class_character()?;
            class.push_str(&literal_text(low));
            let mut ahead = self.rest.clone();
            if ahead.next() == Some('-') && ahead.next().is_some_and(|next| next != ']') {
                self.rest.next();
                let high = self.class_character()?;
                if high < low {
                    return None;
                }
                class.push('-');
                class.push_str(&literal_text(high));
            }
        }
        self.rest.next();
        class.push(']');
        Some(class)
    }

    fn class_character(&mut self) -> Option<char> {
        match self.rest.next()? {
            '\\' => self.escaped(),
            literal => Some(literal),
        }
    }

    /// `[:alpha:]` and its like. `None` inside: something else comes.
    fn posix_class(&mut self) -> Option<Option<String>> {
        let mut ahead = self.rest.clone();
        if ahead.next() != Some('[') || ahead.next() != Some(':') {
            return Some(None);
        }
        let ends = ahead.clone().zip(ahead.clone().skip(1)).position(|two| two == (':', ']'));
        let Some(length) = ends else { return Some(None) };
        let name: String = ahead.by_ref().take(length).collect();
        if !POSIX_CLASSES.contains(&name.strip_prefix('^').unwrap_or(&name)) {
            return None;
        }
        self.rest = ahead;
        self.rest.next();
        self.rest.next();
        Some(Some(format!("[:{name}:]")))
    }
}

/// The numbers in `3`, `3,` or `3,5`, as high as matters. `None`: it is something else.
fn bounds(inside: &str) -> Option<(u32, Option<u32>)> {
    let number = |digits: &str| {
        let leads_with_zero = digits.len() > 1 && digits.starts_with('0');
        let sound = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        (sound && !leads_with_zero).then(|| digits.parse().unwrap_or(u32::MAX))
    };
    match inside.split_once(',') {
        None => number(inside).map(|count| (count, Some(count))),
        Some((least, "")) => number(least).map(|least| (least, None)),
        Some((least, most)) => Some((number(least)?, Some(number(most)?))),
    }
}

/// The classes of Perl, which mean ASCII in RE2.
fn perl_class(kind: char) -> Option<&'static str> {
    Some(match kind {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        's' => r"[\t\n\x0C\r ]",
        'S' => r"[^\t\n\x0C\r ]",
        'w' => "[0-9A-Za-z_]",
        'W' => "[^0-9A-Za-z_]",
        _ => return None,
    })
}

/// The character itself, whatever it would mean.
fn literal_text(literal: char) -> String {
    if literal.is_ascii_alphanumeric() {
        literal.to_string()
    } else {
        format!(r"\x{{{:X}}}", u32::from(literal))
    }
}

#[cfg(test)]
mod tests;

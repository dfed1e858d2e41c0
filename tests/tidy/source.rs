//! Reads Rust just well enough for the rules: tokens without comments and texts, paths with their `use` groups
//! taken apart, and which of it is compiled for tests only.

/// One file of the repository.
pub struct Source {
    /// From the root of the repository, with `/`.
    pub path: String,
    pub text: String,
    pub tokens: Vec<Token>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Token {
    /// A word, `::`, or one other letter. A text, whatever it holds, is `"`.
    pub text: String,
    /// From 1.
    pub line: usize,
    /// Inside an item with `#[cfg(test)]` or `#[test]`, or in a file of tests.
    pub is_test: bool,
}

/// A path as it would be written out in full: `use a::{b, c::d}` holds `a::b` and `a::c::d`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Path {
    pub names: Vec<String>,
    pub line: usize,
    pub is_test: bool,
}

impl Path {
    pub fn text(&self) -> String {
        self.names.join("::")
    }
}

impl Source {
    pub fn new(path: &str, text: &str) -> Source {
        let mut tokens = tokens(text);
        mark_tests(&mut tokens, is_test_file(path));
        Source { path: path.to_owned(), text: text.to_owned(), tokens }
    }

    /// Files of the modules that this file declares for tests only.
    pub fn files_of_test_modules(&self) -> Vec<String> {
        let folder = match self.path.rsplit_once('/') {
            Some((folder, "mod.rs" | "lib.rs" | "main.rs")) => folder.to_owned(),
            _ => self.path.trim_end_matches(".rs").to_owned(),
        };
        let declarations = self
            .tokens
            .windows(3)
            .filter(|window| window[0].text == "mod" && window[0].is_test && window[2].text == ";");
        declarations.map(|window| format!("{folder}/{}.rs", window[1].text)).collect()
    }

    pub fn mark_as_tests(&mut self) {
        mark_tests(&mut self.tokens, true);
    }

    /// The folder under `src/` this file is of.
    pub fn folder(&self) -> Option<&str> {
        self.path.strip_prefix("src/")?.split_once('/').map(|(folder, _)| folder)
    }

    /// How many modules the file's own code lies below the crate's root.
    pub fn module_depth(&self) -> usize {
        let below = self.path.strip_prefix("src/").unwrap_or(&self.path);
        below.split('/').filter(|part| !matches!(*part, "mod.rs" | "lib.rs" | "main.rs")).count()
    }

    /// All paths, those that climb with `super` written from `crate` on.
    pub fn paths(&self) -> Vec<Path> {
        let mut paths = Vec::new();
        let mut braces = 0;
        let mut inline_modules = Vec::new();
        let mut at = 0;
        while at < self.tokens.len() {
            let depth = self.module_depth() + inline_modules.len();
            match self.tokens[at].text.as_str() {
                "{" => {
                    braces += 1;
                    if at >= 2 && self.tokens[at - 2].text == "mod" {
                        inline_modules.push(braces);
                    }
                    at += 1;
                }
                "}" => {
                    inline_modules.pop_if(|opened| *opened == braces);
                    braces -= 1;
                    at += 1;
                }
                "use" if self.tokens.get(at + 1).is_some_and(|next| next.text != "<") => {
                    let from = paths.len();
                    at = use_tree(&self.tokens, at + 1, &[], &mut paths);
                    paths[from..].iter_mut().for_each(|path| climb(path, depth));
                }
                word if is_word(word) && (at == 0 || self.tokens[at - 1].text != "::") => {
                    let mut path = Path {
                        names: vec![word.to_owned()],
                        line: self.tokens[at].line,
                        is_test: self.tokens[at].is_test,
                    };
                    at += 1;
                    while let [colons, name, ..] = &self.tokens[at..]
                        && colons.text == "::"
                        && is_word(&name.text)
                    {
                        path.names.push(name.text.clone());
                        at += 2;
                    }
                    climb(&mut path, depth);
                    paths.push(path);
                }
                _ => at += 1,
            }
        }
        paths
    }
}

/// Writes `super::super::x` as `crate::x` when that many `super` reach the root.
fn climb(path: &mut Path, depth: usize) {
    let first = usize::from(path.names[0] == "self");
    let supers = path.names[first..].iter().take_while(|name| *name == "super").count();
    if supers > 0 && supers == depth {
        path.names.splice(..first + supers, ["crate".to_owned()]);
    }
}

/// Reads one tree of a `use` and gives the index behind it.
fn use_tree(tokens: &[Token], mut at: usize, before: &[String], paths: &mut Vec<Path>) -> usize {
    let mut names = before.to_vec();
    let (line, is_test) = tokens.get(at).map_or((0, false), |token| (token.line, token.is_test));
    while let Some(token) = tokens.get(at) {
        match token.text.as_str() {
            "::" => at += 1,
            "{" => {
                at += 1;
                while tokens.get(at).is_some_and(|token| token.text != "}") {
                    at = use_tree(tokens, at, &names, paths);
                    at += usize::from(tokens.get(at).is_some_and(|token| token.text == ","));
                }
                return at + 1;
            }
            "as" => at += 2,
            "*" => {
                names.push("*".to_owned());
                at += 1;
            }
            word if is_word(word) => {
                names.push(word.to_owned());
                at += 1;
            }
            _ => break,
        }
    }
    paths.push(Path { names, line, is_test });
    at
}

pub fn is_word(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_alphabetic() || letter == '_')
}

fn is_test_file(path: &str) -> bool {
    path.starts_with("tests/") || path.split('/').any(|part| matches!(part, "tests" | "tests.rs"))
}

fn tokens(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < bytes.len() {
        let rest = &text[at..];
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment(rest)
        } else if let Some(length) = text_literal(rest) {
            tokens.push(Token { text: "\"".to_owned(), line, is_test: false });
            length
        } else {
            let first = rest.chars().next().expect("not at the end");
            let length = match first {
                _ if first.is_alphanumeric() || first == '_' => {
                    rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len())
                }
                _ if rest.starts_with("::") => 2,
                _ => first.len_utf8(),
            };
            if !first.is_whitespace() {
                tokens.push(Token { text: rest[..length].to_owned(), line, is_test: false });
            }
            length
        };
        line += rest[..length].bytes().filter(|byte| *byte == b'\n').count();
        at += length;
    }
    tokens
}

/// Length of the comment at the beginning of `text`; comments may lie in each other.
fn block_comment(text: &str) -> usize {
    let mut open = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            open += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            open -= 1;
            at += 2;
            if open == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    at.min(text.len())
}

/// Length of the text or character literal at the beginning of `text`, if one begins here.
fn text_literal(text: &str) -> Option<usize> {
    let unprefixed = text.trim_start_matches(['b', 'c']);
    let prefix = text.len() - unprefixed.len();
    if prefix > 1 {
        return None;
    }
    if let Some(raw) = unprefixed.strip_prefix('r') {
        let hashes = raw.bytes().take_while(|byte| *byte == b'#').count();
        let inside = raw[hashes..].strip_prefix('"')?;
        let end = format!("\"{}", "#".repeat(hashes));
        let length = inside.find(&end).map_or(inside.len(), |at| at + end.len());
        return Some(text.len() - inside.len() + length);
    }
    let quote = unprefixed.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    let inside = &unprefixed[1..];
    // A lifetime has no quote behind its first letter.
    if quote == '\'' && !inside.starts_with('\\') && inside.chars().nth(1) != Some('\'') {
        return None;
    }
    let mut escaped = false;
    let end = inside.char_indices().find(|(_, letter)| {
        let ends = *letter == quote && !escaped;
        escaped = *letter == '\\' && !escaped;
        ends
    });
    Some(prefix + 1 + end.map_or(inside.len(), |(at, letter)| at + letter.len_utf8()))
}

/// Marks the items behind `#[cfg(test)]` and `#[test]`: up to the end of their braces, or to the `;` before any.
fn mark_tests(tokens: &mut [Token], whole_file: bool) {
    let mut at = 0;
    while at < tokens.len() {
        let begins = |words: &[&str]| {
            tokens[at..].len() >= words.len()
                && tokens[at..].iter().zip(words).all(|(token, word)| token.text == *word)
        };
        if !begins(&["#", "[", "cfg", "(", "test", ")", "]"]) && !begins(&["#", "[", "test", "]"]) {
            tokens[at].is_test |= whole_file;
            at += 1;
            continue;
        }
        let mut braces = 0;
        while at < tokens.len() {
            tokens[at].is_test = true;
            let text = tokens[at].text.as_str();
            braces += i32::from(text == "{") - i32::from(text == "}");
            at += 1;
            if braces == 0 && matches!(text, "}" | ";") {
                break;
            }
        }
    }
}

//! JSON with the line of every value, and with every key of an object, in order.
//!
//! rt-app's files name a step more than once in one object when they are meant for
//! workgen, which numbers such keys; both are kept. As json-c does, it skips comments (`/* */`, `//`), and
//! allows a comma before a closing bracket and single quotes. As workgen does, it allows a key without a value.

/// Nesting that a file may have.
const MAX_DEPTH: usize = 16;

/// A value and the line that it begins on, counted from 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Json {
    pub(super) line: usize,
    pub(super) value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    /// Any number that is not an integer of 64 bits.
    Number,
    String(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Value {
    /// What it is, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Int(_) => "an integer",
            Value::Number => "a number that is not an integer",
            Value::String(_) => "a string",
            Value::Array(_) => "an array",
            Value::Object(_) => "an object",
        }
    }
}

/// Reads one value and nothing after it, from a text whose first line has this number.
///
/// # Errors
/// The line, and what is wrong there.
pub(super) fn read(text: &str, first_line: usize) -> Result<Json, (usize, String)> {
    let mut reader = Reader { text, at: 0, line: first_line };
    let value = reader.value(0);
    let read = value.and_then(|value| {
        reader.skip_blanks()?;
        if reader.at < text.len() { Err("there is more after the end".into()) } else { Ok(value) }
    });
    read.map_err(|what| (reader.line, what))
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn advance(&mut self, bytes: usize) {
        let passed = &self.text.as_bytes()[self.at..self.at + bytes];
        self.line += passed.iter().filter(|byte| **byte == b'\n').count();
        self.at += bytes;
    }

    fn skip_blanks(&mut self) -> Result<(), String> {
        loop {
            let rest = self.rest();
            let blanks = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
            let comment = &rest[blanks..];
            let length = if comment.starts_with("//") {
                comment.find('\n').unwrap_or(comment.len())
            } else if comment.starts_with("/*") {
                comment.find("*/").ok_or("the comment does not end")? + 2
            } else {
                0
            };
            self.advance(blanks + length);
            if length == 0 {
                return Ok(());
            }
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        self.skip_blanks()?;
        if self.peek() == Some(byte) {
            self.advance(1);
            return Ok(());
        }
        let found =
            self.rest().chars().next().map_or("the end".into(), |c| format!("'{}'", c.escape_default()));
        Err(format!("'{}' was expected, not {found}", char::from(byte)))
    }

    fn value(&mut self, depth: usize) -> Result<Json, String> {
        self.skip_blanks()?;
        let line = self.line;
        let value = match self.peek() {
            Some(b'{' | b'[') if depth == MAX_DEPTH => {
                return Err(format!("it is nested deeper than {MAX_DEPTH}"));
            }
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"' | b'\'') => Value::String(self.string()?),
            _ => self.word()?,
        };
        Ok(Json { line, value })
    }

    fn object(&mut self, depth: usize) -> Result<Value, String> {
        let mut members = Vec::new();
        self.expect(b'{')?;
        self.skip_blanks()?;
        while self.peek() != Some(b'}') {
            if !members.is_empty() {
                self.expect(b',')?;
                self.skip_blanks()?;
                if self.peek() == Some(b'}') {
                    break;
                }
            }
            let line = self.line;
            let key = self.string()?;
            self.skip_blanks()?;
            let value = match self.peek() {
                Some(b',' | b'}') => Json { line, value: Value::Null },
                _ => {
                    self.expect(b':')?;
                    self.value(depth + 1)?
                }
            };
            members.push((key, value));
            self.skip_blanks()?;
        }
        self.advance(1);
        Ok(Value::Object(members))
    }

    fn array(&mut self, depth: usize) -> Result<Value, String> {
        let mut items = Vec::new();
        self.expect(b'[')?;
        self.skip_blanks()?;
        while self.peek() != Some(b']') {
            if !items.is_empty() {
                self.expect(b',')?;
                self.skip_blanks()?;
                if self.peek() == Some(b']') {
                    break;
                }
            }
            items.push(self.value(depth + 1)?);
            self.skip_blanks()?;
        }
        self.advance(1);
        Ok(Value::Array(items))
    }

    fn string(&mut self) -> Result<String, String> {
        let quote = if self.peek() == Some(b'\'') { '\'' } else { '"' };
        self.expect(quote as u8)?;
        let mut string = String::new();
        loop {
            let Some(c) = self.rest().chars().next().filter(|c| *c != '\n') else {
                return Err("the string does not end".into());
            };
            self.advance(c.len_utf8());
            match c {
                c if c == quote => return Ok(string),
                '\\' => string.push(self.escaped()?),
                c => string.push(c),
            }
        }
    }

    /// What stands after a backslash, by RFC 8259.
    fn escaped(&mut self) -> Result<char, String> {
        let c = match self.peek() {
            Some(c @ (b'"' | b'\'' | b'\\' | b'/')) => char::from(c),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => return Err("after a backslash allowed are \", \\, /, b, f, n, r, t and u".into()),
        };
        self.advance(1);
        Ok(c)
    }

    /// A character as one or two UTF-16 units of four hexadecimal digits each.
    fn unicode(&mut self) -> Result<char, String> {
        let mut units = vec![self.unit()?];
        if (0xd800..0xdc00).contains(&units[0]) && self.rest().starts_with("\\u") {
            self.advance(1);
            units.push(self.unit()?);
        }
        let mut characters = char::decode_utf16(units);
        let character = characters.next().and_then(Result::ok).filter(|_| characters.next().is_none());
        character.ok_or_else(|| "after \\u stands half a character".into())
    }

    fn unit(&mut self) -> Result<u16, String> {
        let digits = self.rest().get(1..5).filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let unit = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
        let unit = unit.ok_or("after \\u allowed are four hexadecimal digits")?;
        self.advance(5);
        Ok(unit)
    }

    /// A number, true, false or null.
    fn word(&mut self) -> Result<Value, String> {
        let rest = self.rest();
        let end =
            rest.find(|c: char| !(c.is_ascii_alphanumeric() || "+-._".contains(c))).unwrap_or(rest.len());
        let word = &rest[..end];
        let value = match word.to_ascii_lowercase().as_str() {
            "null" => Value::Null,
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => match (word.parse::<i64>(), word.parse::<f64>()) {
                (Ok(int), _) => Value::Int(int),
                (_, Ok(float)) if float.is_finite() => Value::Number,
                _ if word.is_empty() => {
                    let found =
                        rest.chars().next().map_or("the end".into(), |c| format!("'{}'", c.escape_default()));
                    return Err(format!("a value was expected, not {found}"));
                }
                _ => return Err(format!("'{word}' is not a value")),
            },
        };
        self.advance(end);
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_keep_their_order_and_their_lines() {
        let json =
            read("{ /* a\n b */ \"run\": 1,\n\"run\": [true, null, 1.5, -2], // end\n\"s\": \"a\\\"b\" }", 1)
                .unwrap();
        let Value::Object(members) = json.value else { panic!() };
        let lines: Vec<_> = members.iter().map(|(key, json)| (key.as_str(), json.line)).collect();
        assert_eq!(lines, [("run", 2), ("run", 3), ("s", 4)]);
        let Value::Array(items) = &members[1].1.value else { panic!() };
        let items: Vec<_> = items.iter().map(|item| item.value.clone()).collect();
        assert_eq!(items, [Value::Bool(true), Value::Null, Value::Number, Value::Int(-2)]);
        assert_eq!(members[2].1.value, Value::String("a\"b".into()));
    }

    #[test]
    fn what_is_wrong_has_a_line() {
        for (bad, line, what) in [
            ("", 1, "a value was expected, not the end"),
            ("{\n\"a\" 1}", 2, "':' was expected, not '1'"),
            ("{\"a\": 1,\n,}", 2, "'\"' was expected, not ','"),
            ("[1,,]", 1, "a value was expected, not ','"),
            ("{,}", 1, "'\"' was expected, not ','"),
            ("'a\"", 1, "the string does not end"),
            ("[1 2]", 1, "',' was expected, not '2'"),
            ("[1]\n x", 2, "there is more after the end"),
            ("\"a", 1, "the string does not end"),
            ("/* x", 1, "the comment does not end"),
            ("nul", 1, "'nul' is not a value"),
            (r#""\x""#, 1, "after a backslash allowed are \", \\, /, b, f, n, r, t and u"),
            (r#""\u12g4""#, 1, "after \\u allowed are four hexadecimal digits"),
            (r#""\u+123""#, 1, "after \\u allowed are four hexadecimal digits"),
            (r#""\ud83d""#, 1, "after \\u stands half a character"),
            (r#""\ud83d\n""#, 1, "after \\u stands half a character"),
            (r#""\ud83d\u0041""#, 1, "after \\u stands half a character"),
            (r#""\ude00""#, 1, "after \\u stands half a character"),
        ] {
            assert_eq!(read(bad, 1).unwrap_err(), (line, what.to_owned()), "{bad}");
        }
        assert!(read(&"[".repeat(100_000), 1).unwrap_err().1.contains("deeper than 16"));
    }

    #[test]
    fn what_json_c_and_workgen_take_is_taken() {
        let same = |loose: &str, strict: &str| {
            assert_eq!(read(loose, 1).unwrap(), read(strict, 1).unwrap(), "{loose}");
        };
        same("{\"a\": [1, 2, ], }", "{\"a\": [1, 2]}");
        same("{'a': TRUE, 'b': 'it\\'s'}", "{\"a\": true, \"b\": \"it's\"}");
        same("{\"suspend\", \"run\": 1, \"suspend\"}", "{\"suspend\": null, \"run\": 1, \"suspend\": null}");
        assert_eq!(read("\n1", 7).unwrap().line, 8);
    }

    #[test]
    fn strings_have_all_escapes() {
        let json = read(r#""\"\\\/\b\f\n\r\t\u0041\u00fC\ud83d\ude00""#, 1).unwrap();
        assert_eq!(json.value, Value::String("\"\\/\u{8}\u{c}\n\r\tAü😀".into()));
    }

    proptest! {
        #[test]
        fn no_text_is_too_much(text in "[\\[\\]{}\":,/*\\\\ \nu0-9a-zé.-]{0,60}") {
            let _ = read(&text, 1);
        }
    }
}

//! Command lines that can be pasted into a shell.

/// A word, in quotes if the shell would read it otherwise.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=,:+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    if word.contains(['"', '$', '`', '\\', '!']) {
        return format!("'{}'", word.replace('\'', "'\\''"));
    }
    format!("\"{word}\"")
}

/// Words as one line.
pub(crate) fn line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_words() {
        let words = ["coreward", "hackbench -g 4", "NO_A,b=2ms", "$x", "it's $5", ""];
        assert_eq!(line(words), r#"coreward "hackbench -g 4" NO_A,b=2ms '$x' 'it'\''s $5' """#);
    }
}

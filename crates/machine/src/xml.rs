//! Parses untrusted XML.

use roxmltree::{Document, ParsingOptions};

/// Far more than a machine of 1024 CPUs has; keeps hostile files small in memory.
const MAX_NODES: u32 = 1 << 20;

/// Elements around an element; topologies have about a dozen. The parser is recursive, so
/// deeper nesting has to be found before it starts.
const MAX_DEPTH: usize = 64;

/// Bytes of a tag: six CPU masks of 1024 CPUs take half of it. The parser's time grows with the
/// square of the number of attributes.
const MAX_TAG: usize = 4096;

/// Parses a document of limited size and depth, without entities and namespaces of its own.
///
/// # Errors
/// A message that says what is wrong with the document.
pub(crate) fn parse(text: &str) -> Result<Document<'_>, String> {
    check_tags(text)?;
    let options = ParsingOptions { allow_dtd: true, nodes_limit: MAX_NODES };
    let document = Document::parse_with_options(text, options);
    document.map_err(|error| format!("not well-formed XML: {error}"))
}

/// Checks the document type, and depth and length of the tags; of malformed text, the part that
/// a parser would accept.
fn check_tags(text: &str) -> Result<(), String> {
    let mut depth = 0usize;
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        rest = &rest[start..];
        let markup = [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>"), ("</", ">")];
        if let Some((open, close)) = markup.iter().find(|(open, _)| rest.starts_with(open)) {
            if *open == "</" {
                depth = depth.saturating_sub(1);
            }
            let content = &rest[open.len()..];
            rest = content.find(close).map_or("", |end| &content[end + close.len()..]);
            continue;
        }
        let (tag, after) = rest.split_at(tag_len(rest));
        rest = after;
        if tag.starts_with("<!") {
            // Definitions could hide tags from this check, and define entities.
            if tag.contains('[') {
                return Err("a document type with definitions of its own is not supported".to_owned());
            }
            continue;
        }
        // hwloc uses none, and the parser's time grows with the product of namespaces and elements.
        if tag.contains("xmlns") {
            return Err("namespaces are not supported".to_owned());
        }
        if !tag.ends_with("/>") {
            depth += 1;
        }
        if depth > MAX_DEPTH {
            return Err(format!("elements are nested deeper than {MAX_DEPTH} levels"));
        }
        if tag.len() > MAX_TAG {
            return Err(format!("a tag is longer than {MAX_TAG} bytes"));
        }
    }
    Ok(())
}

/// Length of the tag that the text begins with; a `>` within quotes does not end it.
fn tag_len(text: &str) -> usize {
    let mut quote = None;
    for (index, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return index + 1,
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            _ => {}
        }
    }
    text.len()
}

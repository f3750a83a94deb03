//! Reports as self-contained HTML pages: tables and drawings, no scripts, nothing fetched, light or dark as the reader's
//! browser is.

mod comparison;
mod heat;
mod plot;

use std::fmt::Write;

pub use comparison::render;
pub use heat::{Heat, heat_map};
pub use plot::{Line, lines};

const STYLE: &str = "\
:root { color-scheme: light dark; --line: #8886; --bar: #7a8ca5; --good: #2e8b57; --bad: #c0392b; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .8rem; border-bottom: 1px solid var(--line); text-align: right; }
th:first-child, td:first-child, td.text { text-align: left; }
.good { color: var(--good); } .bad { color: var(--bad); } .plain { opacity: .7; }
svg { display: block; max-width: 100%; height: auto; } svg text { fill: currentColor; font-size: 13px; }
svg rect { fill: var(--bar); } svg line { stroke: currentColor; stroke-width: 1.5; }
svg .grid { stroke: var(--line); stroke-width: 1; } svg path { fill: none; stroke: var(--bar); stroke-width: 2; }
svg path.second { stroke: var(--bad); stroke-dasharray: 6 3; }
figure { margin: 1.5rem 0; } .wide { overflow-x: auto; }
pre { white-space: pre-wrap; }
.heat th, .heat td { padding: .2rem .4rem; font-size: 13px; }
";

/// A page under construction. All text that is given to it is escaped.
pub struct Page(String);

/// What the cell of a table says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// A figure.
    Plain,
    /// Words.
    Text,
    /// A figure that is as wanted.
    Good,
    /// A figure that is not.
    Bad,
}

impl Page {
    /// A page with a title, which is also its first heading.
    pub fn new(title: &str) -> Page {
        let title = escape(title);
        Page(format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        ))
    }

    /// A heading of the second level.
    pub fn heading(&mut self, text: &str) {
        _ = writeln!(self.0, "<h2>{}</h2>", escape(text));
    }

    /// A paragraph.
    pub fn text(&mut self, text: &str) {
        _ = writeln!(self.0, "<p>{}</p>", escape(text));
    }

    /// A table without a head: names and what they stand for.
    pub fn names(&mut self, rows: &[(&str, String)]) {
        self.0.push_str("<table>\n");
        for (name, text) in rows {
            _ = writeln!(
                self.0,
                "<tr><td>{}</td><td class=\"text\">{}</td></tr>",
                escape(name),
                escape(text)
            );
        }
        self.0.push_str("</table>\n");
    }

    /// A table with a head. On a narrow screen it can be moved by itself.
    pub fn table(&mut self, head: &[&str], rows: &[Vec<(String, Tone)>]) {
        self.0.push_str("<div class=\"wide\">\n<table>\n<tr>");
        head.iter().for_each(|text| _ = write!(self.0, "<th scope=\"col\">{}</th>", escape(text)));
        self.0.push_str("</tr>\n");
        for row in rows {
            self.0.push_str("<tr>");
            for (text, tone) in row {
                let class = match tone {
                    Tone::Plain => "",
                    Tone::Text => " class=\"text\"",
                    Tone::Good => " class=\"good\"",
                    Tone::Bad => " class=\"bad\"",
                };
                _ = write!(self.0, "<td{class}>{}</td>", escape(text));
            }
            self.0.push_str("</tr>\n");
        }
        self.0.push_str("</table>\n</div>\n");
    }

    /// A drawing of this crate, or other HTML.
    pub fn html(&mut self, html: &str) {
        self.0.push_str(html);
    }

    /// The whole page.
    pub fn finish(mut self) -> String {
        self.0.push_str("</body>\n</html>\n");
        self.0
    }
}

/// Text that is safe in element content and in quoted attributes.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // they have no place in HTML
            c if coreward_input::commands(c) && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_page_is_given_is_escaped() {
        let mut page = Page::new("<t>");
        page.heading("<h>");
        page.text("<p>&");
        page.names(&[("<n>", "<v>".into())]);
        page.table(&["<c>"], &[vec![("<d>".into(), Tone::Bad)]]);
        let page = page.finish();
        for text in ["t", "h", "n", "v", "c", "d"] {
            assert!(page.contains(&format!("&lt;{text}&gt;")), "{text}: {page}");
        }
        assert!(page.contains("<td class=\"bad\">") && page.ends_with("</html>\n"));
    }
}

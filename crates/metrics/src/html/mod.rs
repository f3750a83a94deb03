//! Reports as self-contained HTML pages: tables and drawings, no scripts, nothing fetched, light or dark as the reader's
//! browser is.

mod changes;
mod comparison;
mod floor;
mod heat;
mod plot;

use std::fmt::Write;

pub use changes::{Change, drawing as changes};
pub use comparison::render;
pub use floor::{Place, floor_plan, moves_map};
pub use heat::{Heat, heat_map};
pub use plot::{Line, lines};

const STYLE: &str = "\
:root { color-scheme: light dark; --line: #8886; --bar: #5f7da8; --good: #1f7a48; --bad: #c0392b; }
@media (prefers-color-scheme: dark) { :root { --bar: #8fb0dd; --good: #5fc48c; --bad: #ff8272; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .8rem; border-bottom: 1px solid var(--line); text-align: right; }
td { white-space: nowrap; } th:first-child, td:first-child, td.text { text-align: left; white-space: normal; }
.good { color: var(--good); } .bad { color: var(--bad); } .plain { opacity: .7; }
svg { display: block; max-width: 100%; height: auto; } svg text { fill: currentColor; font-size: 13px; }
svg rect { fill: var(--bar); } svg line { stroke: currentColor; stroke-width: 1.5; }
svg .grid { stroke: var(--line); stroke-width: 1; } svg path { fill: none; stroke: var(--bar); stroke-width: 2; stroke-linecap: round; }
svg path.second { stroke: var(--bad); stroke-dasharray: 6 3; }
svg line.good { stroke: var(--good); } svg line.bad { stroke: var(--bad); } svg circle { fill: currentColor; }
svg circle.run { fill: none; stroke: currentColor; stroke-width: 1; } svg circle.good { fill: var(--good); }
svg circle.bad { fill: var(--bad); }
figure { margin: 1.5rem 0; } .wide { overflow-x: auto; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; } td.text { overflow-wrap: anywhere; min-width: 10rem; }
:focus-visible { outline: 3px solid var(--bar); outline-offset: 2px; } summary { cursor: pointer; margin: 1rem 0; }
.floor { display: flex; flex-wrap: wrap; gap: .6rem; } .node, .llc { border: 1px solid var(--line); padding: .3rem; }
.node { display: flex; flex-wrap: wrap; gap: .4rem; align-content: flex-start; } .node > span { flex: 0 0 100%; }
.floor span { font-size: 12px; opacity: .8; } .llc > div { display: flex; flex-wrap: wrap; gap: 3px; max-width: 12rem; }
.floor i { display: inline-flex; border: 1px solid var(--line); padding: 1px; }
.floor b { width: 1.1rem; height: 1.1rem; background: color-mix(in srgb, var(--bar) var(--heat), transparent); }
td.moves { background: color-mix(in srgb, var(--bar) calc(var(--heat) * .8), transparent); }
@media (max-width: 40rem) { body { margin: 1rem auto; } th, td { padding: .2rem .4rem; } }
@media print {
  :root { color-scheme: light; --bar: #5f7da8; --good: #1f7a48; --bad: #c0392b; }
  body { max-width: none; margin: 0; font-size: 10px; } * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .wide { overflow: visible; } th, td { padding: .1rem .3rem; font-size: 9px; } svg, tr, figure { break-inside: avoid; }
  h1, h2 { break-after: avoid; } details:not([open]) { display: none; }
}
svg.changes { min-width: 44rem; } th.name, td.name { text-align: left; } td.command { min-width: 22rem; font-size: 12px; }
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
    /// A name that is not broken.
    Name,
    /// A command line.
    Command,
    /// A figure that is as wanted.
    Good,
    /// A figure that is not.
    Bad,
}

impl Tone {
    fn is_left(self) -> bool {
        matches!(self, Tone::Text | Tone::Name | Tone::Command)
    }
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

    /// A part of a page, without its head.
    pub fn part() -> Page {
        Page(String::new())
    }

    /// What was put into it.
    pub fn html_so_far(self) -> String {
        self.0
    }

    /// What is only shown if it is asked for.
    pub fn fold(&mut self, title: &str, inner: impl FnOnce(&mut Page)) {
        _ = writeln!(self.0, "<details>\n<summary>{}</summary>", escape(title));
        inner(self);
        self.0.push_str("</details>\n");
    }

    /// The figures behind the page, as JSON.
    pub fn data(&mut self, json: &str) {
        self.fold("All figures, as JSON", |page| {
            _ = writeln!(page.0, "<pre class=\"data\">{}</pre>", escape(json))
        });
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
        _ = writeln!(
            self.0,
            "<div class=\"wide\" role=\"region\" aria-label=\"Table of {}\" tabindex=\"0\">",
            escape(&head.join(", "))
        );
        self.0.push_str("<table>\n<tr>");
        for (column, text) in head.iter().enumerate() {
            // over words as they stand
            let words =
                rows.first().is_some_and(|row| row.get(column).is_some_and(|(_, tone)| tone.is_left()));
            let class = if words { " class=\"name\"" } else { "" };
            _ = write!(self.0, "<th scope=\"col\"{class}>{}</th>", escape(text));
        }
        self.0.push_str("</tr>\n");
        for row in rows {
            self.0.push_str("<tr>");
            for (text, tone) in row {
                let class = match tone {
                    Tone::Plain => "",
                    Tone::Text => " class=\"text\"",
                    Tone::Name => " class=\"name\"",
                    Tone::Command => " class=\"text command\"",
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

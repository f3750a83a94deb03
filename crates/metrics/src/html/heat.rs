//! A table whose cells are coloured by how good or bad they are.

use std::fmt::Write;

use super::escape;

/// A cell of a heat map.
#[derive(Clone, Debug, PartialEq)]
pub struct Heat {
    /// What stands in it.
    pub text: String,
    /// What a reader sees who points at it.
    pub title: String,
    /// From -1, the worst, to 1, the best; 0 has no colour.
    pub degree: f64,
}

/// A heat map of rows with their names; a cell may be missing.
pub fn heat_map(head: &[&str], rows: &[(&str, Vec<Option<Heat>>)]) -> String {
    let mut out = String::from(
        "<div class=\"wide\" role=\"region\" aria-label=\"Heat map\" tabindex=\"0\">\n<table class=\"heat\">\n<tr>",
    );
    head.iter().for_each(|text| _ = write!(out, "<th scope=\"col\">{}</th>", escape(text)));
    out.push_str("</tr>\n");
    for (name, cells) in rows {
        _ = write!(out, "<tr><th scope=\"row\">{}</th>", escape(name));
        for cell in cells {
            let Some(Heat { text, title, degree }) = cell else {
                out.push_str("<td></td>");
                continue;
            };
            let colour = if *degree < 0.0 { "192,57,43" } else { "46,139,87" };
            let opacity = degree.abs().min(1.0);
            let style = match opacity > 0.0 {
                true => format!(" style=\"background:rgba({colour},{opacity:.2})\""),
                false => String::new(),
            };
            _ = write!(out, "<td{style} title=\"{}\">{}</td>", escape(title), escape(text));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table>\n</div>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worse_is_red_and_better_green_and_all_text_escaped() {
        let cell = |degree| Some(Heat { text: "<1".into(), title: "\"2".into(), degree });
        let map = heat_map(&["", "<w>"], &[("<m>", vec![cell(-0.5), cell(2.0), cell(0.0), None])]);
        assert!(
            map.contains("<td style=\"background:rgba(192,57,43,0.50)\" title=\"&quot;2\">&lt;1</td>"),
            "{map}"
        );
        assert!(map.contains("rgba(46,139,87,1.00)") && map.contains("<td title=\"&quot;2\">"), "{map}");
        assert!(map.contains("<td></td>") && map.contains("&lt;w&gt;") && map.contains("&lt;m&gt;"), "{map}");
    }
}

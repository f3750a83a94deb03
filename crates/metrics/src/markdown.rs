//! Markdown tables that are also readable as plain text.

/// A table; columns after the first `texts` are aligned to the right.
pub(crate) fn table(texts: usize, header: &[String], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = std::iter::once(header).chain(rows.iter().map(Vec::as_slice));
        cells.filter_map(|cells| cells.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).map(|width| width.max(3)).collect();
    let mut out = line(texts, header, &widths);
    let rule = widths.iter().enumerate().map(|(column, &width)| match column < texts {
        true => "-".repeat(width),
        false => format!("{}:", "-".repeat(width - 1)),
    });
    out.push_str(&line(texts, &rule.collect::<Vec<_>>(), &widths));
    out.extend(rows.iter().map(|row| line(texts, row, &widths)));
    out
}

fn line(texts: usize, cells: &[String], widths: &[usize]) -> String {
    let padded = cells.iter().zip(widths).enumerate().map(|(column, (cell, width))| match column < texts {
        true => format!("| {cell:width$} "),
        false => format!("| {cell:>width$} "),
    });
    format!("{}|\n", padded.collect::<String>())
}

/// Text from a file as a cell shows it.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '\\' | '`' | '*' | '[' | ']' => out.extend(['\\', c]),
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            c if coreward_input::commands(c) => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let row = |cells: [&str; 2]| cells.map(String::from).to_vec();
        let text = table(1, &row(["what", "µ"]), &[row(["a", "1.0"]), row(["bcdef", "10.0"])]);
        assert_eq!(text, "| what  |    µ |\n| ----- | ---: |\n| a     |  1.0 |\n| bcdef | 10.0 |\n");
    }

    #[test]
    fn a_cell_cannot_end_itself() {
        assert_eq!(escape("a|b\n<i>_x_"), "a\\|b &lt;i>_x_");
    }
}

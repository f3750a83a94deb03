//! A machine as its nodes, last-level caches and cores, and where tasks moved on it.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::escape;

/// A CPU and how many tasks came to it from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// NUMA node.
    pub node: usize,
    /// Last-level cache.
    pub llc: usize,
    /// Core; its CPUs are SMT siblings.
    pub core: usize,
    /// Tasks that moved here.
    pub arrivals: u64,
}

/// The most caches whose moves are shown in a table; of more, those between nodes are.
const MOST: usize = 32;

/// The machine: a box for each node, in it one for each last-level cache, in it a frame for each core with a square for
/// each CPU, the darker the more tasks came to it.
pub fn floor_plan(title: &str, cpus: &[Place]) -> String {
    let most = cpus.iter().map(|cpu| cpu.arrivals).max().unwrap_or(0);
    let total: u64 = cpus.iter().map(|cpu| cpu.arrivals).sum();
    let mut nodes: BTreeMap<usize, BTreeMap<usize, BTreeMap<usize, Vec<usize>>>> = BTreeMap::new();
    for (cpu, place) in cpus.iter().enumerate() {
        let llcs = nodes.entry(place.node).or_default();
        llcs.entry(place.llc).or_default().entry(place.core).or_default().push(cpu);
    }
    let described = format!("{title}: {total} moves to {} CPUs, at most {most} to one", cpus.len());
    let mut out =
        format!("<figure>\n<div class=\"floor\" role=\"img\" aria-label=\"{}\">\n", escape(&described));
    for (node, llcs) in nodes {
        _ = write!(out, "<div class=\"node\"><span>node {node}</span>");
        for (llc, cores) in llcs {
            _ = write!(out, "<div class=\"llc\"><span>LLC {llc}</span><div>");
            for cpus_of_core in cores.values() {
                out.push_str("<i>");
                for cpu in cpus_of_core {
                    let arrivals = cpus[*cpu].arrivals;
                    let share = percent(arrivals, most);
                    _ = write!(out, "<b style=\"--heat:{share}%\" title=\"CPU {cpu}: {arrivals}\"></b>");
                }
                out.push_str("</i>");
            }
            out.push_str("</div></div>");
        }
        out.push_str("</div>\n");
    }
    _ = writeln!(out, "</div>\n<figcaption>{}</figcaption>\n</figure>", escape(&described));
    out
}

/// Moves from each last-level cache (row) to each (column), or between nodes if there are too many caches.
pub fn moves_map(cpus: &[Place], moves: &BTreeMap<(usize, usize), u64>) -> String {
    let llcs = 1 + cpus.iter().map(|cpu| cpu.llc).max().unwrap_or(0);
    let (what, of): (&str, fn(&Place) -> usize) =
        if llcs <= MOST { ("LLC", |cpu| cpu.llc) } else { ("node", |cpu| cpu.node) };
    let size = 1 + cpus.iter().map(of).max().unwrap_or(0);
    let mut counts = vec![vec![0; size]; size];
    for ((from, to), number) in moves {
        counts[of(&cpus[*from])][of(&cpus[*to])] += number;
    }
    let most = counts.iter().flatten().copied().max().unwrap_or(0);
    let mut out = format!(
        "<div class=\"wide\" role=\"region\" aria-label=\"Moves between {what}s\" tabindex=\"0\">\n<table class=\"heat\">\n\
         <tr><th scope=\"col\">from {what}, to</th>"
    );
    (0..size).for_each(|to| _ = write!(out, "<th scope=\"col\">{to}</th>"));
    out.push_str("</tr>\n");
    for (from, row) in counts.iter().enumerate() {
        _ = write!(out, "<tr><th scope=\"row\">{from}</th>");
        for number in row {
            _ = write!(out, "<td class=\"moves\" style=\"--heat:{}%\">{number}</td>", percent(*number, most));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table>\n</div>\n");
    out
}

/// Of the most, from 0 to 100.
fn percent(number: u64, most: u64) -> u64 {
    100 * number / most.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus() -> Vec<Place> {
        let place = |(node, llc, core), arrivals| Place { node, llc, core, arrivals };
        vec![place((0, 0, 0), 4), place((0, 0, 0), 0), place((1, 1, 1), 1)]
    }

    #[test]
    fn a_cpu_is_in_its_core_and_cache_and_node() {
        let plan = floor_plan("<t>", &cpus());
        assert_eq!((plan.matches("\"node\"").count(), plan.matches("\"llc\"").count()), (2, 2), "{plan}");
        assert!(
            plan.contains("<i><b style=\"--heat:100%\" title=\"CPU 0: 4\"></b><b style=\"--heat:0%\""),
            "{plan}"
        );
        assert!(plan.contains("&lt;t&gt;: 5 moves to 3 CPUs, at most 4 to one"), "{plan}");
    }

    #[test]
    fn moves_stand_in_the_row_of_where_they_began() {
        let map = moves_map(&cpus(), &BTreeMap::from([((2, 0), 3), ((2, 1), 1), ((0, 1), 2)]));
        let row = |from: usize| map.split(&format!("<th scope=\"row\">{from}</th>")).nth(1).unwrap();
        assert!(row(0).starts_with("<td class=\"moves\" style=\"--heat:50%\">2</td>"), "{map}");
        assert!(row(1).starts_with("<td class=\"moves\" style=\"--heat:100%\">4</td>"), "{map}");
        assert!(!moves_map(&[], &BTreeMap::new()).contains("NaN"));
    }
}

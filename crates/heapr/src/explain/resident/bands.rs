//! A page of what was resident over time: classes as bands that lie on one another.

use std::io::{self, Write};

use heapr_findings::Finding;
use heapr_table::quantity::{bytes, duration};

use super::class_hue::class_hue;
use super::html;
use super::kept_moments::{KeptMoments, label};
use crate::explain::markup::escaped;

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 320.0;

/// The page of a file.
pub(super) fn write(
    kept: &KeptMoments,
    classes: &[(&str, [u64; 3])],
    findings: &[Finding],
    out: &mut dyn Write,
) -> io::Result<()> {
    let title = format!("resident memory of {}", if kept.of.is_empty() { "a process" } else { &kept.of });
    html::head(&title, out)?;
    picture(kept, classes, &title, out)?;
    writeln!(out, "<table>\n<tr><th><th>first<th>most<th>last")?;
    for (class, amounts) in classes {
        let [first, most, last] = amounts.map(bytes);
        writeln!(
            out,
            "<tr><td>{}{}<td class=\"n\">{first}<td class=\"n\">{most}<td class=\"n\">{last}",
            html::swatch(class),
            escaped(&label(class))
        )?;
    }
    writeln!(out, "</table>")?;
    html::findings(findings, out)?;
    for limit in &kept.limits {
        writeln!(out, "<p>not told: {}</p>", escaped(limit))?;
    }
    writeln!(out, "</html>")
}

fn picture(
    kept: &KeptMoments,
    classes: &[(&str, [u64; 3])],
    title: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let times: Vec<u64> = kept.moments.iter().map(|moment| moment.time_ns.unwrap_or(0)).collect();
    let (Some(&first), Some(&last)) = (times.first(), times.last()) else { return Ok(()) };
    let most = kept.moments.iter().map(|moment| moment.rss_bytes).max().unwrap_or(0).max(1);
    let span = last.saturating_sub(first).max(1) as f64;
    let x = |time_ns: u64| (time_ns.saturating_sub(first)) as f64 / span * WIDTH;
    let y = |amount: u64| HEIGHT - amount as f64 / most as f64 * (HEIGHT - 20.0);
    writeln!(out, "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">", escaped(title))?;
    let mut below = vec![0_u64; times.len()];
    for (class, _) in classes {
        let above: Vec<u64> = kept
            .moments
            .iter()
            .zip(&below)
            .map(|(moment, below)| below.saturating_add(moment.bytes(class)))
            .collect();
        // One moment has a width, too.
        let right = if times.len() == 1 { vec![(WIDTH, 0)] } else { Vec::new() };
        let places: Vec<(f64, usize)> =
            times.iter().enumerate().map(|(at, time_ns)| (x(*time_ns), at)).chain(right).collect();
        let there = places.iter().map(|(x, at)| format!("{x:.1},{:.1}", y(above[*at])));
        let back = places.iter().rev().map(|(x, at)| format!("{x:.1},{:.1}", y(below[*at])));
        let points: Vec<String> = there.chain(back).collect();
        writeln!(
            out,
            "<polygon points=\"{}\" fill=\"hsl({} 45% 70%)\"><title>{}</title></polygon>",
            points.join(" "),
            class_hue(class),
            escaped(&label(class))
        )?;
        below = above;
    }
    writeln!(
        out,
        "<text x=\"4\" y=\"14\">{} at most, over {}</text>\n</svg>",
        bytes(most),
        duration(last.saturating_sub(first))
    )
}

//! A page by itself: the resident memory as a treemap, and the lines below it.

use std::io::{self, Write};

use heapr_findings::Finding;
use heapr_resident::Line;
use heapr_table::quantity::{bytes, percent};

use super::Resident;
use super::class_hue::class_hue;
use super::page_strip;
use super::treemap::{Area, divide};
use crate::explain::markup::escaped;

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 460.0;
/// Parts of a line that have rectangles of their own.
const MOST_PARTS: usize = 12;

pub(super) fn write(resident: &Resident, findings: &[Finding], out: &mut dyn Write) -> io::Result<()> {
    let all = resident.account.pages.rss_bytes;
    let mut lines = resident.account.lines();
    lines.sort_by_key(|line| std::cmp::Reverse(line.pages.rss_bytes));
    let title = format!("resident memory of process {}: {}", resident.pid, bytes(all));
    head(&title, out)?;
    writeln!(out, "<p>{}</p>", escaped(&resident.executable))?;
    writeln!(out, "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">", escaped(&title))?;
    let amounts: Vec<u64> = lines.iter().map(|line| line.pages.rss_bytes).collect();
    let whole = Area { left: 0.0, top: 0.0, width: WIDTH, height: HEIGHT };
    for (line, area) in lines.iter().zip(divide(whole, &amounts)) {
        rectangles(line, area, all, out)?;
    }
    writeln!(out, "</svg>")?;
    page_strip::write(&resident.account, out)?;
    writeln!(out, "<table>")?;
    for line in &lines {
        writeln!(
            out,
            "<tr><td>{}{}<td class=\"n\">{}<td class=\"n\">{}<td>{}",
            swatch(line.class.key()),
            escaped(&super::text::label(line)),
            bytes(line.pages.rss_bytes),
            percent(line.pages.rss_bytes, all),
            escaped(&super::text::notes(line, resident))
        )?;
    }
    writeln!(out, "</table>")?;
    self::findings(findings, out)?;
    for limit in &resident.limits {
        writeln!(out, "<p>not told: {}</p>", escaped(limit))?;
    }
    writeln!(out, "</html>")
}

/// The beginning of a page.
pub(super) fn head(title: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{}</title>\n<style>\n\
         body {{ font: 14px system-ui, sans-serif; margin: 2em auto; max-width: 1000px; color: #222; background: #fff; }}\n\
         td {{ padding: .2em .8em; vertical-align: top; }} .n {{ text-align: right; white-space: nowrap; }}\n\
         text {{ font: 12px system-ui, sans-serif; pointer-events: none; }} rect {{ stroke: #fff; }} .strip rect {{ stroke-width: .5; }}\n\
         i {{ display: inline-block; width: .8em; height: .8em; margin-right: .5em; }} svg {{ width: 100%; }}\n</style>",
        escaped(title)
    )?;
    writeln!(out, "<h1>{}</h1>", escaped(title))
}

/// A little square in the colour of a class.
pub(super) fn swatch(key: &str) -> String {
    format!("<i style=\"background: hsl({} 45% 70%)\"></i>", class_hue(key))
}

/// Findings with what speaks for them.
pub(super) fn findings(findings: &[Finding], out: &mut dyn Write) -> io::Result<()> {
    for finding in findings {
        writeln!(out, "<h2>{}</h2>\n<ul>", escaped(&finding.sentence))?;
        for evidence in &finding.evidence {
            writeln!(out, "<li>{}", escaped(evidence))?;
        }
        writeln!(out, "</ul>")?;
    }
    Ok(())
}

/// The rectangles of a line's parts, and its name over them.
fn rectangles(line: &Line, area: Area, all: u64, out: &mut dyn Write) -> io::Result<()> {
    let mut parts: Vec<(&str, u64)> =
        line.parts.iter().take(MOST_PARTS).map(|(name, amount)| (name.as_str(), *amount)).collect();
    let rest = line.pages.rss_bytes.saturating_sub(parts.iter().map(|(_, amount)| amount).sum());
    parts.push(("", rest));
    let amounts: Vec<u64> = parts.iter().map(|(_, amount)| *amount).collect();
    let (label, hue) = (super::text::label(line), class_hue(line.class.key()));
    for ((name, amount), part) in parts.iter().zip(divide(area, &amounts)) {
        if *amount == 0 {
            continue;
        }
        let name = if name.is_empty() { label.clone() } else { format!("{label}: {name}") };
        writeln!(
            out,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"hsl({hue} 45% 78%)\"><title>{} {} ({})</title></rect>",
            part.left,
            part.top,
            part.width,
            part.height,
            escaped(&name),
            bytes(*amount),
            percent(*amount, all)
        )?;
    }
    // A letter takes about seven units.
    let letters = (area.width / 7.0) as usize;
    if area.height > 18.0 && letters > 4 {
        let text: String = format!("{label} {}", bytes(line.pages.rss_bytes)).chars().take(letters).collect();
        writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            area.left + 4.0,
            area.top + 14.0,
            escaped(&text)
        )?;
    }
    Ok(())
}

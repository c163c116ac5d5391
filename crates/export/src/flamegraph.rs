//! Flame graph as one SVG: hover for amounts, click to zoom, Ctrl-F to search. It loads no other
//! file.

use std::io::{self, Write};

use heapr_query::Metric;
use heapr_table::plain::is_harmless;
use heapr_table::quantity::{bytes_within, count_within, percent};

use crate::Profile;
use crate::name_tree::{Held, NameTree};

const WIDTH: f64 = 1200.0;
const ROW: usize = 17;
/// Smallest width of a box that is drawn. Narrower ones cannot be seen or clicked.
const LEAST_WIDTH: f64 = 0.3;
/// Approximate width of a character of the font.
const CHARACTER_WIDTH: f64 = 6.6;

/// Largest number of frames drawn per stack, from the root. Deeper boxes could not be reached by
/// scrolling.
const DEPTH_MAX: usize = 2000;

/// Box of the graph.
struct Drawn<'a> {
    name: &'a str,
    amount: u64,
    variance: u64,
    x: f64,
    width: f64,
    depth: usize,
}

/// Writes the profile.
pub(crate) fn write(out: &mut dyn Write, profile: &Profile<'_>) -> io::Result<()> {
    let (&Profile { samples, value, .. }, title) = (profile, profile.heading());
    let tree = NameTree::new(samples, value, str::to_owned);
    let held = tree.inclusive();
    let root = held[0];
    let boxes = lay_out(&tree, &held);
    let depth = boxes.iter().map(|drawn| drawn.depth).max().unwrap_or(0);
    let height = (depth + 1) * ROW + 60;
    let whole = root.amount;
    writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" font-family="monospace" font-size="11">"#
    )?;
    writeln!(out, "<style>{STYLE}</style>")?;
    writeln!(out, r#"<rect class="page" width="100%" height="100%"/>"#)?;
    writeln!(out, r#"<text x="8" y="18" font-size="14">{}</text>"#, escaped(&title))?;
    writeln!(
        out,
        r#"<text id="say" x="8" y="36">{} — hover for amounts, click to zoom, Ctrl-F to search, Escape for all</text>"#,
        shown(value, whole, root.variance)
    )?;
    for drawn in &boxes {
        let y = height - (drawn.depth + 1) * ROW - 10;
        let label = label(drawn.name, drawn.width);
        writeln!(
            out,
            r#"<g class="f"><title>{} — {} ({})</title><rect x="{:.2}" y="{y}" width="{:.2}" height="{}" fill="{}"/><text x="{:.2}" y="{}">{}</text></g>"#,
            escaped(drawn.name),
            shown(value, drawn.amount, drawn.variance),
            percent(drawn.amount, whole),
            drawn.x,
            drawn.width,
            ROW - 1,
            colour(drawn.name),
            drawn.x + 3.0,
            y + 12,
            escaped(&label)
        )?;
    }
    writeln!(out, "<script><![CDATA[{SCRIPT}]]></script>")?;
    writeln!(out, "</svg>")
}

fn shown(value: Metric, amount: u64, variance: u64) -> String {
    let half = value.half_interval(variance);
    if value.is_bytes() { bytes_within(amount, half) } else { count_within(amount, half) }
}

/// Computes the positions of all boxes that are wide enough. Iterative, as stacks may be deep.
fn lay_out<'a>(tree: &'a NameTree, held: &[Held]) -> Vec<Drawn<'a>> {
    let mut boxes = Vec::new();
    let mut open = vec![(0, 0.0, 0_usize)];
    let whole = held[0].amount;
    let scale = if whole == 0 { 0.0 } else { WIDTH / whole as f64 };
    while let Some((node, x, depth)) = open.pop() {
        let Held { amount, variance } = held[node as usize];
        let width = amount as f64 * scale;
        if width < LEAST_WIDTH {
            continue;
        }
        let name = if node == 0 { "all" } else { tree.name(node) };
        boxes.push(Drawn { name, amount, variance, x, width, depth });
        let mut left = x;
        for &callee in tree.callees(node).iter().filter(|_| depth < DEPTH_MAX) {
            open.push((callee, left, depth + 1));
            left += held[callee as usize].amount as f64 * scale;
        }
    }
    boxes
}

fn label(name: &str, width: f64) -> String {
    let room = ((width - 6.0) / CHARACTER_WIDTH).max(0.0) as usize;
    if name.chars().count() <= room {
        return name.to_owned();
    }
    if room < 3 {
        return String::new();
    }
    name.chars().take(room - 1).chain(['…']).collect()
}

/// Warm colour that depends on the name alone: a function has the same colour in all graphs.
fn colour(name: &str) -> String {
    let hash =
        name.bytes().fold(2_166_136_261_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(16_777_619));
    format!("hsl({},{}%,{}%)", 8 + hash % 45, 62 + hash / 64 % 25, 58 + hash / 4096 % 14)
}

/// Escapes text for XML. Control characters, which XML cannot represent, become spaces.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if !is_harmless(c) => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

const STYLE: &str = ".page{fill:#fff}text{fill:#222}.f text{pointer-events:none}.f rect{stroke:#fff;stroke-width:.4;cursor:pointer}\
.f:hover rect{stroke:#000;stroke-width:1}.found rect{fill:#c586ff}\
@media(prefers-color-scheme:dark){.page{fill:#1c1c1c}text{fill:#eee}.f text{fill:#111}}";

const SCRIPT: &str = r#"
(function(){
const svg=document.documentElement,width=svg.viewBox.baseVal.width,say=document.getElementById('say'),first=say.textContent;
const boxes=[...document.querySelectorAll('.f')].map(g=>{const r=g.querySelector('rect'),t=g.querySelector('text');
return{g,r,t,x:+r.getAttribute('x'),w:+r.getAttribute('width'),y:+r.getAttribute('y'),title:g.querySelector('title').textContent};});
function show(x,w,y){for(const b of boxes){const inside=b.x>=x-.01&&b.x+b.w<=x+w+.01,around=b.y>y&&b.x<=x+.01&&b.x+b.w>=x+w-.01;
const visible=inside||around;b.g.style.display=visible?'':'none';if(!visible)continue;
const left=around?0:(b.x-x)*width/w,wide=around?width:b.w*width/w;b.r.setAttribute('x',left);b.r.setAttribute('width',wide);
b.t.setAttribute('x',left+3);const name=b.title.replace(/ — [^—]*$/,''),room=Math.floor((wide-6)/6.6);
b.t.textContent=name.length<=room?name:room<3?'':name.slice(0,room-1)+'…';}}
for(const b of boxes){b.g.addEventListener('click',()=>show(b.x,b.w,b.y));b.g.addEventListener('mouseenter',()=>{say.textContent=b.title;});}
addEventListener('keydown',e=>{if(e.key==='Escape'){show(0,width,1e9);for(const b of boxes)b.g.classList.remove('found');say.textContent=first;}
if((e.ctrlKey||e.metaKey)&&e.key==='f'){e.preventDefault();const text=prompt('search for');if(text===null)return;let n=0;
for(const b of boxes){const hit=text!==''&&b.title.toLowerCase().includes(text.toLowerCase());b.g.classList.toggle('found',hit);n+=hit;}say.textContent=n+' boxes match '+text;}});
})();
"#;

#[cfg(test)]
mod tests {
    use heapr_trace::Amounts;

    use super::*;
    use crate::{SampleFrame, Samples};

    #[test]
    fn markup_in_names_is_shown_as_text() {
        let frame = SampleFrame {
            name: "<script>&\"\u{1}".to_owned(),
            module: String::new(),
            file: String::new(),
            line: 0,
        };
        let amounts = Amounts { outstanding_bytes: 5, ..Amounts::default() };
        let mut out = Vec::new();
        let samples = Samples::of_stacks([(vec![frame], amounts)]);
        let profile = Profile::new(&samples, Metric::default(), "a<b");
        write(&mut out, &profile).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("&lt;script&gt;&amp;&quot; "));
        assert_eq!(text.matches("<script>").count(), 1, "our own");
    }

    #[test]
    fn boxes_of_estimates_have_their_intervals() {
        let frame = |name: &str| SampleFrame {
            name: name.to_owned(),
            module: String::new(),
            file: String::new(),
            line: 0,
        };
        let mut amounts = Amounts { outstanding_count: 100, ..Amounts::default() };
        amounts.variances.outstanding_count = 50;
        let samples = Samples::of_stacks(["f", "g"].map(|name| (vec![frame(name), frame("main")], amounts)));
        let mut out = Vec::new();
        write(&mut out, &Profile::new(&samples, Metric::OutstandingCount, "a")).unwrap();
        let text = String::from_utf8(out).unwrap();
        // 1.96 * sqrt(50), and for both together 1.96 * sqrt(100).
        for title in ["f — 100 ± 14 (50.0 %)", "g — 100 ± 14 (50.0 %)", "main — 200 ± 20 (100.0 %)"]
        {
            assert!(text.contains(title), "{title}: {text}");
        }
    }
}

//! Search for objects by name, class, text or id.

use heapr_v8::view::{Listed, ObjectOrder, ObjectQuery, Page};
use serde::Deserialize;

use super::lists::objects_answer;
use crate::error::{Error, Result};
use crate::page_rows::ROWS_MAX;
use crate::request::{Answer, Context, read};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchRequest {
    file: usize,
    text: String,
    #[serde(default)]
    r#in: SearchIn,
    #[serde(default)]
    offset: usize,
    #[serde(default = "crate::request::number::<200>")]
    limit: usize,
}

/// Place of the text.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SearchIn {
    #[default]
    Any,
    Class,
    Name,
    String,
}

pub(super) fn search(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let request: SearchRequest = read(body)?;
    let file = context.files.snapshot(request.file)?;
    let schema = "heapr.view.snapshot.search/1";
    let told = |error| file.error(&error);
    let text = request.text.trim();
    if let Some(id) = text.strip_prefix('@').and_then(|id| id.parse::<u64>().ok()) {
        let rows = match file.view.node_of_id(id).map_err(told)? {
            Some(node) => vec![file.view.row(node).map_err(told)?],
            None => Vec::new(),
        };
        let listed = Listed { total_count: rows.len() as u64, rows };
        let command = file.command("object", &[&format!("@{id}")]);
        return objects_answer(&file, (schema, command), request.offset, &listed);
    }
    if text.is_empty() {
        return Err(Error::bad("text", "nothing to look for"));
    }
    let lower = text.to_lowercase();
    let holds = |name: &[u8]| String::from_utf8_lossy(name).to_lowercase().contains(&lower);
    let mut classes: Vec<u32> = (0..)
        .zip(file.view.objects().class_list())
        .filter(|(_, class)| class.name_text().to_lowercase().contains(&lower))
        .map(|(number, _)| number)
        .collect();
    classes.sort_unstable();
    let (query, option) = match request.r#in {
        SearchIn::Class => (ObjectQuery { classes: Some(&classes), ..ObjectQuery::default() }, "--class"),
        SearchIn::String => (ObjectQuery { text: Some(&holds), ..ObjectQuery::default() }, "--text"),
        // A string's name is its text, and an object's name is often its class.
        SearchIn::Name | SearchIn::Any => {
            (ObjectQuery { name: Some(&holds), ..ObjectQuery::default() }, "--name")
        }
    };
    let page = Page { first: request.offset, count: request.limit.min(ROWS_MAX) };
    let listed = file.view.search(&query, ObjectOrder::Retained, page).map_err(told)?;
    // The command line takes regular expressions.
    let pattern: String = text
        .chars()
        .flat_map(|c| {
            (!c.is_alphanumeric() && !c.is_whitespace() && c.is_ascii())
                .then_some('\\')
                .into_iter()
                .chain([c])
        })
        .collect();
    let pattern = if option == "--text" { format!("(?i){pattern}") } else { pattern };
    let command = file.command("query", &[option, &pattern]);
    objects_answer(&file, (schema, command), request.offset, &listed)
}

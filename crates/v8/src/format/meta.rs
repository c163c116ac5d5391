//! Member `snapshot`: counts, and the order of fields.

use serde_json::Value;

use crate::format::dialect::Dialect;
use crate::format::whole_number;
use crate::kinds::{EDGE_KINDS, EdgeKind, NODE_KINDS, NodeKind};
use crate::languages::{JAVASCRIPT, Language};
use crate::{Error, Result};

/// Description of a snapshot in its own file.
///
/// Node 12 to 26, Chrome, Deno and Bun order and name the fields differently; all positions come
/// from this description.
#[derive(Debug, Clone)]
pub struct Meta {
    /// Number of nodes in the header.
    pub node_count: Option<u64>,
    /// Number of edges in the header.
    pub edge_count: Option<u64>,
    /// Number of functions in the allocation trace; 0 without one.
    pub trace_function_count: u64,
    /// Bytes outside of V8's heap that have no node.
    pub extra_native_bytes: u64,
    /// Names of a node's fields.
    pub node_fields: Vec<String>,
    /// Names of an edge's fields.
    pub edge_fields: Vec<String>,
    /// Names of a location's fields; empty in old files.
    pub location_fields: Vec<String>,
    /// Names of a trace function's fields.
    pub trace_function_fields: Vec<String>,
    /// Names of a trace node's fields.
    pub trace_node_fields: Vec<String>,
    /// Names of a sample's fields.
    pub sample_fields: Vec<String>,
    /// Facts on a heap of another language than JavaScript.
    pub dialect: Option<Dialect>,
    pub(crate) root_index: u64,
    pub(crate) node: NodeFields,
    pub(crate) edge: EdgeFields,
    node_type_names: Vec<String>,
    edge_type_names: Vec<String>,
    /// Text that the description was parsed from.
    text: Box<[u8]>,
}

/// Positions in a node's row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeFields {
    pub(crate) stride: usize,
    pub(crate) kind: usize,
    pub(crate) name: usize,
    pub(crate) id: usize,
    pub(crate) self_size: usize,
    pub(crate) edge_count: usize,
    pub(crate) trace_node_id: Option<usize>,
    pub(crate) detachedness: Option<usize>,
}

/// Positions in an edge's row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EdgeFields {
    pub(crate) stride: usize,
    pub(crate) kind: usize,
    pub(crate) name: usize,
    pub(crate) to_node: usize,
}

/// Largest number of fields in a row.
const FIELD_LIMIT: usize = 64;

/// Largest number of characters shown of an invalid count.
const SHOWN_CHARS: usize = 40;

impl Meta {
    /// Parses the text of the member, which starts at `offset`.
    pub(crate) fn parse(text: &[u8], offset: u64) -> Result<Self> {
        let header: Value =
            serde_json::from_slice(text).map_err(|source| Error::Header { offset, source })?;
        let count = |name: &'static str| match &header[name] {
            Value::Null => Ok(None),
            Value::Number(number) if whole_number(number).is_some() => Ok(whole_number(number)),
            other => Err(Error::Count {
                offset,
                name,
                found: other.to_string().chars().take(SHOWN_CHARS).collect(),
            }),
        };
        let meta = &header["meta"];
        if !meta.is_object() {
            return Err(Error::Meta { what: "there is no", name: "meta" });
        }
        let node_fields = names(&meta["node_fields"]);
        let edge_fields = names(&meta["edge_fields"]);
        let node = NodeFields {
            stride: stride(&node_fields, "node_fields")?,
            kind: required(&node_fields, "type")?,
            name: required(&node_fields, "name")?,
            id: required(&node_fields, "id")?,
            self_size: required(&node_fields, "self_size")?,
            edge_count: required(&node_fields, "edge_count")?,
            trace_node_id: position(&node_fields, "trace_node_id"),
            detachedness: position(&node_fields, "detachedness"),
        };
        let edge = EdgeFields {
            stride: stride(&edge_fields, "edge_fields")?,
            kind: required(&edge_fields, "type")?,
            name: required(&edge_fields, "name_or_index")?,
            to_node: required(&edge_fields, "to_node")?,
        };
        let mut node_type_names = names(&meta["node_types"][node.kind]);
        let mut edge_type_names = names(&meta["edge_types"][edge.kind]);
        // DevTools adds this type as well.
        edge_type_names.push("invisible".to_owned());
        node_type_names.truncate(256);
        edge_type_names.truncate(256);
        Ok(Self {
            node_count: count("node_count")?,
            edge_count: count("edge_count")?,
            trace_function_count: count("trace_function_count")?.unwrap_or(0),
            extra_native_bytes: count("extra_native_bytes")?.unwrap_or(0),
            dialect: Dialect::of(&header),
            root_index: count("root_index")?.unwrap_or(0),
            location_fields: names(&meta["location_fields"]),
            trace_function_fields: names(&meta["trace_function_info_fields"]),
            trace_node_fields: names(&meta["trace_node_fields"]),
            sample_fields: names(&meta["sample_fields"]),
            node_fields,
            edge_fields,
            node,
            edge,
            node_type_names,
            edge_type_names,
            text: text.into(),
        })
    }

    /// Kind for each number of the file's node types.
    pub(crate) fn node_kinds(&self) -> Vec<NodeKind> {
        let mut next = NODE_KINDS.len() as u8;
        self.node_type_names
            .iter()
            .map(|name| match NODE_KINDS.iter().position(|known| known == name) {
                Some(at) => NodeKind(at as u8),
                None => {
                    let kind = NodeKind(next.min(NodeKind::UNKNOWN.0));
                    next = next.saturating_add(1);
                    kind
                }
            })
            .collect()
    }

    /// Kind for each number of the file's edge types.
    pub(crate) fn edge_kinds(&self) -> Vec<EdgeKind> {
        self.edge_type_names
            .iter()
            .map(|name| {
                EDGE_KINDS
                    .iter()
                    .position(|known| known == name)
                    .map_or(EdgeKind::UNKNOWN, |at| EdgeKind(at as u8))
            })
            .collect()
    }

    /// Name of a kind of nodes, including kinds that only this file has.
    pub fn node_kind_name(&self, kind: NodeKind) -> &str {
        if let Some(name) = NODE_KINDS.get(usize::from(kind.0)) {
            return name;
        }
        let own = self.node_kinds().iter().position(|&other| other == kind);
        own.map_or("unknown", |at| &self.node_type_names[at])
    }

    /// Name of a kind of edges.
    pub fn edge_kind_name(&self, kind: EdgeKind) -> &'static str {
        EDGE_KINDS.get(usize::from(kind.0)).copied().unwrap_or("unknown")
    }

    /// Language of the heap.
    pub(crate) fn language(&self) -> &'static dyn Language {
        self.dialect.as_ref().map_or(&JAVASCRIPT, |dialect| dialect.language)
    }

    /// Whether ids say nothing about other snapshots, because objects move.
    pub(crate) fn objects_move(&self) -> bool {
        self.dialect.as_ref().is_some_and(|dialect| !dialect.ids_are_addresses)
    }

    /// Member of the header that describes a heap of another language.
    pub(crate) fn dialect_member(&self) -> Option<Value> {
        self.dialect.as_ref()?;
        let mut header: Value = serde_json::from_slice(&self.text).ok()?;
        header.get_mut("heapr").map(Value::take)
    }

    /// Text of the member.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }
}

/// Position of a field in its row.
pub(crate) fn position(fields: &[String], name: &str) -> Option<usize> {
    fields.iter().position(|field| field == name)
}

fn names(value: &Value) -> Vec<String> {
    let names = value.as_array().map(Vec::as_slice).unwrap_or_default();
    names.iter().map(|name| name.as_str().unwrap_or_default().to_owned()).collect()
}

fn stride(fields: &[String], name: &'static str) -> Result<usize> {
    if fields.is_empty() || fields.len() > FIELD_LIMIT {
        return Err(Error::Meta { what: "a strange number of", name });
    }
    Ok(fields.len())
}

fn required(fields: &[String], name: &'static str) -> Result<usize> {
    position(fields, name).ok_or(Error::Meta { what: "there is no field", name })
}

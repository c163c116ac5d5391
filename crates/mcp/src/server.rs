//! The protocol's side: the list of tools, and the handling of calls.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::arguments::{Given, schema};
use crate::commands::Commands;
use crate::file_ids::FileIds;
use crate::lifecycle::{Lifecycle, Terms, VERSIONS};
use crate::message::{self, Fault, Request};
use crate::recordings::Recordings;
use crate::tools::{Action, TOOLS, Tool, lines_report};
use crate::{Error, Options, Result, processes, source_lines};

const INSTRUCTIONS: &str = "heapr tells where the memory of Linux programs is. A program that can be run: record, then explain and report. A \
    process that runs: explain its pid, then attach for a while; or snapshot it two or three times and ask suspects. Node: snapshots, suspects, \
    retainers. Traces and snapshots have ids (t1, s2) that every tool takes.";

/// The server.
#[derive(Debug)]
pub(crate) struct Server {
    options: Options,
    commands: Commands,
    ids: FileIds,
    recordings: Recordings,
}

impl Server {
    /// Creates a server without recordings.
    pub(crate) fn new(options: Options) -> Self {
        let commands = Commands::new(options.program.clone());
        let recordings = Recordings::new(commands.clone(), options.folder.clone());
        Self { options, commands, ids: FileIds::default(), recordings }
    }

    /// Returns the recordings, which must be ended with the server.
    pub(crate) fn recordings(&self) -> &Recordings {
        &self.recordings
    }

    async fn answer(&self, tool: &'static Tool, given: &Given) -> Result<String> {
        if !tool.is_read_only() && !self.options.may_attach {
            return Err(Error::NotAllowed { tool: tool.name });
        }
        match tool.action {
            Action::Processes => Ok(processes::list(given.text("name"))),
            Action::Ask(question) => self.commands.ask(question(given, &self.ids)?).await,
            Action::SourceLines => {
                let (question, sort, top) = lines_report(given, &self.ids)?;
                let report = self.commands.ask_json(question).await?;
                Ok(source_lines::text(&report, &sort, top))
            }
            Action::Run => {
                let folder =
                    given.text("folder").map(|folder| self.ids.path("folder", folder)).transpose()?;
                let seconds = given.count("seconds").unwrap_or(60);
                let (file, said) =
                    self.recordings.run(&given.texts("program"), folder.as_deref(), seconds).await?;
                Ok(format!("{}the program: {said}\n", self.recorded(&file).await?))
            }
            Action::Attach => {
                let pid = given.count("pid").unwrap_or_default();
                let seconds = given.count("seconds").unwrap_or(10);
                let file = self.recordings.attach(pid, seconds, given.flag("tree")).await?;
                self.recorded(&file).await
            }
            Action::Snapshot => {
                let files = self.recordings.snapshot(given.count("pid").unwrap_or_default()).await?;
                let mut text = String::new();
                for file in files {
                    let _ = writeln!(text, "{} is {}", self.ids.id(&file), file.display());
                }
                Ok(format!("{text}next: a second snapshot after some work, then suspects; or summary\n"))
            }
        }
    }

    /// Describes a new trace: its id, and the largest stacks.
    async fn recorded(&self, file: &Path) -> Result<String> {
        let id = self.ids.id(file);
        let question =
            [file.as_os_str(), "--stacks".as_ref(), "so".as_ref(), "--top=3".as_ref(), "--depth=8".as_ref()];
        let report = self.commands.ask(std::iter::once("report".as_ref()).chain(question)).await?;
        Ok(format!(
            "{id} is {}\n{report}next: explain {id}; report {id} (sort, at, range, frames); source_lines {id}\n",
            file.display()
        ))
    }
}

/// Next step after a request.
#[derive(Debug)]
pub(crate) enum Step {
    /// The answer.
    Answer(Value),
    /// A tool must be called, which takes a while.
    Call(Call),
}

/// Call of a tool.
#[derive(Debug)]
pub(crate) struct Call {
    /// Id of the request.
    pub(crate) id: Value,
    tool: &'static Tool,
    arguments: Option<Map<String, Value>>,
    terms: Terms,
}

impl Call {
    /// True if the call neither starts programs nor stops processes.
    pub(crate) fn is_read_only(&self) -> bool {
        self.tool.is_read_only()
    }
}

impl Server {
    /// Answers a request, except for calls of tools.
    pub(crate) fn begin(&self, lifecycle: &mut Lifecycle, request: Request) -> Step {
        let outcome = match request.method.as_str() {
            "initialize" => lifecycle.initialize(&request).map(|version| self.session(version)),
            method => match (method, lifecycle.check(&request)) {
                (_, Err(fault)) => Err(fault),
                ("tools/call", Ok(terms)) => match called(&request, terms) {
                    Ok(call) => return Step::Call(call),
                    Err(fault) => Err(fault),
                },
                ("tools/list", Ok(terms)) => Ok(listed(terms)),
                ("server/discover", Ok(_)) => Ok(self.described()),
                ("ping", Ok(Terms { has_ping: true, .. })) => Ok(json!({})),
                (method, Ok(_)) => Err(Fault::no_method(method)),
            },
        };
        Step::Answer(match outcome {
            Ok(result) => message::answer(&request.id, result),
            Err(fault) => fault.answer(Some(&request.id)),
        })
    }

    /// Calls a tool. A refusal is an answer for the caller, not an error of the protocol.
    pub(crate) async fn call(&self, call: Call) -> Value {
        let Call { id, tool, arguments, terms } = call;
        let outcome = match Given::check(tool.arguments, arguments) {
            Ok(given) => self.answer(tool, &given).await,
            Err(error) => Err(error),
        };
        let is_error = outcome.is_err();
        let text = outcome.unwrap_or_else(|error| error.to_string());
        let result = json!({"content": [{"type": "text", "text": text}], "isError": is_error});
        message::answer(&id, with_kind(terms, result))
    }

    fn session(&self, version: &str) -> Value {
        json!({
            "protocolVersion": version,
            "capabilities": {"tools": {}},
            "serverInfo": self.name(),
            "instructions": INSTRUCTIONS,
        })
    }

    fn described(&self) -> Value {
        json!({
            "resultType": "complete",
            "supportedVersions": VERSIONS,
            "capabilities": {"tools": {}},
            "instructions": INSTRUCTIONS,
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {"io.modelcontextprotocol/serverInfo": self.name()},
        })
    }

    fn name(&self) -> Value {
        json!({"name": "heapr", "version": self.options.version})
    }
}

/// The call of a tool that a request wants.
fn called(request: &Request, terms: Terms) -> std::result::Result<Call, Fault> {
    let name = request.params.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| Fault::parameters("the name of a tool is missing"))?;
    let tool = TOOLS.iter().find(|tool| tool.name == name);
    let tool = tool.ok_or_else(|| Fault::parameters("there is no such tool"))?;
    let arguments = match request.params.get("arguments") {
        None | Some(Value::Null) => None,
        Some(Value::Object(arguments)) => Some(arguments.clone()),
        Some(_) => return Err(Fault::parameters("the arguments are not an object")),
    };
    Ok(Call { id: request.id.clone(), tool, arguments, terms })
}

/// The list of all tools.
fn listed(terms: Terms) -> Value {
    let tools: Vec<Value> = TOOLS
        .iter()
        .map(|tool| {
            json!({
                "name": tool.name,
                "description": tool.about,
                "inputSchema": schema(tool.arguments),
                "annotations": {
                    "readOnlyHint": tool.is_read_only(),
                    "destructiveHint": false,
                    "openWorldHint": false,
                },
            })
        })
        .collect();
    let mut result = with_kind(terms, json!({"tools": tools}));
    if terms.tells_kind {
        result["ttlMs"] = 0.into();
        result["cacheScope"] = "private".into();
    }
    result
}

fn with_kind(terms: Terms, mut result: Value) -> Value {
    if terms.tells_kind {
        result["resultType"] = "complete".into();
    }
    result
}

//! The protocol's side: the list of tools, and the handling of calls.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool as ListedTool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};

use crate::arguments::{Given, schema};
use crate::commands::Commands;
use crate::file_ids::FileIds;
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
    recordings: Arc<Recordings>,
}

impl Server {
    /// Creates a server without recordings.
    pub(crate) fn new(options: Options) -> Self {
        let commands = Commands::new(options.program.clone());
        let recordings = Arc::new(Recordings::new(commands.clone(), options.folder.clone()));
        Self { options, commands, ids: FileIds::default(), recordings }
    }

    /// Recordings, which must be ended with the server.
    pub(crate) fn recordings(&self) -> Arc<Recordings> {
        Arc::clone(&self.recordings)
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

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.server_info = Implementation::new("heapr", self.options.version.clone());
        info.instructions = Some(INSTRUCTIONS.to_owned());
        info
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> std::result::Result<ListToolsResult, rmcp::ErrorData> {
        let listed = TOOLS.iter().map(|tool| {
            let hints =
                ToolAnnotations::new().read_only(tool.is_read_only()).destructive(false).open_world(false);
            ListedTool::new(tool.name, tool.about, schema(tool.arguments)).with_annotations(hints)
        });
        Ok(ListToolsResult::with_all_items(listed.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> std::result::Result<CallToolResponse, rmcp::ErrorData> {
        let Some(tool) = TOOLS.iter().find(|tool| tool.name == request.name) else {
            return Err(rmcp::ErrorData::invalid_params("there is no such tool", None));
        };
        let outcome = match Given::check(tool.arguments, request.arguments) {
            Ok(given) => self.answer(tool, &given).await,
            Err(error) => Err(error),
        };
        // The refusal of a tool is an answer for the caller, not an error of the protocol.
        Ok(match outcome {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Err(error) => CallToolResult::error(vec![ContentBlock::text(error.to_string())]),
        }
        .into())
    }
}

//! A client of the server.

use std::path::Path;
use std::time::Duration;

use rmcp::model::CallToolRequestParams;
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::TokioChildProcess;
use rmcp::{ServiceExt as _, model::Tool};
use serde_json::Value;

/// A client connected to a server, for one test.
pub(crate) struct Client(RunningService<RoleClient, ()>);

/// Runs a test with a client, within a time limit.
pub(crate) fn with_client<Test: AsyncFnOnce(&Client)>(folder: &Path, words: &[&str], test: Test) {
    // Command line from the same build: this crate has no program.
    let program = std::env::current_exe().unwrap().parent().unwrap().with_file_name("heapr");
    if !program.is_file() {
        return heapr_testkit::not_run("target/…/heapr is not built: cargo build -p heapr");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut command = tokio::process::Command::new(program);
        command.args(["mcp", "--folder"]).arg(folder).args(words).current_dir(folder);
        let transport = TokioChildProcess::new(command).unwrap();
        let whole = async {
            let client = Client(().serve(transport).await.unwrap());
            test(&client).await;
            client.0.cancel().await.unwrap();
        };
        tokio::time::timeout(Duration::from_secs(300), whole).await.expect("it takes too long");
    });
}

impl Client {
    /// All tools.
    pub(crate) async fn tools(&self) -> Vec<Tool> {
        self.0.list_all_tools().await.unwrap()
    }

    /// Answer of a tool; the error is the reason of its refusal.
    pub(crate) async fn call(&self, tool: &'static str, arguments: Value) -> Result<String, String> {
        let mut request = CallToolRequestParams::new(tool);
        request.arguments = arguments.as_object().cloned();
        let result = self.0.call_tool(request).await.map_err(|error| error.to_string())?;
        let is_error = result.is_error == Some(true);
        let text: String =
            result.content.iter().filter_map(|block| Some(block.as_text()?.text.as_str())).collect();
        if is_error { Err(text) } else { Ok(text) }
    }

    /// Answer of a tool that must succeed.
    pub(crate) async fn ask(&self, tool: &'static str, arguments: Value) -> String {
        self.call(tool, arguments).await.unwrap_or_else(|error| panic!("{tool}: {error}"))
    }
}

/// Id at the start of an answer.
pub(crate) fn id(answer: &str) -> &str {
    answer.split_whitespace().next().unwrap()
}

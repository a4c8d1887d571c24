//! One client's session as a pure state machine: takes messages and results of tool calls; returns answers and tool
//! calls to start. It never blocks. However much a client sends, it stores a bounded number of calls, and none that
//! have ended.

use super::message::{self, Message, Refusal, TOO_MANY};
use super::tools::{Name, Offer};
use super::version::{declared, is_at_least, negotiate};
use caro_model::Cancel;
use rmcp::model::{ErrorCode, ErrorData, ProtocolVersion};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};

/// Most calls in progress at once.
pub const MAX_CALLS: usize = 256;
/// Most messages in a batch.
pub const MAX_BATCH: usize = 100;
/// Most bytes of a message that calls a tool.
pub const MAX_CALL_BYTES: usize = 256 << 10;
/// Milliseconds that a client may cache the list of tools, which does not change while the server runs.
const LIST_TTL_MS: u64 = 3_600_000;

/// Describes the server to the client's model.
const INSTRUCTIONS: &str = "caro knows the programs of this machine. Use generate_command for a shell command in one line, \
    check_command before you run a command that you wrote yourself, explain_command and search_manual for the flags of the \
    versions that are installed here.";

/// The result of a call: `content`, `structuredContent`, `isError`.
pub type Outcome = Map<String, Value>;

/// One thing for the transport to do.
#[derive(Debug)]
pub enum Step {
    /// Send this message.
    Send(Value),
    /// Start this call.
    Start(Start),
}

/// A tool call to start.
#[derive(Debug, Clone)]
pub struct Start {
    /// Its number in this session.
    pub call: u64,
    /// The id of its answer.
    pub id: Value,
    /// The tool.
    pub tool: Name,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// Stops it.
    pub cancel: Cancel,
    /// True if the client wants progress notifications.
    pub wants_progress: bool,
}

/// A call in progress.
#[derive(Debug)]
struct ActiveCall {
    id: Value,
    key: String,
    cancel: Cancel,
    token: Option<Value>,
    progress: u64,
    batch: Option<u64>,
    version: ProtocolVersion,
}

/// A batch, whose answers are sent as one message.
#[derive(Debug, Default)]
struct Batch {
    waiting: usize,
    answers: Vec<Value>,
}

/// The session of one client.
#[derive(Debug)]
pub struct Session {
    offer: Offer,
    /// The revision negotiated in the handshake.
    version: Option<ProtocolVersion>,
    /// Calls in progress by number.
    live: BTreeMap<u64, ActiveCall>,
    /// Their numbers by the client's ids.
    ids: HashMap<String, u64>,
    batches: HashMap<u64, Batch>,
    /// Stopped calls that have not ended yet, with their batches.
    stopped: HashMap<u64, u64>,
    next: u64,
}

impl Session {
    /// A new session, before the handshake.
    pub fn new(offer: Offer) -> Self {
        Self {
            offer,
            version: None,
            live: BTreeMap::new(),
            ids: HashMap::new(),
            batches: HashMap::new(),
            stopped: HashMap::new(),
            next: 0,
        }
    }

    /// True once there was a handshake.
    pub fn is_open(&self) -> bool {
        self.version.is_some()
    }

    /// True while a call is in progress.
    pub fn is_busy(&self) -> bool {
        !self.live.is_empty()
    }

    /// Processes bytes from a client: one message, or a batch.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<Step> {
        match message::parse(bytes) {
            Ok(value) => self.take_value(value, bytes.len()),
            Err(refusal) => vec![Step::Send(refusal.answer())],
        }
    }

    /// Processes a parsed message or batch; `bytes` is its size.
    pub fn take_value(&mut self, value: Value, bytes: usize) -> Vec<Step> {
        match value {
            Value::Array(all) => self.take_batch(all, bytes),
            one => self.take_one(one, bytes, None).into_iter().collect(),
        }
    }

    /// Returns the answer of a call that has ended; for the last call of a batch, the answers of the batch. A call
    /// that was stopped on request has no answer.
    pub fn finish(&mut self, call: u64, outcome: Outcome) -> Option<Value> {
        if let Some(batch) = self.stopped.remove(&call) {
            return self.end_in_batch(batch, None);
        }
        let live = self.live.remove(&call)?;
        self.ids.remove(&live.key);
        let answer = message::success(&live.id, for_version(Value::Object(outcome), &live.version));
        match live.batch {
            None => Some(answer),
            Some(batch) => self.end_in_batch(batch, Some(answer)),
        }
    }

    /// Returns a progress notification; `None` if the call has ended or the client wants no progress.
    pub fn progress(&mut self, call: u64, text: &str) -> Option<Value> {
        let live = self.live.get_mut(&call)?;
        let token = live.token.clone()?;
        live.progress += 1;
        let mut params = json!({"progressToken": token, "progress": live.progress});
        if is_at_least(&live.version, &ProtocolVersion::V_2025_03_26) {
            params["message"] = text.into();
        }
        Some(message::notification("notifications/progress", params))
    }

    /// Stops and removes a call whose request is gone, so that nobody waits for its answer.
    pub fn forget(&mut self, call: u64) {
        self.cancel(call);
        if let Some(batch) = self.stopped.remove(&call) {
            self.end_in_batch(batch, None);
        }
    }

    /// Stops a call whose answer is no longer wanted. Its batch still waits for its end: the answers of a batch are
    /// sent where the batch came from, and not in answer to the message that stops a call.
    fn cancel(&mut self, call: u64) {
        let Some(live) = self.live.remove(&call) else { return };
        self.ids.remove(&live.key);
        live.cancel.cancel();
        if let Some(batch) = live.batch {
            self.stopped.insert(call, batch);
        }
    }

    /// Stops all calls.
    pub fn stop(&mut self) {
        self.live.values().for_each(|live| live.cancel.cancel());
    }

    fn take_batch(&mut self, all: Vec<Value>, bytes: usize) -> Vec<Step> {
        let refused =
            |why: String| vec![Step::Send(Refusal::new(Value::Null, ErrorCode::INVALID_REQUEST, why).answer())];
        if self.version.as_ref() != Some(&ProtocolVersion::V_2025_03_26) {
            return refused("batches are part of revision 2025-03-26 alone: send one message at a time".into());
        }
        if all.is_empty() || all.len() > MAX_BATCH {
            return refused(format!("a batch has 1 to {MAX_BATCH} messages"));
        }
        self.next += 1;
        let batch = self.next;
        self.batches.insert(batch, Batch::default());
        let (mut steps, mut answers) = (Vec::new(), Vec::new());
        for one in all {
            match self.take_one(one, bytes, Some(batch)) {
                Some(Step::Send(answer)) => answers.push(answer),
                Some(start) => steps.push(start),
                None => {}
            }
        }
        let waiting = steps.len();
        if let Some(open) = self.batches.get_mut(&batch) {
            *open = Batch { waiting, answers };
        }
        if waiting == 0 {
            steps.extend(self.close_batch(batch).map(Step::Send));
        }
        steps
    }

    /// Processes one message.
    fn take_one(&mut self, value: Value, bytes: usize, batch: Option<u64>) -> Option<Step> {
        let (id, method, params) = match message::read(value) {
            Err(refusal) => return Some(Step::Send(refusal.answer())),
            Ok(Message::Response) => return None,
            Ok(Message::Notification { method, params }) => {
                self.on_notification(&method, &params);
                return None;
            }
            Ok(Message::Request { id, method, params }) => (id, method, params),
        };
        match self.on_request(&id, &method, params, bytes, batch) {
            Ok(step) => Some(step),
            Err(refusal) => Some(Step::Send(refusal.answer())),
        }
    }

    fn on_notification(&mut self, method: &str, params: &Map<String, Value>) {
        // the session depends on no other notification
        if method == "notifications/cancelled"
            && let Some(call) = params.get("requestId").and_then(|id| self.ids.get(&key(id)).copied())
        {
            self.cancel(call);
        }
    }

    fn on_request(
        &mut self,
        id: &Value,
        method: &str,
        params: Map<String, Value>,
        bytes: usize,
        batch: Option<u64>,
    ) -> Result<Step, Refusal> {
        let refused = |code: ErrorCode, why: String| Refusal::new(id.clone(), code, why);
        let answer = |result: Value| Ok(Step::Send(message::success(id, result)));
        if method == "initialize" {
            if batch.is_some() {
                return Err(refused(ErrorCode::INVALID_REQUEST, "a handshake stands in no batch".into()));
            }
            return answer(self.handshake(id, &params)?);
        }
        let declared = declared(id, &params)?;
        let stateless = declared.is_some();
        let Some(version) = declared.or_else(|| self.version.clone()) else {
            // a ping is allowed at any time
            if method == "ping" {
                return answer(json!({}));
            }
            return Err(refused(
                ErrorCode::INVALID_REQUEST,
                format!("`{method}` comes before the handshake: send `initialize` first"),
            ));
        };
        let result = match method {
            "ping" if !stateless => json!({}),
            "server/discover" if stateless => description(),
            "tools/list" => {
                if params.contains_key("cursor") {
                    return Err(refused(
                        ErrorCode::INVALID_PARAMS,
                        "there is no such page: the list of tools has one".into(),
                    ));
                }
                let mut result = json!({"tools": self.offer.listed(&version)});
                if stateless {
                    mark_cacheable(&mut result);
                }
                result
            }
            "tools/call" => return self.start_call(id, params, version, bytes, batch).map(Step::Start),
            _ => {
                return Err(refused(
                    ErrorCode::METHOD_NOT_FOUND,
                    format!("there is no method `{}`", shortened(method)),
                ));
            }
        };
        answer(for_version(result, &version))
    }

    fn handshake(&mut self, id: &Value, params: &Map<String, Value>) -> Result<Value, Refusal> {
        let refused = |code: ErrorCode, why: &str| Refusal::new(id.clone(), code, why);
        if self.is_open() {
            return Err(refused(ErrorCode::INVALID_REQUEST, "there was a handshake already"));
        }
        let Some(wanted) = params.get("protocolVersion").and_then(Value::as_str) else {
            return Err(refused(ErrorCode::INVALID_PARAMS, "`protocolVersion` is a text, as in 2025-11-25"));
        };
        let version = negotiate(wanted);
        self.version = Some(version.clone());
        Ok(json!({
            "protocolVersion": version,
            "capabilities": capabilities(),
            "serverInfo": server_info(),
            "instructions": INSTRUCTIONS,
        }))
    }

    fn start_call(
        &mut self,
        id: &Value,
        mut params: Map<String, Value>,
        version: ProtocolVersion,
        bytes: usize,
        batch: Option<u64>,
    ) -> Result<Start, Refusal> {
        let invalid = |why: String| Refusal::new(id.clone(), ErrorCode::INVALID_PARAMS, why);
        if bytes > MAX_CALL_BYTES {
            return Err(invalid(format!("a call has at most {MAX_CALL_BYTES} bytes")));
        }
        let name = params.get("name").and_then(Value::as_str).ok_or_else(|| invalid("`name` is a text".into()))?;
        let Some(tool) = self.offer.find(name) else {
            return Err(invalid(format!("there is no tool `{}`; `tools/list` lists them", shortened(name))));
        };
        let arguments = match params.remove("arguments") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(arguments)) => arguments,
            Some(_) => return Err(invalid("`arguments` is an object".into())),
        };
        let token = params.get("_meta").and_then(|meta| meta.get("progressToken")).cloned();
        if token.as_ref().is_some_and(|token| !message::is_id(token)) {
            return Err(invalid("`progressToken` is a text or a whole number".into()));
        }
        let key = key(id);
        if self.ids.contains_key(&key) {
            let why = "a call with this id is under way";
            return Err(Refusal::new(id.clone(), ErrorCode::INVALID_REQUEST, why));
        }
        if self.live.len() >= MAX_CALLS {
            let why = format!("{MAX_CALLS} calls are under way: wait until some have ended, or cancel them");
            return Err(Refusal::new(id.clone(), TOO_MANY, why));
        }
        self.next += 1;
        let (call, cancel, wants_progress) = (self.next, Cancel::new(), token.is_some());
        let id = id.clone();
        self.ids.insert(key.clone(), call);
        let live = ActiveCall { id: id.clone(), key, cancel: cancel.clone(), token, progress: 0, batch, version };
        self.live.insert(call, live);
        Ok(Start { call, id, tool, arguments, cancel, wants_progress })
    }

    /// Records that a call of a batch ended, with its answer if it has one; returns the answers of the batch, if it
    /// was the last call.
    fn end_in_batch(&mut self, batch: u64, answer: Option<Value>) -> Option<Value> {
        let open = self.batches.get_mut(&batch)?;
        open.answers.extend(answer);
        open.waiting = open.waiting.saturating_sub(1);
        if open.waiting > 0 { None } else { self.close_batch(batch) }
    }

    /// Removes a batch; returns its answers, if there are any.
    fn close_batch(&mut self, batch: u64) -> Option<Value> {
        let answers = self.batches.remove(&batch)?.answers;
        (!answers.is_empty()).then_some(Value::Array(answers))
    }
}

/// Returns the key of an id: its JSON text, so that `1` and `"1"` differ.
fn key(id: &Value) -> String {
    id.to_string()
}

/// Shortens a name from a client for a message: its first 80 characters, without control characters.
fn shortened(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(80).collect()
}

fn capabilities() -> Value {
    json!({"tools": {}})
}

fn server_info() -> Value {
    json!({"name": "caro", "title": "caro", "version": env!("CARGO_PKG_VERSION")})
}

/// The description of the server for a client without handshake.
fn description() -> Value {
    let mut result = json!({
        "supportedVersions": ProtocolVersion::KNOWN_VERSIONS,
        "capabilities": capabilities(),
        "instructions": INSTRUCTIONS,
    });
    mark_cacheable(&mut result);
    result
}

/// Marks a result as cacheable: the time, and that it is the same for all clients.
fn mark_cacheable(result: &mut Value) {
    result["ttlMs"] = LIST_TTL_MS.into();
    result["cacheScope"] = "public".into();
}

/// Converts a result to the form of a revision.
fn for_version(mut result: Value, version: &ProtocolVersion) -> Value {
    if !version.has_initialize() {
        result["resultType"] = "complete".into();
        result["_meta"] = json!({"io.modelcontextprotocol/serverInfo": server_info()});
    }
    if !is_at_least(version, &ProtocolVersion::V_2025_06_18)
        && let Value::Object(result) = &mut result
    {
        result.remove("structuredContent");
    }
    result
}

/// The error of a transport for headers that contradict the message.
pub fn mismatch(id: &Value, why: &str) -> Value {
    message::failure(id, &ErrorData::new(ErrorCode::HEADER_MISMATCH, why.to_owned(), None))
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;

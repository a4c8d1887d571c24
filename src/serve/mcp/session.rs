//! One client's session as a pure state machine: a message in, answers and calls of tools out; later the results of those
//! calls in, and their answers out. It waits for nothing. However much a client sends, it keeps a bounded number of calls and
//! nothing of what is over.

use super::message::{self, Message, Refusal, TOO_MANY};
use super::tools::{Name, Offer};
use super::version::{agreed, declared, has};
use caro_model::Cancel;
use rmcp::model::{ErrorCode, ErrorData, ProtocolVersion};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};

/// The most calls that are under way at once.
pub const MOST_CALLS: usize = 256;
/// The most messages in a batch.
pub const MOST_IN_BATCH: usize = 100;
/// The most bytes of a message that calls a tool.
pub const LONGEST_CALL: usize = 256 << 10;
/// The time that a client may keep the list of tools, milliseconds: it is the same as long as the server runs.
const FRESH: u64 = 3_600_000;

/// Tells a person's assistant about the server.
const INSTRUCTIONS: &str = "caro knows the programs of this machine. Use generate_command for a shell command in one line, \
    check_command before you run a command that you wrote yourself, explain_command and search_manual for the flags of the \
    versions that are installed here.";

/// The result of a call: `content`, `structuredContent`, `isError`.
pub type Outcome = Map<String, Value>;

/// One thing that is to be done.
#[derive(Debug)]
pub enum Step {
    /// Send this.
    Say(Value),
    /// Begin this call.
    Start(Start),
}

/// A call of a tool that is to begin.
#[derive(Debug, Clone)]
pub struct Start {
    /// Its number in this session.
    pub call: u64,
    /// The id that its answer is going to have.
    pub id: Value,
    /// The tool.
    pub tool: Name,
    /// The arguments that it is called with.
    pub arguments: Map<String, Value>,
    /// The switch that stops it.
    pub cancel: Cancel,
    /// True if the client wants to be told how it goes.
    pub told: bool,
}

/// A call that is under way.
#[derive(Debug)]
struct Live {
    id: Value,
    key: String,
    cancel: Cancel,
    token: Option<Value>,
    progress: u64,
    batch: Option<u64>,
    version: ProtocolVersion,
}

/// A batch whose answers are sent as one.
#[derive(Debug, Default)]
struct Batch {
    waiting: usize,
    done: Vec<Value>,
}

/// The session.
#[derive(Debug)]
pub struct Session {
    offer: Offer,
    /// The revision that the handshake came to.
    version: Option<ProtocolVersion>,
    /// Calls by their numbers.
    live: BTreeMap<u64, Live>,
    /// Their numbers by the ids that the client gave them.
    ids: HashMap<String, u64>,
    batches: HashMap<u64, Batch>,
    next: u64,
}

impl Session {
    /// A session in which nothing was said.
    pub fn new(offer: Offer) -> Self {
        Self { offer, version: None, live: BTreeMap::new(), ids: HashMap::new(), batches: HashMap::new(), next: 0 }
    }

    /// True once there was a handshake.
    pub fn is_open(&self) -> bool {
        self.version.is_some()
    }

    /// True while a call is under way.
    pub fn is_busy(&self) -> bool {
        !self.live.is_empty()
    }

    /// Takes what a client sent: one message, or a batch of them.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<Step> {
        match message::parse(bytes) {
            Ok(value) => self.take_value(value, bytes.len()),
            Err(refusal) => vec![Step::Say(refusal.answer())],
        }
    }

    /// The same of what was parsed, and how many bytes it was.
    pub fn take_value(&mut self, value: Value, bytes: usize) -> Vec<Step> {
        match value {
            Value::Array(all) => self.take_batch(all, bytes),
            one => self.take_one(one, bytes, None).into_iter().collect(),
        }
    }

    /// The answer of a call that has ended; with it those of its batch, if it was the last one of that. Nothing for a call
    /// that was stopped on request, which nobody waits for.
    pub fn finish(&mut self, call: u64, outcome: Outcome) -> Option<Value> {
        let live = self.live.remove(&call)?;
        self.ids.remove(&live.key);
        let answer = message::success(&live.id, completed(Value::Object(outcome), &live.version));
        match live.batch {
            None => Some(answer),
            Some(batch) => self.of_batch(batch, Some(answer)),
        }
    }

    /// The notification that tells how a call goes; nothing if it is over or the client does not want to be told.
    pub fn progress(&mut self, call: u64, text: &str) -> Option<Value> {
        let live = self.live.get_mut(&call)?;
        let token = live.token.clone()?;
        live.progress += 1;
        let mut params = json!({"progressToken": token, "progress": live.progress});
        if has(&live.version, &ProtocolVersion::V_2025_03_26) {
            params["message"] = text.into();
        }
        Some(message::notification("notifications/progress", params))
    }

    /// Stops a call that nobody waits for any more; the answers of its batch, if it was the last one of that.
    pub fn forget(&mut self, call: u64) -> Option<Value> {
        let live = self.live.remove(&call)?;
        self.ids.remove(&live.key);
        live.cancel.cancel();
        self.of_batch(live.batch?, None)
    }

    /// Stops everything.
    pub fn stop(&mut self) {
        self.live.values().for_each(|live| live.cancel.cancel());
    }

    fn take_batch(&mut self, all: Vec<Value>, bytes: usize) -> Vec<Step> {
        let refused =
            |why: String| vec![Step::Say(Refusal::new(Value::Null, ErrorCode::INVALID_REQUEST, why).answer())];
        if self.version.as_ref() != Some(&ProtocolVersion::V_2025_03_26) {
            return refused("batches are part of revision 2025-03-26 alone: send one message at a time".into());
        }
        if all.is_empty() || all.len() > MOST_IN_BATCH {
            return refused(format!("a batch has 1 to {MOST_IN_BATCH} messages"));
        }
        self.next += 1;
        let batch = self.next;
        self.batches.insert(batch, Batch::default());
        let (mut steps, mut said) = (Vec::new(), Vec::new());
        for one in all {
            match self.take_one(one, bytes, Some(batch)) {
                Some(Step::Say(answer)) => said.push(answer),
                Some(start) => steps.push(start),
                None => {}
            }
        }
        // one of its own calls may have been stopped by a later message of it
        let waiting = self.live.values().filter(|live| live.batch == Some(batch)).count();
        if let Some(open) = self.batches.get_mut(&batch) {
            *open = Batch { waiting, done: said };
        }
        if waiting == 0 {
            steps.extend(self.over(batch).map(Step::Say));
        }
        steps
    }

    /// Takes one message; what it comes to.
    fn take_one(&mut self, value: Value, bytes: usize, batch: Option<u64>) -> Option<Step> {
        let (id, method, params) = match message::read(value) {
            Err(refusal) => return Some(Step::Say(refusal.answer())),
            Ok(Message::Response) => return None,
            Ok(Message::Notification { method, params }) => return self.notified(&method, &params),
            Ok(Message::Request { id, method, params }) => (id, method, params),
        };
        match self.request(&id, &method, params, bytes, batch) {
            Ok(step) => Some(step),
            Err(refusal) => Some(Step::Say(refusal.answer())),
        }
    }

    fn notified(&mut self, method: &str, params: &Map<String, Value>) -> Option<Step> {
        // the other ones tell nothing that anything depends on
        if method != "notifications/cancelled" {
            return None;
        }
        let call = *self.ids.get(&key(params.get("requestId")?))?;
        self.forget(call).map(Step::Say)
    }

    fn request(
        &mut self,
        id: &Value,
        method: &str,
        params: Map<String, Value>,
        bytes: usize,
        batch: Option<u64>,
    ) -> Result<Step, Refusal> {
        let refused = |code: ErrorCode, why: String| Refusal::new(id.clone(), code, why);
        let said = |result: Value| Ok(Step::Say(message::success(id, result)));
        if method == "initialize" {
            if batch.is_some() {
                return Err(refused(ErrorCode::INVALID_REQUEST, "a handshake stands in no batch".into()));
            }
            return said(self.handshake(id, &params)?);
        }
        let declared = declared(id, &params)?;
        let stateless = declared.is_some();
        let Some(version) = declared.or_else(|| self.version.clone()) else {
            // whether the other side is there may be asked at any time
            if method == "ping" {
                return said(json!({}));
            }
            return Err(refused(
                ErrorCode::INVALID_REQUEST,
                format!("`{method}` comes before the handshake: send `initialize` first"),
            ));
        };
        let result = match method {
            "ping" if !stateless => json!({}),
            "server/discover" if stateless => discovered(),
            "tools/list" => {
                if params.contains_key("cursor") {
                    return Err(refused(
                        ErrorCode::INVALID_PARAMS,
                        "there is no such page: the list of tools has one".into(),
                    ));
                }
                let mut result = json!({"tools": self.offer.listed(&version)});
                if stateless {
                    keepable(&mut result);
                }
                result
            }
            "tools/call" => return self.call(id, params, version, bytes, batch).map(Step::Start),
            _ => {
                return Err(refused(ErrorCode::METHOD_NOT_FOUND, format!("there is no method `{}`", shown(method))));
            }
        };
        said(completed(result, &version))
    }

    fn handshake(&mut self, id: &Value, params: &Map<String, Value>) -> Result<Value, Refusal> {
        let refused = |code: ErrorCode, why: &str| Refusal::new(id.clone(), code, why);
        if self.is_open() {
            return Err(refused(ErrorCode::INVALID_REQUEST, "there was a handshake already"));
        }
        let Some(wanted) = params.get("protocolVersion").and_then(Value::as_str) else {
            return Err(refused(ErrorCode::INVALID_PARAMS, "`protocolVersion` is a text, as in 2025-11-25"));
        };
        let version = agreed(wanted);
        self.version = Some(version.clone());
        Ok(json!({
            "protocolVersion": version,
            "capabilities": capabilities(),
            "serverInfo": server(),
            "instructions": INSTRUCTIONS,
        }))
    }

    fn call(
        &mut self,
        id: &Value,
        mut params: Map<String, Value>,
        version: ProtocolVersion,
        bytes: usize,
        batch: Option<u64>,
    ) -> Result<Start, Refusal> {
        let invalid = |why: String| Refusal::new(id.clone(), ErrorCode::INVALID_PARAMS, why);
        if bytes > LONGEST_CALL {
            return Err(invalid(format!("a call has at most {LONGEST_CALL} bytes")));
        }
        let name = params.get("name").and_then(Value::as_str).ok_or_else(|| invalid("`name` is a text".into()))?;
        let Some(tool) = self.offer.find(name) else {
            return Err(invalid(format!("there is no tool `{}`; `tools/list` lists them", shown(name))));
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
        if self.live.len() >= MOST_CALLS {
            let why = format!("{MOST_CALLS} calls are under way: wait until some have ended, or cancel them");
            return Err(Refusal::new(id.clone(), TOO_MANY, why));
        }
        self.next += 1;
        let (call, cancel, told) = (self.next, Cancel::new(), token.is_some());
        let id = id.clone();
        self.ids.insert(key.clone(), call);
        let live = Live { id: id.clone(), key, cancel: cancel.clone(), token, progress: 0, batch, version };
        self.live.insert(call, live);
        Ok(Start { call, id, tool, arguments, cancel, told })
    }

    /// Takes the answer of a call of a batch, or that there is none; the answers of the batch, if it was the last one.
    fn of_batch(&mut self, batch: u64, answer: Option<Value>) -> Option<Value> {
        let open = self.batches.get_mut(&batch)?;
        open.done.extend(answer);
        // while the batch is still read, who waits is not counted yet
        if open.waiting == 0 {
            return None;
        }
        open.waiting -= 1;
        if open.waiting > 0 { None } else { self.over(batch) }
    }

    /// The answers of a batch that is over, if there are any.
    fn over(&mut self, batch: u64) -> Option<Value> {
        let done = self.batches.remove(&batch)?.done;
        (!done.is_empty()).then_some(Value::Array(done))
    }
}

/// The text that an id is looked up by: a number is no text.
fn key(id: &Value) -> String {
    id.to_string()
}

/// The beginning of a name that a client chose.
fn shown(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(80).collect()
}

fn capabilities() -> Value {
    json!({"tools": {}})
}

fn server() -> Value {
    json!({"name": "caro", "title": "caro", "version": env!("CARGO_PKG_VERSION")})
}

/// Describes the server to a client that needs no handshake.
fn discovered() -> Value {
    let mut result = json!({
        "supportedVersions": ProtocolVersion::KNOWN_VERSIONS,
        "capabilities": capabilities(),
        "instructions": INSTRUCTIONS,
    });
    keepable(&mut result);
    result
}

/// Says how long a result may be kept, and that it is the same for everybody.
fn keepable(result: &mut Value) {
    result["ttlMs"] = FRESH.into();
    result["cacheScope"] = "public".into();
}

/// A result as that revision has it.
fn completed(mut result: Value, version: &ProtocolVersion) -> Value {
    if !version.has_initialize() {
        result["resultType"] = "complete".into();
        result["_meta"] = json!({"io.modelcontextprotocol/serverInfo": server()});
    }
    if !has(version, &ProtocolVersion::V_2025_06_18)
        && let Value::Object(result) = &mut result
    {
        result.remove("structuredContent");
    }
    result
}

/// The refusal of parameters by a transport, before a session sees them.
pub fn mismatch(id: &Value, why: &str) -> Value {
    message::failure(id, &ErrorData::new(ErrorCode::HEADER_MISMATCH, why.to_owned(), None))
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;

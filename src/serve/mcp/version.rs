//! Revisions of the protocol. Up to 2025-11-25 client and server agree on one in a handshake (`initialize`); since
//! 2026-07-28 there is no handshake, and each request declares its revision in `_meta`.

use super::message::Refusal;
use rmcp::model::{ErrorCode, ErrorData, ProtocolVersion};
use serde_json::{Map, Value, json};

/// The key of `_meta` for the revision that a request follows.
pub const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
/// The key of `_meta` for the client's capabilities.
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

/// The revision with this name, if it is known.
pub fn known(name: &str) -> Option<ProtocolVersion> {
    ProtocolVersion::KNOWN_VERSIONS.iter().find(|version| version.as_str() == name).cloned()
}

/// Returns the revision for a handshake: the client's, or the newest one with a handshake.
pub fn negotiate(wanted: &str) -> ProtocolVersion {
    known(wanted).filter(ProtocolVersion::has_initialize).unwrap_or(ProtocolVersion::LATEST_WITH_INITIALIZE)
}

/// True if the revision is `since` or a later one.
pub fn is_at_least(version: &ProtocolVersion, since: &ProtocolVersion) -> bool {
    version.as_str() >= since.as_str()
}

/// The error for an unknown revision.
pub fn unsupported(requested: &Value) -> ErrorData {
    let data = json!({"supported": ProtocolVersion::KNOWN_VERSIONS, "requested": requested});
    let why = "this revision of the protocol is not known here; `data.supported` has those that are";
    ErrorData::new(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION, why, Some(data))
}

/// True if the parameters declare a revision.
pub fn is_declared(params: &Map<String, Value>) -> bool {
    params.get("_meta").is_some_and(|meta| meta.get(VERSION_KEY).is_some())
}

/// Returns the revision that a request declares; `None` for one that relies on a handshake.
///
/// # Errors
/// If it is not a known revision without handshake, or the client's capabilities are missing.
pub fn declared(id: &Value, params: &Map<String, Value>) -> Result<Option<ProtocolVersion>, Refusal> {
    let Some(meta) = params.get("_meta") else { return Ok(None) };
    let Some(name) = meta.get(VERSION_KEY) else { return Ok(None) };
    let invalid = |why: &str| Refusal::new(id.clone(), ErrorCode::INVALID_PARAMS, why);
    let Some(name) = name.as_str() else {
        return Err(invalid("the revision in `_meta` is a text"));
    };
    if !meta.get(CAPABILITIES_KEY).is_some_and(Value::is_object) {
        return Err(invalid("`_meta` needs io.modelcontextprotocol/clientCapabilities, which is an object"));
    }
    match known(name).filter(|version| !version.has_initialize()) {
        Some(version) => Ok(Some(version)),
        None => Err(Refusal { id: id.clone(), error: Box::new(unsupported(&json!(name))) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_revision_is_echoed_and_an_unknown_one_gets_the_newest() {
        for name in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
            assert_eq!(negotiate(name).as_str(), name);
        }
        for name in ["", "1", "2024-10-07", "2026-07-28", "3000-01-01", "\u{e9}"] {
            assert_eq!(negotiate(name).as_str(), "2025-11-25", "{name}");
        }
    }

    #[test]
    fn a_request_declares_its_revision_or_relies_on_a_handshake() {
        let of = |meta: Value| {
            let Value::Object(params) = json!({ "_meta": meta }) else { unreachable!() };
            declared(&json!(1), &params).map_err(|refusal| refusal.error.code.0)
        };
        let whole = |version: Value| of(json!({VERSION_KEY: version, CAPABILITIES_KEY: {}}));
        assert_eq!(of(json!({"progressToken": 1})), Ok(None));
        assert_eq!(of(json!(3)), Ok(None));
        assert_eq!(whole(json!("2026-07-28")), Ok(Some(ProtocolVersion::V_2026_07_28)));
        assert_eq!(of(json!({VERSION_KEY: "2026-07-28"})), Err(-32602));
        assert_eq!(of(json!({VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: []})), Err(-32602));
        assert_eq!(whole(json!(3)), Err(-32602));
        for other in ["2025-11-25", "3000-01-01", ""] {
            assert_eq!(whole(json!(other)), Err(-32022), "{other}");
        }
    }
}

"""What a node and the gateway say to each other: plain dictionaries with these keys, over HTTP as JSON.

Standard library only: the agent imports it. The gateway checks every key with pydantic (`daytwo.gateway.models`).

POST /v1/nodes/{node}/findings        Authorization: Bearer <node token>
    {"stream": 3,                      epoch issued by the gateway; 0 asks for a new one
     "boot_id": "…", "clock": 1764512345.1,
     "records": [Record, …]}
  -> 200 {"stream": 3, "acknowledged": 17, "come_back_seconds": 60}
  -> 409 {"error": "…", "stream": 4}   an older stream: ask for a new one and number from 1

POST /v1/nodes/{node}/pulse
    {"stream": 3, "sequence": 17, "boot_id": "…", "clock": …, "version": "0.2.0", "started_at": …,
     "identity": {"system_uuid": "…", "serial": "…", "product": "…"},
     "kernel_log": "kmsg",                which log is read: kmsg, journal, file:/path
     "digest": "…", "checks": {"kernel-log": "ok", …} | null,      null: the digest was acknowledged before
     "inventory": {"gpus": [{"index", "uuid", "serial", "pci", "name", "load"}], "driver": "…"} | null,
                                        "load": {"temperature": °C, "held_down": bool | null, "power_limit": W | null},
                                        only of a GPU that was under load for the last ten minutes
     "answers": [Answer, …]}
  -> 200 {"requests": [Asked, …], "withdrawn": ["id", …], "come_back_seconds": 60, "send_full": false,
          "firing": [["xid-79", "GPU-…"], …]}   only where `stream` is not the store's, which was put back to an earlier
                                        moment: what it believes to fire. Say again what is otherwise; ask for a stream

Of two versions the gateway is the newer one: it is upgraded first. It takes all that the agents of the release before
say; what it adds to its answers is optional, and an agent that does not know it passes it over. A kind of request that
an agent does not know is answered `failed` and names the kinds it knows. An agent that is newer than its gateway may
be refused (422, which names the field): it keeps what it has to say, and says it when the gateway is new. A record has
the same fields in every version, for one that is refused is set aside; what is new goes into its `detail`.

401 unknown or revoked token · 403 another node's name · 413 too large · 422 a field is wrong (named) · 429 too fast
"""

from __future__ import annotations

from typing import Final, Literal, NotRequired, TypedDict

MAX_BODY_BYTES: Final = 256 * 1024
MAX_RECORDS: Final = 200
MAX_EVIDENCE_LINES: Final = 5
MAX_EVIDENCE_CHARS: Final = 500

CheckState = Literal["ok", "firing", "unknown", "unsupported", "off"]
"""What a check says of itself. `unknown` is never healthy."""


class Record(TypedDict):
    """One change of one finding. `kernel_sequence` is set for what the kernel log said: unique per boot."""

    sequence: int
    fault: str
    entity: str
    status: Literal["firing", "cleared"]
    count: int
    first_seen: float
    last_seen: float
    source: str
    boot_id: str
    kernel_sequence: int | None
    evidence: list[str]
    detail: dict[str, str | int | float | bool | None]


class Asked(TypedDict):
    """A request of the control plane to the agent. It lapses after `ttl_seconds`.

    `probe-gpus`, `probe-kernel`: read now. `collect-evidence`: before an act that loses it. `quiesce`, with `seconds`:
    hold no GPU for so long, at most an hour; 0 ends it.
    """

    id: str
    kind: str
    ttl_seconds: float
    arguments: dict[str, str | int | float | bool | None]


class Answer(TypedDict):
    """What became of a request. `state` is `accepted`, `done` or `failed`; an answer of another boot is refused.

    `probe-gpus` result: {"gpus": [{"index", "uuid", "pci", "ok", "error", "recovery_action", "remap_pending",
    "remap_failed", "hw_slowdown"}], "expected": int | None, "seen": int, "driver": str | None, "error": str | None};
    a reading that the device does not support is None with its name in "unsupported".
    `probe-kernel` result: {"boot_id", "uptime_seconds", "last_kernel_sequence", "readable": bool,
    "xids": [{"xid", "pci", "kernel_sequence", "age_seconds"}]} for this boot.
    `collect-evidence` result: {"archive": base64 of a .tar.gz, "sha256", "size", "parts": [{"name", "bytes",
    "truncated", "error"}]}; `quiesce` result: {"let_go": bool, "holders": [str], "error", "quiet_seconds"}.
    """

    id: str
    state: Literal["accepted", "done", "failed"]
    boot_id: str
    result: NotRequired[dict[str, object]]
    error: NotRequired[str]


def node_entity() -> str:
    """The entity of a finding that is about the whole node."""
    return "node"


def pci_entity(address: str) -> str:
    """The entity of a GPU whose UUID is not known: `pci:0000:18:00`, lower case, without the function."""
    return f"pci:{address.lower().split('.')[0]}"

"""What the control plane asks of this node: accepted, done once per boot, answered until the answer has arrived."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from daytwo.agent.seams import Clock
from daytwo.agent.spool import Spool
from daytwo.wire import Answer

KINDS: Final = ("probe-gpus", "probe-kernel", "collect-evidence", "quiesce")
REMEMBERED: Final = 64
ANSWERS_AT_ONCE: Final = 8
MAX_TTL: Final = 3_600.0


class Requests:
    """What was asked, by id. An id that comes again in one boot gets the same answer again and no second probe."""

    def __init__(self, *, boot_id: str, spool: Spool, clock: Clock) -> None:
        self._boot_id, self._spool, self._clock = boot_id, spool, clock
        known: dict[str, Any] = spool.recall("requests", {})
        self._known = {id_: entry for id_, entry in known.items() if entry["boot_id"] == boot_id}
        self._unsent = [cast(Answer, entry["answer"]) for entry in self._known.values() if entry["unsent"]]
        self.has_news = bool(self._unsent)
        """True while an answer waits that was never sent: it is worth a pulse of its own."""

    def take(self, asked: Any, withdrawn: Any) -> None:
        """Accept what a pulse brought. Anything that is not a request is left out."""
        for id_ in _texts(withdrawn):
            self._withdraw(id_)
        for request in asked if isinstance(asked, list) else ():
            if isinstance(request, dict) and isinstance(request.get("id"), str):
                self._accept(request["id"], str(request.get("kind")), request)
        self._remember()

    def open(self, kind: str) -> list[str]:
        """Return the ids of this kind that still want to be done; a lapsed one does not."""
        now = self._clock.now()
        return [
            id_
            for id_, entry in self._known.items()
            if entry["kind"] == kind and entry["answer"]["state"] == "accepted" and now < entry["lapses_at"]
        ]

    def seconds_left(self, ids: Sequence[str]) -> float:
        """Return how long the first of these may still take."""
        return min(float(self._known[id_]["lapses_at"]) for id_ in ids) - self._clock.now()

    def finish(self, ids: Sequence[str], result: dict[str, object]) -> None:
        """Answer these requests. One that was withdrawn or lapsed meanwhile is left out."""
        for id_ in ids:
            if id_ in self._known:
                self._answer(id_, Answer(id=id_, state="done", boot_id=self._boot_id, result=result))
        self._remember()

    def unsent(self) -> list[Answer]:
        """Return the oldest answers that the gateway has not confirmed, as many as fit into a pulse."""
        archives = [answer for answer in self._unsent if "archive" in answer.get("result", {})]
        return [answer for answer in self._unsent if answer not in archives[1:]][:ANSWERS_AT_ONCE]

    def confirm(self, sent: Sequence[Answer]) -> None:
        """The gateway has these answers."""
        self._unsent = [answer for answer in self._unsent if answer not in sent]
        self.has_news = bool(self._unsent)
        for answer in sent:
            entry = self._known.get(answer["id"])
            if entry and entry["answer"] == answer:
                self._known[answer["id"]] = {**entry, "unsent": False}
        self._remember()

    def number(self, id_: str, name: str) -> float:
        """Return an argument of a request; 0 for one that is missing, or no number."""
        return _number(self._known[id_].get("arguments", {}).get(name))

    def _accept(self, id_: str, kind: str, asked: dict[str, Any]) -> None:
        if id_ in self._known:
            self._answer(id_, self._known[id_]["answer"])
            return
        seconds, arguments = min(_number(asked.get("ttl_seconds")), MAX_TTL), asked.get("arguments")
        answer = Answer(id=id_, state="accepted", boot_id=self._boot_id)
        if kind not in KINDS:
            answer["state"], answer["error"] = "failed", f"kind: found {kind!r}, allowed: {', '.join(KINDS)}"
        lapses_at = self._clock.now() + seconds
        self._known[id_] = {"boot_id": self._boot_id, "kind": kind, "lapses_at": lapses_at}
        if isinstance(arguments, dict) and arguments:
            self._known[id_]["arguments"] = arguments
        self._answer(id_, answer)

    def _answer(self, id_: str, answer: Answer) -> None:
        self.has_news = self.has_news or self._known[id_].get("answer") != answer
        self._known[id_] = {**self._known[id_], "answer": answer, "unsent": True}
        if answer not in self._unsent:
            self._unsent.append(answer)

    def _withdraw(self, id_: str) -> None:
        self._known.pop(id_, None)
        self._unsent = [answer for answer in self._unsent if answer["id"] != id_]

    def _remember(self) -> None:
        newest = dict(list(self._known.items())[-REMEMBERED:])
        self._known = newest
        self._spool.remember("requests", {id_: _small(entry) for id_, entry in newest.items()})


def _small(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry for the spool. An archive is not kept: after a restart it is made again, as long as somebody waits."""
    if "archive" not in entry["answer"].get("result", {}):
        return entry
    accepted = Answer(id=entry["answer"]["id"], state="accepted", boot_id=entry["boot_id"])
    return {**entry, "answer": accepted, "unsent": False, "lapses_at": entry["lapses_at"] if entry["unsent"] else 0.0}


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def _texts(values: Any) -> list[str]:
    return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []

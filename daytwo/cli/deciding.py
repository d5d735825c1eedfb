"""How the CLI decides: what was read is what is decided on, and it waits until the decision has ended."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import click

from daytwo.cli import exit_codes, output
from daytwo.cli.client import Service
from daytwo.cli.failure import Failure
from daytwo.cli.making_sure import MEANS, is_asked, what_it_means
from daytwo.cli.repair_text import as_text

FIRST_WAIT_SECONDS: Final = 2
"""Longer than most decisions take; then it is asked what this one waits for."""
WAIT_SECONDS: Final = 10
GOOD: Final = {"accepted": "Follow it", "counted": "Nothing is done until somebody else approves too"}
ENDS: Final = {"refused": exit_codes.FORBIDDEN, "void": exit_codes.CHANGED}
WHY: Final = {
    "refused": "A rule forbids it, as it is now. Nothing was done.",
    "void": "The repair, as it is now, does not take it. Nothing was done.",
}
ACTS: Final = ("approve", "retry")
"""Decisions by which something is done to a node."""
BRING: Final = ("store", "temporal", "worker", "controller")
"""Parts that bring a decision to its repair, or have it judged."""
WHEN: Final = {"when-idle": " when its jobs have ended", "next-checkpoint": " at the next checkpoint"}
TYPED: Final = {"return-after-tests": "return"}
"""Decisions whose command is another word."""
LIFTED: Final = {
    "nothing": "This repair has put nothing on the node: whether it takes new work is as before.",
    "lifting": "What daytwo put on the node is being lifted: it takes new work then, if nobody else keeps it out.",
    "lifted": "What daytwo put on the node is lifted: it takes new work again, unless somebody else keeps it out.",
}
KEEPS_OFF: Final = ("reserve", "drain")
"""Acts that keep new work off a node."""
NOT_LIFTED: Final = "Something was done to the node, so new work stays off it, and you are asked how it is to return"


@dataclass(frozen=True, slots=True)
class Wish:
    """A decision to be made; `more` are further fields of the API's request, `None` ones are left out."""

    kind: str
    repair: str
    revision: int
    request_id: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        """The request to the service."""
        body = {
            "request_id": self.request_id or f"cli-{uuid.uuid4()}",
            "repair_id": self.repair,
            "revision": self.revision,
            "kind": self.kind,
        }
        return body | {name: value for name, value in self.more.items() if value is not None}


def revision_on_screen(service: Service, repair: str, kind: str, *, action: str | None, yes: bool) -> int:
    """Show the proposal, ask, and return the revision that was shown. Never asks where nobody can answer."""
    if not is_asked():
        raise click.UsageError(
            f"Missing option '--revision': without a terminal nobody is asked. See: daytwo repairs show {repair}"
        )
    found = service.get(f"/v1/repairs/{repair}")
    click.echo(as_text(found))
    if not (yes or click.confirm(f"\n{_question(found, kind, action)}")):
        raise Failure(
            "Nothing was decided.",
            why="You did not say yes.",
            following=f"daytwo repairs show {found['id']}",
        )
    return int(found["revision"])


def _question(found: Mapping[str, Any], kind: str, action: str | None) -> str:
    """What exactly a yes would decide."""
    asked = f" ({action or found['action'] or 'no action'})" if kind in ACTS else ""
    where = f"{found['cluster']}/{found['node']}"
    says = what_it_means(found, action) if kind in ACTS else ""
    question = f"{_typed(kind).capitalize()}{asked} on {where}: revision {found['revision']} of {found['id']}?"
    return f"{says}\n{question}" if says else question


def decide(service: Service, wish: Wish, seconds: int) -> int:
    """Make the decision and wait for its end. Returns 0 when accepted or counted, else raises `Failure`."""
    decision = service.post("/v1/decisions", wish.body(), following=f"daytwo repairs show {wish.repair}")
    output.note(f"Recorded as {decision['id']}; waiting for the repair to take it.")
    decision = _until_ended(service, decision, seconds)
    status = decision["status"]
    if status in GOOD:
        done = _act_and_wait(service, wish, decision)
        click.echo(f"{output.with_glyph(status)}: {_said(wish)}{done}{_why(decision)}")
        if meaning := MEANS.get(wish.more.get("action") or wish.kind):
            output.note(f"It means: {meaning}.")
        if (wish.kind, status) == ("dismiss", "accepted"):
            _tell_dismissal(service, wish)
            return exit_codes.OK
        output.note(f"{GOOD[status]}: daytwo repairs watch {wish.repair}")
        return exit_codes.OK
    if status == "pending" and _is_frozen(service.get(f"/v1/repairs/{wish.repair}"), wish.kind):
        click.echo(f"recorded: {_said(wish)}{_act_and_wait(service, wish, decision)}, until it is thawed")
        output.note(f"Follow it: daytwo repairs watch {wish.repair}")
        return exit_codes.OK
    raise _not_accepted(service, wish, decision) if status in ENDS else _late(service, wish, decision, seconds)


def _tell_dismissal(service: Service, wish: Wish) -> None:
    """What becomes of the node, and for how long nobody is asked again."""
    repair = service.get(f"/v1/repairs/{wish.repair}")
    if repair["disturbed"]:
        output.note(f"{NOT_LIFTED}: daytwo repairs show {wish.repair}")
        return
    output.note(LIFTED[_marks(repair)])
    if repair["fault"] == "asked":
        output.note("A person had asked for it, and no fault was seen: whoever asks again is heard.")
        return
    asked = wish.more.get("snooze_seconds")
    quiet = (
        f"for {output.lasting(asked)}" if asked is not None else "for as long as the policy snoozes (8 h by default)"
    )
    shown = f"daytwo nodes show {repair['cluster']}/{repair['node']}"
    output.note(f"Nobody is asked about the same fault again {quiet}: {shown}")


def _marks(repair: Mapping[str, Any]) -> str:
    """How far the acts of a dismissed repair are that keep new work off the node."""
    if not any(act["kind"] in KEEPS_OFF and act["state"] != "failed" for act in repair["intents"]):
        return "nothing"
    newest = max(repair["intents"], key=lambda act: act["created_at"])
    return "lifted" if (newest["kind"], newest["state"]) == ("unreserve", "proven") else "lifting"


def _until_ended(service: Service, decision: dict[str, Any], seconds: int) -> dict[str, Any]:
    end, told, wait = time.monotonic() + seconds, "", FIRST_WAIT_SECONDS
    while decision["status"] == "pending" and (left := end - time.monotonic()) > 0:
        decision = service.get(f"/v1/decisions/{decision['id']}", wait=min(wait, left))
        wait = WAIT_SECONDS
        if decision["status"] == "pending":
            repair = service.get(f"/v1/repairs/{decision['repair_id']}")
            if _is_frozen(repair, decision["kind"]):
                break
            if (waiting := waits(repair)) not in ("", told):
                told = waiting
                output.note(f"Waits: {told}")
    return decision


def _is_frozen(repair: Mapping[str, Any], kind: str) -> bool:
    """True where the repair has taken an approval, and judges it when somebody thaws: nobody knows when that is."""
    return kind in ACTS and repair["state"] == "approved" and waits(repair).startswith("frozen by ")


def waits(repair: Mapping[str, Any]) -> str:
    """What a repair waits for, or would if it were approved; empty where that is nothing."""
    return str(repair["waiting_for"] or "; ".join(repair.get("would_wait_for", ())))


def _act_and_wait(service: Service, wish: Wish, decision: Mapping[str, Any]) -> str:
    """What was decided to be done, and what that waits for; nothing for a decision that does nothing to the node."""
    if wish.kind not in ACTS:
        return ""
    repair = service.get(f"/v1/repairs/{wish.repair}")
    action = f"{wish.more.get('action') or repair['action'] or 'nothing'}{WHEN.get(decision['moment'], '')}"
    if repair["state"] == "needs-help":
        return f": {action}; needs help: {output.clean(repair['attention'])}"
    waiting = waits(repair).removeprefix("waits ")
    return f": {action}" + (f"; waits: {output.clean(waiting)}" if waiting else "")


def _not_accepted(service: Service, wish: Wish, decision: dict[str, Any]) -> Failure:
    status = decision["status"]
    return Failure(
        f"{status}: {_said(wish)}{_why(decision)}",
        why=WHY[status] + (_takes(service, wish) if status == "void" else ""),
        following=f"daytwo repairs show {wish.repair}",
        exit_code=ENDS[status],
    )


def _takes(service: Service, wish: Wish) -> str:
    """What may be decided now."""
    state, kinds = _taken(service.get(f"/v1/repairs/{wish.repair}"))
    return f" It is {state} and takes {', '.join(map(_typed, kinds)) or 'no decision'}."


def _taken(repair: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The state of a repair, and the kinds of decisions that it takes there; none before its workflow has begun."""
    from daytwo.domain.repair_states import EVENT_OF, after
    from daytwo.domain.vocabulary import State

    state = str(repair["state"])
    if state not in set(State):
        return state, []
    found = [kind.value for kind, event in EVENT_OF.items() if after(State(state), event, held_from=State.PROPOSED)]
    return state, found


def _late(service: Service, wish: Wish, decision: dict[str, Any], seconds: int) -> Failure:
    return Failure(
        f"decision {decision['id']} has not ended after {seconds} s{_why(decision)}",
        why=f"It is recorded and will be delivered. {_what_delays(service, decision)}",
        following=f"daytwo repairs show {wish.repair} (or daytwo status: what is away, what is frozen)",
        exit_code=exit_codes.TIMED_OUT,
    )


def _what_delays(service: Service, decision: dict[str, Any]) -> str:
    """What is known to be in a decision's way; a guess would be taken for knowledge."""
    repair = service.get(f"/v1/repairs/{decision['repair_id']}")
    state, kinds = _taken(repair)
    if decision["kind"] not in kinds and state not in ("opening", "approved"):
        takes = ", ".join(map(_typed, kinds)) or "no decision"
        return f"But a repair that is {state} does not take it: it takes {takes}. You are told if it comes to nothing."
    if waiting := waits(repair):
        return f"It waits: {output.clean(waiting)}."
    if away := [part for part in service.get("/v1/status").get("away", ()) if part in BRING]:
        return f"Away: {', '.join(away)}."
    return "Its repair has not answered; it is asked again, at least once a minute."


def _said(wish: Wish) -> str:
    return f"{_typed(wish.kind)} {wish.repair} revision {wish.revision}"


def _typed(kind: str) -> str:
    """A kind of decision by the command that makes it."""
    return TYPED.get(kind, kind)


def _why(decision: dict[str, Any]) -> str:
    reason = output.clean(decision["status_reason"])
    for kind, word in TYPED.items():
        reason = reason.replace(kind, word)
    return f" ({reason})" if reason else ""

"""How a proposal is told: one line, ten seconds of plain text, or Markdown for the Temporal UI.

Whatever came from a node, a job or a scheduler goes through `clean` or `clean_markdown` on its way out: jobs choose
their names, and a name may hold terminal escapes, text that runs backwards, or a link. Notifiers, the CLI, the demo
and the workflow's details call this.
"""

from __future__ import annotations

import json
import re
import shlex
import unicodedata
from typing import Final

from daytwo.domain.others_hands import OURS, is_taken, others_work, taken_by
from daytwo.domain.proposal import NOT_CONTAINED, Proposal, interrupts, is_requeued, owner_of
from daytwo.domain.seams import NodeFacts
from daytwo.domain.vocabulary import Frozen, Mode, Moment, Severity, State, Workload

SIGN: Final = {Severity.CRITICAL: "🔴", Severity.DEGRADED: "🟡", Severity.COSMETIC: "⚪"}
MAX_TEXT: Final = 500
MAX_NAME: Final = 64
MAX_JOBS: Final = 5
MAX_ENTITIES: Final = 3
KEPT_OFF: Final = "new jobs are kept off"
TAKES_NONE: Final = frozenset({"DRAIN", "DOWN", "FAIL", "MAINTENANCE", "MAINT", "REBOOT_ISSUED", "INVALID_REG"})
"""Scheduler states in which no new job starts."""

_MOMENT: Final = {
    Moment.NOW: "",
    Moment.NEXT_CHECKPOINT: " at the next checkpoint",
    Moment.WHEN_IDLE: " when its jobs have ended",
}
_TERMINAL = re.compile(
    r"\x1b\[[0-?]{0,64}[ -/]{0,16}[@-~]|\x1b\][^\x07\x1b]{0,1024}(?:\x07|\x1b\\)?|\x1b.?|\x9b[0-?]{0,64}[@-~]"
)
# Control and format characters (bidirectional overrides among them), lone surrogates, private use, line separators.
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_MARKUP = re.compile(r"([\\`*_{}\[\]()<>#|~&!$^@])")
_LINK = re.compile(r"(?i)(https?|ftp|mailto|www)([:.])")


def clean(text: str, limit: int = MAX_TEXT) -> str:
    """Return `text` as one line that a terminal, a log and a message may show, at most `limit` characters long."""
    shown = _TERMINAL.sub("", text[: limit * 4])
    shown = "".join(" " if char in "\t\r\n\v\f" else char for char in shown if char in "\t\r\n\v\f" or _is_plain(char))
    shown = " ".join(shown.split())
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def clean_markdown(text: str, limit: int = MAX_TEXT) -> str:
    """Return `text` as `clean` does, such that Markdown shows it as it stands: no markup, link, image or HTML."""
    return _LINK.sub(r"\1\\\2", _MARKUP.sub(r"\\\1", clean(text, limit)))


def summary_line(proposal: Proposal) -> str:
    """The proposal in one line."""
    what = f"{clean(proposal.title, 120)} ({clean(proposal.fault, MAX_NAME)})"
    answer = f"rev {proposal.revision} · {proposal.repair_id}"
    return f"{SIGN[proposal.severity]} {clean(proposal.node, MAX_NAME)}: {what} → {proposal.action.value} · {answer}"


class Around(Frozen):
    """What goes for a proposal while it is read, and is no part of it.

    `new_jobs` says whether its node takes new jobs, `waits` what its approval would wait for.
    """

    new_jobs: str = ""
    waits: tuple[str, ...] = ()


def new_jobs(proposal: Proposal, facts: NodeFacts | None) -> str:
    """Say whether the node takes new jobs, as its scheduler said last, and who keeps them off."""
    if facts is not None and is_taken(facts):
        return f"takes no new jobs: {taken_by(facts)}"
    if proposal.contain:
        return KEPT_OFF
    if facts is None:
        return "whether it takes new jobs is not known"
    if facts.drained_by == "scheduler":
        return f"takes no new jobs: its scheduler has drained it ({facts.reason or 'no reason given'})"
    if whose := others_work(facts):
        return f"takes no new jobs: {whose}"
    if facts.ownership in OURS:
        return KEPT_OFF
    if not facts.responding:
        return "takes no new jobs: it does not answer its scheduler"
    if TAKES_NONE & set(facts.states):
        return f"takes no new jobs: {'+'.join(facts.states)}"
    why = next((rule for rule in proposal.rules_fired if rule.startswith(NOT_CONTAINED)), "")
    return f"takes new jobs ({why})" if why else "takes new jobs"


def as_text(proposal: Proposal, around: Around | None = None) -> str:
    """The proposal as a person reads it in ten seconds, with the command that approves it.

    Without `around` nothing is said that only the moment of reading can tell.
    """
    told = around or Around()
    head = (
        f"{SIGN[proposal.severity]} {clean(proposal.node, MAX_NAME)} {_entities(proposal)}{clean(proposal.title, 120)} "
        f"({_faults(proposal)}) since {proposal.first_seen:%H:%M:%SZ} · {clean(proposal.cluster, MAX_NAME)} · "
        f"{clean(told.new_jobs or _kept_off(proposal), 200)}"
    )
    lines = [
        *_jobs(proposal),
        *_reserved(proposal),
        f"Do: {_do(proposal)}",
        *([f"Approved now, it would wait: {clean('; '.join(told.waits))}."] if told.waits else []),
        _stakes(proposal),
        f"Why: {_why(proposal)}",
        _answer(proposal),
    ]
    return "\n".join([head, *(f"   {line}" for line in lines)])


def as_markdown(proposal: Proposal, state: State, *, namespace: str = "default") -> str:
    """The proposal as the details of its workflow; while it waits for an answer, with the commands that give one."""
    node, title = clean_markdown(proposal.node, MAX_NAME), clean_markdown(proposal.title, 120)
    blocks = [
        f"### {SIGN[proposal.severity]} {node}: {title}",
        "\n".join(f"- {line}" for line in _points(proposal)),
    ]
    if proposal.evidence:
        blocks.append("**Evidence**\n\n" + "\n".join(f"- {clean_markdown(line, 300)}" for line in proposal.evidence))
    if state is State.PROPOSED:
        blocks.append(_how_to_answer(proposal, namespace))
    return "\n\n".join(blocks)


def approve_command(proposal: Proposal) -> str:
    """The exact command that approves this revision."""
    return f'daytwo repairs approve {shlex.quote(proposal.repair_id)} --revision {proposal.revision} --reason "..."'


def signal_command(proposal: Proposal, name: str, namespace: str = "default") -> str:
    """The exact command that answers through Temporal, where the identity is only claimed."""
    said = {"repair": proposal.repair_id, "revision": proposal.revision, "who": "<you>", "reason": "<why>"}
    workflow = f"repair:{proposal.cluster}:{proposal.node}"
    return (
        f"temporal workflow signal --namespace {shlex.quote(namespace)} --workflow-id {shlex.quote(workflow)} "
        f"--name {name} "
        f"--input {shlex.quote(json.dumps(said))}"
    )


def _kept_off(proposal: Proposal) -> str:
    return KEPT_OFF if proposal.contain else "daytwo keeps no new jobs off"


def _is_plain(char: str) -> bool:
    return unicodedata.category(char) not in _HIDDEN


def _entities(proposal: Proposal) -> str:
    """The GPUs and ports that are meant, shortened; nothing for the whole node."""
    parts = [entity for entity in proposal.entities if entity != "node"]
    shown = [clean(part, MAX_NAME)[:12] if part.startswith("GPU-") else clean(part, MAX_NAME) for part in parts]
    more = f" +{len(shown) - MAX_ENTITIES}" if len(shown) > MAX_ENTITIES else ""
    return f"{', '.join(shown[:MAX_ENTITIES])}{more} " if shown else ""


def _faults(proposal: Proposal) -> str:
    others = [clean(fault, MAX_NAME) for fault in proposal.faults if fault != proposal.fault]
    more = [f"and {len(others) - MAX_ENTITIES} more"] if len(others) > MAX_ENTITIES else []
    return ", ".join([clean(proposal.fault, MAX_NAME), *(f"also {fault}" for fault in others[:MAX_ENTITIES]), *more])


def _jobs(proposal: Proposal) -> list[str]:
    if not interrupts(proposal.action):
        return ["Interrupts nothing."]
    if not proposal.workloads:
        unknown = any(line.startswith("unknown: the jobs") for line in proposal.lost)
        none = "Jobs: not known, the scheduler could not be read." if unknown else "No job on the node."
        return [none, *_gone(proposal)]
    lines = [_job(job, proposal.moment) for job in proposal.workloads[:MAX_JOBS]]
    more = len(proposal.workloads) - MAX_JOBS
    return [*lines, *([f"and {more} more jobs"] if more > 0 else []), *_gone(proposal)]


def _gone(proposal: Proposal) -> list[str]:
    """Whose jobs have ended since it was proposed: an approval goes for their next ones too."""
    gone = sorted(set(proposal.owners) - {owner_of(job) for job in proposal.workloads})
    named = ", ".join(clean(owner, MAX_NAME) for owner in gone[:MAX_JOBS])
    more = f" and {len(gone) - MAX_JOBS} more" if len(gone) > MAX_JOBS else ""
    return [f"It goes for new jobs of {named}{more} too, whose jobs have ended since it was proposed."] if gone else []


def _reserved(proposal: Proposal) -> list[str]:
    """For whom the node is reserved now or soon: they are to be asked."""
    return [f"Also: {clean(proposal.reserved, 300)}."] if proposal.reserved else []


def _job(job: Workload, moment: Moment) -> str:
    size = f"{len(job.nodes)} node{'s' if len(job.nodes) != 1 else ''}/{job.gpus} GPUs"
    owner = clean(owner_of(job), MAX_NAME)
    end = "is requeued" if is_requeued(job) and moment is not Moment.WHEN_IDLE else "is waited for"
    times = f"{_span(job.elapsed_seconds)} of {_span(job.time_limit_seconds)}"
    return f"Job {clean(job.id, MAX_NAME)} {clean(job.name, MAX_NAME)}, {owner}, {size}, {times}: {end}"


def _span(seconds: int | None) -> str:
    if seconds is None:
        return "?"
    minutes = seconds // 60
    days, hours = minutes // 1440, minutes // 60 % 24
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes % 60} min" if hours else f"{minutes} min"


def _do(proposal: Proposal) -> str:
    after = (
        [action.value for action in proposal.ladder[proposal.ladder.index(proposal.action) + 1 :]]
        if (proposal.action in proposal.ladder)
        else []
    )
    then = f" If that does not help: {', '.join(after)}." if after else ""
    asks = " The policy approves it." if proposal.mode is Mode.AUTO else ""
    return f"{proposal.action.value}{_MOMENT[proposal.moment]}, then test.{then}{asks}"


def _stakes(proposal: Proposal) -> str:
    lost = clean("; ".join(proposal.lost) or "nothing", MAX_TEXT)
    kept = clean("; ".join(proposal.kept) or "nothing that is known", MAX_TEXT)
    return f"Lost: {lost}. Kept: {kept}."


def _why(proposal: Proposal) -> str:
    reason = clean(proposal.reason)
    reason += "" if reason.endswith(".") else "."
    return f"{reason} Rule: {clean(proposal.rule, 200)}. Source: {clean(proposal.source, 300)}."


def _answer(proposal: Proposal) -> str:
    return f"rev {proposal.revision} · {approve_command(proposal)}"


def _points(proposal: Proposal) -> list[str]:
    contained = _kept_off(proposal)
    since = f"since {proposal.first_seen:%Y-%m-%d %H:%M:%SZ}"
    policy = f"policy revision {proposal.policy_revision}; {clean_markdown(proposal.source)}"
    where = ", ".join(clean_markdown(entity, MAX_NAME) for entity in proposal.entities[:16])
    return [
        f"**Wrong:** {clean_markdown(_faults(proposal))} on {where}, {since}; {contained}",
        f"**Do:** {clean_markdown(_do(proposal))}",
        *(f"**Interrupts:** {clean_markdown(line)}" for line in _jobs(proposal)),
        *(f"**Reserved:** {clean_markdown(proposal.reserved)}" for _ in _reserved(proposal)),
        f"**Lost:** {clean_markdown('; '.join(proposal.lost) or 'nothing')}",
        f"**Kept:** {clean_markdown('; '.join(proposal.kept) or 'nothing that is known')}",
        f"**Why:** {clean_markdown(proposal.reason)}",
        f"**Rule:** {clean_markdown(proposal.rule)} ({policy})",
        f"**Tests before it returns:** {clean_markdown(', '.join(proposal.verify))}",
    ]


def _how_to_answer(proposal: Proposal, namespace: str) -> str:
    dismiss = f'daytwo repairs dismiss {shlex.quote(proposal.repair_id)} --revision {proposal.revision} --reason "..."'
    commands = [approve_command(proposal), dismiss, signal_command(proposal, "approve", namespace)]
    lines = "\n".join(f"- `{clean(command, 1000).replace('`', '')}`" for command in commands)
    return f"**Answer** (a signal proves no identity: the policy says what it may approve)\n\n{lines}"

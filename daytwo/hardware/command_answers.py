"""What an operator's program may answer, and what its exit codes mean. Pure: `daytwo.hardware.command` asks."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from daytwo.domain.seams import Outcome
from daytwo.sending import LATE, Sent

REFUSED: Final = 3
AGAIN: Final = 4
ERROR_CHARS: Final = 300
BASELINE_CHARS: Final = 4_096

Told = Literal["told", "refused", "try-again", "late", "unknown"]


def _small(value: dict[str, Any]) -> dict[str, Any]:
    if len(str(value)) > BASELINE_CHARS:
        raise ValueError(f"longer than {BASELINE_CHARS} characters")
    return value


Text = Annotated[str, Field(max_length=ERROR_CHARS)]


class Answer(BaseModel):
    """One answer. `outcome` is required for `look`; `identity` is the machine's own."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    identity: dict[Literal["system_uuid", "serial"], Text] = Field(default_factory=dict)
    outcome: Annotated[Outcome | None, Field(strict=False)] = None
    proof: Text = ""
    baseline: Annotated[dict[str, Any], AfterValidator(_small)] = Field(default_factory=dict)


NOTHING: Final = Answer()


def read(question: str, sent: Sent) -> tuple[Told, Answer, str]:
    """Return what a program that ended so has told, and why not. A status that has no meaning is unknown."""
    if sent.ok:
        return _answer(question, sent.answer)
    if sent.error == LATE:
        return "late", NOTHING, f"the program did not answer {question!r} in time and was killed"
    why = sent.answer[:ERROR_CHARS] or "it did not say why"
    if sent.status == REFUSED:
        return "refused", NOTHING, f"the program refuses: {why}"
    if sent.status == AGAIN:
        return "try-again", NOTHING, f"the program wants to be asked again: {why}"
    return "unknown", NOTHING, f"the program failed at {question!r}: {sent.error[:ERROR_CHARS]}"


def _answer(question: str, said: str) -> tuple[Told, Answer, str]:
    try:
        answer = Answer.model_validate_json(said)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the whole"
        return "unknown", NOTHING, f"the program's answer to {question!r} cannot be read: {where}: {first['msg']}"
    if question == "look" and answer.outcome is None:
        return "unknown", NOTHING, "the program's answer to 'look' cannot be read: outcome: missing"
    return "told", answer, ""

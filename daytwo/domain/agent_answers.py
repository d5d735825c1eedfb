"""What an agent answers to the questions of a verification, as far as it is judged. The shapes are `daytwo.wire`'s."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError


class Reading(BaseModel):
    """Part of an answer. Fields that are not judged are passed over."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Gpu(Reading):
    """One GPU, as `probe-gpus` found it; `None` was not read."""

    index: int | None = None
    uuid: str | None = None
    ok: bool
    error: str | None = None
    recovery_action: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    unsupported: tuple[str, ...] = ()


class Gpus(Reading):
    """The answer to `probe-gpus`. `expected` is what the agent was told or has learnt."""

    gpus: tuple[Gpu, ...]
    driver: str | None = None
    error: str | None = None
    expected: int | None = None


class Xid(Reading):
    """One Xid of this boot."""

    xid: int
    pci: str | None = None
    age_seconds: float


class Kernel(Reading):
    """The answer to `probe-kernel`."""

    boot_id: str | None = None
    uptime_seconds: float | None = None
    readable: bool
    xids: tuple[Xid, ...] = ()


M = TypeVar("M", bound=Reading)


def read_answer(model: type[M], answer: dict[str, Any] | None) -> M | None:
    """An answer that cannot be read is an answer that is missing."""
    if answer is None:
        return None
    try:
        return model.model_validate(answer)
    except ValidationError:
        return None

"""The commands that decide on a repair. What they do is in `deciding`, imported when they run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from daytwo.cli import options

ASKED = (
    click.argument("repair"),
    click.option(
        "--revision", type=options.Whole(0), metavar="N", help="The revision you have read. Asked for on a terminal."
    ),
    click.option("--yes", is_flag=True, help="Do not ask."),
    click.option(
        "--timeout",
        type=options.Duration(),
        default="60s",
        show_default=True,
        help="How long to wait for the decision to end.",
    ),
    click.option("--request-id", metavar="ID", help="Your own id: the same request sent twice is one decision."),
)


def decision(command: Callable[..., int]) -> Callable[..., int]:
    """What every decision takes: the repair, what was read of it, and how long to wait."""
    for decorate in reversed(ASKED):
        command = decorate(command)
    return command


@click.command("approve")
@decision
@click.option(
    "--action",
    metavar="ACTION",
    help="Another action than the proposed one; needs --reason, and --yes for one that is hard to undo.",
)
@click.option(
    "--moment",
    type=click.Choice(["now", "when-idle", "next-checkpoint"]),
    help="When work may be interrupted. Default: as proposed.",
)
@options.reason(required=False)
def approve(repair: str, **given: Any) -> int:
    """Approve a repair, and wait until that is accepted.

    With --revision, exactly what you have read is approved: when the proposal has changed since, nothing happens and
    the exit code is 5. Without it, on a terminal, the proposal is shown and you are asked.

    \b
      daytwo repairs approve r-20261130-142100-x7k2q --revision 2
    """
    return _decide("approve", repair, **given)


@click.command("dismiss")
@decision
@options.reason(required=True)
@click.option(
    "--snooze", "snooze_seconds", type=options.Duration("90d"), metavar="TIME", help="Keep quiet for so long."
)
def dismiss(repair: str, **given: Any) -> int:
    """Dismiss a repair: nothing is done to the node, and it takes new work again.

    What daytwo put on the node to keep new work off is lifted; what somebody else put there stays. Takes back an
    approval too, as long as no work was interrupted.
    """
    return _decide("dismiss", repair, **given)


@click.command("hold")
@decision
@options.reason(required=False)
def hold(repair: str, **given: Any) -> int:
    """Stop a repair until it is released: before its act begins.

    One that is proposed, approved, quarantining, waiting or draining takes it. An act that is under way is not stopped,
    and its tests follow it: nodes hold keeps daytwo off the node from then on.
    """
    return _decide("hold", repair, **given)


@click.command("release")
@decision
@options.reason(required=False)
def release(repair: str, **given: Any) -> int:
    """Let a held repair go on.

    It is looked at again first.
    """
    return _decide("release", repair, **given)


@click.command("retry")
@decision
@click.option("--action", metavar="ACTION", help="Another action than the last one; needs --reason.")
@options.reason(required=False)
def retry(repair: str, **given: Any) -> int:
    """Needs help: act again, the same way or another."""
    return _decide("retry", repair, **given)


@click.command("return")
@decision
@options.reason(required=False)
def return_(repair: str, **given: Any) -> int:
    """Needs help: test the node, return it if it passes."""
    return _decide("return-after-tests", repair, **given)


@click.command("remove")
@decision
@options.reason(required=True)
def remove(repair: str, **given: Any) -> int:
    """Needs help: take the node out for good.

    It stays drained.
    """
    return _decide("remove", repair, **given)


@click.command("hand-over")
@decision
@options.reason(required=True)
def hand_over(repair: str, **given: Any) -> int:
    """Needs help: it becomes yours, marks and all."""
    return _decide("hand-over", repair, **given)


def _decide(
    kind: str, repair: str, *, revision: int | None, yes: bool, timeout: int, request_id: str | None, **more: Any
) -> int:
    from daytwo.cli.client import connect
    from daytwo.cli.deciding import Wish, decide, revision_on_screen
    from daytwo.cli.making_sure import make_sure

    with connect() as service:
        if revision is None:
            revision = revision_on_screen(service, repair, kind, action=more.get("action"), yes=yes)
        else:
            make_sure(service, repair, more.get("action"), yes=yes)
        return decide(service, Wish(kind, repair, revision, request_id=request_id, more=more), timeout)

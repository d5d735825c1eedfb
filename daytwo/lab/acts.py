"""What one may do to the simulated fleet, and how it answers: as Slurm and a BMC do, with their traps.

None of these writes takes a precondition, as with the real ones: a second drain overwrites the reason of the first
without an error, a late requeue kills the job's new run, a second reboot order after the first has ended boots again.
Whoever writes must look first.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Literal

from daytwo.domain.errors import DaytwoError, Refused
from daytwo.domain.seams import ActKind
from daytwo.domain.vocabulary import Frozen
from daytwo.lab.faults import Drain
from daytwo.lab.fleet import Fleet
from daytwo.lab.world import Node, Reservation

Result = Literal["done", "already", "refused"]


class Order(Frozen):
    """One write. `reservation` names it for `reserve` and `unreserve`; `target` is the job for a requeue.

    `by` is the user the scheduler sees; `repair_id` only stands in the log of acts.
    """

    kind: ActKind | Literal["power-off", "power-on"]
    node: str
    target: str = ""
    reservation: str = ""
    reason: str = ""
    by: str = "root"
    repair_id: str = ""


class Entry(Frozen):
    """One line of the log of acts: what was asked, when (real time and simulated second), and what came of it."""

    number: int
    at: datetime
    second: float
    order: Order
    result: Result
    detail: str = ""


class Acts:
    """Carries out orders on a fleet and keeps the log of them."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self.log: list[Entry] = []
        self._how: dict[str, Callable[[Order, Node], Result]] = {
            "reserve": self._reserve,
            "unreserve": self._unreserve,
            "drain": self._drain,
            "undrain": self._undrain,
            "requeue": self._requeue,
            "reboot": self._reboot,
            "power-cycle": self._power_cycle,
            "power-off": self._power_off,
            "power-on": self._power_on,
        }

    def do(self, order: Order) -> Entry:
        """Carry out one order. Raises `NotFound` for node or job, `Refused` where the real thing answers an error."""
        node = self._fleet.node(order.node)
        try:
            if order.kind not in self._how:
                raise Refused(f"kind: found {order.kind!r}; allowed is {', '.join(self._how)}")
            return self._record(order, self._how[order.kind](order, node))
        except DaytwoError as error:
            self._record(order, "refused", str(error))
            raise

    def _record(self, order: Order, result: Result, detail: str = "") -> Entry:
        entry = Entry(
            number=len(self.log) + 1,
            at=self._fleet.wall(),
            second=self._fleet.timeline.now,
            order=order,
            result=result,
            detail=detail,
        )
        self.log.append(entry)
        return entry

    def _reserve(self, order: Order, node: Node) -> Result:
        if not order.reservation:
            raise Refused("reservation: found no name; allowed is a name that no reservation has")
        if order.reservation in self._fleet.reservations:
            raise Refused(f"reservation {order.reservation} exists already")
        self._fleet.reservations[order.reservation] = Reservation(order.reservation, node.name)
        return "done"

    def _unreserve(self, order: Order, node: Node) -> Result:
        if order.reservation not in self._fleet.reservations:
            raise Refused(f"reservation {order.reservation!r} does not exist")
        del self._fleet.reservations[order.reservation]
        return "done"

    def _drain(self, order: Order, node: Node) -> Result:
        if not order.reason:
            raise Refused("reason: found none; a drain needs one")
        same = node.drain is not None and (node.drain.reason, node.drain.by) == (order.reason, order.by)
        node.drain = Drain(order.reason, order.by, self._fleet.wall())
        return "already" if same else "done"

    def _undrain(self, order: Order, node: Node) -> Result:
        before, node.drain = node.drain, None
        return "done" if before else "already"

    def _requeue(self, order: Order, node: Node) -> Result:
        self._fleet.queue.requeue(order.target)
        return "done"

    def _reboot(self, order: Order, node: Node) -> Result:
        """`scontrol reboot ASAP`: drains, waits until the node is idle, then boots."""
        if not node.up or node.reboot_issued:
            raise Refused(f"node {node.name} is down or boots already")
        if node.reboot_requested:
            return "already"
        node.reboot_requested = True
        node.drain = node.drain or Drain(order.reason or "Reboot ASAP", order.by, self._fleet.wall())
        return "done"

    def _power_cycle(self, order: Order, node: Node) -> Result:
        """A forced restart by the BMC: at once, whatever runs."""
        node.resets += 1
        self._fleet.boot(node, "power-cycle")
        return "done"

    def _power_off(self, order: Order, node: Node) -> Result:
        if node.power == "off":
            return "already"
        self._fleet.switch_off(node)
        return "done"

    def _power_on(self, order: Order, node: Node) -> Result:
        if node.power != "off":
            return "already"
        self._fleet.boot(node, "power-cycle")
        return "done"

"""`node-repair` as somebody might change it: each under the name that stands in the histories."""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from daytwo.domain import exchange as x
    from workflows import names

from workflows.node_repair import NodeRepair


@workflow.defn(name=names.NODE_REPAIR)
class SleepsFirst(NodeRepair):
    """Waits a second before it begins, without a patch."""

    @workflow.init
    def __init__(self, run: x.Run) -> None:
        super().__init__(run)

    @workflow.run
    async def run(self, run: x.Run) -> x.Run:
        """Sleep, then do what it did."""
        await workflow.sleep(1)
        return await super().run(run)


@workflow.defn(name=names.NODE_REPAIR)
class TellsNobody(NodeRepair):
    """Announces nothing any more, without a patch."""

    @workflow.init
    def __init__(self, run: x.Run) -> None:
        super().__init__(run)

    @workflow.run
    async def run(self, run: x.Run) -> x.Run:
        """Do what it did, without the announcement."""
        return await super().run(run)

    async def _announce(self) -> None:
        return


@workflow.defn(name=names.NODE_REPAIR)
class SleepsFirstIfNew(NodeRepair):
    """Waits a second before it begins, if it begins with this version."""

    @workflow.init
    def __init__(self, run: x.Run) -> None:
        super().__init__(run)

    @workflow.run
    async def run(self, run: x.Run) -> x.Run:
        """Sleep if this is a new repair, then do what it did."""
        if workflow.patched("sleep-first"):
            await workflow.sleep(1)
        return await super().run(run)

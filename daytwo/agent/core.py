"""The agent of one node: one loop over injected seams (`daytwo.agent.seams`), without threads and without I/O of its own.

    agent = Agent(AgentSettings(node="n1", boot_id="…"), log=…, gpus=…, link=…, spool=Spool(MemoryJournal()), clock=…)
    delay = agent.step()        call again after `delay` seconds of `clock`, or as soon as a seam has something to collect
    agent.close()               at the end: what is folded is spooled

`step` never blocks and never raises. One object is one boot of one agent: a node that reboots gets a new `Agent` with a
new `boot_id` and the same spool. `daytwo.agent.main` drives one of these with threads behind the seams; the simulated
fleet drives many from one loop: its `Link.send` starts the request, its `Link.collect` returns the `Reply` when it is
there, its `Gpus.ask` and `collect` answer from the simulated board, its `KernelLog.collect` hands out injected records
(`LogRecord(parse_line(text), sequence, at, (sequence,))`).

The first step asks for a reading of the GPUs; kernel records wait up to 5 s for it, so that they name a GPU by its UUID.
"""

#!/usr/bin/env python3
"""Power cycles by ipmitool: an example for `hardware: {driver: command}` (docs/hardware-command.md).

hardware:
  driver: command
  program: [/etc/daytwo/ipmi-power.py, "{node}-bmc.example"]
  secrets: {password: "file:/etc/daytwo/bmc-password"}
"""

import json
import os
import re
import subprocess
import sys

REFUSED, AGAIN = 3, 4


def main():
    asked = json.load(sys.stdin)
    bmc = Bmc(sys.argv[1].replace("{node}", asked["node"]), asked["secrets"]["password"])
    answer = {"baseline": baseline, "check": check, "act": act, "look": look}[asked["question"]]
    json.dump(answer(bmc, asked), sys.stdout)


def baseline(bmc, asked):
    """What is kept until the act is over: how long the event log is now."""
    return {"identity": bmc.identity(), "baseline": {"events": len(bmc.events())}}


def check(bmc, asked):
    """Right before the order. Whoever switched the machine off may have hands in it."""
    answer = look(bmc, asked)
    if answer["outcome"] != "unclear":
        return answer
    if not bmc.is_on():
        stop(REFUSED, "the machine is switched off, not by daytwo")
    return {"identity": answer["identity"]}


def act(bmc, asked):
    bmc.ask("chassis", "power", "cycle")
    return {}


def look(bmc, asked):
    """Done once the log tells of the power and it is on again. A BMC that logs nothing leaves it to the agent."""
    new = bmc.events()[asked["baseline"]["events"] :]
    seen = [event for event in new if re.search(r"Power (off/down|cycle)", event)]
    outcome = ("done" if bmc.is_on() else "pending") if seen else "unclear"
    return {"identity": bmc.identity(), "outcome": outcome, "proof": "; ".join(seen)[-200:] or "no event of its power"}


class Bmc:
    def __init__(self, host, password):
        self.host, self.password = host, password

    def ask(self, *words):
        """The password goes through the environment: an argument could be read by everybody on this machine."""
        done = subprocess.run(
            ["ipmitool", "-I", "lanplus", "-H", self.host, "-U", "daytwo", "-E", *words],
            env={**os.environ, "IPMI_PASSWORD": self.password},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            stop(AGAIN, f"{self.host}: {done.stderr.strip() or 'no answer'}")
        return done.stdout

    def is_on(self):
        return self.ask("chassis", "power", "status").strip() == "Chassis Power is on"

    def events(self):
        lines = self.ask("sel", "list").splitlines()
        return [line for line in lines if "|" in line]

    def identity(self):
        found = re.search(r"System GUID\s*:\s*(\S+)", self.ask("mc", "guid"))
        return {"system_uuid": found[1]} if found else {}


def stop(status, why):
    print(why, file=sys.stderr)
    sys.exit(status)


main()

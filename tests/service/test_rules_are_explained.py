"""What a policy comes to for a fault, as the API explains it."""

from __future__ import annotations

import httpx

from daytwo.domain.policy import FaultRule, Policy
from daytwo.domain.vocabulary import Action, Mode
from daytwo.store.engine import Store
from daytwo.store.tables import ClusterRow
from tests.rows import a_cluster, a_definition, a_policy, keep


def test_each_value_is_explained_with_its_origin(client: httpx.Client, fleet: Store) -> None:
    policy = Policy(
        faults={"xid-79": FaultRule(mode=Mode.AUTO)}, approval=a_policy(two_person=(Action.REBOOT,)).approval
    )
    with fleet.write() as session:
        session.get_one(ClusterRow, "east").definition = a_definition(policy=policy).model_dump(mode="json")
    found = client.get("/v1/policy/xid-79").json()
    assert (found["rule"]["mode"], found["rule"]["origins"]["mode"]) == ("auto", "fault rule")
    assert (found["rule"]["origins"]["action"], found["two_persons"]) == ("catalogue", True)
    assert found["approved_by"] == ["lead", "operator"]


def test_of_several_clusters_one_must_be_named(client: httpx.Client, fleet: Store) -> None:
    keep(fleet, a_cluster("north"))
    answer = client.get("/v1/policy/xid-79")
    assert (answer.status_code, "east, north" in answer.text) == (422, True)
    assert client.get("/v1/policy/xid-79", params={"cluster": "north"}).json()["cluster"] == "north"


def test_a_fault_that_is_not_known_is_not_found(client: httpx.Client) -> None:
    assert client.get("/v1/policy/xid-nothing").status_code == 404

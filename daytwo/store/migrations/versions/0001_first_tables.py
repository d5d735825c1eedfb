"""First tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create what this revision adds."""
    op.create_table(
        "audit",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("act", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.Column("previous", sa.String(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("number"),
    )
    with op.batch_alter_table("audit", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_audit_subject"), ["subject"], unique=False)

    op.create_table(
        "audit_heads",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("head", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "bmc_refusals",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("cluster", sa.String(), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("bmc_refusals", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_bmc_refusals_cluster"), ["cluster"], unique=False)

    op.create_table(
        "check_results",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("result", sa.String(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "name"),
    )
    op.create_table(
        "check_runs",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("cluster", sa.String(), nullable=False),
        sa.Column("node", sa.String(), nullable=False),
        sa.Column("repair_id", sa.String(), nullable=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("passed", sa.Boolean(), nullable=True),
        sa.Column("summary", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("check_runs", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_check_runs_node"), ["node"], unique=False)
        batch_op.create_index(batch_op.f("ix_check_runs_repair_id"), ["repair_id"], unique=False)

    op.create_table(
        "clusters",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("definition", sa.JSON(), nullable=False),
        sa.Column("policy_revision", sa.Integer(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "decisions",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("request_id", sa.String(), nullable=False),
        sa.Column("repair_id", sa.String(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("action", sa.String(), nullable=True),
        sa.Column("moment", sa.String(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("verified", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("snooze_seconds", sa.Integer(), nullable=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("status_reason", sa.String(), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("request_id"),
    )
    with op.batch_alter_table("decisions", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_decisions_repair_id"), ["repair_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_decisions_status"), ["status"], unique=False)

    op.create_table(
        "findings",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("cluster", sa.String(), nullable=False),
        sa.Column("node", sa.String(), nullable=False),
        sa.Column("fault", sa.String(), nullable=False),
        sa.Column("entity", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("boot_id", sa.String(), nullable=True),
        sa.Column("first_seen", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_seen", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_received", sa.DateTime(timezone=True), nullable=False),
        sa.Column("cleared_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("cleared_by", sa.String(), nullable=True),
        sa.Column("last_observation", sa.BigInteger(), nullable=False),
        sa.Column("last_stream", sa.Integer(), nullable=False),
        sa.Column("last_sequence", sa.Integer(), nullable=False),
        sa.Column("judged_up_to", sa.BigInteger(), nullable=False),
        sa.Column("evidence", sa.JSON(), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("cluster", "node", "fault", "entity", name="one_finding"),
    )
    with op.batch_alter_table("findings", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_findings_node"), ["node"], unique=False)
        batch_op.create_index(batch_op.f("ix_findings_status"), ["status"], unique=False)

    op.create_table(
        "freezes",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("scope", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("thawed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("thawed_by", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("freezes", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_freezes_scope"), ["scope"], unique=False)

    op.create_table(
        "incidents",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("cluster", sa.String(), nullable=False),
        sa.Column("fault_class", sa.String(), nullable=False),
        sa.Column("open_key", sa.String(), nullable=True),
        sa.Column("nodes", sa.Integer(), nullable=False),
        sa.Column("domains", sa.JSON(), nullable=False),
        sa.Column("first_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("opened_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("told_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("told_domains", sa.JSON(), nullable=False),
        sa.Column("closed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("end_told_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("open_key"),
    )
    op.create_table(
        "intents",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("repair_id", sa.String(), nullable=False),
        sa.Column("cluster", sa.String(), nullable=False),
        sa.Column("node", sa.String(), nullable=False),
        sa.Column("open_node", sa.String(), nullable=True),
        sa.Column("driver", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("act", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("deadline", sa.DateTime(timezone=True), nullable=True),
        sa.Column("sent_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("proof", sa.String(), nullable=False),
        sa.Column("proof_type", sa.String(), nullable=False),
        sa.Column("error", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("open_node"),
    )
    with op.batch_alter_table("intents", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_intents_repair_id"), ["repair_id"], unique=False)

    op.create_table(
        "leases",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("holder", sa.String(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "node_requests",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("cluster", sa.String(), nullable=False),
        sa.Column("node", sa.String(), nullable=False),
        sa.Column("repair_id", sa.String(), nullable=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("arguments", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("deadline", sa.DateTime(timezone=True), nullable=False),
        sa.Column("offered_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("accepted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("boot_id", sa.String(), nullable=True),
        sa.Column("result", sa.JSON(), nullable=False),
        sa.Column("error", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("node_requests", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_node_requests_node"), ["node"], unique=False)
        batch_op.create_index(batch_op.f("ix_node_requests_repair_id"), ["repair_id"], unique=False)

    op.create_table(
        "node_tokens",
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("cluster", sa.String(), nullable=False),
        sa.Column("node", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("hash"),
    )
    with op.batch_alter_table("node_tokens", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_node_tokens_node"), ["node"], unique=False)

    op.create_table(
        "node_transitions",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("cluster", sa.String(), nullable=False),
        sa.Column("node", sa.String(), nullable=False),
        sa.Column("from_state", sa.String(), nullable=False),
        sa.Column("to_state", sa.String(), nullable=False),
        sa.Column("why", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("node_transitions", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_node_transitions_cluster"), ["cluster"], unique=False)
        batch_op.create_index(batch_op.f("ix_node_transitions_node"), ["node"], unique=False)

    op.create_table(
        "nodes",
        sa.Column("cluster", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("pool", sa.String(), nullable=False),
        sa.Column("domains", sa.JSON(), nullable=False),
        sa.Column("expected_gpus", sa.Integer(), nullable=True),
        sa.Column("due", sa.Integer(), nullable=False),
        sa.Column("judged", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("state_since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state_why", sa.String(), nullable=False),
        sa.Column("boot_id", sa.String(), nullable=True),
        sa.Column("identity", sa.JSON(), nullable=False),
        sa.Column("identity_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("inventory", sa.JSON(), nullable=False),
        sa.Column("agent_version", sa.String(), nullable=True),
        sa.Column("stream", sa.Integer(), nullable=False),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("last_heard_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("clock_skew_seconds", sa.Float(), nullable=True),
        sa.Column("checks", sa.JSON(), nullable=False),
        sa.Column("checks_digest", sa.String(), nullable=True),
        sa.Column("facts", sa.JSON(), nullable=True),
        sa.Column("facts_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("held_by", sa.String(), nullable=True),
        sa.Column("held_reason", sa.String(), nullable=False),
        sa.Column("held_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("cluster", "name"),
    )
    op.create_table(
        "observations",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("cluster", sa.String(), nullable=False),
        sa.Column("node", sa.String(), nullable=False),
        sa.Column("fault", sa.String(), nullable=False),
        sa.Column("entity", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("boot_id", sa.String(), nullable=True),
        sa.Column("kernel_sequence", sa.BigInteger(), nullable=True),
        sa.Column("stream", sa.Integer(), nullable=True),
        sa.Column("sequence", sa.Integer(), nullable=True),
        sa.Column("first_seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("evidence", sa.JSON(), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint(
            "cluster", "node", "boot_id", "kernel_sequence", "fault", "entity", name="one_kernel_record"
        ),
        sa.UniqueConstraint("cluster", "node", "stream", "sequence", name="one_stream_record"),
    )
    with op.batch_alter_table("observations", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_observations_received_at"), ["received_at"], unique=False)
        batch_op.create_index("observations_by_finding", ["cluster", "node", "fault", "entity"], unique=False)
        batch_op.create_index("observations_by_node", ["cluster", "node", "id"], unique=False)

    op.create_table(
        "repair_events",
        sa.Column("repair_id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("event", sa.String(), nullable=False),
        sa.Column("from_state", sa.String(), nullable=False),
        sa.Column("to_state", sa.String(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("repair_id", "number"),
    )
    op.create_table(
        "repairs",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("cluster", sa.String(), nullable=False),
        sa.Column("node", sa.String(), nullable=False),
        sa.Column("open_key", sa.String(), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("state_since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("rung", sa.Integer(), nullable=False),
        sa.Column("action", sa.String(), nullable=True),
        sa.Column("fault", sa.String(), nullable=True),
        sa.Column("proposal", sa.JSON(), nullable=True),
        sa.Column("policy_revision", sa.Integer(), nullable=False),
        sa.Column("opened_by", sa.String(), nullable=False),
        sa.Column("why", sa.String(), nullable=False),
        sa.Column("contained", sa.Boolean(), nullable=False),
        sa.Column("disturbed", sa.Boolean(), nullable=False),
        sa.Column("claimed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("right_taken_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("stamps", sa.JSON(), nullable=False),
        sa.Column("attention", sa.String(), nullable=False),
        sa.Column("waiting_for", sa.String(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("opened_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("closed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("snooze_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("informed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("outcome_digest", sa.String(), nullable=True),
        sa.Column("missing_since", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("open_key"),
    )
    with op.batch_alter_table("repairs", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_repairs_cluster"), ["cluster"], unique=False)
        batch_op.create_index(batch_op.f("ix_repairs_node"), ["node"], unique=False)
        batch_op.create_index(batch_op.f("ix_repairs_opened_at"), ["opened_at"], unique=False)
        batch_op.create_index("repairs_by_node", ["cluster", "node", "opened_at"], unique=False)


def downgrade() -> None:
    """Remove it again."""
    with op.batch_alter_table("repairs", schema=None) as batch_op:
        batch_op.drop_index("repairs_by_node")
        batch_op.drop_index(batch_op.f("ix_repairs_opened_at"))
        batch_op.drop_index(batch_op.f("ix_repairs_node"))
        batch_op.drop_index(batch_op.f("ix_repairs_cluster"))

    op.drop_table("repairs")
    op.drop_table("repair_events")
    with op.batch_alter_table("observations", schema=None) as batch_op:
        batch_op.drop_index("observations_by_node")
        batch_op.drop_index("observations_by_finding")
        batch_op.drop_index(batch_op.f("ix_observations_received_at"))

    op.drop_table("observations")
    op.drop_table("nodes")
    with op.batch_alter_table("node_transitions", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_node_transitions_node"))
        batch_op.drop_index(batch_op.f("ix_node_transitions_cluster"))

    op.drop_table("node_transitions")
    with op.batch_alter_table("node_tokens", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_node_tokens_node"))

    op.drop_table("node_tokens")
    with op.batch_alter_table("node_requests", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_node_requests_repair_id"))
        batch_op.drop_index(batch_op.f("ix_node_requests_node"))

    op.drop_table("node_requests")
    op.drop_table("leases")
    with op.batch_alter_table("intents", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_intents_repair_id"))

    op.drop_table("intents")
    op.drop_table("incidents")
    with op.batch_alter_table("freezes", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_freezes_scope"))

    op.drop_table("freezes")
    with op.batch_alter_table("findings", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_findings_status"))
        batch_op.drop_index(batch_op.f("ix_findings_node"))

    op.drop_table("findings")
    with op.batch_alter_table("decisions", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_decisions_status"))
        batch_op.drop_index(batch_op.f("ix_decisions_repair_id"))

    op.drop_table("decisions")
    op.drop_table("clusters")
    with op.batch_alter_table("check_runs", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_check_runs_repair_id"))
        batch_op.drop_index(batch_op.f("ix_check_runs_node"))

    op.drop_table("check_runs")
    op.drop_table("check_results")
    with op.batch_alter_table("bmc_refusals", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_bmc_refusals_cluster"))

    op.drop_table("bmc_refusals")
    op.drop_table("audit_heads")
    with op.batch_alter_table("audit", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_audit_subject"))

    op.drop_table("audit")

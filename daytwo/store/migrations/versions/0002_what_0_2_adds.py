"""What 0.2 adds."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create what this revision adds."""
    op.create_table(
        "evidence",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("repair_id", sa.String(), nullable=False),
        sa.Column("cluster", sa.String(), nullable=False),
        sa.Column("node", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("parts", sa.JSON(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=True),
        sa.Column("error", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("evidence", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_evidence_expires_at"), ["expires_at"], unique=False)
        batch_op.create_index(batch_op.f("ix_evidence_repair_id"), ["repair_id"], unique=False)

    op.create_table(
        "outages",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("part", sa.String(), nullable=False),
        sa.Column("seen_by", sa.String(), nullable=False),
        sa.Column("began", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended", sa.DateTime(timezone=True), nullable=False),
        sa.Column("error", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("outages", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_outages_ended"), ["ended"], unique=False)
        batch_op.create_index(batch_op.f("ix_outages_part"), ["part"], unique=False)

    op.create_table(
        "parts",
        sa.Column("part", sa.String(), nullable=False),
        sa.Column("seen_by", sa.String(), nullable=False),
        sa.Column("away", sa.Boolean(), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("error", sa.String(), nullable=False),
        sa.Column("last_good", sa.DateTime(timezone=True), nullable=True),
        sa.Column("tried_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("part", "seen_by"),
    )
    op.create_table(
        "restores",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("taken_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("settled_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "schema_versions",
        sa.Column("revision", sa.String(), nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("revision"),
    )
    with op.batch_alter_table("findings", schema=None) as batch_op:
        batch_op.add_column(sa.Column("turns", sa.JSON(), server_default="[]", nullable=False))
        batch_op.add_column(sa.Column("quiet_since", sa.DateTime(timezone=True), nullable=True))

    with op.batch_alter_table("leases", schema=None) as batch_op:
        batch_op.add_column(sa.Column("stepped_at", sa.DateTime(timezone=True), nullable=True))

    with op.batch_alter_table("nodes", schema=None) as batch_op:
        batch_op.add_column(sa.Column("left_at", sa.DateTime(timezone=True), nullable=True))
        batch_op.add_column(sa.Column("kernel_log", sa.String(), nullable=True))


def downgrade() -> None:
    """Remove it again."""
    with op.batch_alter_table("nodes", schema=None) as batch_op:
        batch_op.drop_column("left_at")
        batch_op.drop_column("kernel_log")

    with op.batch_alter_table("leases", schema=None) as batch_op:
        batch_op.drop_column("stepped_at")

    with op.batch_alter_table("findings", schema=None) as batch_op:
        batch_op.drop_column("quiet_since")
        batch_op.drop_column("turns")

    op.drop_table("schema_versions")
    op.drop_table("restores")
    op.drop_table("parts")
    with op.batch_alter_table("outages", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_outages_part"))
        batch_op.drop_index(batch_op.f("ix_outages_ended"))

    op.drop_table("outages")
    with op.batch_alter_table("evidence", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_evidence_repair_id"))
        batch_op.drop_index(batch_op.f("ix_evidence_expires_at"))

    op.drop_table("evidence")

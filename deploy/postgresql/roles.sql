-- What each process may do in the store. Run it as the owner of the tables, after each upgrade, in the store's database:
--     psql "$OWNER_URL" -v ON_ERROR_STOP=1 -f deploy/postgresql/roles.sql
-- Then give each role a password (\password daytwo_gateway), and each process the address with its role (deploy/README.md).
-- Migrations need the owner: run `daytwo server migrate` with its address before the processes of a new version start.
DO $$
DECLARE
    role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['daytwo_gateway', 'daytwo_service', 'daytwo_plane'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
            EXECUTE format('CREATE ROLE %I LOGIN', role);
        END IF;
    END LOOP;
END
$$;

REVOKE CREATE ON SCHEMA public FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA public FROM PUBLIC, daytwo_gateway, daytwo_service, daytwo_plane;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM PUBLIC, daytwo_gateway, daytwo_service, daytwo_plane;
GRANT USAGE ON SCHEMA public TO daytwo_gateway, daytwo_service, daytwo_plane;

-- The gateway is what nodes reach. It writes what nodes say, and reads what it needs to answer them. It cannot decide,
-- act, issue a credential, or read who decided what.
GRANT SELECT ON alembic_version, schema_versions, clusters, nodes, node_tokens, observations, findings, node_requests,
    evidence, repairs, leases, parts, outages TO daytwo_gateway;
GRANT UPDATE ON nodes, findings, node_requests TO daytwo_gateway;
GRANT UPDATE (revoked_at) ON node_tokens TO daytwo_gateway;
GRANT INSERT ON observations, findings TO daytwo_gateway;
-- Of a node's findings that have ended the oldest goes where there are too many.
GRANT DELETE ON findings TO daytwo_gateway;
GRANT INSERT, UPDATE ON evidence TO daytwo_gateway;
GRANT USAGE ON SEQUENCE observations_id_seq, findings_id_seq TO daytwo_gateway;

-- The service writes what people decide and declare. It cannot act: an act is a row of `intents`.
GRANT SELECT ON ALL TABLES IN SCHEMA public TO daytwo_service;
GRANT INSERT, UPDATE ON clusters, nodes, node_transitions, node_tokens, decisions, repairs, repair_events, freezes,
    node_requests, evidence, audit_heads TO daytwo_service;
GRANT DELETE ON clusters, nodes, node_tokens, findings, node_requests, bmc_refusals TO daytwo_service;
GRANT INSERT ON audit TO daytwo_service;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO daytwo_service;

-- Worker and controller do the rest. They issue no credential of a node.
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO daytwo_plane;
REVOKE ALL ON node_tokens, alembic_version, schema_versions FROM daytwo_plane;
GRANT SELECT ON alembic_version, schema_versions TO daytwo_plane;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO daytwo_plane;

-- Nobody but the owner changes or removes what is in the audit chain, or what was decided.
REVOKE UPDATE, DELETE ON audit FROM daytwo_service, daytwo_plane;
REVOKE DELETE ON decisions, audit_heads FROM daytwo_service, daytwo_plane;

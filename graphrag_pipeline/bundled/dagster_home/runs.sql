BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('29b539ebc72a');
CREATE TABLE backfill_tags (
	id INTEGER NOT NULL, 
	backfill_id VARCHAR(255), 
	"key" TEXT, 
	value TEXT, 
	PRIMARY KEY (id)
);
CREATE TABLE bulk_actions (
	id INTEGER NOT NULL, 
	"key" VARCHAR(32) NOT NULL, 
	status VARCHAR(255) NOT NULL, 
	timestamp TIMESTAMP NOT NULL, 
	body TEXT, 
	action_type VARCHAR(32), 
	selector_id TEXT, 
	job_name TEXT, 
	PRIMARY KEY (id), 
	UNIQUE ("key")
);
CREATE TABLE daemon_heartbeats (
	id INTEGER NOT NULL, 
	daemon_type VARCHAR(255) NOT NULL, 
	daemon_id VARCHAR(255), 
	timestamp TIMESTAMP NOT NULL, 
	body TEXT, 
	PRIMARY KEY (id), 
	UNIQUE (daemon_type)
);
CREATE TABLE instance_info (
	id INTEGER NOT NULL, 
	run_storage_id TEXT, 
	PRIMARY KEY (id)
);
CREATE TABLE kvs (
	id INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	value TEXT, 
	PRIMARY KEY (id)
);
CREATE TABLE run_tags (
	id INTEGER NOT NULL, 
	run_id VARCHAR(255), 
	"key" TEXT, 
	value TEXT, 
	PRIMARY KEY (id), 
	FOREIGN KEY(run_id) REFERENCES runs (run_id) ON DELETE CASCADE
);
CREATE TABLE runs (
	id INTEGER NOT NULL, 
	run_id VARCHAR(255), 
	snapshot_id VARCHAR(255), 
	pipeline_name TEXT, 
	mode TEXT, 
	status VARCHAR(63), 
	run_body TEXT, 
	partition TEXT, 
	partition_set TEXT, 
	create_timestamp DATETIME DEFAULT CURRENT_TIMESTAMP, 
	update_timestamp DATETIME DEFAULT CURRENT_TIMESTAMP, 
	start_time FLOAT, 
	end_time FLOAT, 
	backfill_id VARCHAR(255), 
	PRIMARY KEY (id), 
	UNIQUE (run_id), 
	CONSTRAINT fk_runs_snapshot_id_snapshots_snapshot_id FOREIGN KEY(snapshot_id) REFERENCES snapshots (snapshot_id)
);
CREATE TABLE secondary_indexes (
	id INTEGER NOT NULL, 
	name VARCHAR(512), 
	create_timestamp DATETIME DEFAULT CURRENT_TIMESTAMP, 
	migration_completed DATETIME, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);
INSERT INTO "secondary_indexes" VALUES(1,'run_partitions','2026-11-27 22:29:16','2026-11-27 22:29:16.621343');
INSERT INTO "secondary_indexes" VALUES(2,'run_repo_label_tags','2026-11-27 22:29:16','2026-11-27 22:29:16.647884');
INSERT INTO "secondary_indexes" VALUES(3,'bulk_action_types','2026-11-27 22:29:16','2026-11-27 22:29:16.670047');
INSERT INTO "secondary_indexes" VALUES(4,'run_backfill_id','2026-11-27 22:29:16','2026-11-27 22:29:16.691671');
INSERT INTO "secondary_indexes" VALUES(5,'backfill_job_name_and_tags','2026-11-27 22:29:16','2026-11-27 22:29:16.707764');
INSERT INTO "secondary_indexes" VALUES(6,'backfill_end_timestamp','2026-11-27 22:29:16','2026-11-27 22:29:16.743633');
INSERT INTO "secondary_indexes" VALUES(7,'run_start_end_overwritten','2026-11-27 22:29:16','2026-11-27 22:29:16.775623');
CREATE TABLE snapshots (
	id INTEGER NOT NULL, 
	snapshot_id VARCHAR(255) NOT NULL, 
	snapshot_body BLOB NOT NULL, 
	snapshot_type VARCHAR(63) NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (snapshot_id)
);
CREATE INDEX idx_bulk_actions_status ON bulk_actions (status);
CREATE INDEX idx_bulk_actions_action_type ON bulk_actions (action_type);
CREATE INDEX idx_bulk_actions_selector_id ON bulk_actions (selector_id);
CREATE INDEX idx_bulk_actions ON bulk_actions ("key");
CREATE INDEX idx_backfill_tags_backfill_id ON backfill_tags (backfill_id, id);
CREATE UNIQUE INDEX idx_kvs_keys_unique ON kvs ("key");
CREATE INDEX idx_runs_by_backfill_id ON runs (backfill_id, id);
CREATE INDEX idx_run_status ON runs (status);
CREATE INDEX idx_run_partitions ON runs (partition_set, partition);
CREATE INDEX idx_run_range ON runs (status, update_timestamp, create_timestamp);
CREATE INDEX idx_runs_by_job ON runs (pipeline_name, id);
CREATE INDEX idx_run_tags ON run_tags ("key", value);
CREATE INDEX idx_run_tags_run_idx ON run_tags (run_id, id);
COMMIT;

BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('29b539ebc72a');
CREATE TABLE asset_check_executions (
	id INTEGER NOT NULL, 
	asset_key TEXT, 
	check_name TEXT, 
	partition TEXT, 
	run_id VARCHAR(255), 
	execution_status VARCHAR(255), 
	evaluation_event TEXT, 
	evaluation_event_timestamp DATETIME, 
	evaluation_event_storage_id INTEGER, 
	materialization_event_storage_id INTEGER, 
	create_timestamp DATETIME DEFAULT CURRENT_TIMESTAMP, 
	PRIMARY KEY (id)
);
CREATE TABLE asset_event_tags (
	id INTEGER NOT NULL, 
	event_id INTEGER, 
	asset_key TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	value TEXT, 
	event_timestamp TIMESTAMP, 
	PRIMARY KEY (id)
);
CREATE TABLE asset_keys (
	id INTEGER NOT NULL, 
	asset_key VARCHAR(512), 
	last_materialization TEXT, 
	last_run_id VARCHAR(255), 
	asset_details TEXT, 
	wipe_timestamp TIMESTAMP, 
	last_materialization_timestamp TIMESTAMP, 
	tags TEXT, 
	create_timestamp DATETIME DEFAULT CURRENT_TIMESTAMP, 
	cached_status_data TEXT, 
	PRIMARY KEY (id), 
	UNIQUE (asset_key)
);
CREATE TABLE concurrency_limits (
	id INTEGER NOT NULL, 
	concurrency_key VARCHAR(512) NOT NULL, 
	"limit" INTEGER NOT NULL, 
	using_default_limit BOOLEAN DEFAULT 0 NOT NULL, 
	update_timestamp DATETIME DEFAULT CURRENT_TIMESTAMP, 
	create_timestamp DATETIME DEFAULT CURRENT_TIMESTAMP, 
	PRIMARY KEY (id), 
	UNIQUE (concurrency_key)
);
CREATE TABLE concurrency_slots (
	id INTEGER NOT NULL, 
	concurrency_key TEXT NOT NULL, 
	run_id TEXT, 
	step_key TEXT, 
	deleted BOOLEAN NOT NULL, 
	create_timestamp DATETIME DEFAULT CURRENT_TIMESTAMP, 
	PRIMARY KEY (id)
);
CREATE TABLE dynamic_partitions (
	id INTEGER NOT NULL, 
	partitions_def_name TEXT NOT NULL, 
	partition TEXT NOT NULL, 
	create_timestamp DATETIME DEFAULT CURRENT_TIMESTAMP, 
	PRIMARY KEY (id)
);
CREATE TABLE event_logs (
	id INTEGER NOT NULL, 
	run_id VARCHAR(255), 
	event TEXT NOT NULL, 
	dagster_event_type TEXT, 
	timestamp TIMESTAMP, 
	step_key TEXT, 
	asset_key TEXT, 
	partition TEXT, 
	PRIMARY KEY (id)
);
CREATE TABLE pending_steps (
	id INTEGER NOT NULL, 
	concurrency_key TEXT NOT NULL, 
	run_id TEXT, 
	step_key TEXT, 
	priority INTEGER, 
	assigned_timestamp DATETIME, 
	create_timestamp DATETIME DEFAULT CURRENT_TIMESTAMP, 
	PRIMARY KEY (id)
);
CREATE TABLE secondary_indexes (
	id INTEGER NOT NULL, 
	name VARCHAR(512), 
	create_timestamp DATETIME DEFAULT CURRENT_TIMESTAMP, 
	migration_completed DATETIME, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);
INSERT INTO "secondary_indexes" VALUES(1,'asset_key_table','2026-11-27 22:29:17','2026-11-27 22:29:17.513376');
INSERT INTO "secondary_indexes" VALUES(2,'asset_key_index_columns','2026-11-27 22:29:17','2026-11-27 22:29:17.544983');
CREATE INDEX idx_events_by_run_id ON event_logs (run_id, id);
CREATE INDEX idx_step_key ON event_logs (step_key);
CREATE INDEX idx_events_by_asset ON event_logs (asset_key, dagster_event_type, id);
CREATE INDEX idx_event_type ON event_logs (dagster_event_type, id);
CREATE INDEX idx_events_by_asset_partition ON event_logs (asset_key, dagster_event_type, partition, id);
CREATE INDEX idx_asset_event_tags_event_id ON asset_event_tags (event_id);
CREATE INDEX idx_asset_event_tags ON asset_event_tags (asset_key, "key", value);
CREATE UNIQUE INDEX idx_dynamic_partitions ON dynamic_partitions (partitions_def_name, partition);
CREATE UNIQUE INDEX idx_pending_steps ON pending_steps (concurrency_key, run_id, step_key);
CREATE INDEX idx_asset_check_executions ON asset_check_executions (asset_key, check_name, materialization_event_storage_id, partition);
CREATE UNIQUE INDEX idx_asset_check_executions_unique ON asset_check_executions (asset_key, check_name, run_id, partition);
COMMIT;

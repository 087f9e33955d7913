BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('29b539ebc72a');
CREATE TABLE asset_daemon_asset_evaluations (
	id INTEGER NOT NULL, 
	evaluation_id INTEGER, 
	asset_key TEXT, 
	asset_evaluation_body TEXT, 
	num_requested INTEGER, 
	num_skipped INTEGER, 
	num_discarded INTEGER, 
	create_timestamp DATETIME DEFAULT CURRENT_TIMESTAMP, 
	PRIMARY KEY (id)
);
CREATE TABLE instigators (
	id INTEGER NOT NULL, 
	selector_id VARCHAR(255), 
	repository_selector_id VARCHAR(255), 
	status VARCHAR(63), 
	instigator_type VARCHAR(63), 
	instigator_body TEXT, 
	create_timestamp DATETIME DEFAULT CURRENT_TIMESTAMP, 
	update_timestamp DATETIME DEFAULT CURRENT_TIMESTAMP, 
	PRIMARY KEY (id), 
	UNIQUE (selector_id)
);
CREATE TABLE job_ticks (
	id INTEGER NOT NULL, 
	job_origin_id VARCHAR(255), 
	selector_id VARCHAR(255), 
	status VARCHAR(63), 
	type VARCHAR(63), 
	timestamp TIMESTAMP, 
	tick_body TEXT, 
	create_timestamp DATETIME DEFAULT CURRENT_TIMESTAMP, 
	update_timestamp DATETIME DEFAULT CURRENT_TIMESTAMP, 
	PRIMARY KEY (id)
);
CREATE TABLE jobs (
	id INTEGER NOT NULL, 
	job_origin_id VARCHAR(255), 
	selector_id VARCHAR(255), 
	repository_origin_id VARCHAR(255), 
	status VARCHAR(63), 
	job_type VARCHAR(63), 
	job_body TEXT, 
	create_timestamp DATETIME DEFAULT CURRENT_TIMESTAMP, 
	update_timestamp DATETIME DEFAULT CURRENT_TIMESTAMP, 
	PRIMARY KEY (id), 
	UNIQUE (job_origin_id)
);
CREATE TABLE secondary_indexes (
	id INTEGER NOT NULL, 
	name VARCHAR(512), 
	create_timestamp DATETIME DEFAULT CURRENT_TIMESTAMP, 
	migration_completed DATETIME, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);
INSERT INTO "secondary_indexes" VALUES(1,'schedule_jobs_selector_id','2026-11-27 22:29:18','2026-11-27 22:29:18.077006');
INSERT INTO "secondary_indexes" VALUES(2,'schedule_ticks_selector_id','2026-11-27 22:29:18','2026-11-27 22:29:18.136258');
CREATE INDEX ix_jobs_job_type ON jobs (job_type);
CREATE INDEX ix_instigators_instigator_type ON instigators (instigator_type);
CREATE INDEX idx_job_tick_status ON job_ticks (job_origin_id, status);
CREATE INDEX idx_job_tick_timestamp ON job_ticks (job_origin_id, timestamp);
CREATE INDEX idx_tick_selector_timestamp ON job_ticks (selector_id, timestamp);
CREATE INDEX ix_job_ticks_job_origin_id ON job_ticks (job_origin_id);
CREATE UNIQUE INDEX idx_asset_daemon_asset_evaluations_asset_key_evaluation_id ON asset_daemon_asset_evaluations (asset_key, evaluation_id);
CREATE INDEX ix_asset_daemon_asset_evaluations_evaluation_id ON asset_daemon_asset_evaluations (evaluation_id);
COMMIT;

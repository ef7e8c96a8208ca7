BEGIN TRANSACTION;
CREATE TABLE chunks (
        number INTEGER NOT NULL REFERENCES stored (number), place INTEGER NOT NULL, body BLOB NOT NULL,
        PRIMARY KEY (number, place));
INSERT INTO "chunks" VALUES(2,0,X'6669727374');
CREATE TABLE datasets (dataset TEXT PRIMARY KEY NOT NULL, name TEXT UNIQUE);
INSERT INTO "datasets" VALUES('d:83a5a0e27c06140e3b5ecd8d270b482d','people');
CREATE TABLE entries (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        what TEXT NOT NULL CHECK (what IN ('limit', 'charge')),
        dataset TEXT NOT NULL REFERENCES datasets (dataset),
        policy TEXT REFERENCES policies (policy) CHECK ((policy IS NOT NULL) = (what = 'charge')),
        loss TEXT NOT NULL, certified TEXT,
        request TEXT CHECK ((request IS NOT NULL) = (what = 'charge')),
        content TEXT CHECK (content IS NULL OR what = 'charge'),
        composed INTEGER NOT NULL CHECK (composed IN (0, 1)),
        note TEXT NOT NULL, time TEXT NOT NULL, version TEXT NOT NULL, seal TEXT NOT NULL);
INSERT INTO "entries" VALUES(1,'limit','d:83a5a0e27c06140e3b5ecd8d270b482d',NULL,'{"delta":"1/1000000","epsilon":"4","kind":"epsilon-delta"}','62212990491/200000000000',NULL,NULL,0,'first','2026-11-18T01:35:10.364+00:00','0.1.0','41c1501b31eb1d70b77fa97f99100716aa945c04ffe2818fda34faf2646d0799');
INSERT INTO "entries" VALUES(2,'charge','d:83a5a0e27c06140e3b5ecd8d270b482d','policy-p','{"kind":"epsilon","value":"1/3"}',NULL,'433a97043cce8a4dd498b92d4af9b775','83a5a0e27c06140e3b5ecd8d270b482d',0,'n','2026-11-18T01:35:10.409+00:00','0.1.0','e755708851d7624d0ee8b69819232fb87c2708011cb1c7163e084b7769a92d0e');
INSERT INTO "entries" VALUES(3,'charge','d:83a5a0e27c06140e3b5ecd8d270b482d','policy-p','{"kind":"rho","value":"1/100"}',NULL,'9698776a5a7602765c5d22c73cde11dd',NULL,0,'','2026-11-18T01:35:10.470+00:00','0.1.0','7812da2eff0ea6f84077e45c312e1fa64767f1e3714af76e54387c4aded2cc2e');
INSERT INTO "entries" VALUES(4,'charge','d:83a5a0e27c06140e3b5ecd8d270b482d','policy-q','{"kind":"epsilon","value":"1/4"}',NULL,'8879f44916ac8dd2416a35f5333b0437',NULL,1,'','2026-11-18T01:35:10.513+00:00','0.1.0','9b080bbeaa2efe2deea2d93276256240e5f587da31eda04183a7ab8ce1b36ffe');
CREATE TABLE head (
        only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
        entries INTEGER NOT NULL, entry_seal TEXT NOT NULL,
        marks INTEGER NOT NULL, mark_seal TEXT NOT NULL, seal TEXT NOT NULL);
INSERT INTO "head" VALUES(1,4,'9b080bbeaa2efe2deea2d93276256240e5f587da31eda04183a7ab8ce1b36ffe',6,'092449a996ff6ab40627f64cfc707eb7c16ad0c2896a4232cbf5f91afb5c3c8c','2c4335b3b3eea8eb78455721098d44c5b572f9074f888c5fb777e50de887ea06');
CREATE TABLE keys (number INTEGER PRIMARY KEY REFERENCES entries (number), key BLOB NOT NULL);
INSERT INTO "keys" VALUES(3,X'000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F');
CREATE TABLE ledger (
        only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
        identity TEXT NOT NULL, secret BLOB NOT NULL, created TEXT NOT NULL, version TEXT NOT NULL);
INSERT INTO "ledger" VALUES(1,'5616685b8b181f8e422231287bfec79f',X'A4752E9405B0B535AE63E90733890EEB5FDBE26A527B239C8530D70199FC2A5D','2026-11-18T01:35:07.270+00:00','0.1.0');
CREATE TABLE marks (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        what TEXT NOT NULL CHECK (what IN ('dataset', 'policy', 'key', 'release')),
        subject TEXT NOT NULL, digest TEXT NOT NULL, seal TEXT NOT NULL);
INSERT INTO "marks" VALUES(1,'dataset','d:83a5a0e27c06140e3b5ecd8d270b482d','a7e7183b745bab2cc0e24c8ca5e6c4f6e45c77b330c64eb795930e298f8193ca','962fa03565a435fceda1dbb47f3ad3243b083d6a9fa9679e3af03c10bfc55542');
INSERT INTO "marks" VALUES(2,'dataset','d:83a5a0e27c06140e3b5ecd8d270b482d','7b38f76226b1e53b8fee28e9d9e3d47063e3900d73dd49303c042d209c3c01c8','d0dbf84a8e38d25c027d7f668606cc7804b0c7e3c3ca5c6aa386e71df1bd464a');
INSERT INTO "marks" VALUES(3,'policy','policy-p','6d382627e021355c6495ed7905226fef88db185db3c42442338240df824690d5','8910c0a4d4198014275f4752b04cea0d8ae8332ec9d0b89361d34263810547ee');
INSERT INTO "marks" VALUES(4,'release','2','045aa0cd246ff755e34f41bd144a76bf43273316dd65b41ff5bd19129466cfa4','2db25036282236f97f75699fe3d3289dd38d0f0fb55f8b850b361ef7d1660c61');
INSERT INTO "marks" VALUES(5,'key','3','555617ec2be0e01820d18413c8a2f52768c17a0c409aa024653431417c18e6e3','dd00be5f888ce0c25885318ce01048d8af079a523896dcef9679f14d9058a979');
INSERT INTO "marks" VALUES(6,'policy','policy-q','c767cfac3feb57b0cd51334cd44f23d3ef40ec56760170d8aa14c8fb411bfc4d','092449a996ff6ab40627f64cfc707eb7c16ad0c2896a4232cbf5f91afb5c3c8c');
CREATE TABLE policies (policy TEXT PRIMARY KEY NOT NULL, description TEXT NOT NULL);
INSERT INTO "policies" VALUES('policy-p','{"a":1}');
INSERT INTO "policies" VALUES('policy-q','{}');
CREATE TABLE stored (
        number INTEGER PRIMARY KEY REFERENCES entries (number),
        time TEXT NOT NULL, bytes INTEGER NOT NULL, digest TEXT NOT NULL);
INSERT INTO "stored" VALUES(2,'2026-11-18T01:35:10.442+00:00',5,'a7937b64b8caa58f03721bb6bacf5c78cb235febe0e70b1b84cd99541461a08e');
CREATE INDEX entries_by_dataset ON entries (dataset, what, policy, loss);
CREATE INDEX entries_by_request ON entries (request);
CREATE INDEX entries_by_content ON entries (content);
CREATE TRIGGER entries_update BEFORE UPDATE ON entries
        BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER entries_delete BEFORE DELETE ON entries
        BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER stored_update BEFORE UPDATE ON stored
        BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER stored_delete BEFORE DELETE ON stored
        BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER chunks_update BEFORE UPDATE ON chunks
        BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER chunks_delete BEFORE DELETE ON chunks
        BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER marks_update BEFORE UPDATE ON marks
        BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER marks_delete BEFORE DELETE ON marks
        BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('marks',6);
INSERT INTO "sqlite_sequence" VALUES('entries',4);
COMMIT;

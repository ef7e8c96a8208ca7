BEGIN TRANSACTION;
CREATE TABLE chunks (
        number INTEGER NOT NULL REFERENCES stored (number), place INTEGER NOT NULL, body BLOB NOT NULL,
        PRIMARY KEY (number, place));
INSERT INTO "chunks" VALUES(2,0,X'6669727374');
CREATE TABLE datasets (dataset TEXT PRIMARY KEY NOT NULL, name TEXT UNIQUE);
INSERT INTO "datasets" VALUES('d:94ac9ce48bcd00e34c79ca6d5ca69cf0','people');
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
INSERT INTO "entries" VALUES(1,'limit','d:94ac9ce48bcd00e34c79ca6d5ca69cf0',NULL,'{"delta":"1/1000000","epsilon":"3","kind":"epsilon-delta"}','185069840191/1000000000000',NULL,NULL,0,'','2026-11-18T12:09:39.349+00:00','0.1.0','45cf53b9f95df8d102b91859fa81154295091fe3766cf9b71b9aec456ae7dacd');
INSERT INTO "entries" VALUES(2,'charge','d:94ac9ce48bcd00e34c79ca6d5ca69cf0','policy-p','{"kind":"epsilon","value":"1/3"}',NULL,'0d0cceb89fc3e545ec4d479d1fe7d90e',NULL,0,'','2026-11-18T12:09:39.409+00:00','0.1.0','bccde325fd2c06b52f962ef32cee73dc5971940cc7be58dc9ac498404da55b4d');
INSERT INTO "entries" VALUES(3,'charge','d:94ac9ce48bcd00e34c79ca6d5ca69cf0','policy-p','{"kind":"rho","value":"1/100"}',NULL,'cd643ace2cda2f4778738107bebb7409',NULL,0,'','2026-11-18T12:09:40.341+00:00','0.1.0','ee987230ffffab425161b5b71761b7ce786c231296e71bc01a7a028e0bd2ef10');
INSERT INTO "entries" VALUES(4,'charge','d:94ac9ce48bcd00e34c79ca6d5ca69cf0','policy-q','{"kind":"epsilon","value":"1/4"}',NULL,'fe8121de6b7337ef4d0b086fb356d599',NULL,1,'','2026-11-18T12:09:40.428+00:00','0.1.0','9c514845480ec9f92fef28dfd683f98ba412f4b43e54cefd716eef9b45fb09a7');
CREATE TABLE head (
        only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
        entries INTEGER NOT NULL, entry_seal TEXT NOT NULL,
        marks INTEGER NOT NULL, mark_seal TEXT NOT NULL, seal TEXT NOT NULL);
INSERT INTO "head" VALUES(1,4,'9c514845480ec9f92fef28dfd683f98ba412f4b43e54cefd716eef9b45fb09a7',7,'b1808945a74f18315ae3adb4a19fc048967f860c7ef7f4a90e3db1a04c8d1a52','6f7c924c66afd8c9b07e3f6e86598f507dc872d54d97441b95e03211ccd3b2c9');
CREATE TABLE keys (number INTEGER PRIMARY KEY REFERENCES entries (number), key BLOB NOT NULL);
INSERT INTO "keys" VALUES(3,X'000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F');
CREATE TABLE ledger (
        only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
        identity TEXT NOT NULL, secret BLOB NOT NULL, created TEXT NOT NULL, version TEXT NOT NULL);
INSERT INTO "ledger" VALUES(1,'632e4a5658a7015826ea3aa9f65e7b60',X'E5B6037123F7A33DDFDF839B66C2AA5654A4B6492641C532FAFAFB4E64E4F94B','2026-11-18T12:09:39.241+00:00','0.1.0');
CREATE TABLE marks (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        what TEXT NOT NULL CHECK (what IN ('dataset', 'policy', 'part', 'key', 'release')),
        subject TEXT NOT NULL, digest TEXT NOT NULL, seal TEXT NOT NULL);
INSERT INTO "marks" VALUES(1,'dataset','d:94ac9ce48bcd00e34c79ca6d5ca69cf0','e783232182425a48d1427549dde6c6e722cfe4d564d818ee03708fe8661291ee','cea1999ce8c84d6f15c62742bbbc4526afa5fa496849ad05c6a204ad05b804c3');
INSERT INTO "marks" VALUES(2,'dataset','d:94ac9ce48bcd00e34c79ca6d5ca69cf0','1bbf076882e9045320f701eea6687d13477a9b2a32472a47e9ebf4018d126834','a6703893a1e343f115fc4633e91d41b05a24f9788c2488db5a259435799a161f');
INSERT INTO "marks" VALUES(3,'policy','policy-p','eb2a47e8abf927fd01c2870c021dbb1adbd3d52a053aecad22eaae7e594972c8','5b185e134f9e48afae5edad66498ae341be72efc0759a53dee2edfc887e30d5d');
INSERT INTO "marks" VALUES(4,'release','2','74f0a7f37a3f89b80ebd317e2d44d285db01fd260151e21d75156b0c2f3f9654','8bc43ea67da6084b623c9d65274a852b70109dbb034391a0a114d2936944e2d8');
INSERT INTO "marks" VALUES(5,'part','3','e50943f3489d7f84e9c5992c3c85c888247a73566a4c80c90a29ed0515d1750e','acc92ff452d5f11e310d812ff39ffe37177232521460254fc06bb6ad4fa08d6e');
INSERT INTO "marks" VALUES(6,'key','3','cc3ccd93ea80bed2a498bddda7e3877c99a0453e7d67ac3dd25ff180fc625773','814f17d361219e81bce57503499b955b42ee2363aa7ce02800096d227842b4c9');
INSERT INTO "marks" VALUES(7,'policy','policy-q','caa69e4664f2a373e0bd6c151ae7ba3e24a579e66d11c7656e1f193fc2544d13','b1808945a74f18315ae3adb4a19fc048967f860c7ef7f4a90e3db1a04c8d1a52');
CREATE TABLE parts (
        number INTEGER PRIMARY KEY REFERENCES entries (number), reading TEXT NOT NULL, cells TEXT NOT NULL);
INSERT INTO "parts" VALUES(3,'4430dda6a69809daf4a1a49aff459e9c','[[0,1]]');
CREATE TABLE policies (policy TEXT PRIMARY KEY NOT NULL, description TEXT NOT NULL);
INSERT INTO "policies" VALUES('policy-p','{"a":1}');
INSERT INTO "policies" VALUES('policy-q','{}');
CREATE TABLE stored (
        number INTEGER PRIMARY KEY REFERENCES entries (number),
        time TEXT NOT NULL, bytes INTEGER NOT NULL, digest TEXT NOT NULL);
INSERT INTO "stored" VALUES(2,'2026-11-18T12:09:39.472+00:00',5,'a7937b64b8caa58f03721bb6bacf5c78cb235febe0e70b1b84cd99541461a08e');
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
CREATE TRIGGER parts_update BEFORE UPDATE ON parts
        BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER parts_delete BEFORE DELETE ON parts
        BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER marks_update BEFORE UPDATE ON marks
        BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER marks_delete BEFORE DELETE ON marks
        BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('marks',7);
INSERT INTO "sqlite_sequence" VALUES('entries',4);
COMMIT;

/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "store_db.h"

#define BUSY_MS      10000 /* another soak writes to the same file */
#define WAL_RETRY_MS 5
#define STATEMENTS   32

struct sqlite {
	struct db base;
	sqlite3 *db;
	struct {
		char *sql;
		sqlite3_stmt *stmt;
	} kept[STATEMENTS]; /* prepared once: a block is some hundred inserts */
	int next;
};

static int failed(const struct sqlite *s, const char *what)
{
	int code = sqlite3_errcode(s->db);

	log_err("%s: %s: %s", sqlite3_db_filename(s->db, "main"), what, sqlite3_errmsg(s->db));
	return code == SQLITE_FULL ? -ENOSPC : code == SQLITE_BUSY ? -EBUSY : code == SQLITE_NOMEM ? -ENOMEM : -EIO;
}

static sqlite3_stmt *statement(struct sqlite *s, const char *sql)
{
	int i = s->next;

	for (int k = 0; k < STATEMENTS && s->kept[k].sql; k++)
		if (!strcmp(s->kept[k].sql, sql))
			return s->kept[k].stmt;
	sqlite3_finalize(s->kept[i].stmt);
	free(s->kept[i].sql);
	s->kept[i].stmt = NULL;
	s->kept[i].sql = strdup(sql);
	s->next = (i + 1) % STATEMENTS;
	if (!s->kept[i].sql || sqlite3_prepare_v2(s->db, sql, -1, &s->kept[i].stmt, NULL) != SQLITE_OK) {
		failed(s, sql);
		free(s->kept[i].sql);
		s->kept[i].sql = NULL;
		return NULL;
	}
	return s->kept[i].stmt;
}

static int bind(sqlite3_stmt *stmt, int i, const struct value *v)
{
	if (v->type == VALUE_INT)
		return sqlite3_bind_int64(stmt, i, v->i);
	return v->type == VALUE_TEXT ? sqlite3_bind_text(stmt, i, v->s, -1, SQLITE_TRANSIENT)
				     : sqlite3_bind_null(stmt, i);
}

/* "$2" is a name to SQLite, and its number that of its first appearance */
static int bind_all(sqlite3_stmt *stmt, const struct value *args, int n)
{
	int code = SQLITE_OK;

	for (int i = 1; i <= sqlite3_bind_parameter_count(stmt) && code == SQLITE_OK; i++) {
		int number = atoi(sqlite3_bind_parameter_name(stmt, i) + 1);

		code = number >= 1 && number <= n ? bind(stmt, i, &args[number - 1]) : SQLITE_RANGE;
	}
	return code;
}

static int give_row(sqlite3_stmt *stmt, row_fn fn, void *arg)
{
	const char *cells[ROW_MAX];
	int n = min(sqlite3_column_count(stmt), ROW_MAX);

	for (int i = 0; i < n; i++)
		cells[i] = (const char *)sqlite3_column_text(stmt, i);
	return fn ? fn(cells, n, arg) : 0;
}

static int sqlite_run(struct db *db, const char *sql, const struct value *args, int n, row_fn fn, void *arg)
{
	struct sqlite *s = (struct sqlite *)db;
	sqlite3_stmt *stmt = statement(s, sql);
	int code, err = 0;

	if (!stmt)
		return -EIO;
	code = bind_all(stmt, args, n);
	while (code == SQLITE_OK || code == SQLITE_ROW) {
		code = sqlite3_step(stmt);
		if (code == SQLITE_ROW && (err = give_row(stmt, fn, arg)))
			break;
	}
	if (!err && code != SQLITE_DONE)
		err = failed(s, sql);
	sqlite3_reset(stmt);
	return err;
}

static int exec(struct sqlite *s, const char *sql)
{
	return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : failed(s, sql);
}

static int sqlite_begin(struct db *db)
{
	return exec((struct sqlite *)db, "BEGIN IMMEDIATE");
}

static int sqlite_commit(struct db *db)
{
	return exec((struct sqlite *)db, "COMMIT");
}

static void sqlite_rollback(struct db *db)
{
	sqlite3_exec(((struct sqlite *)db)->db, "ROLLBACK", NULL, NULL, NULL);
}

static void sqlite_close(struct db *db)
{
	struct sqlite *s = (struct sqlite *)db;

	for (int i = 0; i < STATEMENTS; i++) {
		sqlite3_finalize(s->kept[i].stmt);
		free(s->kept[i].sql);
	}
	sqlite3_close(s->db);
	free(s);
}

static const struct db_ops sqlite_ops = {.run = sqlite_run,
	.begin = sqlite_begin,
	.commit = sqlite_commit,
	.rollback = sqlite_rollback,
	.close = sqlite_close};

/* The one thing for which SQLite does not wait by itself: two that open a new file at once. */
static int set_wal(struct sqlite *s)
{
	int err = SQLITE_BUSY;

	for (int ms = 0; err == SQLITE_BUSY && ms < BUSY_MS; ms += WAL_RETRY_MS) {
		err = sqlite3_exec(s->db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL", NULL, NULL, NULL);
		if (err == SQLITE_BUSY)
			sqlite3_sleep(WAL_RETRY_MS);
	}
	return err;
}

/* synchronous NORMAL: with WAL a power cut may take the last commits, never the file; a killed process takes nothing */
static int prepare(struct sqlite *s, bool write)
{
	sqlite3_extended_result_codes(s->db, 0);
	sqlite3_busy_timeout(s->db, BUSY_MS);
	if (write && set_wal(s))
		return failed(s, "cannot be written as a database");
	return exec(s, "SELECT count(*) FROM sqlite_master");
}

int sqlite__open(const char *path, bool write, struct db **out)
{
	struct sqlite *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->base.ops = &sqlite_ops;
	if (!write && access(path, F_OK)) {
		free(s);
		return -ENOENT;
	}
	/* what reads may still have to write: the index of the WAL, the tables that an older redframe did not have */
	if (sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE | (write ? SQLITE_OPEN_CREATE : 0), NULL) !=
		SQLITE_OK) {
		log_err("%s: %s", path, s->db ? sqlite3_errmsg(s->db) : errstr(ENOMEM));
		err = -EIO;
	} else {
		err = prepare(s, write);
	}
	if (err) {
		sqlite_close(&s->base);
		return err;
	}
	*out = &s->base;
	return 0;
}

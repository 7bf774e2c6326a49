/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What SQLite and PostgreSQL have in common, as far as the store needs it: statements with $1, $2, …, which both take.
 */
#ifndef REDFRAME_STORE_DB_H
#define REDFRAME_STORE_DB_H

#include "common.h"
#include "strings.h"

enum value_type { VALUE_NULL, VALUE_INT, VALUE_TEXT };
struct value {
	enum value_type type;
	s64 i;
	const char *s; /* valid UTF-8 without NUL */
};
#define VALUE_I(v) ((struct value){.type = VALUE_INT, .i = (s64)(v)})

#define ROW_MAX 24 /* columns */
/* One row of an answer: texts, NULL where SQL says NULL. Non-zero ends the query with it. */
typedef int (*row_fn)(const char *const *cells, int n, void *arg);

struct db {
	const struct db_ops *ops;
};
struct db_ops {
	/* each 0 or -errno, after a message but for -EAGAIN: the server is away */
	int (*run)(struct db *db, const char *sql, const struct value *args, int n, row_fn fn, void *arg);
	int (*begin)(struct db *db);
	int (*commit)(struct db *db);
	void (*rollback)(struct db *db);
	void (*close)(struct db *db);
};

/* store_sqlite.c, store_postgres.c; -ENOENT: write is false and there is no such file */
int sqlite__open(const char *path, bool write, struct db **out);
int postgres__open(const char *uri, struct db **out);

struct store;
/* store.c. A server's writer waits until the server has its rows; -EAGAIN: it is away */
int store__query(struct store *s, const char *sql, const struct value *args, int n, row_fn fn, void *arg);

/* store_schema.c */
enum store_table {
	TABLE_RUNS,
	TABLE_META,
	TABLE_BLOCKS,
	TABLE_COUNTS,
	TABLE_CAUSES,
	TABLE_FINGERPRINTS,
	TABLE_HITCHES,
	TABLE_MEMORY,
	TABLE_COUNTERS,
	TABLE_NOTES,
	TABLE_CHECKS,
	TABLE_ENDS,
	TABLE_COUNT
};
/* CREATE TABLE IF NOT EXISTS … of every table */
int schema__create(struct db *db);
int schema__columns(enum store_table t);
/* INSERT … VALUES of that many rows … ON CONFLICT DO NOTHING; NULL when out of memory. The caller frees it. */
char *schema__insert(enum store_table t, int rows);

/* store_rows.c: rows on their way, as text. A row is for one table and complete: schema__columns values. */
struct rows {
	struct str text; /* a row after the other, each behind a struct row_hdr */
	u64 n;
};
struct row_hdr {
	u32 table, bytes; /* of the text, with its NUL */
};
/* 0 or -ENOMEM, and then nothing was added */
int rows__put(struct rows *r, enum store_table t, const struct value *values, int n);
/* the row at *at, which moves on; NULL after the last */
const char *rows__next(const struct rows *r, size_t *at, enum store_table *t);
void rows__clear(struct rows *r);
void rows__free(struct rows *r);
/* The values of a row, which point into text and change it. -EBADMSG: it is damaged, or for another table. */
int row__decode(enum store_table t, char *text, struct value values[ROW_MAX]);
/* All of them into their tables, in one transaction; rows that follow each other in one statement. 0 or -errno. */
int rows__insert(const struct rows *r, struct db *db);

/* store_spool.c: rows for a server wait in a SQLite file that outlives us; a thread sends them. Several writers, and
 * what is left of earlier ones, share the file of a server: what is sent twice is there once. */
struct spool;
/* 0 or -errno after a message; the server itself may be away */
int spool__open(const char *uri, struct spool **out);
int spool__put(struct spool *s, const struct rows *r); /* durable when it returns 0 */
u64 spool__unsent(struct spool *s);
const char *spool__path(const struct spool *s);
/* Tries to send the rest, for some seconds. 0, or -EAGAIN: rows are left. */
int spool__close(struct spool *s);

#endif

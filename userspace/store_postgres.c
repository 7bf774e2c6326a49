/* SPDX-License-Identifier: GPL-2.0-only */
#include <dlfcn.h>
#include <errno.h>
#include <postgresql/libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "store_db.h"

#define CONNECT_SECONDS "5"

/* libpq comes with some twenty libraries: 15 ms and 6 MiB that only the users of a server pay */
/* clang-format off */
#define FUNCTIONS(X) \
	X(PQclear) X(PQconnectdbParams) X(PQconninfoFree) X(PQconninfoParse) X(PQerrorMessage) X(PQexec)  \
	X(PQexecParams) X(PQfinish) X(PQfreemem) X(PQgetisnull) X(PQgetvalue) X(PQnfields) X(PQntuples)  \
	X(PQresultErrorField) X(PQresultErrorMessage) X(PQresultStatus) X(PQsetNoticeReceiver)  \
	X(PQstatus)
/* clang-format on */
static struct {
#define X(name) __typeof__(&(name)) name;
	FUNCTIONS(X)
#undef X
} pq;

static int load_libpq(void)
{
	void *lib = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);

	if (!lib) {
		log_err("--store: a PostgreSQL server needs libpq (Debian: apt install libpq5): %s", dlerror());
		return -ENOENT;
	}
#define X(name)                                                                                                        \
	pq.name = (__typeof__(pq.name))dlsym(lib, #name);                                                              \
	if (!pq.name)                                                                                                  \
		goto too_old;
	FUNCTIONS(X)
#undef X
	return 0;
too_old:
	log_err("--store: libpq.so.5 lacks a function: it is too old");
	return -ENOENT;
}

struct postgres {
	struct db base;
	PGconn *conn;
	char *uri;
	bool told; /* that it is away */
};

/* -EAGAIN for what time may mend: no connection, or the server says that it starts, stops, or wants a retry */
static int failed(struct postgres *p, const PGresult *r, const char *what)
{
	const char *state = r ? pq.PQresultErrorField(r, PG_DIAG_SQLSTATE) : NULL;
	bool again = pq.PQstatus(p->conn) != CONNECTION_OK || !state || !strncmp(state, "57P", 3) ||
		     !strncmp(state, "08", 2) || !strncmp(state, "40", 2) || !strncmp(state, "53", 2);
	char *message = strdup(r ? pq.PQresultErrorMessage(r) : pq.PQerrorMessage(p->conn));

	if (message)
		message[strcspn(message, "\n")] = 0;
	if (!again)
		log_err("PostgreSQL: %s: %s", what, message ?: "");
	else if (!p->told)
		log_warn("PostgreSQL is away: %s", message ?: "");
	p->told = p->told || again;
	free(message);
	return again ? -EAGAIN : -EIO;
}

static void quiet(void *arg, const PGresult *r)
{
}

static int connect_now(struct postgres *p)
{
	const char *const keys[] = {"dbname", "connect_timeout", "application_name", NULL};
	const char *const values[] = {p->uri, CONNECT_SECONDS, "redframe", NULL};

	pq.PQfinish(p->conn);
	p->conn = pq.PQconnectdbParams(keys, values, 1);
	if (!p->conn)
		return -ENOMEM;
	if (pq.PQstatus(p->conn) != CONNECTION_OK)
		return failed(p, NULL, "connect");
	pq.PQsetNoticeReceiver(p->conn, quiet, NULL); /* "relation exists already, skipping" */
	if (p->told)
		log_warn("PostgreSQL is back");
	p->told = false;
	return 0;
}

static int give_rows(const PGresult *r, row_fn fn, void *arg)
{
	const char *cells[ROW_MAX];
	int n = min(pq.PQnfields(r), ROW_MAX), err = 0;

	for (int row = 0; fn && row < pq.PQntuples(r) && !err; row++) {
		for (int i = 0; i < n; i++)
			cells[i] = pq.PQgetisnull(r, row, i) ? NULL : pq.PQgetvalue(r, row, i);
		err = fn(cells, n, arg);
	}
	return err;
}

static int postgres_run(struct db *db, const char *sql, const struct value *args, int n, row_fn fn, void *arg)
{
	struct postgres *p = (struct postgres *)db;
	char digits[n + 1][24];
	const char *texts[n + 1];
	ExecStatusType status;
	PGresult *r;
	int err;

	for (int i = 0; i < n; i++) {
		snprintf(digits[i], sizeof(digits[i]), "%lld", (long long)args[i].i);
		texts[i] = args[i].type == VALUE_INT ? digits[i] : args[i].type == VALUE_TEXT ? args[i].s : NULL;
	}
	r = pq.PQexecParams(p->conn, sql, n, NULL, texts, NULL, NULL, 0);
	status = pq.PQresultStatus(r);
	if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
		err = give_rows(r, fn, arg);
	else
		err = failed(p, r, sql);
	pq.PQclear(r);
	return err;
}

/* A lost connection is noticed here and made anew: nothing is open yet that could be lost with it. */
static int postgres_begin(struct db *db)
{
	struct postgres *p = (struct postgres *)db;
	int err = pq.PQstatus(p->conn) == CONNECTION_OK ? 0 : connect_now(p);

	return err ? err : postgres_run(db, "BEGIN", NULL, 0, NULL, NULL);
}

static int postgres_commit(struct db *db)
{
	return postgres_run(db, "COMMIT", NULL, 0, NULL, NULL);
}

static void postgres_rollback(struct db *db)
{
	struct postgres *p = (struct postgres *)db;

	if (pq.PQstatus(p->conn) == CONNECTION_OK)
		pq.PQclear(pq.PQexec(p->conn, "ROLLBACK"));
}

static void postgres_close(struct db *db)
{
	struct postgres *p = (struct postgres *)db;

	pq.PQfinish(p->conn);
	free(p->uri);
	free(p);
}

static const struct db_ops postgres_ops = {.run = postgres_run,
	.begin = postgres_begin,
	.commit = postgres_commit,
	.rollback = postgres_rollback,
	.close = postgres_close};

/* A server that is away is no error here: begin tries again. */
int postgres__open(const char *uri, struct db **out)
{
	struct postgres *p = calloc(1, sizeof(*p));
	char *message = NULL;
	PQconninfoOption *parsed;
	int err = load_libpq();

	if (err) {
		free(p);
		return err;
	}
	if (!p || !(p->uri = strdup(uri))) {
		free(p);
		return -ENOMEM;
	}
	p->base.ops = &postgres_ops;
	parsed = pq.PQconninfoParse(uri, &message);
	if (!parsed) {
		log_err("--store: %s", message ?: errstr(ENOMEM));
		pq.PQfreemem(message);
		postgres_close(&p->base);
		return -EINVAL;
	}
	pq.PQconninfoFree(parsed);
	connect_now(p);
	*out = &p->base;
	return 0;
}

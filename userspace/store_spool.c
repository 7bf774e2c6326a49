/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "intern.h"
#include "log.h"
#include "store_db.h"

#define SEND_ROWS     2000 /* in one transaction */
#define SEND_PERIOD_S 1
#define BACKOFF_MAX_S 30 /* while the server is away */
#define CLOSE_S       10 /* for the last rows */

struct spool {
	char path[512];
	struct db *mine; /* the writer's connection to the file; the thread has its own */
	struct db *theirs;
	struct db *server;
	pthread_t thread;
	bool started;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stop;
};

static int make_directory(char *path)
{
	for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = 0;
		if (mkdir(path, 0700) && errno != EEXIST) {
			log_err("%s: %s", path, errstr(errno));
			return -errno;
		}
		*p = '/';
	}
	return 0;
}

/* where state of programs goes: the URI's hash tells servers apart, and keeps a password out of the name */
static int find_path(struct spool *s, const char *uri)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	bool xdg = state && *state == '/';
	int n = snprintf(s->path, sizeof(s->path), "%s%s/redframe/spool-%016llx.db", xdg ? state : home ?: "",
		xdg ? "" : "/.local/state", (unsigned long long)hash_bytes(uri, strlen(uri)));

	return n < (int)sizeof(s->path) ? make_directory(s->path) : -ENAMETOOLONG;
}

static int open_file(const char *path, struct db **out)
{
	int err = sqlite__open(path, true, out);

	return err ? err
		   : (*out)->ops->run(*out,
			     "CREATE TABLE IF NOT EXISTS spool (number INTEGER PRIMARY KEY AUTOINCREMENT, tab INTEGER, "
			     "row TEXT)",
			     NULL, 0, NULL, NULL);
}

static int read_count(const char *const *cells, int n, void *arg)
{
	*(u64 *)arg = strtoull(cells[0] ?: "0", NULL, 10);
	return 0;
}

static u64 count(struct db *file)
{
	u64 n = 0;

	file->ops->run(file, "SELECT count(*) FROM spool", NULL, 0, read_count, &n);
	return n;
}

/* ---- sending ---- */

struct taken {
	struct rows rows;
	s64 last;
	u64 damaged;
};

static int take(const char *const *cells, int n, void *arg)
{
	struct taken *t = arg;
	unsigned long table = cells[1] ? strtoul(cells[1], NULL, 10) : TABLE_COUNT;
	struct value values[ROW_MAX];
	char *copy = cells[2] ? strdup(cells[2]) : NULL;
	int err = 0;

	t->last = strtoll(cells[0], NULL, 10);
	if (!copy || table >= TABLE_COUNT || row__decode((enum store_table)table, copy, values))
		t->damaged++; /* by whom ever: it would hold up the others for ever */
	else
		err = rows__put(&t->rows, (enum store_table)table, values, schema__columns((enum store_table)table));
	free(copy);
	return err;
}

static int forget(struct db *file, s64 last)
{
	struct value v = VALUE_I(last);

	return file->ops->run(file, "DELETE FROM spool WHERE number <= $1", &v, 1, NULL, NULL);
}

/* The first rows that wait. 1: there may be more, 0: there are none, -errno. */
static int send_some(struct db *file, struct db *server)
{
	struct value limit = VALUE_I(SEND_ROWS);
	struct taken t = {.last = -1};
	int err = file->ops->run(
		file, "SELECT number, tab, row FROM spool ORDER BY number LIMIT $1", &limit, 1, take, &t);

	if (!err)
		err = rows__insert(&t.rows, server);
	if (!err && t.damaged)
		log_warn("%llu damaged rows of the spool were left out", (unsigned long long)t.damaged);
	if (!err && t.last >= 0)
		err = forget(file, t.last) ?: 1;
	rows__free(&t.rows);
	return err;
}

/* the tables, once the server is there: it may have been away when we began */
static int make_tables(struct db *server)
{
	int err = server->ops->begin(server);

	if (!err)
		err = schema__create(server) ?: server->ops->commit(server);
	if (err)
		server->ops->rollback(server);
	return err;
}

static bool stopped(struct spool *s)
{
	bool stop;

	pthread_mutex_lock(&s->lock);
	stop = s->stop;
	pthread_mutex_unlock(&s->lock);
	return stop;
}

static void pause_for(struct spool *s, int seconds)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += seconds;
	pthread_mutex_lock(&s->lock);
	while (!s->stop && !pthread_cond_timedwait(&s->wake, &s->lock, &until))
		;
	pthread_mutex_unlock(&s->lock);
}

static void *sender(void *arg)
{
	struct spool *s = arg;
	bool have_tables = false;
	int backoff = SEND_PERIOD_S, err;

	while (!stopped(s)) {
		err = count(s->theirs) ? 0 : -ENODATA;
		if (!err && !have_tables)
			have_tables = !(err = make_tables(s->server));
		while (!err && !stopped(s) && (err = send_some(s->theirs, s->server)) == 1)
			err = 0;
		backoff = err && err != -ENODATA ? min(backoff * 2, BACKOFF_MAX_S) : SEND_PERIOD_S;
		pause_for(s, backoff);
	}
	return NULL;
}

/* ---- the owner's side ---- */

static void free_spool(struct spool *s)
{
	struct db *all[] = {s->mine, s->theirs, s->server};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i])
			all[i]->ops->close(all[i]);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->wake);
	free(s);
}

static void init_locks(struct spool *s)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC); /* a stepped clock must not stop the sender */
	pthread_cond_init(&s->wake, &attr);
	pthread_condattr_destroy(&attr);
}

int spool__open(const char *uri, struct spool **out)
{
	struct spool *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	init_locks(s);
	err = find_path(s, uri);
	if (!err)
		err = open_file(s->path, &s->mine);
	if (!err)
		err = open_file(s->path, &s->theirs);
	if (!err)
		err = postgres__open(uri, &s->server);
	if (!err)
		err = -pthread_create(&s->thread, NULL, sender, s);
	if (err) {
		free_spool(s);
		return err;
	}
	s->started = true;
	*out = s;
	return 0;
}

static int put_one(struct db *file, enum store_table t, const char *text)
{
	struct value v[] = {VALUE_I(t), {.type = VALUE_TEXT, .s = text}};

	return file->ops->run(file, "INSERT INTO spool (tab, row) VALUES ($1, $2)", v, 2, NULL, NULL);
}

int spool__put(struct spool *s, const struct rows *r)
{
	enum store_table t;
	const char *text;
	size_t at = 0;
	int err;

	if (!r->n)
		return 0;
	err = s->mine->ops->begin(s->mine);
	if (err)
		return err;
	while (!err && (text = rows__next(r, &at, &t)))
		err = put_one(s->mine, t, text);
	if (!err)
		err = s->mine->ops->commit(s->mine);
	if (err)
		s->mine->ops->rollback(s->mine);
	return err;
}

u64 spool__unsent(struct spool *s)
{
	return count(s->mine);
}

const char *spool__path(const struct spool *s)
{
	return s->path;
}

static void stop_sender(struct spool *s)
{
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
}

int spool__close(struct spool *s)
{
	struct timespec now, end;
	int err = 0;

	stop_sender(s);
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += CLOSE_S;
	if (spool__unsent(s))
		err = make_tables(s->server);
	while (!err) {
		err = send_some(s->theirs, s->server);
		if (err != 1)
			break;
		err = clock_gettime(CLOCK_MONOTONIC, &now) || now.tv_sec > end.tv_sec ? -EAGAIN : 0;
	}
	if (err)
		log_warn("%llu rows could not be sent and wait in %s: the next run with this --store sends them",
			(unsigned long long)spool__unsent(s), s->path);
	free_spool(s);
	return err;
}

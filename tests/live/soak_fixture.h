/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A soak that a test starts, and what it leaves: kept recordings, a store, its words.
 */
#ifndef REDFRAME_SOAK_FIXTURE_H
#define REDFRAME_SOAK_FIXTURE_H

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live.h"
#include "recording.h"

static char dir[128], store[160];

/* `redframe soak -o DIR --store DB --warm-up 0 ARGS…`: tests are short; its words go to dir/NAME */
static inline pid_t soak(struct live *l, const char *name, ...)
{
	char *argv[40] = {(char *)live__program(), "soak", "-o", dir, "--store", store, "--warm-up", "0"};
	va_list ap;
	int n = 8;

	va_start(ap, name);
	while ((argv[n] = va_arg(ap, char *)))
		assert_true(++n < 39);
	va_end(ap);
	return live__spawn(l, name, argv);
}

static inline void begin(struct live *l)
{
	live__init(l);
	snprintf(dir, sizeof(dir), "%s/kept", l->dir);
	snprintf(store, sizeof(store), "%s/runs.db", l->dir);
}

static inline void end(struct live *l)
{
	char *rm[] = {"rm", "-rf", dir, NULL};
	int status;

	free(live__output(l, &status, rm));
	live__free(l);
}

static inline int ended(struct live *l, pid_t pid, const char *name)
{
	int status = live__wait(pid);

	if (!WIFEXITED(status))
		fail_msg("soak was killed by %d: %s", WTERMSIG(status), live__read(l, name));
	return WEXITSTATUS(status);
}

static inline void said(struct live *l, const char *name, const char *words)
{
	char *text = live__read(l, name);

	if (!strstr(text, words))
		fail_msg("'%s' is missing in: %s", words, text);
	free(text);
}

/* a number from the store */
static inline long long ask(const char *sql)
{
	sqlite3_stmt *q = NULL;
	sqlite3 *db = NULL;
	long long n = -1;

	assert_int_equal(sqlite3_open_v2(store, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	sqlite3_busy_timeout(db, 5000);
	if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	if (sqlite3_step(q) == SQLITE_ROW)
		n = sqlite3_column_int64(q, 0);
	sqlite3_finalize(q);
	sqlite3_close(db);
	return n;
}

/* the n-th kept recording in order of time; false: there are fewer */
static inline bool kept(int n, char path[PATH_MAX])
{
	struct dirent **list;
	int found = scandir(dir, &list, NULL, alphasort), seen = 0;
	bool is = false;

	for (int i = 0; i < found; i++) {
		if (strstr(list[i]->d_name, ".redframe") && seen++ == n) {
			snprintf(path, PATH_MAX, "%s/%s", dir, list[i]->d_name);
			is = true;
		}
		free(list[i]);
	}
	if (found >= 0)
		free(list);
	return is;
}

static inline void await_kept(int n, char path[PATH_MAX])
{
	for (int i = 0; i < 3000 && !kept(n, path); i++)
		usleep(10000);
	assert_true(kept(n, path));
}

static inline char *explain(struct live *l, const char *path)
{
	char *argv[] = {(char *)live__program(), "explain", (char *)path, NULL};
	int status;
	char *text = live__output(l, &status, argv);

	assert_int_equal(WEXITSTATUS(status), 0);
	return text;
}

/* whether the explanation of any kept recording has these words */
static inline bool any_says(struct live *l, const char *words)
{
	char path[PATH_MAX], *text;
	bool found = false;

	for (int n = 0; kept(n, path) && !found; n++) {
		text = explain(l, path);
		found = strstr(text, words);
		free(text);
	}
	return found;
}

/* A ticker of a name that nobody else's has. */
static inline const char *ticker(struct live *l, const char *arg)
{
	static char path[160];
	char *argv[] = {path, (char *)arg, NULL};

	snprintf(path, sizeof(path), "%s/t%d", l->dir, getpid());
	if (symlink(live__target_path("ticker"), path))
		assert_int_equal(errno, EEXIST);
	live__start_program(l, argv);
	assert_true(live__await(l, "truth", "ready\n", l->target));
	return strrchr(path, '/') + 1;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Records in, SQL of the real trace processor out. Included by each test program that checks traces.
 *
 * The trace processor is fetched by tests/tp/get into build/tp (or $REDFRAME_TP). Where that fails the tests say so and
 * are skipped; with CI=true they fail.
 */
#ifndef PERFETTO_FIXTURE_H
#define PERFETTO_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "perfetto.h"

#define GAME   4242u
#define RENDER 4243u
#define OTHER  77u

struct trace {
	char path[64];
	int fd;
	struct model *m;
	struct exporter *e;
};

static const char *tp_dir(void)
{
	const char *dir = getenv("REDFRAME_TP");

	return dir ? dir : "build/tp";
}

static bool have_tp(void)
{
	static int state; /* 0: not tried */
	char cmd[512];

	if (!state) {
		snprintf(cmd, sizeof(cmd), "tests/tp/get '%s'", tp_dir());
		state = system(cmd) ? -1 : 1;
	}
	return state > 0;
}

static void need_tp(void)
{
	const char *ci = getenv("CI");

	if (have_tp())
		return;
	fprintf(stderr, "NOT TESTED: no Perfetto trace processor (`tests/tp/get %s` failed, see above)\n", tp_dir());
	if (ci && !strcmp(ci, "true"))
		fail_msg("CI=true and no trace processor");
	skip();
}

/* ---- records ---- */

#define HDR(KIND, kind_, ts_, tid_, cpu_)                                                                              \
	{                                                                                                              \
		.ts = (ts_), .tid = (tid_), .cpu = (cpu_), .kind = EV_##KIND, .words = sizeof(struct ev_##kind_) / 8   \
	}

#define PUT(t, KIND, kind_, ts_, tid_, cpu_, ...)                                                                      \
	do {                                                                                                           \
		struct ev_##kind_ rec_ = {.hdr = HDR(KIND, kind_, ts_, tid_, cpu_), ##__VA_ARGS__};                    \
		trace__put(t, &rec_.hdr);                                                                              \
	} while (0)

static inline void trace__put(struct trace *t, const struct ev_hdr *rec)
{
	assert_int_equal(model__event(t->m, rec), 0);
	assert_int_equal(t->e->ops->event(t->e, t->m, rec), 0);
}

static inline void trace__put_text(struct trace *t, const void *fixed, size_t bytes, const char *text, size_t n)
{
	union {
		struct ev_hdr h;
		char bytes[EV_MAX_BYTES];
	} r;

	memset(&r, 0, sizeof(r));
	memcpy(&r, fixed, bytes);
	memcpy(r.bytes + bytes, text, n);
	r.h.words = (u8)((bytes + n + 7) / 8);
	trace__put(t, &r.h);
}

static inline void put_info(struct trace *t, const char *text)
{
	struct ev_info i = {.hdr = HDR(INFO, info, 100, 0, 0)};

	trace__put_text(t, &i, sizeof(i), text, strlen(text));
}

static inline void put_process(struct trace *t, u32 tgid, u32 parent, const char *cmdline, size_t n)
{
	struct ev_process r = {.hdr = HDR(PROCESS, process, 100, tgid, 0), .parent = parent, .nspid = tgid};

	trace__put_text(t, &r, sizeof(r), cmdline, n);
}

static inline void put_thread(struct trace *t, u32 tid, u32 tgid, const char *name)
{
	struct ev_thread r = {.hdr = HDR(THREAD, thread, 100, tid, 0), .tgid = tgid, .nstid = tid};

	trace__put_text(t, &r, sizeof(r), name, strlen(name));
}

/* ---- a trace ---- */

static inline void trace__open(struct trace *t, bool deflate)
{
	memset(t, 0, sizeof(*t));
	strcpy(t->path, "/tmp/redframe-test-XXXXXX");
	t->fd = mkstemp(t->path);
	assert_true(t->fd >= 0);
	t->m = model__new();
	t->e = perfetto__open(t->fd, deflate);
	assert_non_null(t->m);
	assert_non_null(t->e);
}

/* a game of two threads on a machine of our own making */
static inline void trace__start(struct trace *t)
{
	trace__open(t, true);
	put_info(t, "kernel.release=6.18.44");
	put_info(t, "kernel.machine=x86_64");
	put_info(t, "game.tgid=4242");
	put_info(t, "game.name=hitches");
	put_info(t, "meta.commit=abc123");
	PUT(t, CLOCK, clock, 100, 0, 0, .monotonic = 90, .realtime = 1700000000000000000ULL);
	put_process(t, GAME, 1, "./hitches\0--fast", 16);
	put_process(t, OTHER, 1, "Xorg", 4);
	put_thread(t, GAME, GAME, "MainThread");
	put_thread(t, RENDER, GAME, "RenderThread");
	put_thread(t, OTHER, OTHER, "Xorg");
}

static inline void trace__end(struct trace *t)
{
	static const struct report report;

	assert_int_equal(t->e->ops->end(t->e, t->m, &report), 0);
}

static inline void trace__close(struct trace *t)
{
	t->e->ops->close(t->e);
	model__free(t->m);
	close(t->fd);
	unlink(t->path);
}

static inline off_t trace__bytes(const struct trace *t)
{
	struct stat st;

	assert_int_equal(fstat(t->fd, &st), 0);
	return st.st_size;
}

/* rows without the line of column names; free it */
static inline char *sql(const struct trace *t, const char *query)
{
	char *cmd = NULL, *out = calloc(1, 1 << 20), *rows;
	FILE *f;
	size_t n;

	assert_true(asprintf(&cmd, "'%s/tp_query' '%s' -Q \"%s\"", tp_dir(), t->path, query) > 0);
	f = popen(cmd, "r");
	assert_non_null(f);
	n = fread(out, 1, (1 << 20) - 1, f);
	out[n] = 0;
	if (pclose(f))
		fail_msg("%s\n%s", query, out);
	rows = strchr(out, '\n');
	rows = strdup(rows ? rows + 1 : "");
	free(out);
	free(cmd);
	return rows;
}

static inline void expect(const struct trace *t, const char *query, const char *rows)
{
	char *got = sql(t, query);

	if (strcmp(got, rows))
		fail_msg("%s\n--- got:\n%s--- expected:\n%s", query, got, rows);
	free(got);
}

static inline void expect_clean(const struct trace *t)
{
	expect(t, "select name, value from stats where severity in ('error','data_loss') and value > 0", "");
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The store on a real PostgreSQL server, which the test makes in a fresh directory, stops and starts again. It listens
 * on a Unix socket in there only, and runs as nobody where the test is root: PostgreSQL refuses to be root's.
 */
#include <dirent.h>
#include <errno.h>
#include <pwd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "compare.h"
#include "run_query.h"
#include "store.h"
#include "store_db.h"

static char dir[64], bin[300], uri[160], no_server[128];

static int run_as_nobody(const char *command)
{
	struct passwd *who = getpwnam("nobody");
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		if (!geteuid() && (!who || setgid(who->pw_gid) || setuid(who->pw_uid)))
			_exit(126);
		if (chdir("/"))
			_exit(126);
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static int server(const char *verb)
{
	char command[1024];

	snprintf(command, sizeof(command),
		"%s/pg_ctl -s -w -t 30 -D %s/data -l %s/log -o \"-c listen_addresses='' -c unix_socket_directories=%s "
		"-c fsync=off -c shared_buffers=8MB -c max_connections=20\" %s >/dev/null 2>&1",
		bin, dir, dir, dir, verb);
	return run_as_nobody(command);
}

/* the highest version's programs, as Debian lays them out */
static bool find_programs(void)
{
	struct dirent *e;
	DIR *d = opendir("/usr/lib/postgresql");
	int best = 0;

	while (d && (e = readdir(d)))
		best = atoi(e->d_name) > best ? atoi(e->d_name) : best;
	if (d)
		closedir(d);
	snprintf(bin, sizeof(bin), "/usr/lib/postgresql/%d/bin", best);
	return best > 0;
}

static int set_up(void **state)
{
	struct passwd *who = getpwnam("nobody");
	char command[1024];

	if (!find_programs()) {
		snprintf(no_server, sizeof(no_server), "PostgreSQL is not installed (Debian: postgresql)");
		return 0;
	}
	snprintf(dir, sizeof(dir), "/tmp/redframe-pg.XXXXXX");
	assert_non_null(mkdtemp(dir));
	if (!geteuid())
		assert_int_equal(chown(dir, who->pw_uid, who->pw_gid), 0);
	snprintf(command, sizeof(command),
		"%s/initdb -D %s/data -A trust -U redframe -E UTF8 --locale=C -N >/dev/null 2>&1", bin, dir);
	assert_int_equal(run_as_nobody(command), 0);
	snprintf(uri, sizeof(uri), "postgresql:///postgres?host=%s&user=redframe", dir);
	snprintf(command, sizeof(command), "%s/state", dir);
	assert_int_equal(mkdir(command, 0700), 0);
	setenv("XDG_STATE_HOME", command, 1);
	return server("start");
}

static int tear_down(void **state)
{
	char command[128];

	if (no_server[0])
		return 0;
	server("stop -m immediate");
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static void need_server(void)
{
	if (!no_server[0])
		return;
	print_message("skipped: %s\n", no_server);
	skip();
}

static void empty_tables(void)
{
	struct store *s;

	assert_int_equal(store__open_read(uri, &s), 0);
	for (int t = 0; t < TABLE_COUNT; t++) {
		static const char *const names[TABLE_COUNT] = {"runs", "run_meta", "blocks", "frame_counts",
			"block_causes", "fingerprints", "hitches", "memory", "counters", "notes", "checks", "run_ends"};
		char sql[64];

		snprintf(sql, sizeof(sql), "DELETE FROM %s", names[t]);
		assert_int_equal(store__query(s, sql, NULL, 0, NULL, NULL), 0);
	}
	store__close(s);
}

static int take_number(const char *const *cells, int n, void *arg)
{
	*(u64 *)arg = cells[0] ? strtoull(cells[0], NULL, 10) : 0;
	return 0;
}

static u64 ask(const char *sql)
{
	struct store *s;
	u64 n = ~0ULL;

	assert_int_equal(store__open_read(uri, &s), 0);
	assert_int_equal(store__query(s, sql, NULL, 0, take_number, &n), 0);
	store__close(s);
	return n;
}

static void add_run(struct store *s, const char *run, s64 at, const char *build)
{
	store__add_run(s, run, &(struct store_run){.started_ms = at, .kind = "soak", .game = "ga'me\xff"});
	store__add_meta(s, run, "meta.build", build);
	store__add_fingerprint(
		s, run, &(struct store_fingerprint){.key = 7, .cause = CAUSE_FILE_READ, .text = "reading"});
}

static void add_block(struct store *s, const char *run, u64 block, u32 slow_ms)
{
	static u32 counts[BUCKETS];
	struct store_block b = {.block = block,
		.scene = "town",
		.frames = 600,
		.dur_ns = 10 * NSEC_PER_SEC,
		.counts = counts,
		.causes[CAUSE_CODE].ns = 9 * NSEC_PER_SEC,
		.allocs = 6000};

	memset(counts, 0, sizeof(counts));
	b.max_ns = slow_ms * NSEC_PER_MSEC;
	counts[bucket__of((16 + block % 3) * NSEC_PER_MSEC)] = 500;
	counts[bucket__of(slow_ms * NSEC_PER_MSEC)] = 100;
	store__add_block(s, run, &b);
	store__add_hitches(
		s, run, &(struct store_hitches){.block = block, .fingerprint = 7, .count = 1, .sentence = "s"});
}

/* rows are with the server, or the seconds are over */
static void wait_until_sent(struct store *s, int seconds)
{
	for (int i = 0; i < seconds * 20 && store__unsent(s); i++)
		usleep(50000);
}

static void test_a_run_arrives_while_it_goes_on(void **state)
{
	char run[RUN_ID_SIZE];
	struct store *s;
	u64 n = 0;

	need_server();
	run_id__new(run);
	assert_int_equal(store__open(uri, &s), 0);
	empty_tables();
	add_run(s, run, 1, "1");
	add_block(s, run, 0, 30);
	assert_int_equal(store__flush(s), 0);
	wait_until_sent(s, 10);
	assert_int_equal(store__unsent(s), 0);
	assert_int_equal(ask("SELECT sum(frames) FROM frame_counts"), 600);
	add_block(s, run, 1, 30); /* soak reports from the store that it writes to */
	assert_int_equal(store__query(s, "SELECT sum(frames) FROM frame_counts", NULL, 0, take_number, &n), 0);
	assert_int_equal(n, 1200);
	assert_int_equal(store__close(s), 0);
}

static void test_a_server_that_goes_away_in_mid_run_loses_and_doubles_nothing(void **state)
{
	char run[RUN_ID_SIZE];
	struct store *s;

	need_server();
	empty_tables();
	run_id__new(run);
	assert_int_equal(store__open(uri, &s), 0);
	add_run(s, run, 1, "1");
	for (u64 i = 0; i < 30; i++) {
		if (i == 10)
			assert_int_equal(server("stop -m immediate"), 0);
		if (i == 20)
			assert_int_equal(server("start"), 0);
		add_block(s, run, i, 30);
		assert_int_equal(store__flush(s), 0);
		usleep(20000);
	}
	store__add_end(s, run, 9, 0, NULL);
	wait_until_sent(s, 15);
	assert_int_equal(store__close(s), 0);
	assert_int_equal(ask("SELECT count(*) FROM blocks"), 30);
	assert_int_equal(ask("SELECT sum(frames) FROM frame_counts"), 30 * 600);
	assert_int_equal(ask("SELECT count(*) FROM run_ends"), 1);
}

static void test_what_a_run_could_not_send_the_next_one_sends(void **state)
{
	char run[RUN_ID_SIZE];
	struct store *s;

	need_server();
	empty_tables();
	run_id__new(run);
	assert_int_equal(server("stop -m immediate"), 0);
	assert_int_equal(store__open(uri, &s), 0);
	add_run(s, run, 1, "1");
	add_block(s, run, 0, 30);
	assert_int_equal(store__close(s), -EAGAIN);
	assert_int_equal(server("start"), 0);
	assert_int_equal(store__open(uri, &s), 0);
	assert_int_equal(store__close(s), 0);
	assert_int_equal(ask("SELECT sum(frames) FROM frame_counts"), 600);
}

/* the queries of compare are the same SQL as for SQLite: they give the same here */
static void compare_in(struct store *s, struct comparison *c, const char *first, const char *second)
{
	const struct compare_options o = {.threshold = 0.03};
	struct str why = {0};

	*c = (struct comparison){0};
	assert_int_equal(run_set__find(s, first, NULL, &c->base), EXIT_OK);
	assert_int_equal(run_set__find(s, second, NULL, &c->new), EXIT_OK);
	assert_int_equal(run_set__difference(s, &c->base, &c->new, &why), 0);
	assert_int_equal(why.len, 0);
	str__free(&why);
	assert_int_equal(compare__run(s, &o, c), 0);
}

static void fill(struct store *s, const char *a, const char *b)
{
	add_run(s, a, 1, "1");
	add_run(s, b, 2, "2");
	for (u64 i = 0; i < 60; i++) {
		add_block(s, a, i, 30);
		add_block(s, b, i, 45);
	}
}

static void check_reports(struct store *s, const char *run)
{
	struct run_facts f;

	assert_int_equal(run_facts__load(s, run, &f), 0);
	assert_int_equal(f.frames, 60 * 600);
	assert_int_equal(f.n_past, 2);
	assert_int_equal(f.n_hitches, 1);
	assert_int_equal(f.hitches[0].hitches, 60);
	assert_true(f.scenes[0].p99_ns > 44000000 && f.n_columns > 10);
	run_facts__free(&f);
}

static void test_a_server_compares_and_reports_as_sqlite_does(void **state)
{
	char a[RUN_ID_SIZE], b[RUN_ID_SIZE];
	struct comparison here, there;
	struct store *s;

	need_server();
	empty_tables();
	run_id__new(a);
	run_id__new(b);
	assert_int_equal(store__open(uri, &s), 0);
	fill(s, a, b);
	assert_int_equal(store__close(s), 0);
	assert_int_equal(store__open_read(uri, &s), 0);
	compare_in(s, &there, "build=1", "@last");
	check_reports(s, b);
	store__close(s);
	assert_int_equal(store__open(":memory:", &s), 0);
	fill(s, a, b);
	compare_in(s, &here, "build=1", "@last");
	store__close(s);
	assert_true(there.worse);
	assert_string_equal(there.scenes[0].answer, here.scenes[0].answer);
	assert_memory_equal(
		there.scenes[0].stats.metrics, here.scenes[0].stats.metrics, sizeof(here.scenes[0].stats.metrics));
	compare__free(&here);
	compare__free(&there);
}

static void test_a_false_uri_is_refused(void **state)
{
	struct store *s;

	need_server();
	assert_int_not_equal(store__open("postgresql://[", &s), 0);
	assert_int_not_equal(store__open_read("postgresql:///postgres?host=/nonexistent", &s), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_run_arrives_while_it_goes_on),
		cmocka_unit_test(test_a_server_that_goes_away_in_mid_run_loses_and_doubles_nothing),
		cmocka_unit_test(test_what_a_run_could_not_send_the_next_one_sends),
		cmocka_unit_test(test_a_server_compares_and_reports_as_sqlite_does),
		cmocka_unit_test(test_a_false_uri_is_refused),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}

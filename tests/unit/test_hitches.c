/* SPDX-License-Identifier: GPL-2.0-only
 *
 * examples/hitches keeps its promises: each hitch on its frame, as long as intended, with the truth in the log. What
 * redframe says of them is tested elsewhere. Runs $(O)/examples/hitches, which is looked for beside this program.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define EVERY     30
#define MS        24 /* intended */
#define MAX_LINES 1024

static char program[PATH_MAX];
static char tmp[] = "/var/tmp/test-hitches-XXXXXX";

static const struct expected {
	const char *kind, *cause, *what, *who, *root; /* what: the end of a path; root: cause at the chain's end */
	bool cold;
} kinds[] = {
	{"lock", "lock_wait", "g_navmesh_mutex", "AssetLoader", "code", false},
	{"read", "file_read", "/navmesh.bin", NULL, "file_read", true},
	{"mapped", "page_fault", "/shaders.pak", NULL, "page_fault", true},
	{"memory", "page_fault", "anonymous memory", NULL, "page_fault", false},
	{"preempt", "cpu_wait", "compiler", "compiler", "cpu_wait", false},
	{"sleep", "sleep", NULL, NULL, "sleep", false},
	{"alloc", "code", "SpawnParticles", NULL, "code", false},
	{"chain", "lock_wait", "Renderer::upload_lock", "Thread", "file_read", true},
	{"chain_locks", "lock_wait", "Renderer::upload_lock", "Thread", "file_read", true},
	{"condvar", "thread_wait", "BakeLighting", "JobWorker0", "code", false},
	{"code", "code", "AStarExpand", NULL, "code", false},
};
#define KINDS ((int)(sizeof(kinds) / sizeof(kinds[0])))

static struct log {
	char line[MAX_LINES][2048];
	int n;
} truth;

/* The value after the line's first "key": as text without quotes, or "". */
static const char *value(const char *line, const char *key, char *buf, size_t size)
{
	char pattern[40];
	const char *p;
	size_t len;

	assert_non_null(line);
	snprintf(pattern, sizeof(pattern), "\"%s\": ", key);
	p = strstr(line, pattern);
	buf[0] = '\0';
	if (!p)
		return buf;
	p += strlen(pattern);
	if (*p == '"')
		len = strcspn(++p, "\"");
	else
		len = strcspn(p, ",}]");
	if (len < size) {
		memcpy(buf, p, len);
		buf[len] = '\0';
	}
	return buf;
}

static double number(const char *line, const char *key)
{
	char buf[64];

	value(line, key, buf, sizeof(buf));
	assert_string_not_equal(buf, "");
	return strtod(buf, NULL);
}

static void assert_value(const char *line, const char *key, const char *expected)
{
	char buf[512];
	size_t len, tail = expected ? strlen(expected) : 0;

	value(line, key, buf, sizeof(buf));
	len = strlen(buf);
	if (!expected)
		assert_string_equal(buf, "null");
	else if (len < tail || strcmp(buf + len - tail, expected))
		fail_msg("%s is \"%s\", not \"%s\"", key, buf, expected);
}

static const char *log_path(void)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/log", tmp);
	return path;
}

static void read_log(void)
{
	FILE *f = fopen(log_path(), "r");

	assert_non_null(f);
	for (truth.n = 0; truth.n < MAX_LINES && fgets(truth.line[truth.n], sizeof(truth.line[0]), f); truth.n++)
		assert_non_null(strchr(truth.line[truth.n], '\n'));
	fclose(f);
}

/* the i-th line of a type, or NULL */
static const char *line_of(const char *type, int i)
{
	char buf[32];
	int k;

	for (k = 0; k < truth.n; k++)
		if (!strcmp(value(truth.line[k], "type", buf, sizeof(buf)), type) && !i--)
			return truth.line[k];
	return NULL;
}

__attribute__((format(printf, 1, 2))) static int run(const char *format, ...)
{
	char args[512], command[PATH_MAX + 1024];
	va_list list;
	int status;

	va_start(list, format);
	vsnprintf(args, sizeof(args), format, list);
	va_end(list);
	unlink(log_path());
	/* a game that hangs must not hang the tests */
	snprintf(command, sizeof(command), "timeout -k 5 120 %s %s >%s/out 2>&1", program, args, tmp);
	status = system(command);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int folder_entries(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	int n = 0;

	if (!d)
		return -1;
	while ((e = readdir(d)))
		n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	closedir(d);
	return n;
}

static void check_chain(const char *line, const struct expected *e, bool pipeline)
{
	const char *chain = strstr(line, "\"chain\": "), *p, *last = NULL;
	int links = 0;

	assert_non_null(chain);
	for (p = chain; (p = strstr(p, "{\"cause\"")); p++, links++)
		last = p;
	assert_non_null(last);
	assert_value(last, "cause", e->root);
	assert_value(chain, "cause", pipeline ? "thread_wait" : e->cause);
	if (!strcmp(e->kind, "chain_locks"))
		assert_int_equal(links, pipeline ? 4 : 3);
}

static void check_hitch(const char *line, const struct expected *e, int frame, bool pipeline)
{
	assert_non_null(line);
	print_message("%s", line);
	assert_int_equal((int)number(line, "frame"), frame);
	assert_value(line, "kind", e->kind);
	assert_value(line, "cause", e->cause);
	assert_value(line, "thread", pipeline ? "GameThread" : "MainThread");
	assert_value(line, "what", e->what);
	assert_value(line, "who", e->who);
	if (e->who)
		assert_true(number(line, "who_tid") > 1);
	assert_true(number(line, "ms") >= MS / 2.0);
	assert_true(number(line, "seen_ms") <= number(line, "ms") + 0.001);
	assert_true(number(line, "seen_ms") <= number(line, "frame_ms") + 0.001);
	/* a pipeline may present late by its neighbour frame, where the rival takes the CPU from the render thread too
	 */
	if (!pipeline || strcmp(e->kind, "preempt"))
		assert_true(number(line, "frame_ms") >= MS / 2.0);
	if (e->cold && !strstr(line_of("start", 0), "\"in_memory\": true"))
		assert_true(number(line, "cold_bytes") > 0);
	check_chain(line, e, pipeline);
}

static void check_shape(const char *shape, bool pipeline)
{
	int i, frames = EVERY * (KINDS + 1);

	assert_int_equal(run("--shape %s --fps 120 --every %d --ms %d --log %s", shape, EVERY, MS, log_path()), 0);
	read_log();
	assert_value(line_of("start", 0), "shape", shape);
	if (strstr(line_of("start", 0), "\"in_memory\": true"))
		print_message("NOT TESTED: that files are cold: the data folder is in memory\n");
	for (i = 0; i < KINDS; i++)
		check_hitch(line_of("hitch", i), &kinds[i], EVERY * (i + 1), pipeline);
	assert_null(line_of("hitch", KINDS));
	assert_int_equal((int)number(line_of("end", 0), "frames"), frames);
	assert_int_equal((int)number(line_of("end", 0), "hitches"), KINDS);
}

static void test_loop_has_each_hitch_on_its_frame_and_as_long_as_intended(void **state)
{
	check_shape("loop", false);
}

static void test_pipeline_has_each_hitch_on_its_frame_and_as_long_as_intended(void **state)
{
	check_shape("pipeline", true);
}

static void test_none_logs_none_and_presents_every_frame(void **state)
{
	assert_int_equal(run("--hitch none --frames 70 --fps 120 --log %s", log_path()), 0);
	read_log();
	assert_null(line_of("hitch", 0));
	assert_int_equal((int)number(line_of("end", 0), "frames"), 70);
	assert_int_equal((int)number(line_of("end", 0), "hitches"), 0);
}

static void test_rounds_repeat_the_chosen_kinds_in_order(void **state)
{
	int i;

	assert_int_equal(run("--hitch sleep,code --rounds 2 --every 30 --fps 240 --ms 5 --log %s", log_path()), 0);
	read_log();
	for (i = 0; i < 4; i++) {
		assert_value(line_of("hitch", i), "kind", i % 2 ? "code" : "sleep");
		assert_int_equal((int)number(line_of("hitch", i), "frame"), 30 * (i + 1));
	}
	assert_null(line_of("hitch", 4));
	assert_int_equal((int)number(line_of("end", 0), "frames"), 150);
}

/* The frames may end on the frame of a hitch, or while one is only prepared and a lock is already held for it. */
static void test_the_end_may_come_in_any_frame_around_a_hitch(void **state)
{
	static const struct {
		int frames, hitches;
	} ends[] = {{20, 0}, {29, 0}, {30, 1}, {31, 1}, {36, 1}};
	const char *const shapes[] = {"loop", "pipeline"};
	size_t i;

	for (i = 0; i < 2 * sizeof(ends) / sizeof(ends[0]); i++) {
		assert_int_equal(run("--shape %s --hitch chain_locks --every 30 --fps 240 --ms 5 --frames %d --log %s",
					 shapes[i % 2], ends[i / 2].frames, log_path()),
			0);
		read_log();
		assert_int_equal((int)number(line_of("end", 0), "frames"), ends[i / 2].frames);
		assert_int_equal((int)number(line_of("end", 0), "hitches"), ends[i / 2].hitches);
		assert_int_equal(line_of("hitch", 0) != NULL, ends[i / 2].hitches);
	}
}

static void test_the_data_folder_is_gone_afterwards(void **state)
{
	char dir[PATH_MAX];

	snprintf(dir, sizeof(dir), "%s/data", tmp);
	assert_int_equal(run("--dir %s --hitch read --frames 31 --every 30 --fps 240 --ms 2", dir), 0);
	assert_int_equal(access(dir, F_OK), -1);

	/* a folder that was there stays, without our files */
	assert_int_equal(mkdir(dir, 0755), 0);
	assert_int_equal(run("--dir %s --hitch read --frames 31 --every 30 --fps 240 --ms 2", dir), 0);
	assert_int_equal(folder_entries(dir), 0);
	assert_int_equal(rmdir(dir), 0);
}

static void test_a_signal_ends_it_with_a_whole_log_and_no_files(void **state)
{
	char dir[PATH_MAX];
	int status, tries;
	pid_t child;

	snprintf(dir, sizeof(dir), "%s/data", tmp);
	unlink(log_path());
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		execl(program, "hitches", "--quiet", "--hitch", "lock", "--frames", "100000", "--dir", dir, "--log",
			log_path(), NULL);
		_exit(127);
	}
	for (tries = 0; tries < 1000 && access(log_path(), F_OK); tries++)
		usleep(10000);
	usleep(300000);
	assert_int_equal(kill(child, SIGTERM), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	read_log();
	assert_non_null(line_of("end", 0));
	assert_int_equal(access(dir, F_OK), -1);
}

static void test_wrong_usage_is_refused_and_help_is_not(void **state)
{
	assert_int_equal(run("--help"), 0);
	assert_int_equal(run("--hitch nonsense"), 1);
	assert_int_equal(run("--hitch lock,"), 1);
	assert_int_equal(run("--shape circle"), 1);
	assert_int_equal(run("--frames 0"), 1);
	assert_int_equal(run("--fps 60x"), 1);
	assert_int_equal(run("--every 3"), 1);
	assert_int_equal(run("--nonsense"), 1);
	assert_int_equal(run("nonsense"), 1);
	assert_int_equal(run("--hitch none --frames 1 --log /nowhere/at/all"), 1);
	assert_int_equal(run("--hitch none --frames 1 --dir /nowhere/at/all"), 1);
	assert_int_equal(run("--hitch none --frames 1 --quiet --log /dev/full"), 1);
}

/* build/tests/… and build/san/tests/… both belong to build/examples/hitches */
static int find_program(void)
{
	char self[PATH_MAX - 64], *slash;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n <= 0)
		return -1;
	self[n] = '\0';
	while ((slash = strrchr(self, '/'))) {
		*slash = '\0';
		snprintf(program, sizeof(program), "%s/examples/hitches", self);
		if (!access(program, X_OK))
			return 0;
	}
	print_error("examples/hitches is not beside this program: build it first\n");
	return -1;
}

static int make_folder(void **state)
{
	if (find_program())
		return -1;
	return mkdtemp(tmp) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", tmp);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loop_has_each_hitch_on_its_frame_and_as_long_as_intended),
		cmocka_unit_test(test_pipeline_has_each_hitch_on_its_frame_and_as_long_as_intended),
		cmocka_unit_test(test_none_logs_none_and_presents_every_frame),
		cmocka_unit_test(test_rounds_repeat_the_chosen_kinds_in_order),
		cmocka_unit_test(test_the_end_may_come_in_any_frame_around_a_hitch),
		cmocka_unit_test(test_the_data_folder_is_gone_afterwards),
		cmocka_unit_test(test_a_signal_ends_it_with_a_whole_log_and_no_files),
		cmocka_unit_test(test_wrong_usage_is_refused_and_help_is_not),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

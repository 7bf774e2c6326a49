/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Golden recordings (tests/golden/export_*.txt) to golden exports, byte for byte. UPDATE_GOLDEN=1 writes them anew, for
 * a person to read before they are committed.
 */
#include <fcntl.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "export.h"
#include "exporter.h"
#include "info.h"
#include "model.h"
#include "output.h"
#include "recfile.h"
#include "recording.h"
#include "replay.h"
#include "strings.h"
#include "symbolize_verb.h"

static char *slurp(int fd, size_t *n)
{
	struct stat st;
	char *bytes;

	assert_int_equal(fstat(fd, &st), 0);
	bytes = malloc((size_t)st.st_size + 1);
	*n = (size_t)st.st_size;
	assert_int_equal(pread(fd, bytes, *n, 0), *n);
	bytes[*n] = '\0';
	return bytes;
}

static void compare(int got_fd, const char *path)
{
	size_t got_n, want_n;
	char *got = slurp(got_fd, &got_n), *want;
	int fd;

	if (getenv("UPDATE_GOLDEN")) {
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
		assert_int_equal(write(fd, got, got_n), got_n);
		close(fd);
	}
	fd = open(path, O_RDONLY);
	if (fd < 0)
		fail_msg("%s is missing: UPDATE_GOLDEN=1 writes it", path);
	want = slurp(fd, &want_n);
	close(fd);
	assert_string_equal(got, want);
	assert_int_equal(got_n, want_n);
	free(got);
	free(want);
}

static void export(const char *rec_path, const struct exporter_ops *ops, int out)
{
	struct exporter *e = ops->open(out);
	struct model *m = model__new();
	struct recording r;

	assert_int_equal(recording__open(&r, rec_path), 0);
	assert_int_equal(replay__prepare(&r, m), 0);
	assert_int_equal(replay__run(&r, m, NULL, &e, 1, NULL), 0);
	ops->close(e);
	model__free(m);
	recording__close(&r);
}

static void info(const char *rec_path, bool json, int out)
{
	char *args[] = {(char *)rec_path, "--json", NULL};
	int saved = dup(STDOUT_FILENO);

	fflush(stdout);
	dup2(out, STDOUT_FILENO);
	assert_int_equal(verb__info(json ? 2 : 1, args), EXIT_OK);
	dup2(saved, STDOUT_FILENO);
	close(saved);
}

static void check(const char *text_path)
{
	static const char *const suffixes[] = {"json", "txt", "info", "info.json"};
	char rec[] = "/tmp/redframe-test-XXXXXX", path[512];
	size_t i;
	int out;

	close(mkstemp(rec));
	assert_int_equal(recfile__compile(text_path, rec), 0);
	for (i = 0; i < ARRAY_SIZE(suffixes); i++) {
		out = memfd_create("out", MFD_CLOEXEC);
		snprintf(path, sizeof(path), "%.*s.expected.%s", (int)strlen(text_path) - 4, text_path, suffixes[i]);
		if (i < 2)
			export(rec, exporter__find(suffixes[i], NULL), out);
		else
			info(rec, i == 3, out);
		compare(out, path);
		close(out);
	}
	unlink(rec);
}

static void test_golden_recordings_give_golden_exports(void **state)
{
	glob_t g;
	size_t i, n = 0;

	assert_int_equal(glob("tests/golden/export_*.txt", 0, NULL, &g), 0);
	for (i = 0; i < g.gl_pathc; i++) {
		if (strstr(g.gl_pathv[i], ".expected."))
			continue;
		check(g.gl_pathv[i]);
		n++;
	}
	assert_true(n > 0);
	globfree(&g);
}

static void test_formats_are_found_by_name_and_by_suffix(void **state)
{
	assert_ptr_equal(exporter__find("json", "x.txt"), &exporter_json);
	assert_ptr_equal(exporter__find(NULL, "a/x.txt"), &exporter_text);
	assert_ptr_equal(exporter__find(NULL, "x.pftrace"), &exporter_perfetto);
	assert_null(exporter__find(NULL, "x.bin"));
	assert_null(exporter__find(NULL, ".json"));
	assert_ptr_equal(exporter__find(NULL, "x.csv"), &exporter_csv);
	assert_ptr_equal(exporter__find(NULL, "x.html"), &exporter_html);
	assert_null(exporter__find("xml", "x.json"));
}

static char dir[] = "/tmp/redframe-test-XXXXXX";

static char *in_dir(const char *name)
{
	static char paths[4][128];
	static int i;

	i = (i + 1) % 4;
	snprintf(paths[i], sizeof(paths[i]), "%s/%s", dir, name);
	return paths[i];
}

static void test_outputs_never_go_through_what_is_there(void **state)
{
	struct stat st;
	int fd;

	assert_non_null(mkdtemp(dir));
	assert_true(output__open(dir, true) < 0);
	assert_int_equal(symlink("/etc/passwd", in_dir("link")), 0);
	assert_true(output__open(in_dir("link"), true) < 0);
	assert_int_equal(mkfifo(in_dir("fifo"), 0600), 0);
	assert_true(output__open(in_dir("fifo"), true) < 0);
	fd = output__open(in_dir("file"), false);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "abc", 3), 3);
	close(fd);
	assert_true(output__open(in_dir("file"), false) < 0);
	assert_int_equal(stat(in_dir("file"), &st), 0);
	assert_int_equal(st.st_size, 3);
	fd = output__open(in_dir("file"), true);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 0);
	close(fd);
	assert_true(output__open(in_dir("none/file"), false) < 0);
}

static void test_a_recording_is_never_overwritten_by_what_is_made_of_it(void **state)
{
	char path[128], *export[] = {path, "-o", path, "--format", "json", "-f", NULL};
	char *symbolize[] = {path, "--path", dir, "-o", path, "-f", NULL};
	struct stat before, after;

	snprintf(path, sizeof(path), "%s", in_dir("file"));
	assert_int_equal(recfile__compile("tests/golden/export_classes.txt", path), 0);
	assert_int_equal(stat(path, &before), 0);
	assert_int_equal(verb__export(6, export), EXIT_USAGE);
	assert_int_equal(verb__symbolize(6, symbolize), EXIT_USAGE);
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(after.st_size, before.st_size);
	assert_true(after.st_size > 0);
}

static void test_outputs_belong_to_the_user_behind_sudo(void **state)
{
	struct stat st;
	int fd;

	if (geteuid())
		skip(); /* only root can give files away */
	setenv("SUDO_UID", "1234", 1);
	setenv("SUDO_GID", "1235", 1);
	fd = output__open(in_dir("mine"), false);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_uid, 1234);
	assert_int_equal(st.st_gid, 1235);
	close(fd);
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
}

static int clean(void **state)
{
	static const char *const names[] = {"link", "fifo", "file", "mine"};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		unlink(in_dir(names[i]));
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden_recordings_give_golden_exports),
		cmocka_unit_test(test_formats_are_found_by_name_and_by_suffix),
		cmocka_unit_test(test_outputs_never_go_through_what_is_there),
		cmocka_unit_test(test_a_recording_is_never_overwritten_by_what_is_made_of_it),
		cmocka_unit_test(test_outputs_belong_to_the_user_behind_sudo),
	};

	return cmocka_run_group_tests_name("export", tests, NULL, clean);
}

/* SPDX-License-Identifier: GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "store.h"
#include "store_db.h"

#define RUN "00000000-0000-4000-8000-000000000001"

static char path[64];

static struct store *open_new(void)
{
	struct store *s;

	snprintf(path, sizeof(path), "/tmp/test_store.%d.db", getpid());
	unlink(path);
	assert_int_equal(store__open(path, &s), 0);
	return s;
}

static void close_and_remove(struct store *s)
{
	char side[80];

	assert_int_equal(store__close(s), 0);
	unlink(path);
	snprintf(side, sizeof(side), "%s-wal", path);
	unlink(side);
	snprintf(side, sizeof(side), "%s-shm", path);
	unlink(side);
}

static int copy_cell(const char *const *cells, int n, void *arg)
{
	snprintf(arg, 256, "%s", cells[0] ?: "NULL");
	return 0;
}

static const char *ask(struct store *s, const char *sql)
{
	static char answer[256];

	answer[0] = 0;
	assert_int_equal(store__query(s, sql, NULL, 0, copy_cell, answer), 0);
	return answer;
}

static void add_everything(struct store *s)
{
	static u32 counts[BUCKETS];
	struct store_block b = {.scene = "town", .frames = 3, .counts = counts, .causes[CAUSE_CODE] = {.ns = 5}};

	counts[bucket__of(16000000)] = 2;
	counts[bucket__of(50000000)] = 1;
	store__add_run(s, RUN, &(struct store_run){.started_ms = 1, .kind = "soak", .game = "g"});
	store__add_meta(s, RUN, "meta.commit", "abc");
	store__add_block(s, RUN, &b);
	store__add_fingerprint(
		s, RUN, &(struct store_fingerprint){.key = ~0ULL, .cause = CAUSE_FILE_READ, .text = "t"});
	store__add_hitches(s, RUN, &(struct store_hitches){.fingerprint = ~0ULL, .count = 1, .sentence = "s"});
	store__add_memory(s, RUN, &(struct store_memory){.at_ms = 5, .rss = 1 << 20});
	store__add_counter(s, RUN, "lost.sched", ~0ULL >> 1);
	store__add_note(s, RUN, 0, 7, "n");
	store__add_check(s, RUN, &(struct store_check){.name = "frame", .limit = "frame=33"});
	assert_int_equal(store__add_end(s, RUN, 9, 0, NULL), 0);
}

static void test_what_is_written_twice_is_there_once(void **state)
{
	static const char *const names[] = {"runs", "run_meta", "blocks", "block_causes", "fingerprints", "hitches",
		"memory", "counters", "notes", "checks", "run_ends"};
	struct store *s = open_new();
	char sql[64];

	add_everything(s);
	assert_int_equal(store__flush(s), 0);
	add_everything(s);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", names[i]);
		assert_string_equal(ask(s, sql), "1");
	}
	assert_string_equal(ask(s, "SELECT count(*) FROM frame_counts"), "2");
	close_and_remove(s);
}

static void test_a_later_opening_finds_what_was_written(void **state)
{
	struct store *s = open_new();

	add_everything(s);
	assert_int_equal(store__close(s), 0);
	assert_int_equal(store__open_read(path, &s), 0);
	assert_string_equal(ask(s, "SELECT sum(frames) FROM frame_counts"), "3");
	assert_string_equal(ask(s, "SELECT fingerprint FROM hitches"), "ffffffffffffffff");
	assert_string_equal(ask(s, "SELECT value FROM counters"), "9223372036854775807");
	assert_string_equal(ask(s, "SELECT path FROM runs"), "NULL");
	close_and_remove(s);
}

static void test_hostile_text_is_stored_as_valid_utf8(void **state)
{
	struct store *s = open_new();

	store__add_meta(s, RUN, "meta.x", "'; DROP TABLE runs; --\xff\xfe\x01$1");
	assert_string_equal(
		ask(s, "SELECT value FROM run_meta"), "'; DROP TABLE runs; --\xef\xbf\xbd\xef\xbf\xbd\x01$1");
	close_and_remove(s);
}

/* what a full disk leaves: nothing half, and nothing lost once there is room */
static void test_rows_outlive_a_write_that_fails(void **state)
{
	struct store *s = open_new(), *other;

	assert_int_equal(store__open(path, &other), 0);
	add_everything(s);
	assert_int_equal(store__query(other, "ALTER TABLE checks RENAME TO away", NULL, 0, NULL, NULL), 0);
	assert_int_not_equal(store__flush(s), 0);
	assert_string_equal(ask(other, "SELECT count(*) FROM blocks"), "0");
	assert_int_equal(store__query(other, "ALTER TABLE away RENAME TO checks", NULL, 0, NULL, NULL), 0);
	assert_int_equal(store__flush(s), 0);
	assert_string_equal(ask(other, "SELECT count(*) FROM checks"), "1");
	assert_int_equal(store__close(other), 0);
	close_and_remove(s);
}

static void test_a_file_that_is_no_database_is_refused(void **state)
{
	struct store *s;
	FILE *f;

	snprintf(path, sizeof(path), "/tmp/test_store.%d.db", getpid());
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "%4096s", "no database");
	fclose(f);
	assert_int_not_equal(store__open(path, &s), 0);
	assert_int_not_equal(store__open_read("/nonexistent/runs.db", &s), 0);
	unlink(path);
}

static void test_run_ids_are_random_uuids(void **state)
{
	char a[RUN_ID_SIZE], b[RUN_ID_SIZE];

	run_id__new(a);
	run_id__new(b);
	assert_string_not_equal(a, b);
	assert_int_equal(strlen(a), 36);
	assert_int_equal(a[14], '4');
}

static void check_row(const struct value *values)
{
	struct value back[ROW_MAX];
	struct rows r = {0};
	enum store_table t;
	size_t at = 0;
	char *copy;

	assert_int_equal(rows__put(&r, TABLE_META, values, 3), 0);
	copy = strdup(rows__next(&r, &at, &t));
	assert_int_equal(row__decode(t, copy, back), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(back[i].type, values[i].type);
		assert_int_equal(back[i].i, values[i].i);
		if (values[i].type == VALUE_TEXT)
			assert_string_equal(back[i].s, values[i].s);
	}
	free(copy);
	rows__free(&r);
}

#define T(text)                                                                                                        \
	{                                                                                                              \
		.type = VALUE_TEXT, .s = text                                                                          \
	}
static void test_rows_survive_the_way_through_the_spool(void **state)
{
	check_row((struct value[]){T(""), T("I5;N"), T("T3:abc")});
	check_row((struct value[]){{.type = VALUE_NULL}, {.type = VALUE_INT, .i = INT64_MIN}, T("ü\n")});
	check_row((struct value[]){T("a"), {.type = VALUE_INT, .i = INT64_MAX}, {.type = VALUE_NULL}});
}

static void test_damaged_rows_are_refused(void **state)
{
	static const char *const bad[] = {"", "NN", "NNNN", "I;NN", "I5NN", "T9:abcNN", "T-1:NN", "T:NN", "X5;NN",
		"T18446744073709551615:aNN", "I99999999999999999999;NN", "NNT3:ab"};
	struct value v[ROW_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		char *copy = strdup(bad[i]);

		assert_int_not_equal(row__decode(TABLE_META, copy, v), 0);
		free(copy);
	}
}

static void test_buckets_are_within_half_a_percent(void **state)
{
	for (u64 v = 1; v < 1ULL << 62; v += v / 37 + 1) {
		u32 b = bucket__of(v);
		double off = (double)bucket__middle(b) - (double)v;

		assert_true(bucket__low(b) <= v && (b + 1 == BUCKETS || v < bucket__low(b + 1)));
		assert_true(off <= v * 0.0042 + 0.5 && -off <= v * 0.0042 + 0.5);
	}
	assert_true(bucket__of(~0ULL) < BUCKETS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_written_twice_is_there_once),
		cmocka_unit_test(test_a_later_opening_finds_what_was_written),
		cmocka_unit_test(test_hostile_text_is_stored_as_valid_utf8),
		cmocka_unit_test(test_rows_outlive_a_write_that_fails),
		cmocka_unit_test(test_a_file_that_is_no_database_is_refused),
		cmocka_unit_test(test_run_ids_are_random_uuids),
		cmocka_unit_test(test_rows_survive_the_way_through_the_spool),
		cmocka_unit_test(test_damaged_rows_are_refused),
		cmocka_unit_test(test_buckets_are_within_half_a_percent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

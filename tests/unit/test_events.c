/* SPDX-License-Identifier: GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "events_desc.h"

enum {
#define EVENT(id, KIND, kind, group, shape, cause, doc) +1
#define FIELD(type, name, unit)
#define TEXT(name)
#define END(kind)
	KINDS_IN_DEF = 0
#include "events.def"
#undef EVENT
#undef FIELD
#undef TEXT
#undef END
};

static void test_descriptors_cover_every_byte_of_every_kind(void **state)
{
	int kind, i, n = 0;

	for (kind = 0; kind < 256; kind++) {
		const struct ev_desc *d = ev__desc((u8)kind);
		size_t at = sizeof(struct ev_hdr);

		if (!d)
			continue;
		for (i = 0; i < d->n_fields; i++) {
			assert_int_equal(d->fields[i].offset, at);
			assert_null(strchr(d->fields[i].name, '['));
			at += d->fields[i].size;
		}
		assert_int_equal(at, d->size);
		n++;
	}
	assert_int_equal(n, KINDS_IN_DEF);
	assert_null(ev__desc(0));
	assert_null(ev__desc(255));
}

static void test_descriptor_agrees_with_the_struct(void **state)
{
	const struct ev_desc *d = ev__desc(EV_FILE_READ);

	assert_string_equal(d->name, "file_read");
	assert_int_equal(d->class, CLASS_FILE);
	assert_int_equal(d->shape, SHAPE_SPAN);
	assert_int_equal(d->cause, CAUSE_FILE_READ);
	assert_int_equal(d->size, sizeof(struct ev_file_read));
	assert_string_equal(d->fields[4].name, "ret");
	assert_int_equal(d->fields[4].offset, offsetof(struct ev_file_read, ret));
	assert_true(d->fields[4].is_signed);
	d = ev__desc(EV_FORK);
	assert_string_equal(d->fields[5].name, "comm");
	assert_int_equal(d->fields[5].offset, offsetof(struct ev_fork, comm));
	assert_int_equal(d->fields[5].size, 16);
	assert_string_equal(ev__desc(EV_PATH)->text_name, "parts");
}

/* every span's duration is where ev__dur looks for it */
static void test_dur_is_the_first_field_of_whatever_lasts(void **state)
{
	int kind;

	for (kind = 0; kind < 256; kind++) {
		const struct ev_desc *d = ev__desc((u8)kind);
		bool lasts = d && (d->shape == SHAPE_SPAN || d->shape == SHAPE_WAIT || d->shape == SHAPE_ASYNC);

		if (!d)
			continue;
		assert_int_equal(lasts, d->n_fields && !strcmp(d->fields[0].name, "dur"));
	}
}

static void test_dur_never_reaches_before_time_began(void **state)
{
	struct ev_fault e = {.hdr = {.ts = 100, .kind = EV_FAULT, .words = sizeof(e) / 8}, .dur = 40};

	assert_int_equal(ev__dur(&e.hdr), 40);
	e.dur = 101;
	assert_int_equal(ev__dur(&e.hdr), 100);
	e.hdr.words = 2;
	assert_int_equal(ev__dur(&e.hdr), 0);
}

static void assert_count(struct ev_hdr *h, size_t bytes, u8 kind, u64 want)
{
	h->kind = kind;
	h->words = (u8)(bytes / 8);
	assert_int_equal(ev__count(h), want);
}

static void test_counts_are_calls_not_records(void **state)
{
	union {
		struct ev_hdr hdr;
		struct ev_switch sw;
		struct ev_alloc_sum sum;
		struct ev_frame frame;
		u64 room[32];
	} r = {0};

	assert_count(&r.hdr, sizeof(r), EV_FILE_READ, 1);
	assert_count(&r.hdr, sizeof(r), EV_LOCK_WAIT, 1);
	assert_count(&r.hdr, sizeof(r), EV_ALLOC, 1);
	assert_count(&r.hdr, sizeof(r), EV_FREE, 0);
	assert_count(&r.hdr, sizeof(r), EV_WAKING, 0);
	assert_count(&r.hdr, sizeof(r), EV_URING_SUBMIT, 0);
	assert_count(&r.hdr, sizeof(r), EV_URING_DONE, 1);
	assert_count(&r.hdr, sizeof(r), EV_PATH, 0);
	r.sum.calls = 77;
	assert_count(&r.hdr, sizeof(r), EV_ALLOC_SUM, 77);
	r.sw.flags = 0;
	assert_count(&r.hdr, sizeof(r), EV_SWITCH, 0);
	r.sw.flags = SWITCH_GAME | SWITCH_PREEMPT;
	assert_count(&r.hdr, sizeof(r), EV_SWITCH, 1);
	r.frame.mark = FRAME_END;
	assert_count(&r.hdr, sizeof(r), EV_FRAME, 0);
	assert_count(&r.hdr, 16, EV_FILE_READ, 0);
	assert_count(&r.hdr, sizeof(r), 255, 0);
}

static void test_text_keeps_separators_and_drops_padding(void **state)
{
	struct {
		struct ev_path path;
		char parts[16];
	} r = {.path.hdr = {.kind = EV_PATH, .words = sizeof(r) / 8}, .parts = "a\0b\0\0"};
	char buf[8];

	assert_int_equal(ev__text(&r.path.hdr, buf, sizeof(buf)), 3);
	assert_memory_equal(buf, "a\0b", 4);
	memset(r.parts, 'x', sizeof(r.parts)); /* no NUL at all */
	assert_int_equal(ev__text(&r.path.hdr, buf, sizeof(buf)), 7);
	assert_string_equal(buf, "xxxxxxx");
}

static void test_dump_names_values_and_escapes_the_games_words(void **state)
{
	struct ev_lock_wait w = {.hdr = {.ts = 5, .tid = 7, .cpu = 1, .kind = EV_LOCK_WAIT, .words = sizeof(w) / 8},
		.dur = 3,
		.op = 128 | 9,
		.ret = -110};
	struct ev_rename n = {.hdr = {.kind = EV_RENAME, .words = sizeof(n) / 8}, .comm = "a\x1b[2Jb"};
	char buf[512], tiny[10];

	ev__dump(&w.hdr, buf, sizeof(buf));
	assert_string_equal(buf, "5 7 1 lock_wait dur=3 addr=0x0 ip=0x0 val=0x0 word=0x0 owner=0 owner16=0 waker=0 "
				 "ret=-ETIMEDOUT op=FUTEX_WAIT_BITSET|PRIVATE words=0");
	ev__dump(&n.hdr, buf, sizeof(buf));
	assert_non_null(strstr(buf, "comm=\"a\\x1b[2Jb\""));
	assert_int_equal(ev__dump(&w.hdr, tiny, sizeof(tiny)), 9);
	assert_string_equal(tiny, "5 7 1 loc");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_descriptors_cover_every_byte_of_every_kind),
		cmocka_unit_test(test_descriptor_agrees_with_the_struct),
		cmocka_unit_test(test_dur_is_the_first_field_of_whatever_lasts),
		cmocka_unit_test(test_dur_never_reaches_before_time_began),
		cmocka_unit_test(test_counts_are_calls_not_records),
		cmocka_unit_test(test_text_keeps_separators_and_drops_padding),
		cmocka_unit_test(test_dump_names_values_and_escapes_the_games_words),
	};

	return cmocka_run_group_tests_name("events", tests, NULL, NULL);
}

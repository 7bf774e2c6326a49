// SPDX-License-Identifier: GPL-2.0-only
/* Frame marks by every kind of source, and what the game says of itself. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "json.h"
#include "live.h"
#include "strings.h"

#define FRAMES 300

static void record(struct live *l, const char *spec)
{
	live__init(l);
	live__start(l, "frame", NULL);
	live__record(l, "--frame", spec, NULL);
	live__run(l);
}

/* 300 marks in a row on the main thread; number of the first, or FRAME_NO_NUMBER for all */
static void same_frames(const struct live *l, u64 first, u64 stream)
{
	const struct live_event *e;
	size_t n = 0;

	live__each(l, at, e, EV_FRAME)
	{
		const struct ev_frame *f = (const void *)e->hdr;

		if (f->number != (first == FRAME_NO_NUMBER ? first : first + n) || f->stream != stream ||
			f->mark != FRAME_MARK || f->hdr.tid != model__game(l->model))
			fail_msg("mark %zu: number %lld stream %#llx mark %u", n, (long long)f->number,
				(unsigned long long)f->stream, f->mark);
		n++;
	}
	assert_int_equal(n, FRAMES);
	assert_int_equal(model__stats(l->model)->frames, FRAMES - 1);
}

static void test_redframe_markers_are_each_one_frame_with_number_and_stream(void **state)
{
	struct live l;

	record(&l, "usdt:redframe:frame");
	same_frames(&l, 1000, (u64)live__num(&l, "stream", 0, 0));
	assert_string_equal(model__info(l.model, "frame.source"), "usdt:redframe:frame");
	live__free(&l);
}

static void test_auto_takes_the_redframe_markers_and_counts_no_frame_twice(void **state)
{
	struct live l;

	record(&l, "auto");
	same_frames(&l, 1000, (u64)live__num(&l, "stream", 0, 0));
	live__free(&l);
}

static void test_markers_of_another_provider_are_frames_with_a_number_and_no_stream(void **state)
{
	struct live l;

	record(&l, "usdt:engine:swap");
	same_frames(&l, (u64)-5, 0); /* who knows what its second argument means */
	live__free(&l);
}

static void count_marks(const struct live *l)
{
	const struct frame_stream *s = model__stream(l->model, 0);

	assert_int_equal(live__count(l, EV_FRAME), FRAMES);
	/* in a tight loop on a CPU that stands still at times, some look like the one before, seen again */
	assert_int_equal(model__stats(l->model)->counts[CLASS_FRAME] + s->doubled, FRAMES);
}

static void test_a_function_by_its_symbol_is_a_frame_at_each_call(void **state)
{
	struct live l;

	record(&l, "uprobe:frame:present");
	count_marks(&l);
	live__free(&l);
}

static void test_a_function_by_its_file_offset_is_a_frame_at_each_call(void **state)
{
	char spec[PATH_MAX + 64], word[32], *early;
	struct live l;

	live__init(&l);
	live__start(&l, "frame", NULL);
	early = live__read(&l, "truth");
	l.truth = early;
	live__word(&l, "offset", 0, 0, word, sizeof(word));
	snprintf(spec, sizeof(spec), "uprobe:%s+%s", live__target_path("frame"), word);
	live__record(&l, "--frame", spec, NULL);
	live__run(&l);
	count_marks(&l);
	live__free(&l);
}

static void next_text(const struct live *l, size_t *at, const char *want)
{
	const struct live_event *e = live__next(l, at, EV_MESSAGE);

	assert_non_null(e);
	assert_string_equal(live__text(e->hdr), want);
}

static void test_texts_of_the_game_are_recorded_as_they_are_whatever_they_hold(void **state)
{
	const struct live_event *e;
	char longest[256];
	struct live l;
	size_t at = 0;

	record(&l, "none");
	e = live__next(&l, &at, EV_SCENE);
	assert_non_null(e);
	assert_string_equal(live__text(e->hdr), "harbour");
	e = live__next(&l, &at, EV_LOCK_NAME);
	assert_non_null(e);
	assert_string_equal(live__text(e->hdr), "World::lock");
	assert_int_equal(((const struct ev_lock_name *)e->hdr)->addr, live__num(&l, "lock", 0, 0));
	next_text(&l, &at, "boss spawned");
	next_text(&l, &at, "\033[31mred\007\r\n");
	next_text(&l, &at, "bad \xff\xfe\xc3 utf-8");
	next_text(&l, &at, "");
	memset(longest, 'x', 255);
	longest[255] = 0;
	next_text(&l, &at, longest); /* of 300 */
	e = live__next(&l, &at, EV_MESSAGE);
	assert_non_null(e);
	assert_true(!strcmp(live__text(e->hdr), "<unreadable>") || !live__text(e->hdr)[0]);
	next_text(&l, &at, "say \"hi\", 'it\\s' {\"a\": 1}");
	next_text(&l, &at, "<unreadable>"); /* no end before the end of what is mapped */
	next_text(&l, &at, "<unreadable>");
	next_text(&l, &at, "wave 7");
	assert_null(live__next(&l, &at, EV_MESSAGE));
	live__free(&l);
}

static bool no_control(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 && *text != '\n' && *text != '\t')
			return false;
	return true;
}

static void test_what_is_printed_of_hostile_texts_moves_no_terminal(void **state)
{
	char out[256], *argv[] = {(char *)live__program(), "export", NULL, "-o", out, NULL}, *text;
	struct live l;
	int status;

	record(&l, "usdt:redframe:frame");
	assert_true(no_control(l.said));
	argv[2] = l.recording;
	snprintf(out, sizeof(out), "%s/x.txt", l.dir);
	free(live__output(&l, &status, argv));
	assert_int_equal(status, 0);
	text = live__read(&l, "x.txt");
	assert_non_null(strstr(text, "[31mred"));
	assert_true(no_control(text));
	free(text);
	live__free(&l);
}

static void test_the_markers_counter_is_1_while_recorded_and_0_afterwards(void **state)
{
	struct live l;

	live__init(&l);
	live__start(&l, "frame", NULL);
	l.truth = live__read(&l, "truth");
	assert_int_equal(live__semaphore(&l, 0), 0);
	live__record(&l, "--frame", "usdt:redframe:frame", NULL);
	assert_int_equal(live__semaphore(&l, 0), 1);
	kill(l.redframe, SIGTERM);
	live__end_redframe(&l);
	assert_int_equal(live__semaphore(&l, 0), 0);
	live__free(&l);
}

static bool is_utf8(const char *text)
{
	char out[4096];

	utf8__sanitize(out, sizeof(out), text, strlen(text));
	return !strcmp(out, text);
}

/* each line of the export, with what the game called things in it */
static void test_hostile_texts_are_sound_json(void **state)
{
	char out[256], *argv[] = {(char *)live__program(), "export", NULL, "-o", out, NULL}, *text, *line, *save;
	struct live l;
	int status, quotes = 0, codes = 0;

	record(&l, "usdt:redframe:frame");
	argv[2] = l.recording;
	snprintf(out, sizeof(out), "%s/x.json", l.dir);
	free(live__output(&l, &status, argv));
	assert_int_equal(status, 0);
	text = live__read(&l, "x.json");
	assert_true(no_control(text));
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *copy = strdup(line);
		struct json *j = json__parse(copy);

		if (!j || !is_utf8(line))
			fail_msg("not JSON: %s", line);
		quotes += !strcmp(json__text(j, "text"), "say \"hi\", 'it\\s' {\"a\": 1}");
		codes += !strcmp(json__text(j, "text"), "\033[31mred\007\r\n");
		json__free(j);
		free(copy);
	}
	assert_int_equal(quotes, 1);
	assert_int_equal(codes, 1);
	free(text);
	live__free(&l);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_redframe_markers_are_each_one_frame_with_number_and_stream),
	cmocka_unit_test(test_auto_takes_the_redframe_markers_and_counts_no_frame_twice),
	cmocka_unit_test(test_markers_of_another_provider_are_frames_with_a_number_and_no_stream),
	cmocka_unit_test(test_a_function_by_its_symbol_is_a_frame_at_each_call),
	cmocka_unit_test(test_a_function_by_its_file_offset_is_a_frame_at_each_call),
	cmocka_unit_test(test_texts_of_the_game_are_recorded_as_they_are_whatever_they_hold),
	cmocka_unit_test(test_what_is_printed_of_hostile_texts_moves_no_terminal),
	cmocka_unit_test(test_hostile_texts_are_sound_json),
	cmocka_unit_test(test_the_markers_counter_is_1_while_recorded_and_0_afterwards),
};
LIVE_MAIN(tests)

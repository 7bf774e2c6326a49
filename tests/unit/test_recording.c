/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <fcntl.h>
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

#include "events_desc.h"
#include "recording.h"
#include "recording_kinds.h"

static int memfd(void)
{
	int fd = memfd_create("recording", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static int from_bytes(const void *bytes, size_t n)
{
	int fd = memfd();

	assert_int_equal(write(fd, bytes, n), n);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

/* n faults at ts 1…n and one text record; the recording's bytes, to be freed */
static char *sample(u64 n, bool complete, size_t *size)
{
	struct recording_writer w;
	struct ev_fault fault = {.hdr = {.kind = EV_FAULT, .words = sizeof(fault) / 8}};
	struct ev_info info = {.hdr = {.kind = EV_INFO}};
	int fd = memfd(), copy = dup(fd);
	char *bytes;
	u64 i;

	assert_int_equal(recording__create(&w, fd, 42), 0);
	for (i = 1; i <= n; i++) {
		fault.hdr.ts = i;
		fault.addr = i * 4096;
		assert_int_equal(recording__append(&w, &fault, sizeof(fault)), 0);
	}
	assert_int_equal(recording__append_text(&w, &info, sizeof(info), "key=value", 9), 0);
	*size = w.bytes;
	assert_int_equal(recording__finish(&w, complete), 0);
	bytes = malloc(*size);
	assert_int_equal(pread(copy, bytes, *size, 0), *size);
	close(copy);
	return bytes;
}

static u64 count_records(struct recording *r)
{
	const struct ev_hdr *rec;
	u64 n = 0;
	int got;

	while ((got = recording__next(r, &rec)) == 1)
		n++;
	assert_int_equal(got, 0);
	return n;
}

static void test_what_is_written_is_read(void **state)
{
	const struct ev_hdr *rec;
	struct recording r;
	size_t size;
	char *bytes = sample(100000, true, &size), text[32];
	u64 i;

	assert_int_equal(recording__open_fd(&r, from_bytes(bytes, size)), 0);
	assert_int_equal(r.hdr.start, 42);
	for (i = 1; i <= 100000; i++) {
		assert_int_equal(recording__next(&r, &rec), 1);
		assert_int_equal(rec->ts, i);
		assert_int_equal(((const struct ev_fault *)rec)->addr, i * 4096);
	}
	assert_int_equal(recording__next(&r, &rec), 1);
	assert_int_equal(ev__text(rec, text, sizeof(text)), 9);
	assert_string_equal(text, "key=value");
	assert_int_equal(recording__next(&r, &rec), 0);
	assert_false(r.truncated);
	assert_int_equal(recording__rewind(&r), 0);
	assert_int_equal(count_records(&r), 100001);
	recording__close(&r);
	free(bytes);
}

static void test_without_a_clean_end_it_is_truncated_but_whole(void **state)
{
	struct recording r;
	size_t size;
	char *bytes = sample(10, false, &size);

	assert_int_equal(recording__open_fd(&r, from_bytes(bytes, size)), 0);
	assert_int_equal(count_records(&r), 11);
	assert_true(r.truncated);
	assert_int_equal(r.cut_bytes, 0);
	recording__close(&r);
	free(bytes);
}

static void test_cut_at_any_byte_it_reads_up_to_the_cut(void **state)
{
	struct recording r;
	size_t size, cut, header;
	char *bytes = sample(5, false, &size);
	int err;

	header = ((struct recording_hdr *)bytes)->header_bytes;
	for (cut = 0; cut < size; cut++) {
		err = recording__open_fd(&r, from_bytes(bytes, cut));
		if (cut < header) {
			assert_int_equal(err, cut == 0 ? -ENODATA : cut < 8 ? -EINVAL : -EBADMSG);
			continue;
		}
		assert_int_equal(err, 0);
		assert_int_equal(count_records(&r), min((cut - header) / sizeof(struct ev_fault), (size_t)5));
		assert_int_equal(r.cut_bytes, cut < header + 5 * sizeof(struct ev_fault)
						      ? (cut - header) % sizeof(struct ev_fault)
						      : cut - header - 5 * sizeof(struct ev_fault));
		recording__close(&r);
	}
	free(bytes);
}

static void test_a_cut_after_a_clean_end_shows_even_between_records(void **state)
{
	struct recording r;
	size_t size;
	char *bytes = sample(5, true, &size);
	size_t cut = ((struct recording_hdr *)bytes)->header_bytes + 3 * sizeof(struct ev_fault);

	assert_int_equal(recording__open_fd(&r, from_bytes(bytes, cut)), 0);
	assert_int_equal(count_records(&r), 3);
	assert_true(r.truncated);
	assert_int_equal(r.cut_bytes, 0);
	recording__close(&r);
	free(bytes);
}

static void assert_refused(char *bytes, size_t size, int err)
{
	struct recording r;

	assert_int_equal(recording__open_fd(&r, from_bytes(bytes, size)), err);
	assert_int_equal(r.fd, -1);
	assert_true(strlen(recording__strerror(err)) > 10);
}

static void test_strange_headers_are_refused(void **state)
{
	size_t size;
	char *bytes = sample(1, true, &size);
	struct recording_hdr *h = (struct recording_hdr *)bytes, good = *h;

	h->magic[0] = 'X';
	assert_refused(bytes, size, -EINVAL);
	*h = good;
	h->bom = 0x04030201;
	assert_refused(bytes, size, -EBADMSG);
	*h = good;
	h->major = RECORDING_MAJOR + 1;
	assert_refused(bytes, size, -EPROTO);
	*h = good;
	h->header_bytes = 0xfffffff8;
	assert_refused(bytes, size, -EBADMSG);
	*h = good;
	h->header_bytes = 8;
	assert_refused(bytes, size, -EBADMSG);
	*h = good;
	h->kinds = 0x7fffffff;
	assert_refused(bytes, size, -EBADMSG);
	*h = good;
	((struct kind_entry *)(h + 1))->bytes = 0xfffffff0;
	assert_refused(bytes, size, -EBADMSG);
	free(bytes);
}

static void test_a_newer_minor_is_read(void **state)
{
	struct recording r;
	size_t size;
	char *bytes = sample(3, true, &size);

	((struct recording_hdr *)bytes)->minor = 99;
	assert_int_equal(recording__open_fd(&r, from_bytes(bytes, size)), 0);
	assert_int_equal(count_records(&r), 4);
	recording__close(&r);
	free(bytes);
}

/* the entry of a kind in the header's list */
static struct kind_entry *entry_of(char *bytes, u8 kind)
{
	struct recording_hdr *h = (struct recording_hdr *)bytes;
	char *at = (char *)(h + 1);
	u32 i;

	for (i = 0; i < h->kinds; i++, at += ((struct kind_entry *)at)->bytes)
		if (((struct kind_entry *)at)->id == kind)
			return (struct kind_entry *)at;
	fail();
	return NULL;
}

static void test_unknown_kinds_are_skipped_and_counted(void **state)
{
	struct recording r;
	size_t size;
	char *bytes = sample(3, true, &size);
	struct ev_hdr *first = (struct ev_hdr *)(bytes + ((struct recording_hdr *)bytes)->header_bytes);

	first->kind = 250;
	assert_int_equal(recording__open_fd(&r, from_bytes(bytes, size)), 0);
	assert_int_equal(count_records(&r), 3);
	assert_int_equal(r.unknown, 1);
	recording__close(&r);
	free(bytes);
}

static void test_shorter_kinds_of_an_older_minor_are_widened_with_zeroes(void **state)
{
	const struct ev_hdr *rec;
	struct recording r;
	size_t size, at;
	char *bytes = sample(1, true, &size);
	struct ev_hdr *first;

	/* as if FAULT once had no ip and no flags */
	entry_of(bytes, EV_FAULT)->size = offsetof(struct ev_fault, ip);
	at = ((struct recording_hdr *)bytes)->header_bytes;
	first = (struct ev_hdr *)(bytes + at);
	first->words = offsetof(struct ev_fault, ip) / 8;
	memmove(bytes + at + offsetof(struct ev_fault, ip), bytes + at + sizeof(struct ev_fault),
		size - at - sizeof(struct ev_fault));
	size -= sizeof(struct ev_fault) - offsetof(struct ev_fault, ip);
	assert_int_equal(recording__open_fd(&r, from_bytes(bytes, size)), 0);
	assert_int_equal(recording__next(&r, &rec), 1);
	assert_int_equal(ev__bytes(rec), sizeof(struct ev_fault));
	assert_int_equal(((const struct ev_fault *)rec)->addr, 4096);
	assert_int_equal(((const struct ev_fault *)rec)->ip, 0);
	assert_int_equal(((const struct ev_fault *)rec)->flags, 0);
	assert_int_equal(recording__next(&r, &rec), 1);
	assert_int_equal(rec->kind, EV_INFO);
	recording__close(&r);
	free(bytes);
}

static void test_longer_kinds_of_a_newer_minor_lose_what_we_do_not_know(void **state)
{
	const struct ev_hdr *rec;
	struct recording r;
	size_t size;
	char *bytes = sample(0, true, &size), text[32];

	/* as if INFO now had a field of 8 bytes before its text: "key=valu" is that field */
	entry_of(bytes, EV_INFO)->size = sizeof(struct ev_info) + 8;
	assert_int_equal(recording__open_fd(&r, from_bytes(bytes, size)), 0);
	assert_int_equal(recording__next(&r, &rec), 1);
	ev__text(rec, text, sizeof(text));
	assert_string_equal(text, "e");
	recording__close(&r);
	free(bytes);
}

static void test_records_too_short_for_their_kind_are_skipped_and_counted(void **state)
{
	struct recording r;
	size_t size, at;
	char *bytes = sample(2, true, &size);
	struct ev_hdr *first;

	at = ((struct recording_hdr *)bytes)->header_bytes;
	first = (struct ev_hdr *)(bytes + at);
	first->words = 2; /* the rest must then be a record of its own */
	memset(first + 1, 0, sizeof(struct ev_fault) - sizeof(*first));
	first[1].words = (sizeof(struct ev_fault) - sizeof(*first)) / 8;
	first[1].kind = EV_FAULT;
	assert_int_equal(recording__open_fd(&r, from_bytes(bytes, size)), 0);
	assert_int_equal(count_records(&r), 2);
	assert_int_equal(r.malformed, 2);
	recording__close(&r);
	free(bytes);
}

static void test_a_record_of_no_words_ends_the_reading(void **state)
{
	struct recording r;
	size_t size;
	char *bytes = sample(3, true, &size);
	struct ev_fault *f = (struct ev_fault *)(bytes + ((struct recording_hdr *)bytes)->header_bytes);

	f[1].hdr.words = 0;
	assert_int_equal(recording__open_fd(&r, from_bytes(bytes, size)), 0);
	assert_int_equal(count_records(&r), 1);
	assert_true(r.truncated);
	assert_int_equal(r.cut_bytes, 2 * sizeof(struct ev_fault) + sizeof(struct ev_info) + 16);
	recording__close(&r);
	free(bytes);
}

static void test_a_text_longer_than_a_record_is_cut(void **state)
{
	struct recording_writer w;
	struct ev_info info = {.hdr = {.kind = EV_INFO}};
	const struct ev_hdr *rec;
	struct recording r;
	int fd = memfd(), copy = dup(fd);
	char text[5000], got[EV_MAX_BYTES];

	memset(text, 'x', sizeof(text));
	assert_int_equal(recording__create(&w, fd, 0), 0);
	assert_int_equal(recording__append_text(&w, &info, sizeof(info), text, sizeof(text)), 0);
	assert_int_equal(recording__append_text(&w, &info, sizeof(info), "", 0), 0);
	assert_int_equal(recording__finish(&w, true), 0);
	lseek(copy, 0, SEEK_SET);
	assert_int_equal(recording__open_fd(&r, copy), 0);
	assert_int_equal(recording__next(&r, &rec), 1);
	assert_int_equal(ev__text(rec, got, sizeof(got)), EV_MAX_BYTES - sizeof(info) - 1);
	assert_int_equal(recording__next(&r, &rec), 1);
	assert_int_equal(ev__text(rec, got, sizeof(got)), 0);
	recording__close(&r);
}

static void test_a_full_disk_stops_the_writer_and_is_remembered(void **state)
{
	struct recording_writer w;
	struct ev_fault fault = {.hdr = {.kind = EV_FAULT, .words = sizeof(fault) / 8}};
	int fd = open("/dev/full", O_WRONLY), i;

	assert_int_equal(recording__create(&w, fd, 0), -ENOSPC);
	for (i = 0; i < 10; i++)
		assert_int_equal(recording__append(&w, &fault, sizeof(fault)), -ENOSPC);
	assert_int_equal(recording__finish(&w, true), -ENOSPC);
}

static void test_the_size_limit_keeps_whole_records(void **state)
{
	struct recording_writer w;
	struct ev_fault fault = {.hdr = {.kind = EV_FAULT, .words = sizeof(fault) / 8}};
	struct recording r;
	int fd = memfd(), copy = dup(fd), err = 0, i;

	assert_int_equal(recording__create(&w, fd, 0), 0);
	w.limit = w.bytes + 7 * sizeof(fault) + 8;
	for (i = 0; i < 20 && !err; i++)
		err = recording__append(&w, &fault, sizeof(fault));
	assert_int_equal(err, -EFBIG);
	assert_int_equal(recording__finish(&w, true), -EFBIG);
	lseek(copy, 0, SEEK_SET);
	assert_int_equal(recording__open_fd(&r, copy), 0);
	assert_int_equal(count_records(&r), 7);
	assert_true(r.truncated);
	recording__close(&r);
}

static void test_what_is_no_file_is_refused_without_hanging(void **state)
{
	char dir[] = "/tmp/redframe-test-XXXXXX", fifo[64];
	struct recording r;

	assert_non_null(mkdtemp(dir));
	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(recording__open(&r, dir), -EISDIR);
	assert_int_equal(recording__open(&r, fifo), -EINVAL);
	assert_int_equal(recording__open(&r, "/nonexistent"), -ENOENT);
	assert_int_equal(recording__open(&r, "/dev/null"), -EINVAL);
	unlink(fifo);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_written_is_read),
		cmocka_unit_test(test_without_a_clean_end_it_is_truncated_but_whole),
		cmocka_unit_test(test_cut_at_any_byte_it_reads_up_to_the_cut),
		cmocka_unit_test(test_a_cut_after_a_clean_end_shows_even_between_records),
		cmocka_unit_test(test_strange_headers_are_refused),
		cmocka_unit_test(test_a_newer_minor_is_read),
		cmocka_unit_test(test_unknown_kinds_are_skipped_and_counted),
		cmocka_unit_test(test_shorter_kinds_of_an_older_minor_are_widened_with_zeroes),
		cmocka_unit_test(test_longer_kinds_of_a_newer_minor_lose_what_we_do_not_know),
		cmocka_unit_test(test_records_too_short_for_their_kind_are_skipped_and_counted),
		cmocka_unit_test(test_a_record_of_no_words_ends_the_reading),
		cmocka_unit_test(test_a_text_longer_than_a_record_is_cut),
		cmocka_unit_test(test_a_full_disk_stops_the_writer_and_is_remembered),
		cmocka_unit_test(test_the_size_limit_keeps_whole_records),
		cmocka_unit_test(test_what_is_no_file_is_refused_without_hanging),
	};

	return cmocka_run_group_tests_name("recording", tests, NULL, NULL);
}

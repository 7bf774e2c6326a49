// SPDX-License-Identifier: GPL-2.0-only
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "protobuf.h"

static u8 space[1 << 20];

static struct pb buffer(size_t cap)
{
	return (struct pb){.buf = space, .cap = cap};
}

static void expect_bytes(const struct pb *b, const char *bytes, size_t n)
{
	assert_false(b->full);
	assert_int_equal(b->len, n);
	assert_memory_equal(b->buf, bytes, n);
}

static void test_protobuf_writes_varints_of_every_length(void **state)
{
	struct pb b = buffer(100);

	(void)state;
	pb__uint(&b, 1, 0);
	pb__uint(&b, 1, 127);
	pb__uint(&b, 1, 300);
	pb__uint(&b, 16, ~0ULL);
	pb__int(&b, 1, -1);
	expect_bytes(&b,
		"\x08\x00\x08\x7f\x08\xac\x02\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
		"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
		30);
}

static void test_protobuf_writes_fixed_and_double_little_endian(void **state)
{
	struct pb b = buffer(100);

	(void)state;
	pb__fixed64(&b, 47, 0x0102030405060708ULL);
	pb__double(&b, 5, 1.0);
	expect_bytes(&b, "\xf9\x02\x08\x07\x06\x05\x04\x03\x02\x01\x29\x00\x00\x00\x00\x00\x00\xf0\x3f", 19);
}

static void test_protobuf_nested_lengths_are_shortest(void **state)
{
	static char text[20000];
	struct pb b = buffer(sizeof(space));
	size_t outer, inner;

	(void)state;
	for (size_t n = 0; n < sizeof(text); n = n * 3 + 1) {
		b.len = 0;
		outer = pb__begin(&b, 1);
		inner = pb__begin(&b, 2);
		pb__bytes(&b, 3, text, n);
		pb__end(&b, inner);
		pb__end(&b, outer);
		size_t body = n + (n < 128 ? 2 : n < 16384 ? 3 : 4);
		size_t mid = body + (body < 128 ? 2 : body < 16384 ? 3 : 4);
		assert_int_equal(b.len, mid + (mid < 128 ? 2 : mid < 16384 ? 3 : 4));
		assert_int_equal(b.buf[0], 1 << 3 | 2);
	}
}

static void test_protobuf_that_does_not_fit_is_full_and_stays_inside(void **state)
{
	(void)state;
	for (size_t cap = 0; cap < 40; cap++) {
		struct pb b = buffer(cap);
		size_t mark;

		space[cap] = 0xee;
		mark = pb__begin(&b, 1);
		pb__str(&b, 2, "0123456789");
		pb__fixed64(&b, 3, 1);
		pb__uint(&b, 4, ~0ULL);
		pb__end(&b, mark);
		assert_true(b.len <= cap);
		assert_int_equal(space[cap], 0xee);
		if (cap < 30)
			assert_true(b.full);
	}
}

static int scratch_file(void)
{
	char path[] = "/tmp/redframe-test-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	return fd;
}

static size_t read_back(int fd, u8 *buf, size_t size)
{
	ssize_t n = pread(fd, buf, size, 0);

	assert_true(n >= 0);
	return (size_t)n;
}

static void test_protobuf_sink_writes_each_message_once(void **state)
{
	struct pb_sink s;
	int fd = scratch_file();
	size_t n;

	(void)state;
	assert_int_equal(pb_sink__open(&s, fd, 1, 0), 0);
	for (int i = 0; i < 100000; i++) {
		pb__uint(pb_sink__begin(&s), 2, (u64)i % 128);
		assert_int_equal(pb_sink__end(&s), 0);
	}
	assert_int_equal(pb_sink__flush(&s), 0);
	n = read_back(fd, space, sizeof(space));
	assert_int_equal(n, 400000);
	assert_int_equal(pb_sink__written(&s), n);
	for (u32 i = 0; i < 100000; i++) {
		const u8 expected[] = {1 << 3 | 2, 2, 2 << 3, (u8)(i % 128)};

		assert_memory_equal(space + i * 4, expected, 4);
	}
	pb_sink__close(&s);
	close(fd);
}

static u64 varint(const u8 **p)
{
	u64 v = 0;

	for (int shift = 0;; shift += 7) {
		v |= (u64)(**p & 0x7f) << shift;
		if (!(*(*p)++ & 0x80))
			return v;
	}
}

static void test_protobuf_sink_deflates_whole_messages(void **state)
{
	static u8 file[1 << 16], plain[1 << 20];
	const u8 *p = file;
	uLongf total = 0, n;
	struct pb_sink s;
	int fd = scratch_file();
	size_t size;

	(void)state;
	assert_int_equal(pb_sink__open(&s, fd, 1, 50), 0);
	for (int i = 0; i < 100000; i++) {
		pb__uint(pb_sink__begin(&s), 2, 7);
		assert_int_equal(pb_sink__end(&s), 0);
	}
	assert_int_equal(pb_sink__flush(&s), 0);
	size = read_back(fd, file, sizeof(file));
	while (p < file + size) {
		size_t bytes;

		assert_int_equal(varint(&p), 1 << 3 | 2);
		varint(&p);
		assert_int_equal(varint(&p), 50 << 3 | 2);
		bytes = varint(&p);
		n = sizeof(plain) - total;
		assert_int_equal(uncompress(plain + total, &n, p, bytes), Z_OK);
		assert_int_equal(n % 4, 0); /* no message is torn in two */
		total += n;
		p += bytes;
	}
	assert_int_equal(total, 400000);
	pb_sink__close(&s);
	close(fd);
}

static void test_protobuf_sink_keeps_the_first_error(void **state)
{
	struct pb_sink s;
	int fd = open("/dev/full", O_WRONLY);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(pb_sink__open(&s, fd, 1, 50), 0);
	pb__uint(pb_sink__begin(&s), 2, 7);
	assert_int_equal(pb_sink__end(&s), 0);
	assert_int_equal(pb_sink__flush(&s), -ENOSPC);
	pb__uint(pb_sink__begin(&s), 2, 7);
	assert_int_equal(pb_sink__end(&s), -ENOSPC);
	assert_int_equal(pb_sink__flush(&s), -ENOSPC);
	assert_int_equal(pb_sink__written(&s), 0);
	pb_sink__close(&s);
	close(fd);
}

static void test_protobuf_sink_refuses_a_message_that_is_too_large(void **state)
{
	struct pb_sink s;
	int fd = scratch_file();

	(void)state;
	assert_int_equal(pb_sink__open(&s, fd, 1, 0), 0);
	pb__bytes(pb_sink__begin(&s), 2, space, sizeof(space));
	assert_int_equal(pb_sink__end(&s), -EMSGSIZE);
	pb_sink__close(&s);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_protobuf_writes_varints_of_every_length),
		cmocka_unit_test(test_protobuf_writes_fixed_and_double_little_endian),
		cmocka_unit_test(test_protobuf_nested_lengths_are_shortest),
		cmocka_unit_test(test_protobuf_that_does_not_fit_is_full_and_stays_inside),
		cmocka_unit_test(test_protobuf_sink_writes_each_message_once),
		cmocka_unit_test(test_protobuf_sink_deflates_whole_messages),
		cmocka_unit_test(test_protobuf_sink_keeps_the_first_error),
		cmocka_unit_test(test_protobuf_sink_refuses_a_message_that_is_too_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

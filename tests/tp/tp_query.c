// SPDX-License-Identifier: GPL-2.0-only
/*
 * tp_query TRACE [-Q SQL]…: loads a trace into the real Perfetto trace processor and prints each query's rows as CSV,
 * column names first. Exit 1: the trace or a query is bad. Exit 2: usage, or the library is not what is assumed here.
 *
 * The library has C++ entry points only. Four of them are called with the memory layouts of libc++ on a 64-bit
 * little-endian machine, which --self-test checks:
 *   string  bit 0 of the first byte set: capacity, size, pointer; clear: size * 2 in the first byte, then the bytes
 *   vector  first, one past the last, end of its storage
 *   status  one word: 1 is good, else a pointer to refcount, code, message
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARY "libtest_trace_processor.so"
#define CLASS   "_ZN4base4test22TestTraceProcessorImpl"
#define CLASS_K "_ZNK4base4test22TestTraceProcessorImpl"
#define STRING  "NSt3__112basic_stringIcNS2_11char_traitsIcEENS2_9allocatorIcEEEE"

enum { EXIT_BAD_QUERY = 1, EXIT_NO_LIBRARY = 2 };

struct cxx_string {
	uint64_t word[3];
};

struct cxx_vector {
	void *first, *last, *storage_end;
};

struct result {
	struct cxx_vector rows; /* of vectors of strings */
	struct cxx_string error;
};

struct view {
	const char *s;
	size_t n;
};

static struct {
	void (*construct)(void *self);
	uint64_t *(*parse)(uint64_t *status, void *self, const struct cxx_vector *bytes);
	struct result *(*query)(struct result *r, const void *self, const struct cxx_string *sql);
	void (*free_result)(struct result *r);
	uint64_t self[512]; /* larger than the object, whose size is not known */
} tp;

static struct view view_of(const struct cxx_string *s)
{
	const unsigned char *raw = (const unsigned char *)s;

	if (raw[0] & 1)
		return (struct view){(const char *)(uintptr_t)s->word[2], s->word[1]};
	return (struct view){(const char *)raw + 1, raw[0] >> 1};
}

static void print_cell(FILE *out, struct view v)
{
	int quote = memchr(v.s, ',', v.n) || memchr(v.s, '"', v.n) || memchr(v.s, '\n', v.n);

	if (quote)
		fputc('"', out);
	for (size_t i = 0; i < v.n; i++) {
		if (v.s[i] == '"')
			fputc('"', out);
		fputc(v.s[i], out);
	}
	if (quote)
		fputc('"', out);
}

static void print_rows(FILE *out, const struct cxx_vector *rows)
{
	for (const struct cxx_vector *row = rows->first; row != rows->last; row++) {
		for (const struct cxx_string *cell = row->first; cell != row->last; cell++) {
			if (cell != row->first)
				fputc(',', out);
			print_cell(out, view_of(cell));
		}
		fputc('\n', out);
	}
}

static int ask(const char *sql, FILE *out)
{
	struct cxx_string text = {{(strlen(sql) + 1) | 1, strlen(sql), (uintptr_t)sql}};
	struct result r = {0};
	struct view error;

	tp.query(&r, tp.self, &text);
	error = view_of(&r.error);
	if (error.n)
		fprintf(stderr, "tp_query: %.*s\n", (int)error.n, error.s);
	else
		print_rows(out, &r.rows);
	tp.free_result(&r);
	return error.n ? EXIT_BAD_QUERY : 0;
}

static int self_test(void)
{
	static const char expected[] = "a,b\n2,a text that is too long to be kept inline\n3,\"x,y\"\n";
	char *got = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&got, &n);
	int good;

	if (!f)
		return EXIT_NO_LIBRARY;
	good = !ask("select 1+1 as a, 'a text that is too long to be kept inline' as b union all select 3, 'x,y'", f);
	fclose(f);
	good = good && !strcmp(got, expected);
	fclose(stderr); /* the next one is meant to fail */
	good = good && ask("select no_such_column", stdout) == EXIT_BAD_QUERY;
	if (!good)
		printf("tp_query: self-test failed; got:\n%s", got);
	return good ? 0 : EXIT_NO_LIBRARY;
}

static int load_library(void)
{
	char path[PATH_MAX + sizeof(LIBRARY) + 1], exe[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	void *lib;

	if (n < 0)
		return EXIT_NO_LIBRARY;
	exe[n] = 0;
	snprintf(path, sizeof(path), "%s/" LIBRARY, dirname(exe));
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (lib) {
		*(void **)&tp.construct = dlsym(lib, CLASS "C1Ev");
		*(void **)&tp.parse = dlsym(lib, CLASS "10ParseTraceERKNSt3__16vectorIcNS2_9allocatorIcEEEE");
		*(void **)&tp.query = dlsym(lib, CLASS_K "12ExecuteQueryERK" STRING);
		*(void **)&tp.free_result = dlsym(lib, "_ZN4base4test18QueryResultOrErrorD1Ev");
	}
	if (!tp.construct || !tp.parse || !tp.query || !tp.free_result) {
		fprintf(stderr, "tp_query: %s\n", lib ? "the library lacks a function" : dlerror());
		return EXIT_NO_LIBRARY;
	}
	tp.construct(tp.self);
	return 0;
}

static int load_trace(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct cxx_vector bytes = {0};
	uint64_t status = 0;
	struct view why = {"", 0};
	struct stat st;

	if (fd < 0 || fstat(fd, &st)) {
		perror(path);
		return EXIT_NO_LIBRARY;
	}
	if (st.st_size) {
		bytes.first = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (bytes.first == MAP_FAILED) {
			perror(path);
			return EXIT_NO_LIBRARY;
		}
		bytes.last = bytes.storage_end = (char *)bytes.first + st.st_size;
	}
	close(fd);
	tp.parse(&status, tp.self, &bytes);
	if (status == 1)
		return 0;
	if (status && !(status & 1))
		why = view_of((const struct cxx_string *)(uintptr_t)(status + 8));
	fprintf(stderr, "tp_query: %s does not load: %.*s\n", path, (int)why.n, why.s);
	return EXIT_BAD_QUERY;
}

int main(int argc, char **argv)
{
	int err, bad = 0;

	if (argc < 2) {
		fprintf(stderr, "usage: tp_query TRACE [-Q SQL]... | --self-test\n");
		return EXIT_NO_LIBRARY;
	}
	err = load_library();
	if (!err)
		err = !strcmp(argv[1], "--self-test") ? self_test() : load_trace(argv[1]);
	for (int i = 2; !err && i < argc; i += 2) {
		if (strcmp(argv[i], "-Q") || i + 1 == argc) {
			fprintf(stderr, "tp_query: not understood: %s\n", argv[i]);
			err = EXIT_NO_LIBRARY;
			break;
		}
		bad |= ask(argv[i + 1], stdout);
	}
	fflush(stdout);
	_exit(err ? err : bad); /* its destructors take seconds */
}

/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The whole path from a program's file to the names in a recording, as it is gone when recording ends. Include
 * build_fixture.h before it.
 */
#ifndef REDFRAME_NAMING_FIXTURE_H
#define REDFRAME_NAMING_FIXTURE_H

#include <sys/mman.h>

#include "apart.h"
#include "debug_server.h"
#include "events_desc.h"
#include "maps.h"
#include "modules.h"
#include "recording.h"
#include "symbolize.h"

#define BIAS       0x7f0000000000ULL
#define TEXT       0x10000ULL /* where the assembler programs' .text is linked to */
#define AGAIN      (1ULL << 32)
#define AT(offset) (BIAS + TEXT + (offset))

/* ---- naming one file, as when recording ends ---- */

struct naming {
	struct image image[2]; /* the file twice, 4 GiB apart */
	struct images images;
	struct recording_writer w;
	struct {
		struct symbolize_result found;
		char why[256]; /* there may be more names; "" */
	} out;
	struct recording r;
	char how[64]; /* it failed; "" */
};

static inline void name_code(void *arg)
{
	struct naming *n = arg;
	Dwfl *dwfl = modules__open(&n->images);

	if (!dwfl || modules__write(&n->w, dwfl, 1) || symbolize__write(&n->w, dwfl, NULL, NULL, 1, &n->out.found))
		_exit(3);
	if (!debug_server__gave_up(n->out.why, sizeof(n->out.why)))
		n->out.why[0] = 0;
	dwfl_end(dwfl);
}

static inline void put_calls(struct recording_writer *w, const u64 *addrs, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		struct ev_call e = {.hdr = {.kind = EV_CALL, .words = sizeof(e) / 8}, .id = i + 1, .addr = addrs[i]};

		assert_int_equal(recording__append(w, &e, sizeof(e)), 0);
	}
}

/* The recording is whole whatever happened. */
static inline void name_file(struct naming *n, const char *name, const u64 *addrs, u32 n_addrs)
{
	struct apart a = {
		.work = name_code, .arg = n, .result = &n->out, .result_bytes = sizeof(n->out), .seconds = 20};
	int fd = memfd_create("recording", MFD_CLOEXEC), again = dup(fd), err;

	*n = (struct naming){};
	for (int i = 0; i < 2; i++)
		n->image[i] = (struct image){.start = BIAS + i * AGAIN,
			.path = (char *)"game",
			.fd = open(fixture__path(name), O_RDONLY | O_CLOEXEC)};
	n->images = (struct images){.v = n->image, .n = 2};
	assert_true(fd >= 0 && again >= 0 && n->image[0].fd >= 0);
	assert_int_equal(recording__create(&n->w, fd, 1), 0);
	put_calls(&n->w, addrs, n_addrs);
	err = apart__run(&a, &n->w);
	assert_true(!err || err == -EPROTO);
	snprintf(n->how, sizeof(n->how), "%s", err ? a.how : "");
	assert_int_equal(recording__finish(&n->w, true), 0);
	close(n->image[0].fd);
	close(n->image[1].fd);
	lseek(again, 0, SEEK_SET);
	assert_int_equal(recording__open_fd(&n->r, again), 0);
}

/* the SYMBOL that has the address, and the innermost SOURCE of it as "function file:line"; "" where there is none */
static inline void names_of(struct naming *n, u64 addr, char *symbol, char *source, size_t size)
{
	char text[EV_MAX_BYTES];
	const struct ev_hdr *h;

	*symbol = *source = 0;
	assert_int_equal(recording__rewind(&n->r), 0);
	while (recording__next(&n->r, &h) == 1) {
		const struct ev_symbol *sym = (const struct ev_symbol *)h;
		const struct ev_source *src = (const struct ev_source *)h;

		ev__text(h, text, sizeof(text));
		if (h->kind == EV_SYMBOL && addr - sym->addr < sym->size)
			snprintf(symbol, size, "%.*s", (int)size - 1, text);
		if (h->kind == EV_SOURCE && src->addr == addr && src->level == 0)
			snprintf(source, size, "%s %s:%u", text, path__base(text + strlen(text) + 1), src->line);
	}
	assert_false(n->r.truncated || n->r.malformed || n->r.unknown || n->r.cut_bytes);
}

static inline void expect_symbol(struct naming *n, u64 addr, const char *want)
{
	char symbol[512], source[512];

	names_of(n, addr, symbol, source, sizeof(symbol));
	assert_string_equal(symbol, want);
}

static inline void run(const char *script)
{
	char *cmd = NULL;

	assert_true(asprintf(&cmd, "cd '%s' && { %s; } >log 2>&1", fixture_dir, script) > 0);
	if (system(cmd))
		fail_msg("%s failed", cmd);
	free(cmd);
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only
 *
 * libFuzzer: any records, one after the other, explained. Frames must come out whole: their parts sum to them, in the
 * order of time without a gap; and every text and JSON is made.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "events_desc.h"
#include "explain.h"
#include "explain_view.h"
#include "model.h"
#include "recording.h"
#include "replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct verdict *v, const struct model *m, void *arg)
{
	u64 sum = 0, at = v->frame.start;
	struct str s = {};

	for (u32 i = 0; i < v->n_parts; i++)
		sum += v->parts[i].ns;
	for (u32 i = 0; i < v->n_stretches; i++) {
		if (v->stretches[i].start != at || v->stretches[i].part >= v->n_parts)
			abort();
		at = v->stretches[i].end;
	}
	if (!v->n_parts && v->frame.end - v->frame.start > 1ULL << 55)
		return; /* longer than a year: told, not explained */
	if (sum != v->frame.end - v->frame.start || at != v->frame.end)
		abort();
	text__frame(&s, v, m, true);
	text__timeline(&s, v, m, false);
	json__frame(&s, v, m);
	str__free(&s);
}

/* Two bytes choose kind, thread and time step of a record; its fields are the bytes that follow. */
static int make_recording(const uint8_t *data, size_t size)
{
	struct recording_writer w = {};
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	u64 rec[32], ts = 1000;

	if (recording__create(&w, dup(fd), 0))
		abort();
	while (size >= 3) {
		const struct ev_desc *d = ev__desc(data[0] % 96);
		struct ev_hdr *h = (struct ev_hdr *)rec;
		size_t n = d ? min(size - 3, (size_t)d->size - sizeof(*h)) : 0;

		ts += (u64)(data[1] >> 4) * data[2] * 1000;
		ts += data[1] >> 4 == 15 ? (u64)data[2] << (data[2] & 63) : 0; /* decades, and over the end of time */
		if (d && d->size <= sizeof(rec)) {
			memset(rec, 0, sizeof(rec));
			*h = (struct ev_hdr){ts, data[1] & 7, data[2] & 3, data[0] % 96, d->size / 8};
			memcpy(h + 1, data + 3, n);
			recording__append(&w, rec, d->size);
		}
		data += 3 + n;
		size -= 3 + n;
	}
	if (recording__finish(&w, true) || lseek(fd, 0, SEEK_SET))
		abort();
	return fd;
}

static void report(struct explain *x, struct model *m, struct recording *r)
{
	const struct report *rep = explain__report(x, m);
	struct str s = {};

	text__summary(&s, rep, m, r, false);
	text__patterns(&s, rep);
	json__head(&s, rep, m, r);
	json__tail(&s, rep);
	str__free(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct explain_options o = {.from = BUDGET_OPTION, .budget_ns = 1, .every_frame = true};
	struct replay replay = {.verdict = check};
	struct recording r;
	struct model *m = model__new();
	struct explain *x = explain__new(&o);

	if (!m || !x || recording__open_fd(&r, make_recording(data, size)) || replay__prepare(&r, m) ||
		replay__run(&r, m, x, NULL, 0, &replay))
		abort();
	report(x, m, &r);
	explain__free(x);
	model__free(m);
	recording__close(&r);
	return 0;
}

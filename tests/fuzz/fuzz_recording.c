/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Any bytes as a recording: reader, merge, model, dump and words must take them.
 *
 * Input that does not begin like a recording gets a good header before it, so that most time is spent on records.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "events_desc.h"
#include "merge.h"
#include "model.h"
#include "recording.h"
#include "recording_kinds.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(struct model *m, const struct ev_hdr *rec)
{
	char line[9000], what[600];
	const struct mapping *map;
	u64 classes[CLASS_COUNT] = {0};

	if (model__event(m, rec))
		abort();
	if (ev__dump(rec, line, sizeof(line)) >= sizeof(line) ||
		strlen(model__what(m, rec, what, sizeof(what))) >= sizeof(what))
		abort();
	if (model__ended_frame(m) && model__ended_frame(m)->end <= model__ended_frame(m)->start)
		abort();
	map = model__mapping(m, rec->ts);
	if (map && map->end <= map->start)
		abort();
	model__path_arg(m, rec);
	model__symbol(m, rec->ts);
	model__host_tid(m, rec->tid);
	model__lost_in(m, rec->ts, rec->ts + 1000, classes);
	ev__count(rec);
	if (ev__dur(rec) > rec->ts)
		abort();
}

static void replay(int fd)
{
	struct merge *merge = merge__new(1000, 4096);
	struct model *m = model__new();
	const struct ev_hdr *rec;
	struct recording r;
	int got;

	if (!merge || !m)
		abort();
	if (!recording__open_fd(&r, fd)) {
		while ((got = recording__next(&r, &rec)) == 1) {
			if (merge__push(merge, rec))
				abort();
			while ((rec = merge__pop(merge, false)))
				use(m, rec);
		}
		if (got < 0)
			abort();
		while ((rec = merge__pop(merge, true)))
			use(m, rec);
		while (model__finish(m))
			;
		recording__close(&r);
	}
	model__free(m);
	merge__free(merge);
}

/* a good header, then the bytes */
static void write_mended(int fd, const uint8_t *data, size_t size)
{
	static struct str list;
	static u32 kinds;
	struct recording_hdr hdr = {.magic = RECORDING_MAGIC, .bom = RECORDING_BOM, .major = RECORDING_MAJOR};

	if (!kinds)
		kinds = kinds__encode(&list);
	hdr.kinds = kinds;
	hdr.header_bytes = (u32)(sizeof(hdr) + list.len);
	if (write(fd, &hdr, sizeof(hdr)) < 0 || write(fd, list.s, list.len) < 0 || (size && write(fd, data, size) < 0))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0)
		abort();
	if (size < 3 || memcmp(data, "RED", 3))
		write_mended(fd, data, size);
	else if (write(fd, data, size) < 0)
		abort();
	lseek(fd, 0, SEEK_SET);
	replay(fd);
	return 0;
}

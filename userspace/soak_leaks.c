// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is suspected to leak, and the code that allocates most. The stream has no names of code: so the sites go into a
 * recording of their own, in memory, which is named as a kept one is, by a child, and read back.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "apart.h"
#include "log.h"
#include "model.h"
#include "soak_run.h"

#define SITES_NAMED   64u
#define NAMES_SECONDS 30

struct naming {
	struct soak *k;
	struct recording_writer w;
	u64 ts;
	int err;
};

static int put_text(void *arg, const void *fixed, size_t bytes, const char *text, size_t len)
{
	return recording__append_text(&((struct naming *)arg)->w, fixed, bytes, text, len);
}

static int write_sites(struct naming *n)
{
	struct growth_site sites[SITES_NAMED];
	u32 count = growth__sites(&n->k->growth, sites, SITES_NAMED);
	int err = model__tell(engine__model(n->k->engine), n->ts, put_text, n);

	for (u32 i = 0; i < count && !err; i++) {
		struct ev_alloc_sample e = {.hdr = {.ts = n->ts, .kind = EV_ALLOC_SAMPLE, .words = sizeof(e) / 8},
			.caller = sites[i].caller};

		err = recording__append(&n->w, &e, sizeof(e));
	}
	return err;
}

static void name_sites(void *arg)
{
	struct naming *n = arg;
	struct stacks none = {.fd = -1};

	n->err = soak__name_segment(n->k, &n->w, &none);
}

static int read_names(struct model *m, int fd)
{
	const struct ev_hdr *rec;
	struct recording r;
	int got = 0, err = recording__open_fd(&r, fd);

	if (err)
		return err;
	while (!err && (got = recording__next(&r, &rec)) == 1)
		err = model__event(m, rec);
	recording__close(&r);
	return err ?: got;
}

/* The file's descriptor, at its beginning, or -errno. *named: the reason why it has no names, or 0. */
static int make_named(struct soak *k, int *named)
{
	struct naming n = {.k = k, .ts = engine__stats(k->engine)->last};
	struct apart a = {.work = name_sites,
		.arg = &n,
		.result = &n.err,
		.result_bytes = sizeof(n.err),
		.seconds = NAMES_SECONDS};
	int fd = memfd_create("leaks", MFD_CLOEXEC), again = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3), err;

	if (again < 0)
		return -errno;
	err = recording__create(&n.w, fd, n.ts) ?: write_sites(&n);
	*named = err ?: apart__run(&a, &n.w) ?: n.err;
	recording__finish(&n.w, !err);
	if (!err && lseek(again, 0, SEEK_SET) == 0)
		return again;
	close(again);
	return err ?: -EIO;
}

void soak__suspect_leaks(struct soak *k)
{
	struct model *m = growth__is_suspect(&k->growth) ? model__new() : NULL;
	int fd, named = 0, err;
	char text[600];

	if (!m)
		return;
	fd = make_named(k, &named);
	err = fd < 0 ? fd : read_names(m, fd);
	if (err || named)
		log_debug("what leaks stays without names: %s", errstr(err ?: named));
	for (u32 i = 0; growth__suspect(&k->growth, m, i, text, sizeof(text)); i++)
		soak__note(k, "%s", text);
	model__free(m);
}

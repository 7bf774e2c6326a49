// SPDX-License-Identifier: GPL-2.0-only
/* scrub IN OUT PREFIX: a recording to give away. What it says of other processes than the game goes (their names,
 * command lines and control groups; when they ran stays), and PREFIX, the folder it was made in, is cut from every
 * path. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "events_desc.h"
#include "recording.h"

static u32 game;
static u32 family[16]; /* tgids of the game and of what it forked */
static int n_family;

static bool of_family(u32 tgid)
{
	for (int i = 0; i < n_family; i++)
		if (family[i] == tgid)
			return true;
	return false;
}

static void find_game(struct recording *r)
{
	const struct ev_hdr *h;
	char text[EV_MAX_BYTES];

	while (!game && recording__next(r, &h) > 0)
		if (h->kind == EV_INFO && ev__text(h, text, sizeof(text)) && !strncmp(text, "game.tgid=", 10))
			game = family[n_family++] = strtoul(text + 10, NULL, 10);
}

static bool is_private(const struct ev_hdr *h)
{
	if (h->kind == EV_PROCESS || h->kind == EV_CGROUP)
		return !of_family(h->tid);
	return h->kind == EV_THREAD && !of_family(((const struct ev_thread *)h)->tgid);
}

/* the name in a record about another process's thread; NULL where there is none */
static char *private_comm(struct ev_hdr *h)
{
	struct ev_fork *fork = (struct ev_fork *)h;
	struct ev_exec *exec = (struct ev_exec *)h;
	struct ev_rename *rename = (struct ev_rename *)h;

	if (h->kind == EV_FORK && fork->parent == game && !of_family(fork->tgid) && n_family < (int)ARRAY_SIZE(family))
		family[n_family++] = fork->tgid;
	if (h->kind == EV_FORK)
		return of_family(fork->tgid) ? NULL : fork->comm;
	if (h->kind == EV_EXEC)
		return of_family(exec->tgid) ? NULL : exec->comm;
	return h->kind == EV_RENAME && !of_family(rename->tgid) ? rename->comm : NULL;
}

/* Cuts every PREFIX from the n bytes; returns the new length. */
static size_t cut(char *text, size_t n, const char *prefix)
{
	size_t k = strlen(prefix);
	char *at;

	while ((at = memmem(text, n, prefix, k))) {
		memmove(at, at + k, n - (size_t)(at - text) - k);
		n -= k;
	}
	return n;
}

static int copy(struct recording_writer *w, const struct ev_hdr *h, const char *prefix)
{
	const struct ev_desc *d = ev__desc(h->kind);
	u64 room[256];
	struct ev_hdr *rec = (struct ev_hdr *)room;
	char text[EV_MAX_BYTES], *comm;

	memcpy(room, h, ev__bytes(h));
	comm = private_comm(rec);
	if (comm)
		strncpy(comm, "other", 16);
	if (!d || !d->has_text || h->kind == EV_PATH)
		return recording__append(w, room, ev__bytes(h));
	return recording__append_text(w, room, d->size, text, cut(text, ev__text(h, text, sizeof(text)), prefix));
}

int main(int argc, char **argv)
{
	const struct ev_hdr *h;
	struct recording_writer w;
	struct recording r;
	int err, fd;

	if (argc != 4) {
		fprintf(stderr, "usage: scrub IN OUT PREFIX\n");
		return 1;
	}
	fd = open(argv[2], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	err = fd < 0 ? -errno : recording__open(&r, argv[1]);
	if (!err)
		err = recording__create(&w, fd, r.hdr.start);
	if (!err) {
		find_game(&r);
		err = recording__rewind(&r);
	}
	while (!err && recording__next(&r, &h) > 0)
		err = is_private(h) ? 0 : copy(&w, h, argv[3]);
	if (!err)
		err = recording__finish(&w, true);
	if (err)
		fprintf(stderr, "scrub: %s\n", strerror(-err));
	return !!err;
}

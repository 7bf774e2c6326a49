// SPDX-License-Identifier: GPL-2.0-only
/* symbolize: names for a recording that has none, from unstripped files that are found by build-id. */
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apart.h"
#include "debug_server.h"
#include "drain.h"
#include "events_desc.h"
#include "explain_verb.h"
#include "log.h"
#include "maps.h"
#include "options.h"
#include "output.h"
#include "recording.h"
#include "symbolize.h"
#include "symbolize_verb.h"

#define IMAGES_MAX 4096

struct symbolize_options {
	const char *path, *output;
	bool force, quiet;
};

#define ROW(name, letter, type, field, value, help)                                                                    \
	{                                                                                                              \
		name, letter, type, offsetof(struct symbolize_options, field), value, help                             \
	}
static const struct option_row rows[] = {
	ROW("path", 0, OPT_TEXT, path, "DIR", "where the unstripped files are; folders in it are searched too"),
	ROW("output", 'o', OPT_TEXT, output, "FILE", "the recording with names"),
	ROW("force", 'f', OPT_FLAG, force, NULL, "overwrite FILE"),
	ROW("quiet", 'q', OPT_FLAG, quiet, NULL, "only errors"),
	{},
};

static const struct verb symbolize = {.name = "symbolize",
	.synopsis = "RECORDING --path DIR -o FILE",
	.about = "Writes the recording anew with names of functions and lines, from files with the recorded build-ids.",
	.rows = rows,
	.examples = "  redframe symbolize run.redframe --path ~/builds/1234/unstripped -o named.redframe\n"};

/* ---- the images of the recording ---- */

struct wanted {
	u64 bias;
	char id[129]; /* build-id in hex */
	char *file;   /* found; NULL */
};

struct wants {
	struct wanted v[IMAGES_MAX];
	u32 n;
};

/* nftw hands no argument on */
static struct wants *wants;

static void want(const struct ev_hdr *h)
{
	struct wanted *w = &wants->v[wants->n];
	char text[EV_MAX_BYTES];

	if (h->kind != EV_IMAGE || wants->n == IMAGES_MAX)
		return;
	ev__text(h, text, sizeof(text));
	if (!*text || strlen(text) >= sizeof(w->id))
		return;
	strcpy(w->id, text);
	w->bias = ((const struct ev_image *)h)->bias;
	wants->n++;
}

/* "" where the file is no ELF file, or has none */
static void build_id_of(const char *path, char *hex, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	Elf *elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ, NULL);
	const unsigned char *id = NULL;
	ssize_t n = elf && elf_kind(elf) == ELF_K_ELF ? dwelf_elf_gnu_build_id(elf, (const void **)&id) : 0;

	hex[0] = 0;
	for (ssize_t i = 0; i < n && (size_t)(2 * i + 3) <= size; i++)
		snprintf(hex + 2 * i, 3, "%02x", id[i]);
	elf_end(elf);
	if (fd >= 0)
		close(fd);
}

/* Of several files with one build-id the largest: it has the debug information. */
static bool larger(const char *path, const char *than)
{
	struct stat a, b;

	return !than || (!stat(path, &a) && !stat(than, &b) && a.st_size > b.st_size);
}

static int look_at(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	char id[129];

	if (type != FTW_F || !S_ISREG(st->st_mode))
		return 0;
	build_id_of(path, id, sizeof(id));
	for (u32 i = 0; *id && i < wants->n; i++) {
		struct wanted *w = &wants->v[i];

		if (strcmp(w->id, id) || !larger(path, w->file))
			continue;
		free(w->file);
		w->file = strdup(path);
	}
	return 0;
}

/* ---- a recording with names ---- */

static int copy(struct recording *r, struct recording_writer *w)
{
	const struct ev_hdr *h;
	int got, err = 0;

	while (!err && (got = recording__next(r, &h)) == 1) {
		want(h);
		err = recording__append(w, h, ev__bytes(h));
	}
	return err ? err : got;
}

static u32 report_found(Dwfl *dwfl)
{
	u32 n = 0;

	dwfl_report_begin(dwfl);
	for (u32 i = 0; i < wants->n; i++) {
		const struct wanted *w = &wants->v[i];

		if (w->file && dwfl_report_elf(dwfl, path__base(w->file), w->file, -1, w->bias, true))
			n++;
	}
	dwfl_report_end(dwfl, NULL, NULL);
	return n;
}

struct names {
	struct recording_writer *w;
	u32 images;
	int err;
	struct symbolize_result found;
};

static void add_names(void *arg)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_build_id_find_elf,
		.find_debuginfo = debug_server__find,
	};
	struct names *n = arg;
	Dwfl *dwfl = dwfl_begin(&callbacks);
	char why[256];

	n->err = -ENOMEM;
	if (!dwfl)
		return;
	n->images = report_found(dwfl);
	n->err = symbolize__write(n->w, dwfl, NULL, NULL, clock_boot_ns(), &n->found);
	if (debug_server__gave_up(why, sizeof(why)))
		log_warn("%s", why);
	dwfl_end(dwfl);
}

static int run(struct recording *r, const struct symbolize_options *o, int fd)
{
	struct recording_writer w;
	struct names n = {.w = &w};
	struct apart a = {.work = add_names, .arg = &n, .result = &n, .result_bytes = sizeof(n)};
	int err = recording__create(&w, fd, r->hdr.start), end;

	if (!err)
		err = copy(r, &w);
	elf_version(EV_CURRENT);
	if (!err && nftw(o->path, look_at, 16, FTW_PHYS))
		err = -errno;
	if (!err)
		err = apart__run(&a, &w) ?: n.err;
	if (err == -EPROTO)
		log_err("%s: a file in it cannot be read: %s", o->path, a.how);
	end = recording__finish(&w, !err && !r->truncated);
	if (!err && !end)
		log_info("%u of %u images found in %s: %u of %u addresses have names, %u a line", n.images, wants->n,
			o->path, n.found.named, n.found.addresses, n.found.lines);
	return err ? err : end;
}

static int write_named(const char *recording, const struct symbolize_options *o)
{
	struct recording r;
	int err = recording__open(&r, recording), fd;

	if (err) {
		log_err("%s: %s", recording, recording__strerror(err));
		return EXIT_USAGE;
	}
	fd = output__apart(o->output, r.fd) ?: output__open(o->output, o->force);
	wants = fd < 0 ? NULL : calloc(1, sizeof(*wants));
	err = fd < 0 ? fd : wants ? run(&r, o, fd) : -ENOMEM;
	if (r.unknown)
		log_warn("%llu records of kinds that this redframe does not know were left out",
			(unsigned long long)r.unknown);
	recording__close(&r);
	for (u32 i = 0; wants && i < wants->n; i++)
		free(wants->v[i].file);
	free(wants);
	if (fd < 0)
		return EXIT_USAGE;
	if (!err)
		return EXIT_OK;
	log_err("symbolize %s: %s", recording, errstr(err));
	unlink(o->output);
	return EXIT_NOT_MEASURED;
}

int verb__symbolize(int argc, char **argv)
{
	struct symbolize_options o = {};
	int n, command, err = options__parse(&symbolize, argc, argv, &o, &n, &command);

	if (err)
		return err > 0 ? EXIT_OK : EXIT_USAGE;
	if (o.quiet)
		log_level = LOG_QUIET;
	if (n == 1 && o.path && o.output)
		return write_named(argv[0], &o);
	log_err("symbolize: a recording, --path DIR and -o FILE are needed");
	return EXIT_USAGE;
}

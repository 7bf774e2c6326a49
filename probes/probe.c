// SPDX-License-Identifier: GPL-2.0-only
/*
 * redframe probe: what can be hooked in a process or a file, and what record would choose.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "allocators.h"
#include "frame_source.h"
#include "log.h"
#include "options.h"
#include "probe.h"
#include "process.h"
#include "strings.h"
#include "usdt.h"

#define WHY         2048
#define USDT_LISTED 200 /* probes named; more are counted */

/* ---- text that came from the game ---- */

static void put(const char *text)
{
	size_t n = strlen(text), size = 4 * n + 1;
	char *safe = malloc(size);

	if (safe) {
		term__escape(safe, size, text, n);
		fputs(safe, stdout);
	}
	free(safe);
}

static void row(const char *label, const char *text)
{
	printf("%-13s", label);
	put(text);
	putchar('\n');
}

/* ---- sites ---- */

static void print_sites(const struct site_list *l, const char *label)
{
	for (int i = 0; i < l->n; i++) {
		const struct site *s = &l->sites[i];

		printf("%-13s", i ? "" : label);
		put(s->label);
		printf("  (%s)\n", s->stepped ? "single-stepped: about 14 µs a call" : "emulated: about 0.5 µs a call");
	}
}

static void print_allocators(struct objects *o)
{
	struct site_list all = {0};
	char why[WHY] = "", uncovered[WHY + 16];
	int n = allocators__find(&all, o, true, true, why, sizeof(why));

	snprintf(uncovered, sizeof(uncovered), "not covered: %s", why);
	print_sites(&all, "allocator");
	if (n == 0 && !o->tgid)
		row("allocator", "none in this file");
	else if (n <= 0)
		row("allocator", uncovered);
	else if (why[0])
		row("", why);
	sites__free(&all);
}

static void print_frame_source(struct objects *o)
{
	struct frame_choice c;
	char why[WHY] = "";
	int err = frame_source__auto(&c, o, NULL, why, sizeof(why));

	if (err) {
		row("frames", strerror(-err));
	} else if (c.chosen < 0) {
		row("frames", "no source");
	} else {
		row("frames", c.v[c.chosen].source_text);
		print_sites(&c.v[c.chosen].list, "");
	}
	if (c.reason[0])
		row("", c.reason);
	if (why[0])
		row("", why);
	for (int i = 0; i < c.n; i++)
		if (i != c.chosen)
			row(c.chosen < 0 || c.tried ? "  not taken" : "  also there", c.v[i].source_text);
	frame_choice__free(&c);
}

/* ---- USDT ---- */

struct usdt_row {
	char *provider, *name, *args;
	u32 sites;
	bool semaphore;
};

struct usdt_rows {
	struct usdt_row *v;
	int n, cap;
	u64 more; /* sites of probes beyond USDT_LISTED */
};

static bool collect_usdt(const struct usdt_note *note, void *arg)
{
	struct usdt_rows *r = arg;

	for (int i = 0; i < r->n; i++)
		if (!strcmp(r->v[i].provider, note->provider) && !strcmp(r->v[i].name, note->name)) {
			r->v[i].sites++;
			return true;
		}
	if (r->n == USDT_LISTED) {
		r->more++;
		return true;
	}
	r->v[r->n++] = (struct usdt_row){
		strdup(note->provider), strdup(note->name), strdup(note->args), 1, note->semaphore != 0};
	return true;
}

static void print_usdt_row(const struct usdt_row *r, const char *base, bool first)
{
	if (!r->provider || !r->name || !r->args)
		return;
	printf("%-13s", first ? "usdt" : "");
	put(r->provider);
	putchar(':');
	put(r->name);
	printf("  %u site%s%s in ", r->sites, r->sites == 1 ? "" : "s", r->semaphore ? " with a semaphore" : "");
	put(base);
	if (r->args[0]) {
		fputs("  arguments ", stdout);
		put(r->args);
	}
	putchar('\n');
}

static void print_usdt_of(struct objects *o, struct object *obj, bool *first)
{
	struct usdt_row table[USDT_LISTED];
	struct usdt_rows r = {.v = table};
	int bad;

	if (object__open(o, obj))
		return;
	bad = usdt__each(&obj->elf, collect_usdt, &r);
	for (int i = 0; i < r.n; i++) {
		print_usdt_row(&r.v[i], obj->base, *first);
		*first = false;
		free(r.v[i].provider);
		free(r.v[i].name);
		free(r.v[i].args);
	}
	if (r.more)
		printf("%-13sand %" PRIu64 " sites of other probes\n", "", r.more);
	if (bad > 0) {
		printf("%-13s%d malformed notes in ", *first ? "usdt" : "", bad);
		put(obj->base);
		putchar('\n');
		*first = false;
	}
}

static void print_usdt(struct objects *o)
{
	bool first = true;

	for (int i = 0; i < o->n; i++)
		print_usdt_of(o, &o->v[i], &first);
	if (first)
		row("usdt", "none");
}

/* ---- a process, a file ---- */

static int probe_process(struct target *t)
{
	struct objects o;
	char text[1024];
	int err = objects__read(&o, t->tgid), unread = 0;

	if (err) {
		log_err("/proc/%u/maps: %s", t->tgid, strerror(-err));
		return err == -ESRCH ? EXIT_NO_TARGET : EXIT_CANNOT_TRACE;
	}
	snprintf(text, sizeof(text), "%u  %s", t->tgid, t->name);
	row("process", text);
	row("exe", t->exe[0] ? t->exe : "(not readable)");
	snprintf(text, sizeof(text), "%u", t->threads);
	row("threads", text);
	snprintf(text, sizeof(text), "%s%s%s%s", t->own_pid_ns || t->own_mnt_ns ? "yes:" : "no",
		t->own_pid_ns ? " own process ids" : "", t->own_mnt_ns ? " own files" : "", "");
	row("container", text);
	if (t->own_pid_ns) {
		snprintf(text, sizeof(text), "%u", t->nspid);
		row("pid inside", text);
	}
	row("cgroup", t->cgroup);
	print_frame_source(&o);
	print_allocators(&o);
	print_usdt(&o);
	for (int i = 0; i < o.n; i++)
		if (object__open(&o, &o.v[i])) {
			snprintf(text, sizeof(text), "%.600s: %s", o.v[i].path, strerror(-o.v[i].state));
			row(unread++ ? "" : "not searched", text);
		}
	objects__free(&o);
	return target__alive(t) ? EXIT_OK : EXIT_NO_TARGET;
}

static void print_presents(struct objects *o)
{
	static const char *const names[] = {"eglSwapBuffers", "eglSwapBuffersWithDamageKHR",
		"eglSwapBuffersWithDamageEXT", "glXSwapBuffers", "vkQueuePresentKHR", "SDL_RenderPresent",
		"SDL_UpdateWindowSurface", "SDL_UpdateWindowSurfaceRects", "SDL_Flip", "SDL_UpdateRects"};
	struct elf_symbol found[ARRAY_SIZE(names)];
	struct site_list l = {0};
	char base[64];
	int n = elf_file__find(&o->v[0].elf, names, ARRAY_SIZE(names), true, found);

	utf8__sanitize(base, sizeof(base), o->v[0].base, strlen(o->v[0].base));
	for (size_t i = 0; n > 0 && i < ARRAY_SIZE(names); i++) {
		struct function f = {.obj = &o->v[0], .sym = found[i], .lib = base};
		struct use use = present__use(names[i]);
		bool stepped;

		if (found[i].name && found[i].type != STT_GNU_IFUNC)
			sites__add_function(&l, o, &f, &use, true, &stepped);
	}
	print_sites(&l, "presents");
	if (!l.n)
		row("presents", "none");
	sites__free(&l);
}

static int probe_file(const char *path)
{
	/* O_NONBLOCK: a FIFO must not hold us up */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), err;
	struct objects o;

	if (fd < 0) {
		log_err("%s: %s", path, strerror(errno));
		return EXIT_NO_TARGET;
	}
	err = objects__from_file(&o, path, fd);
	if (!err)
		err = object__open(&o, &o.v[0]);
	if (err) {
		log_err("%s: %s", path,
			err == -ENOTSUP   ? "a 32-bit or big-endian program, which redframe does not read"
			: err == -ENOEXEC ? "neither a program nor a library (no ELF file)"
					  : strerror(-err));
		objects__free(&o);
		return EXIT_NO_TARGET;
	}
	row("file", path);
	print_presents(&o);
	print_allocators(&o);
	print_usdt(&o);
	if (o.v[0].elf.cut)
		row("damaged", "parts of it lie beyond its end or are too large, and were not looked at");
	objects__free(&o);
	return EXIT_OK;
}

struct probe_options {
	u64 pid;
	const char *name;
	bool newest;
};

#define ROW(long_name, letter, type, field, value, help)                                                               \
	{                                                                                                              \
		long_name, letter, type, offsetof(struct probe_options, field), value, help                            \
	}
static const struct option_row rows[] = {
	ROW("pid", 'p', OPT_PID, pid, "PID", "the process"),
	ROW("name", 'n', OPT_TEXT, name, "NAME",
		"the process called NAME: its main thread, its executable or its argv[0]"),
	ROW("newest", 0, OPT_FLAG, newest, NULL, "of several called NAME, the one started last"),
	{},
};

static const struct verb verb = {
	.name = "probe",
	.synopsis = "[-p PID | -n NAME | PATH]",
	.about = "Shows what can be hooked in a running game, or in a program or library, and what record would "
		 "choose. Without "
		 "a "
		 "target it lists the processes that look like games.",
	.rows = rows,
	.examples = "  redframe probe\n"
		    "  redframe probe -n glxgears\n"
		    "  redframe probe /lib/x86_64-linux-gnu/libc.so.6\n",
};

static bool one_target(const struct probe_options *opt, int paths)
{
	if (!!opt->pid + !!opt->name + paths == 1 && opt->pid <= INT32_MAX)
		return true;
	log_err("probe: give one of -p PID, -n NAME and PATH");
	return false;
}

int verb__probe(int argc, char **argv)
{
	struct probe_options opt = {0};
	struct target t;
	char why[WHY] = "";
	int paths, command, err = options__parse(&verb, argc, argv, &opt, &paths, &command);

	if (err)
		return err > 0 ? EXIT_OK : EXIT_USAGE;
	if (!opt.pid && !opt.name && !paths)
		return probe__list();
	if (!one_target(&opt, paths))
		return EXIT_USAGE;
	if (paths)
		return probe_file(argv[0]);
	err = opt.name ? target__by_name(&t, opt.name, opt.newest, why, sizeof(why))
		       : target__by_pid(&t, (u32)opt.pid, why, sizeof(why));
	if (err) {
		log_err("%s", why);
		return err == -EPERM || err == -EACCES ? EXIT_CANNOT_TRACE : EXIT_NO_TARGET;
	}
	err = probe_process(&t);
	target__close(&t);
	return err;
}

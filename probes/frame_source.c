// SPDX-License-Identifier: GPL-2.0-only
/*
 * The rule of "auto": exactly one source, so that no frame counts twice.
 *
 * 1. Markers of probes/redframe.h: the game itself says what a frame is.
 * 2. Otherwise every present function of the table below that the process maps is a candidate. One layer calls the next
 *    (SDL_RenderPresent -> glXSwapBuffers; ANGLE's eglSwapBuffers -> glXSwapBuffers), and a mapped library may not be
 *    used at all (SDL maps both EGL and GLX). So where there is more than one, all are counted for a moment, and the
 * one that fires most is taken. Layers of one present fire equally often: within a quarter of the most, the first in
 * the table's order wins.
 * 3. Where nothing fired (a game that loads): the first in the table's order whose driver is mapped, or else the first;
 *    unless Vulkan is mapped as well: then most likely the game presents through Vulkan, and a source that never fires
 *    would be a false promise.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "frame_source.h"
#include "strings.h"
#include "trial.h"

#define TRIAL_STEP_MS 50
#define TRIAL_MS      1500
#define TRIAL_ENOUGH  8 /* hits that settle it */

#define PRESENT_SYMBOLS 3
struct present {
	const char *lib;   /* as the label has it */
	const char *match; /* as object__is takes it */
	const char *symbols[PRESENT_SYMBOLS];
	int stream_arg;
	bool in_exe;        /* games link it statically */
	const char *unless; /* not where this library is mapped */
	const char *vendor; /* base names of the driver's part, which is mapped once a game really uses it */
};

#define SDL2 "libSDL2-2.0.so.0", "libSDL2"
#define SDL3 "libSDL3.so.0", "libSDL3"
#define SDL1 "libSDL-1.2.so.0", "libSDL-1.2.so"
static const struct present presents[] = {
	{"libEGL.so.1", "libEGL.so", {"eglSwapBuffers", "eglSwapBuffersWithDamageKHR", "eglSwapBuffersWithDamageEXT"},
		1, false, NULL, "libEGL_"},
	{"libGLX.so.0", "libGLX.so", {"glXSwapBuffers"}, 1, false, NULL, "libGLX_"},
	/* libGL's own symbol is a jump to libGLX's, which fires for callers through glXGetProcAddress as well */
	{"libGL.so.1", "libGL.so", {"glXSwapBuffers"}, 1, false, "libGLX.so", NULL},
	{SDL3, {"SDL_RenderPresent"}, 0, true, NULL, NULL},
	{SDL3, {"SDL_UpdateWindowSurface"}, 0, true, NULL, NULL},
	{SDL3, {"SDL_UpdateWindowSurfaceRects"}, 0, true, NULL, NULL},
	{SDL2, {"SDL_RenderPresent"}, 0, false, "libSDL3", NULL},
	{SDL2, {"SDL_UpdateWindowSurface"}, 0, false, "libSDL3", NULL},
	{SDL2, {"SDL_UpdateWindowSurfaceRects"}, 0, false, "libSDL3", NULL},
	{SDL1, {"SDL_Flip"}, 0, false, "libSDL2", NULL},
	{SDL1, {"SDL_UpdateRects"}, 0, false, "libSDL2", NULL},
};

int present__stream_arg(const char *symbol)
{
	for (size_t i = 0; i < ARRAY_SIZE(presents); i++)
		for (int k = 0; k < PRESENT_SYMBOLS && presents[i].symbols[k]; k++)
			if (!strcmp(presents[i].symbols[k], symbol))
				return presents[i].stream_arg;
	return strcmp(symbol, "vkQueuePresentKHR") ? -1 : 0;
}

static struct use frame_use(int stream_arg)
{
	return (struct use){.what = PROBE_FRAME, .sub = FRAME_MARK, .args = {-1, (signed char)stream_arg, -1}};
}

/* ---- markers ---- */

int frame_source__usdt(
	struct site_list *l, struct objects *o, const char *provider, const char *name, char *why, size_t why_size)
{
	int n = sites__add_usdt(l, o, provider, name, PROBE_FRAME, FRAME_MARK, why, why_size), ends;

	/* a game that uses both would have its frames twice: the plain mark wins */
	if (n || strcmp(provider, "redframe") || strcmp(name, "frame"))
		return n;
	n = sites__add_usdt(l, o, provider, "frame_begin", PROBE_FRAME, FRAME_BEGIN, why, why_size);
	if (n < 0)
		return n;
	ends = sites__add_usdt(l, o, provider, "frame_end", PROBE_FRAME, FRAME_END, why, why_size);
	return ends < 0 ? ends : n + ends;
}

/* ---- candidates ---- */

static bool is_mapped(const struct objects *o, const char *lib)
{
	for (int i = 0; i < o->n; i++)
		if (object__is(&o->v[i], lib))
			return true;
	return false;
}

static bool is_mapped_prefix(const struct objects *o, const char *prefix)
{
	for (int i = 0; i < o->n; i++)
		if (!strncmp(o->v[i].base, prefix, strlen(prefix)))
			return true;
	return false;
}

static int add_present(struct site_list *l, struct objects *o, struct object *obj, const struct present *p)
{
	struct elf_symbol found[PRESENT_SYMBOLS] = {0};
	struct use use = frame_use(p->stream_arg);
	bool stepped;
	int n = 0, err;

	while (n < PRESENT_SYMBOLS && p->symbols[n])
		n++;
	err = object__open(o, obj);
	if (!err)
		err = elf_file__find(&obj->elf, p->symbols, n, obj->exe, found);
	for (int i = 0; i < n && err > 0; i++) {
		struct function f = {.obj = obj, .sym = found[i], .lib = obj->exe ? obj->base : p->lib};

		if (found[i].name && found[i].type != STT_GNU_IFUNC) {
			int r = sites__add_function(l, o, &f, &use, true, &stepped);

			err = r < 0 ? r : err;
		}
	}
	return err < 0 ? err : l->n;
}

static void add_candidate(struct frame_choice *c, struct objects *o, struct object *obj, const struct present *p)
{
	struct frame_candidate *k = &c->v[c->n];
	char base[40];

	if (c->n == FRAME_CANDIDATES)
		return;
	*k = (struct frame_candidate){0};
	if (add_present(&k->list, o, obj, p) <= 0) {
		sites__free(&k->list);
		return;
	}
	utf8__sanitize(base, sizeof(base), obj->base, strlen(obj->base));
	k->driver = p->vendor && is_mapped_prefix(o, p->vendor);
	snprintf(k->source_text, sizeof(k->source_text), "uprobe:%s:%s", obj->exe ? base : p->lib, p->symbols[0]);
	c->n++;
}

static void find_candidates(struct frame_choice *c, struct objects *o)
{
	for (size_t i = 0; i < ARRAY_SIZE(presents); i++) {
		const struct present *p = &presents[i];

		if (p->unless && is_mapped(o, p->unless))
			continue;
		for (int k = 0; k < o->n; k++)
			if (object__is(&o->v[k], p->match) || (p->in_exe && o->v[k].exe))
				add_candidate(c, o, &o->v[k], p);
	}
}

/* ---- the trial ---- */

static u64 most_hits(struct frame_choice *c, const struct trial *t)
{
	u64 most = 0;

	for (int i = 0; i < c->n; i++) {
		c->v[i].hits = trial__count(t, i);
		most = max(most, c->v[i].hits);
	}
	return most;
}

static int try_out(struct frame_choice *c, u32 tgid)
{
	const struct timespec step = {.tv_nsec = TRIAL_STEP_MS * 1000000L};
	struct trial t;
	int err = trial__open(&t, tgid);

	for (int i = 0; !err && i < c->n; i++) {
		int r = trial__add(&t, &c->v[i].list);

		err = r < 0 ? r : 0;
	}
	for (int ms = 0; !err && ms < TRIAL_MS && most_hits(c, &t) < TRIAL_ENOUGH; ms += TRIAL_STEP_MS)
		nanosleep(&step, NULL);
	c->tried = !err;
	trial__close(&t);
	return err;
}

static int best(const struct frame_choice *c)
{
	u64 most = 0;

	for (int i = 0; i < c->n; i++)
		most = max(most, c->v[i].hits);
	for (int i = 0; i < c->n && most; i++)
		if (c->v[i].hits + 1 >= most - most / 4 && c->v[i].hits)
			return i;
	return -1;
}

static void tell_hits(struct frame_choice *c)
{
	for (int i = 0; i < c->n; i++)
		why__add(c->reason, sizeof(c->reason), "%s fired %" PRIu64 " times", c->v[i].source_text + 7,
			c->v[i].hits);
}

static const char no_vulkan[] =
	"the game maps libvulkan, and no other present function fires: frames of Vulkan games are not found yet; "
	"--frame uprobe:LIB:SYMBOL or uprobe:PATH+0xOFFSET can name the driver's present function";

static int likeliest(const struct frame_choice *c)
{
	for (int i = 0; i < c->n; i++)
		if (c->v[i].driver)
			return i;
	return 0;
}

static void choose(struct frame_choice *c, u32 tgid, char *why, size_t why_size)
{
	int err = 0;

	if (c->n == 0) {
		why__add(why, why_size, "%s",
			c->vulkan
				? no_vulkan
				: "no frame source found: no redframe markers, and none of EGL, GLX and SDL is mapped; "
				  "--frame uprobe:LIB:SYMBOL can name a function that is called once a frame");
		return;
	}
	if (tgid && (c->n > 1 || c->vulkan))
		err = try_out(c, tgid);
	if (c->tried) {
		tell_hits(c);
		c->chosen = best(c);
		if (c->chosen >= 0)
			return;
		if (c->vulkan) {
			why__add(why, why_size, "%s", no_vulkan);
			return;
		}
		why__add(
			why, why_size, "no present function fired for %d ms; the likeliest of them is taken", TRIAL_MS);
	} else if (err) {
		why__add(why, why_size,
			"the present functions could not be tried out (%s); the likeliest of them is taken",
			strerror(-err));
	} else {
		why__add(c->reason, sizeof(c->reason), "%s",
			c->n == 1 ? "the only present function mapped" : "the likeliest; not tried out");
	}
	c->chosen = likeliest(c);
}

int frame_source__auto(struct frame_choice *c, struct objects *o, char *why, size_t why_size)
{
	struct frame_candidate *k = &c->v[0];
	int n;

	*c = (struct frame_choice){.chosen = -1, .vulkan = is_mapped(o, "libvulkan.so")};
	n = frame_source__usdt(&k->list, o, "redframe", "frame", why, why_size);
	if (n < 0)
		return n;
	if (n > 0) {
		snprintf(k->source_text, sizeof(k->source_text), "%.79s", k->list.sites[0].label);
		snprintf(c->reason, sizeof(c->reason), "the game marks its frames itself");
		c->n = 1;
		c->chosen = 0;
		return 0;
	}
	find_candidates(c, o);
	choose(c, o->tgid, why, why_size);
	return 0;
}

void frame_choice__free(struct frame_choice *c)
{
	for (int i = 0; i < c->n; i++)
		sites__free(&c->v[i].list);
	c->n = 0;
}

/* ---- uprobe:… ---- */

struct near {
	const char *want;
	char *out;
	size_t size;
	int n;
};

static bool near_symbol(const struct elf_symbol *s, void *arg)
{
	struct near *q = arg;
	char text[100];

	if (!strcasestr(s->name, q->want))
		return true;
	term__escape(text, sizeof(text), s->name, strnlen(s->name, 90));
	snprintf(q->out + strlen(q->out), q->size - strlen(q->out), "%s%s", q->n++ ? ", " : "", text);
	return q->n < 5;
}

static int no_such_symbol(struct object *obj, const char *symbol, char *why, size_t why_size)
{
	char list[600] = "", name[128], base[128];
	struct near q = {.want = symbol, .out = list, .size = sizeof(list)};

	/* half of a mistyped name finds its neighbours */
	char half[64];

	snprintf(half, sizeof(half), "%.*s", (int)min(strlen(symbol), sizeof(half) - 1), symbol);
	for (size_t n = strlen(half); q.n == 0 && n >= 4; n = n * 3 / 4) {
		half[n] = 0;
		q.want = half;
		elf_file__each_symbol(&obj->elf, ELF_DYNSYM, near_symbol, &q);
		if (q.n == 0)
			elf_file__each_symbol(&obj->elf, ELF_SYMTAB, near_symbol, &q);
	}
	term__escape(name, sizeof(name), symbol, strlen(symbol));
	term__escape(base, sizeof(base), obj->base, strlen(obj->base));
	why__add(why, why_size, "%s has no function %s%s%s", base, name, q.n ? "; it has " : "", list);
	return -ENOENT;
}

static int no_such_object(const struct objects *o, const char *lib, char *why, size_t why_size)
{
	char list[600] = "", name[200], stem[32];
	const char *base = path__base(lib);
	int n = 0;

	snprintf(stem, sizeof(stem), "%.*s", (int)strcspn(base, ".-"), base);
	for (int i = 0; i < o->n && n < 8; i++) {
		char text[128];

		if (*stem && !strcasestr(o->v[i].base, stem) && !o->v[i].exe)
			continue;
		term__escape(text, sizeof(text), o->v[i].base, strlen(o->v[i].base));
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%.60s", n++ ? ", " : "", text);
	}
	term__escape(name, sizeof(name), lib, strlen(lib));
	why__add(why, why_size, "the game maps no %s%s%s", name, n ? "; it maps " : "", list);
	return -ENOENT;
}

/* "+0x1f4" at the end; the text before it is cut off */
static bool cut_offset(char *text, u64 *offset)
{
	char *plus = strrchr(text, '+'), *end;

	if (!plus || plus[1] != '0' || (plus[2] | 0x20) != 'x' || !plus[3])
		return false;
	errno = 0;
	*offset = strtoull(plus + 1, &end, 16);
	if (*end || errno)
		return false;
	*plus = 0;
	return true;
}

static int by_offset(struct site_list *l, struct objects *o, const char *lib, u64 offset, char *why, size_t why_size)
{
	for (int i = 0; i < o->n; i++) {
		int err;

		if (!object__is(&o->v[i], lib))
			continue;
		err = sites__add_offset(l, o, &o->v[i], offset, PROBE_FRAME, FRAME_MARK);
		if (err == -EINVAL)
			why__add(why, why_size, "the file offset 0x%" PRIx64 " is not in the code of %.100s", offset,
				o->v[i].base);
		else if (err < 0)
			why__add(why, why_size, "%.100s: %s", o->v[i].base, strerror(-err));
		return err;
	}
	return no_such_object(o, lib, why, why_size);
}

static int by_symbol(struct site_list *l, struct objects *o, const char *lib, const char *symbol, const u64 *into,
	char *why, size_t why_size)
{
	struct use use = frame_use(present__stream_arg(symbol));
	struct object *last = NULL;
	bool stepped;
	int err;

	for (int i = 0; i < o->n; i++) {
		struct function f = {.obj = &o->v[i], .lib = o->v[i].base};

		if (!object__is(&o->v[i], lib) || object__open(o, &o->v[i]))
			continue;
		last = &o->v[i];
		err = elf_file__find(&last->elf, &symbol, 1, true, &f.sym);
		if (err < 0)
			return err;
		if (!err)
			continue;
		if (f.sym.type == STT_GNU_IFUNC) {
			why__add(why, why_size, "%s is chosen at run time (IFUNC): name the implementation itself",
				symbol);
			return -ENOTSUP;
		}
		if (!into)
			return sites__add_function(l, o, &f, &use, true, &stepped);
		err = sites__add_inside(l, o, &f, *into, &use);
		if (err == -EINVAL)
			why__add(why, why_size, "0x%" PRIx64 " is not inside %s", *into, symbol);
		return err;
	}
	return last ? no_such_symbol(last, symbol, why, why_size) : no_such_object(o, lib, why, why_size);
}

int frame_source__uprobe(struct site_list *l, struct objects *o, const char *spec, char *why, size_t why_size)
{
	char text[4352], *colon;
	u64 offset = 0;
	bool has_offset;

	if ((size_t)snprintf(text, sizeof(text), "%s", spec) >= sizeof(text))
		return -ENAMETOOLONG;
	has_offset = cut_offset(text, &offset);
	colon = strrchr(text, ':');
	/* a colon may be part of a path */
	if (colon && !strchr(colon, '/') && colon > text && colon[1]) {
		*colon = 0;
		return by_symbol(l, o, text, colon + 1, has_offset ? &offset : NULL, why, why_size);
	}
	if (has_offset && *text)
		return by_offset(l, o, text, offset, why, why_size);
	why__add(why, why_size, "--frame uprobe:%.100s: it is uprobe:LIB:SYMBOL or uprobe:PATH+0xOFFSET", spec);
	return -EINVAL;
}

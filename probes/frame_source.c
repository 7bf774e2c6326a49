// SPDX-License-Identifier: GPL-2.0-only
/*
 * The rule of "auto": exactly one source, so that no frame counts twice.
 *
 * 1. Markers of probes/redframe.h: the game itself says what a frame is.
 * 2. Otherwise the driver's Vulkan present function (vulkan.c) and every present function of the table below that the
 *    process maps are candidates. One layer calls the next (SDL_RenderPresent -> glXSwapBuffers; ANGLE's eglSwapBuffers
 *    -> vkQueuePresentKHR), and a mapped library may not be used at all (SDL maps both EGL and GLX). So where there is
 *    more than one, all are counted for a moment, and the one that fires most is taken. Layers of one present fire
 *    equally often: within a quarter of the most, the first in order wins. What programs send pictures to the
 *    display server with is the last resort: it counts only where nothing else fired.
 *    One that is single-stepped and called more than 1,000 times a second is left out, and another layer of the same
 *    present comes in its place.
 * 3. Where nothing fired (a game that loads): Vulkan where it has a device, else the first in the table's order whose
 *    driver is mapped, or else the first; unless libvulkan is mapped as well: then most likely the game is about to
 *    present through Vulkan, and a source that never fires would be a false promise. Such a choice is not sure: whoever
 *    records looks again.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "frame_source.h"
#include "ifunc.h"
#include "stepped.h"
#include "strings.h"
#include "trial.h"
#include "vulkan.h"

#define TRIAL_STEP_MS 50
#define TRIAL_MS      1500
#define TRIAL_ENOUGH  8 /* hits that settle it */

#define PRESENT_SYMBOLS 3
#define WAYLAND_REQUEST "wl_proxy_marshal_array_flags" /* since 1.20 all others end there */
struct present {
	const char *lib;   /* as the label has it */
	const char *match; /* as object__is takes it */
	const char *symbols[PRESENT_SYMBOLS];
	int stream_arg;
	bool in_exe;        /* games link it statically */
	const char *unless; /* not where this library is mapped */
	const char *vendor; /* base names of the driver's part, which is mapped once a game really uses it */
	bool last_resort;   /* only where nothing else fires */
};

#define LAST_RESORT false, NULL, NULL, true
#define SDL2        "libSDL2-2.0.so.0", "libSDL2"
#define SDL3        "libSDL3.so.0", "libSDL3"
#define SDL1        "libSDL-1.2.so.0", "libSDL-1.2.so"
static const struct present presents[] = {
	{"libEGL.so.1", "libEGL.so", {"eglSwapBuffers", "eglSwapBuffersWithDamageKHR", "eglSwapBuffersWithDamageEXT"},
		1, false, NULL, "libEGL_", false},
	{"libGLX.so.0", "libGLX.so", {"glXSwapBuffers"}, 1, false, NULL, "libGLX_", false},
	/* libGL's own symbol is a jump to libGLX's, which fires for callers through glXGetProcAddress as well */
	{"libGL.so.1", "libGL.so", {"glXSwapBuffers"}, 1, false, "libGLX.so", NULL, false},
	{SDL3, {"SDL_RenderPresent"}, 0, true, NULL, NULL, false},
	{SDL3, {"SDL_UpdateWindowSurface"}, 0, true, NULL, NULL, false},
	{SDL3, {"SDL_UpdateWindowSurfaceRects"}, 0, true, NULL, NULL, false},
	{SDL2, {"SDL_RenderPresent"}, 0, false, "libSDL3", NULL, false},
	{SDL2, {"SDL_UpdateWindowSurface"}, 0, false, "libSDL3", NULL, false},
	{SDL2, {"SDL_UpdateWindowSurfaceRects"}, 0, false, "libSDL3", NULL, false},
	{SDL1, {"SDL_Flip"}, 0, false, "libSDL2", NULL, false},
	{SDL1, {"SDL_UpdateRects"}, 0, false, "libSDL2", NULL, false},
	/* pictures on their way to an X server: what drivers do in their present, or a game by itself */
	{"libxcb-present.so.0", "libxcb-present.so", {"xcb_present_pixmap"}, 1, LAST_RESORT},
	{"libxcb-shm.so.0", "libxcb-shm.so", {"xcb_shm_put_image"}, 1, LAST_RESORT},
	{"libXext.so.6", "libXext.so", {"XShmPutImage"}, 1, LAST_RESORT},
	{"libxcb.so.1", "libxcb.so", {"xcb_put_image"}, 2, LAST_RESORT},
	{"libX11.so.6", "libX11.so", {"XPutImage"}, 1, LAST_RESORT},
	/* every request to a Wayland compositor; only those that commit a surface are frames */
	{"libwayland-client.so.0", "libwayland-client.so", {WAYLAND_REQUEST}, 0, LAST_RESORT},
};

int present__stream_arg(const char *symbol)
{
	for (size_t i = 0; i < ARRAY_SIZE(presents); i++)
		for (int k = 0; k < PRESENT_SYMBOLS && presents[i].symbols[k]; k++)
			if (!strcmp(presents[i].symbols[k], symbol))
				return presents[i].stream_arg;
	return strcmp(symbol, "vkQueuePresentKHR") ? -1 : 1;
}

struct use present__use(const char *symbol)
{
	if (!strcmp(symbol, WAYLAND_REQUEST))
		return (struct use){.what = PROBE_FRAME, .sub = PROBE_COMMIT, .args = {1, 0, -1}};
	return (struct use){.what = PROBE_FRAME,
		.sub = FRAME_MARK,
		.args = {-1, (signed char)present__stream_arg(symbol), -1},
		.follow = strcmp(symbol, "vkQueuePresentKHR") ? 0 : VULKAN_SWAPCHAIN};
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
	struct use use = present__use(p->symbols[0]);
	bool stepped;
	int n = 0, err;

	while (n < PRESENT_SYMBOLS && p->symbols[n])
		n++;
	err = object__open(o, obj);
	if (!err)
		err = elf_file__find(&obj->elf, p->symbols, n, obj->exe, found);
	for (int i = 0; i < n && err > 0; i++) {
		struct function f = {.obj = obj, .sym = found[i], .lib = obj->exe ? obj->base : p->lib};

		if (found[i].name && !ifunc__resolve(o, obj, p->symbols[i], &f.sym)) {
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
	k->last_resort = p->last_resort;
	snprintf(k->source_text, sizeof(k->source_text), "uprobe:%s:%s", obj->exe ? base : p->lib, p->symbols[0]);
	c->n++;
}

static void add_vulkan(struct frame_choice *c, struct objects *o)
{
	struct frame_candidate *k = &c->v[c->n];
	int n;

	*k = (struct frame_candidate){0};
	n = frame_source__vulkan(
		&k->list, o, k->source_text, sizeof(k->source_text), c->no_vulkan, sizeof(c->no_vulkan));
	if (n <= 0) {
		sites__free(&k->list);
		return;
	}
	k->vulkan = k->driver = true;
	c->n++;
}

static void find_candidates(struct frame_choice *c, struct objects *o)
{
	if (c->vulkan && o->tgid)
		add_vulkan(c, o);
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

/* of the candidates that are a last resort, or of those that are not */
static u64 most_hits(const struct frame_choice *c, bool last_resort)
{
	u64 most = 0;

	for (int i = 0; i < c->n; i++)
		if (c->v[i].last_resort == last_resort && !c->v[i].hot)
			most = max(most, c->v[i].hits);
	return most;
}

static u64 count_hits(struct frame_choice *c, const struct trial *t)
{
	for (int i = 0; i < c->n; i++)
		c->v[i].hits = trial__count(t, i);
	return most_hits(c, false);
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
	for (int ms = 0; !err && ms < TRIAL_MS && count_hits(c, &t) < TRIAL_ENOUGH; ms += TRIAL_STEP_MS)
		nanosleep(&step, NULL);
	c->tried = !err;
	trial__close(&t);
	return err;
}

/* Returns whether there were any. */
static bool leave_out_hot(struct frame_choice *c, u32 tgid, char *why, size_t why_size)
{
	bool any = false;

	for (int i = 0; i < c->n; i++) {
		struct frame_candidate *k = &c->v[i];

		if (!k->hits || !stepped__any(&k->list))
			continue;
		stepped__drop_hot(&k->list, tgid, why, why_size);
		k->hot = !k->list.n;
		any |= k->hot;
	}
	return any;
}

static int best(const struct frame_choice *c)
{
	bool last_resort = !most_hits(c, false);
	u64 most = most_hits(c, last_resort);

	for (int i = 0; i < c->n && most; i++)
		if (c->v[i].last_resort == last_resort && !c->v[i].hot && c->v[i].hits + 1 >= most - most / 4 &&
			c->v[i].hits)
			return i;
	return -1;
}

static void tell_hits(struct frame_choice *c)
{
	for (int i = 0; i < c->n; i++)
		if (!c->v[i].last_resort || c->v[i].hits)
			why__add(c->reason, sizeof(c->reason), "%s fired %" PRIu64 " times",
				strchr(c->v[i].source_text, ':') + 1, c->v[i].hits);
}

static int likeliest(const struct frame_choice *c)
{
	int first = -1;

	for (int i = 0; i < c->n; i++) {
		if (c->v[i].driver)
			return i;
		if (first < 0 && !c->v[i].last_resort)
			first = i;
	}
	return first;
}

static int strong(const struct frame_choice *c)
{
	int n = 0;

	for (int i = 0; i < c->n; i++)
		n += !c->v[i].last_resort;
	return n;
}

static void none(struct frame_choice *c, bool tried, char *why, size_t why_size)
{
	if (c->vulkan)
		why__add(why, why_size,
			"the game maps libvulkan, but %s; %s--frame uprobe:LIB:SYMBOL or uprobe:PATH+0xOFFSET can name "
			"the "
			"driver's present function",
			c->no_vulkan[0] ? c->no_vulkan : "no device presents",
			tried ? "no other present function fires; " : "");
	else
		why__add(why, why_size,
			"no redframe markers, and %s; --frame uprobe:LIB:SYMBOL can name a "
			"function "
			"that is called once a frame",
			c->n ? "nothing that shows pictures is called" : "none of Vulkan, EGL, GLX and SDL is mapped");
}

/* Something fired. */
static void take_best(struct frame_choice *c, int i, char *why, size_t why_size)
{
	c->chosen = i;
	c->sure = true;
	if (c->vulkan && !c->v[0].vulkan && c->no_vulkan[0])
		why__add(c->v[i].last_resort ? why : c->reason, c->v[i].last_resort ? why_size : sizeof(c->reason),
			"Vulkan: %s", c->no_vulkan);
	if (c->v[i].last_resort)
		why__add(why, why_size,
			"frames are what is sent to the display server (%s), as no function that presents frames is "
			"called",
			c->v[i].source_text);
}

/* There is one present function: that it fires need not be waited for, only how often, where each call costs much. */
static bool take_only(struct frame_choice *c, u32 tgid, char *why, size_t why_size)
{
	int i = likeliest(c);
	struct frame_candidate *k = &c->v[i];

	if (tgid && stepped__any(&k->list))
		stepped__drop_hot(&k->list, tgid, why, why_size);
	k->hot = !k->list.n;
	if (k->hot)
		return false;
	c->chosen = i;
	why__add(c->reason, sizeof(c->reason), "the only present function mapped");
	return true;
}

static void choose(struct frame_choice *c, u32 tgid, bool left, char *why, size_t why_size)
{
	bool one = strong(c) == 1 && !(c->vulkan && !c->v[0].vulkan) && !left, hot = left;
	int err = 0, i;

	if (one && take_only(c, tgid, why, why_size))
		return;
	if (tgid && c->n)
		err = try_out(c, tgid);
	if (c->tried)
		hot |= leave_out_hot(c, tgid, why, why_size) || one;
	i = c->tried ? best(c) : -1;
	if (c->tried)
		tell_hits(c);
	if (i >= 0) {
		take_best(c, i, why, why_size);
		return;
	}
	if (hot) {
		why__add(why, why_size, "no frames are recorded; --frame with its name does so at that cost");
		return;
	}
	c->chosen = c->vulkan && c->n && !c->v[0].vulkan && tgid ? -1 : likeliest(c);
	if (c->chosen < 0)
		none(c, c->tried, why, why_size);
	else if (c->tried)
		why__add(
			why, why_size, "no present function fired for %d ms; the likeliest of them is taken", TRIAL_MS);
	else if (err)
		why__add(why, why_size,
			"the present functions could not be tried out (%s); the likeliest of them is taken",
			strerror(-err));
	else
		why__add(c->reason, sizeof(c->reason), "the likeliest; not tried out");
}

int frame_source__vulkan(
	struct site_list *l, struct objects *o, char *source, size_t source_size, char *why, size_t why_size)
{
	int before = l->n, n = vulkan__sites(l, o, NULL, why, why_size);

	if (n > 1)
		snprintf(source, source_size, "%.60s and %d more", l->sites[before].label, n - 1);
	else if (n > 0)
		snprintf(source, source_size, "%s", l->sites[before].label);
	return n;
}

bool frame_source__is_among(const char *source, const char *lines)
{
	size_t len = strcspn(source, " "); /* Vulkan's goes on with how many more */

	for (; lines && *lines; lines += strcspn(lines, "\n"), lines += *lines == '\n')
		if (strcspn(lines, " \n") == len && !strncmp(lines, source, len))
			return true;
	return false;
}

static void drop_left(struct frame_choice *c, const char *left)
{
	int kept = 0;

	for (int i = 0; i < c->n; i++)
		if (frame_source__is_among(c->v[i].source_text, left))
			sites__free(&c->v[i].list);
		else
			c->v[kept++] = c->v[i];
	c->n = kept;
}

int frame_source__auto(struct frame_choice *c, struct objects *o, const char *left, char *why, size_t why_size)
{
	struct frame_candidate *k = &c->v[0];
	int n;

	*c = (struct frame_choice){.chosen = -1, .vulkan = is_mapped(o, VULKAN_LOADER)};
	n = frame_source__usdt(&k->list, o, "redframe", "frame", why, why_size);
	if (n < 0)
		return n;
	if (n > 0 && frame_source__is_among(k->list.sites[0].label, left)) {
		sites__free(&k->list);
	} else if (n > 0) {
		snprintf(k->source_text, sizeof(k->source_text), "%.79s", k->list.sites[0].label);
		snprintf(c->reason, sizeof(c->reason), "the game marks its frames itself");
		c->n = 1;
		c->chosen = 0;
		c->sure = true;
		return 0;
	}
	find_candidates(c, o);
	drop_left(c, left);
	choose(c, o->tgid, left, why, why_size);
	return 0;
}

int frame_source__candidates(struct objects *o, char *out, size_t size)
{
	struct frame_choice c = {.vulkan = is_mapped(o, VULKAN_LOADER)};
	struct site_list marks = {0};
	char why[512] = "";
	int n = frame_source__usdt(&marks, o, "redframe", "frame", why, sizeof(why)) > 0;

	snprintf(out, size, "%s", n ? "usdt:redframe:frame" : "");
	sites__free(&marks);
	find_candidates(&c, o);
	for (int i = 0; i < c.n; i++) {
		if (c.v[i].last_resort)
			continue;
		snprintf(out + strlen(out), size - strlen(out), "%s%s", n++ ? ", " : "", c.v[i].source_text);
	}
	frame_choice__free(&c);
	return n;
}

void frame_choice__free(struct frame_choice *c)
{
	for (int i = 0; i < c->n; i++)
		sites__free(&c->v[i].list);
	c->n = 0;
}

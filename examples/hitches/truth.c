/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The log of the truth. Lines of JSON: {"type": "start"}, a {"type": "hitch"} for each, {"type": "slow"} for frames
 * that were slow for no reason of ours, {"type": "end"}. Times are CLOCK_BOOTTIME; ms are the program's own figures.
 */
#include "game.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

static void write_string(FILE *out, const char *s)
{
	fputc('"', out);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fprintf(out, "\\%c", *s);
		else if ((unsigned char)*s < 0x20)
			fprintf(out, "\\u%04x", *s);
		else
			fputc(*s, out);
	}
	fputc('"', out);
}

static void write_text(FILE *out, const char *key, const char *value)
{
	fprintf(out, ", \"%s\": ", key);
	if (value)
		write_string(out, value);
	else
		fputs("null", out);
}

static double to_ms(int64_t ns)
{
	return (double)ns / 1e6;
}

int truth__open(struct truth *t, const struct options *o, const struct data *d, long frames)
{
	*t = (struct truth){.quiet = o->quiet, .shape = o->shape};
	if (!o->log)
		return 0;
	t->out = strcmp(o->log, "-") ? fopen(o->log, "we") : stdout;
	if (!t->out)
		return fprintf(stderr, "hitches: --log %s: %s\n", o->log, strerror(errno)), -errno;
	fprintf(t->out,
		"{\"type\": \"start\", \"schema\": 1, \"pid\": %d, \"shape\": \"%s\", \"fps\": %ld, \"frames\": %ld",
		getpid(), o->shape == SHAPE_LOOP ? "loop" : "pipeline", o->fps, frames);
	fprintf(t->out, ", \"ms\": %ld, \"every\": %ld, \"in_memory\": %s, \"preempt\": ", o->ms, o->every,
		d->in_memory ? "true" : "false");
	write_string(t->out, rival__how());
	write_text(t->out, "dir", d->dir);
	fputs("}\n", t->out);
	fflush(t->out);
	return 0;
}

struct link {
	const char *cause, *what, *who, *where;
};

/* From the presenting thread's own wait down to the root. Returns the number of links. */
static int chain_of(const struct hitch *h, enum shape shape, struct link links[4])
{
	int n = 0;

	if (shape == SHAPE_PIPELINE)
		links[n++] = (struct link){"thread_wait", NULL, h->thread, "WaitForPacket"};
	links[n++] = (struct link){kind__cause(h->kind), h->what, h->who, kind__where(h->kind)};
	switch (h->kind) {
	case KIND_LOCK:
		links[n++] = (struct link){"code", "BuildNavmesh", NULL, "BuildNavmesh"};
		break;
	case KIND_CONDVAR:
		links[n++] = (struct link){"code", "BakeLighting", NULL, "BakeLighting"};
		break;
	case KIND_CHAIN:
		links[n++] = (struct link){"file_read", h->data->level.path, NULL, "StreamLevel"};
		break;
	case KIND_CHAIN_LOCKS:
		links[n++] =
			(struct link){"lock_wait", "g_texture_mutex", worker__name(h->crew->loader), "BindTextures"};
		links[n++] = (struct link){"file_read", h->data->textures.path, NULL, "LoadTextures"};
		break;
	default:
		break;
	}
	return n;
}

static void write_chain(const struct truth *t, const struct hitch *h)
{
	struct link links[4];
	int i, n = chain_of(h, t->shape, links);

	fputs(", \"chain\": [", t->out);
	for (i = 0; i < n; i++) {
		fprintf(t->out, "%s{\"cause\": \"%s\"", i ? ", " : "", links[i].cause);
		write_text(t->out, "what", links[i].what);
		write_text(t->out, "who", links[i].who);
		write_text(t->out, "where", links[i].where);
		fputc('}', t->out);
	}
	fputc(']', t->out);
}

static int64_t overlap(int64_t a, int64_t b, int64_t from, int64_t to)
{
	int64_t start = a > from ? a : from, end = b < to ? b : to;

	return end > start ? end - start : 0;
}

/* What of the hitch the slow frame itself can have seen: a pipeline hides its begin behind the frame before. */
static int64_t seen_ns(const struct hitch *h)
{
	int64_t seen = overlap(h->start, h->end, h->frame_start, h->frame_end);

	return seen < h->ns ? seen : h->ns;
}

static void write_figures(const struct truth *t, const struct hitch *h)
{
	fprintf(t->out, ", \"ms\": %.3f, \"seen_ms\": %.3f, \"frame_ms\": %.3f", to_ms(h->ns), to_ms(seen_ns(h)),
		to_ms(h->frame_end - h->frame_start));
	if (t->shape == SHAPE_PIPELINE)
		fprintf(t->out, ", \"wait_ms\": %.3f", to_ms(h->wait_end - h->wait_start));
	fprintf(t->out, ", \"start_ns\": %lld, \"end_ns\": %lld", (long long)h->start, (long long)h->end);
	fprintf(t->out, ", \"bytes\": %lld, \"cold_bytes\": %lld, \"count\": %lld", (long long)h->bytes,
		(long long)h->cold_bytes, (long long)h->count);
}

static void say(const struct truth *t, const struct hitch *h)
{
	FILE *out = t->out == stdout ? stderr : stdout;

	fprintf(out, "frame %-6ld %-12s %6.1f ms in %s", h->frame, kind__name(h->kind), to_ms(h->ns),
		kind__where(h->kind));
	if (h->what && h->what != h->who && strcmp(h->what, kind__where(h->kind)))
		fprintf(out, ", %s", h->what);
	if (h->who)
		fprintf(out, ", %s %d", h->who, h->who_tid);
	fprintf(out, "%s%s\n", h->note[0] ? ": " : "", h->note);
	fflush(out);
}

void truth__hitch(struct truth *t, const struct hitch *h)
{
	t->hitches++;
	if (!t->quiet)
		say(t, h);
	if (!t->out)
		return;
	fprintf(t->out, "{\"type\": \"hitch\", \"frame\": %ld, \"kind\": \"%s\", \"cause\": \"%s\"", h->frame,
		kind__name(h->kind), kind__cause(h->kind));
	write_figures(t, h);
	write_text(t->out, "thread", h->thread);
	fprintf(t->out, ", \"tid\": %d", h->tid);
	write_text(t->out, "what", h->what);
	write_text(t->out, "where", kind__where(h->kind));
	write_text(t->out, "who", h->who);
	fprintf(t->out, ", \"who_tid\": %d", h->who_tid);
	write_chain(t, h);
	write_text(t->out, "note", h->note[0] ? h->note : NULL);
	fputs("}\n", t->out);
	fflush(t->out);
}

void truth__slow(struct truth *t, long frame, int64_t ns)
{
	if (t->out)
		fprintf(t->out, "{\"type\": \"slow\", \"frame\": %ld, \"frame_ms\": %.3f}\n", frame, to_ms(ns));
}

int truth__close(struct truth *t, long frames)
{
	int err = 0;

	if (!t->out)
		return 0;
	fprintf(t->out, "{\"type\": \"end\", \"frames\": %ld, \"hitches\": %ld}\n", frames, t->hitches);
	if (fflush(t->out) || ferror(t->out))
		err = -EIO;
	if (t->out != stdout && fclose(t->out))
		err = -EIO;
	t->out = NULL;
	if (err)
		fprintf(stderr, "hitches: the log could not be written\n");
	return err;
}

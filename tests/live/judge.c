// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "judge.h"

#define TOLERANCE_MS    1.0
#define TOLERANCE_SHARE 0.1
#define JITTER          1.05 /* a frame is slow from here on (docs/attribution.md) */

struct verdict_of {
	const struct json *hitch, *frame;
	char why[512]; /* it is wrong; empty: it is not */
	bool disturbed;
	bool busy;  /* others want the CPU all the time */
	bool where; /* the function was told at the truth */
	double off_ms;
};

static void wrong(struct verdict_of *v, const char *what, const char *is, const char *should)
{
	if (!v->why[0])
		snprintf(v->why, sizeof(v->why), "%s is \"%s\", not \"%s\"", what, is, should);
}

static bool ends_with(const char *s, const char *tail)
{
	size_t n = strlen(s), t = strlen(tail);

	return n >= t && !strcmp(s + n - t, tail);
}

static const char *cause_of(const struct json *row)
{
	return json__text(row, "cause");
}

/* another thread had the CPU, or an interrupt */
static bool by_machine(const struct json *row)
{
	return !strcmp(cause_of(row), "cpu_wait") || !strcmp(cause_of(row), "interrupt");
}

/* Down the reasons of a wait: what the machine took from the thread that was waited for. */
static double noise_below_ms(const struct json *row)
{
	double ms = 0;

	json__each(json__get(row, "because"), r)
	{
		if (by_machine(r))
			ms += json__number(r, "ms");
		else
			ms += json__number(r, "late_ms") + noise_below_ms(r);
	}
	return ms;
}

/* What the machine did, and no frame's own doing; also by holding up whoever was waited for. */
static bool is_noise(const struct json *row, const char *cause)
{
	if (!strcmp(cause_of(row), cause))
		return false;
	return by_machine(row) || noise_below_ms(row) > json__number(row, "ms") / 2;
}

static double noise_ms(const struct json *rows, const char *cause)
{
	double ms = 0;

	json__each(rows, r) if (is_noise(r, cause)) ms += json__number(r, "ms");
	return ms;
}

/* How much of the time of a row may be more than the truth: others held up who was waited for, or, on a busy machine,
 * had the CPU besides the one that the log knows. */
static double added_ms(const struct verdict_of *v, const struct json *row)
{
	return by_machine(row) && v->busy ? json__number(row, "ms") : noise_below_ms(row);
}

/* rows of one cause: code is told by function */
static double cause_ms(const struct json *rows, const char *cause, const char *figure)
{
	double ms = 0;

	json__each(rows, r) if (!strcmp(cause_of(r), cause)) ms += json__number(r, figure);
	return ms;
}

/* Whoever faults page by page also reads what is there: code of the same function, dear where the page is new. And the
 * kernel's way into a fault and out of it, which its tracepoints do not see, is code without a function: as long as the
 * fault itself where the CPU's mitigations make it so. */
static double between_faults_ms(const struct json *rows, const char *cause, const char *where)
{
	double ms = 0;

	if (strcmp(cause, "page_fault"))
		return 0;
	json__each(rows, r)
	{
		if (!strcmp(cause_of(r), "code") && (!*json__text(r, "what") || !strcmp(json__text(r, "what"), where)))
			ms += json__number(r, "ms");
	}
	return ms;
}

static const struct json *first_row(struct verdict_of *v, const struct json *rows, const char *cause)
{
	json__each(rows, r)
	{
		if (!is_noise(r, cause))
			return r;
		v->disturbed = true;
	}
	return NULL;
}

static bool right_time(double is, double should)
{
	return fabs(is - should) <= fmax(TOLERANCE_MS, TOLERANCE_SHARE * should);
}

/* `spare`: what others took of it at most; `added`: by how much they made it longer, at most */
static void check_time(struct verdict_of *v, const char *cause, double is, double should, double spare, double added)
{
	char a[32], b[32];

	if (right_time(is, should)) {
		v->off_ms = fmax(v->off_ms, fabs(is - should));
	} else if (is < should && (is + spare >= should || right_time(is + spare, should))) {
		v->disturbed = true;
	} else if (is > should && (is - added <= should || right_time(is - added, should))) {
		v->disturbed = true;
	} else {
		snprintf(a, sizeof(a), "%.2f ms", is);
		snprintf(b, sizeof(b), "%.2f ms", should);
		wrong(v, cause, a, b);
	}
}

/* Of a wait for a thread the log says what that thread did; of code it says the function, which has a row of its own.
 */
static void check_names(struct verdict_of *v, const struct json *row, const struct json *link)
{
	const char *cause = cause_of(link), *what = json__text(link, "what"), *who = json__text(link, "who");
	bool of_code = !strcmp(cause, "code") || !strcmp(cause, "thread_wait");
	const char *is = json__text(json__get(row, "who"), "name");

	if (*what && !of_code && !ends_with(json__text(row, "what"), what))
		wrong(v, "what", json__text(row, "what"), what);
	if (*who && strcmp(is, who))
		wrong(v, "who", is, who);
}

static bool has_function(const struct json *row, const char *name)
{
	json__each(json__get(row, "where"), e) if (!strcmp(json__text(e, "func"), name)) return true;
	return !strcmp(json__text(row, "what"), name);
}

/* One link of the log's chain against the rows of its level; returns the row that it is. */
static const struct json *check_link(
	struct verdict_of *v, const struct json *rows, const struct json *link, bool top, double should)
{
	const char *cause = cause_of(link), *where = json__text(link, "where");
	const struct json *row = first_row(v, rows, cause);
	bool code = !strcmp(cause, "code");

	if (!row || strcmp(cause_of(row), cause)) {
		wrong(v, top ? "the first cause" : "the reason", row ? cause_of(row) : "none", cause);
		return NULL;
	}
	check_names(v, row, link);
	check_time(v, cause, cause_ms(rows, cause, code && top ? "excess_ms" : "ms"), should,
		noise_ms(rows, cause) + between_faults_ms(rows, cause, where), added_ms(v, row));
	v->where = has_function(row, where);
	return row;
}

/* From the frame's own causes down the chain. The log's time is that of the hitch; of what lies under it, the time is
 * that of the wait above. */
static void check_chain(struct verdict_of *v)
{
	const struct json *rows = json__get(v->frame, "causes"), *row;
	double should = json__number(v->hitch, "seen_ms");
	bool top = true, where = true;

	json__each(json__get(v->hitch, "chain"), link)
	{
		row = check_link(v, rows, link, top, should);
		if (!row || v->why[0])
			return;
		where &= v->where;
		rows = json__get(row, "because");
		should = json__number(row, "ms");
		top = false;
	}
	v->where = where;
}

static const struct json *find_frame(const struct json *frames, double number)
{
	json__each(frames, f) if (json__number(f, "frame") == number) return f;
	return NULL;
}

static struct judged *kind_of(struct judgement *j, const char *kind)
{
	for (int i = 0; i < j->n_kinds; i++)
		if (!strcmp(j->kinds[i].kind, kind))
			return &j->kinds[i];
	if (j->n_kinds == JUDGE_KINDS)
		return &j->kinds[JUDGE_KINDS - 1];
	snprintf(j->kinds[j->n_kinds].kind, sizeof(j->kinds[0].kind), "%s", kind);
	return &j->kinds[j->n_kinds++];
}

static void add(struct judged *k, const struct verdict_of *v)
{
	k->hitches++;
	if (v->why[0])
		return;
	k->right++;
	k->disturbed += v->disturbed;
	k->where += v->where;
	k->worst_ms = fmax(k->worst_ms, v->off_ms);
}

static void judge(struct judgement *j, const struct json *hitch, const struct json *explained, FILE *out)
{
	struct verdict_of v = {.hitch = hitch, .busy = j->busy};
	struct judged *k = kind_of(j, json__text(hitch, "kind"));
	double budget = json__number(json__get(explained, "frames"), "budget_ms");

	v.frame = find_frame(json__get(explained, "slow_frames"), json__number(hitch, "frame"));
	if (json__number(hitch, "frame_ms") <= budget * JITTER + 0.05) {
		k->hidden++;
		j->all.hidden++;
		return;
	}
	if (!v.frame)
		wrong(&v, "the frame", "not slow", "slow");
	else
		check_chain(&v);
	j->intended += !!v.frame;
	if (v.why[0])
		fprintf(out, "frame %.0f %s, %.1f ms: %s\n    %s\n", json__number(hitch, "frame"), k->kind,
			json__number(hitch, "seen_ms"), v.why, json__text(v.frame, "verdict"));
	add(k, &v);
	add(&j->all, &v);
}

static int judge_line(struct judgement *j, char *line, const struct json *explained, FILE *out)
{
	struct json *l = json__parse(line);

	if (!l)
		return -EINVAL;
	if (!strcmp(json__text(l, "type"), "hitch"))
		judge(j, l, explained, out);
	json__free(l);
	return 0;
}

int judge__hitches(struct judgement *j, char *log, char *explained, bool busy, FILE *out)
{
	struct json *e = json__parse(explained);
	char *save, *line;
	int err = e ? 0 : -EINVAL;

	*j = (struct judgement){.busy = busy};
	snprintf(j->all.kind, sizeof(j->all.kind), "all");
	j->slow_frames = (int)json__number(json__get(e, "frames"), "slow");
	for (line = strtok_r(log, "\n", &save); !err && line; line = strtok_r(NULL, "\n", &save))
		err = judge_line(j, line, e, out);
	json__free(e);
	return err;
}

static void print_kind(const struct judged *k, FILE *out)
{
	fprintf(out, "%-12s %4d of %4d right", k->kind, k->right, k->hitches);
	fprintf(out, ", within %.2f ms; %d with the functions named", k->worst_ms, k->where);
	if (k->disturbed)
		fprintf(out, "; %d disturbed by others", k->disturbed);
	if (k->hidden)
		fprintf(out, "; %d more in no slow frame", k->hidden);
	fputc('\n', out);
}

void judge__print(const struct judgement *j, FILE *out)
{
	for (int i = 0; i < j->n_kinds; i++)
		print_kind(&j->kinds[i], out);
	print_kind(&j->all, out);
	fprintf(out, "%d slow frames, %d of them without a hitch\n", j->slow_frames, j->slow_frames - j->intended);
}

// SPDX-License-Identifier: GPL-2.0-only
#include <stdio.h>
#include <string.h>

#include "log.h"
#include "soak_limits.h"
#include "strings.h"

static struct scene_did *did_in(struct soak_limits *l, const char *scene)
{
	struct scene_did *d;

	for (u32 i = 0; i < l->n; i++)
		if (!strncmp(l->scenes[i].name, scene, sizeof(l->scenes[i].name) - 1))
			return &l->scenes[i];
	if (l->n == SOAK_LIMITS_SCENES)
		return &l->scenes[l->n - 1];
	d = &l->scenes[l->n++];
	snprintf(d->name, sizeof(d->name), "%s", l->n == SOAK_LIMITS_SCENES ? "further scenes" : scene);
	return d;
}

void soak_limits__frame(struct soak_limits *l, const char *scene, const struct amounts *did, u32 failed)
{
	struct scene_did *d = did_in(l, scene);

	for (int i = 0; i < LIMIT_KINDS; i++) {
		d->crossed[i] += failed >> i & 1;
		d->worst[i] = max(d->worst[i], did->of[i]);
	}
}

static bool check(const struct scene_did *d, int kind, u64 bound, struct store *s, const char *run)
{
	char limit[64], did[64], words[64], text[160], scene[80];
	struct store_check c = {.scene = d->name,
		.name = limit_names[kind],
		.limit = limit,
		.text = text,
		.failed = d->crossed[kind] > 0};

	snprintf(limit, sizeof(limit), "%s=%s", limit_names[kind], limit__words(kind, bound, words, sizeof(words)));
	snprintf(text, sizeof(text), "%llu frames beyond it, the worst %s", (unsigned long long)d->crossed[kind],
		limit__words(kind, d->worst[kind], did, sizeof(did)));
	store__add_check(s, run, &c);
	if (!c.failed)
		return false;
	term__escape(scene, sizeof(scene), d->name, strlen(d->name));
	log_err("limit crossed: %s%s%s: %s", limit, scene[0] ? " in scene " : "", scene, text);
	return true;
}

bool soak_limits__check(const struct soak_limits *l, const struct amounts *limits, struct store *s, const char *run)
{
	bool failed = false;

	for (u32 i = 0; i < l->n; i++)
		for (int kind = 0; kind < LIMIT_KINDS; kind++)
			if (limits->of[kind])
				failed |= check(&l->scenes[i], kind, limits->of[kind], s, run);
	return failed;
}

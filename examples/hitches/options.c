/* SPDX-License-Identifier: GPL-2.0-only */
#include "game.h"
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
	"hitches: a small 60 fps program with a known hitch of each kind on known frames\n"
	"\n"
	"  --shape loop|pipeline  one loop thread (default), or a game thread that feeds a render thread\n"
	"  --hitch KIND,…         all (default), none, or any of:\n"
	"                         lock read mapped memory preempt sleep alloc chain chain_locks condvar code\n"
	"  --every N              a hitch each N frames: the first on frame N (default 60, at least 30)\n"
	"  --rounds N             go through the kinds N times (default 1, or until --frames)\n"
	"  --frames N             frames to present (default: what the hitches need, and --every more)\n"
	"  --fps N                frames a second (default 60)\n"
	"  --ms N                 how long a hitch lasts (default 40; longer below 60 fps)\n"
	"  --log FILE             write the truth as JSON lines (-: standard output)\n"
	"  --dir DIR              where to make the data files (default: a fresh folder in TMPDIR or /var/tmp)\n"
	"  --seed N               vary the ordinary work differently\n"
	"  --quiet                say nothing\n"
	"\n"
	"  hitches --log truth.jsonl\n"
	"  hitches --shape pipeline --hitch lock,chain --rounds 5\n";

enum {
	OPT_SHAPE = 1,
	OPT_HITCH,
	OPT_EVERY,
	OPT_ROUNDS,
	OPT_FRAMES,
	OPT_FPS,
	OPT_MS,
	OPT_LOG,
	OPT_DIR,
	OPT_SEED,
	OPT_QUIET,
	OPT_HELP
};

static const struct option longs[] = {
	{"shape", required_argument, NULL, OPT_SHAPE},
	{"hitch", required_argument, NULL, OPT_HITCH},
	{"every", required_argument, NULL, OPT_EVERY},
	{"rounds", required_argument, NULL, OPT_ROUNDS},
	{"frames", required_argument, NULL, OPT_FRAMES},
	{"fps", required_argument, NULL, OPT_FPS},
	{"ms", required_argument, NULL, OPT_MS},
	{"log", required_argument, NULL, OPT_LOG},
	{"dir", required_argument, NULL, OPT_DIR},
	{"seed", required_argument, NULL, OPT_SEED},
	{"quiet", no_argument, NULL, OPT_QUIET},
	{"help", no_argument, NULL, OPT_HELP},
	{0},
};

static int parse_number(long *out, const char *name, long min, long max)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(optarg, &end, 10);
	if (errno || end == optarg || *end || n < min || n > max) {
		fprintf(stderr, "hitches: --%s %s: a number from %ld to %ld is needed\n", name, optarg, min, max);
		return -EINVAL;
	}
	*out = n;
	return 0;
}

static int parse_shape(struct options *o)
{
	if (!strcmp(optarg, "loop"))
		o->shape = SHAPE_LOOP;
	else if (!strcmp(optarg, "pipeline"))
		o->shape = SHAPE_PIPELINE;
	else
		return fprintf(stderr, "hitches: --shape %s: loop or pipeline is needed\n", optarg), -EINVAL;
	return 0;
}

static int parse_kinds(struct options *o)
{
	const char *p = optarg;
	int k;

	o->n_kinds = 0;
	if (!strcmp(p, "none"))
		return 0;
	if (!strcmp(p, "all")) {
		for (k = 0; k < KIND_COUNT; k++)
			o->kinds[o->n_kinds++] = (enum kind)k;
		return 0;
	}
	for (;;) {
		size_t len = strcspn(p, ",");

		k = kind__find(p, len);
		if (k < 0 || o->n_kinds == MAX_KINDS) {
			fprintf(stderr, "hitches: --hitch %s: %s\n", optarg, k < 0 ? "no such kind" : "too many kinds");
			return -EINVAL;
		}
		o->kinds[o->n_kinds++] = (enum kind)k;
		if (!p[len])
			return 0;
		p += len + 1;
	}
}

static int parse_seed(struct options *o)
{
	long n;
	int err = parse_number(&n, "seed", 0, 1L << 62);

	if (!err)
		o->seed = (uint64_t)n;
	return err;
}

static int parse_option(struct options *o, int option)
{
	switch (option) {
	case OPT_SHAPE:
		return parse_shape(o);
	case OPT_HITCH:
		return parse_kinds(o);
	case OPT_EVERY:
		return parse_number(&o->every, "every", 30, 1000000);
	case OPT_ROUNDS:
		return parse_number(&o->rounds, "rounds", 1, 1000000);
	case OPT_FRAMES:
		return parse_number(&o->frames, "frames", 1, 1000000000);
	case OPT_FPS:
		return parse_number(&o->fps, "fps", 1, 1000);
	case OPT_MS:
		return parse_number(&o->ms, "ms", 1, 1000);
	case OPT_SEED:
		return parse_seed(o);
	case OPT_LOG:
		o->log = optarg;
		return 0;
	case OPT_DIR:
		o->dir = optarg;
		return 0;
	case OPT_QUIET:
		o->quiet = true;
		return 0;
	case OPT_HELP:
		fputs(help, stdout);
		return 1;
	}
	fprintf(stderr, "hitches: see --help\n");
	return -EINVAL;
}

int options__parse(struct options *o, int argc, char **argv)
{
	int option, k, err;

	*o = (struct options){.fps = 60, .every = 60, .seed = 1};
	for (k = 0; k < KIND_COUNT; k++)
		o->kinds[o->n_kinds++] = (enum kind)k;
	while ((option = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		err = parse_option(o, option);
		if (err)
			return err;
	}
	if (optind < argc) {
		fprintf(stderr, "hitches: %s: not an option; see --help\n", argv[optind]);
		return -EINVAL;
	}
	/* long enough to show behind the slack of a pipeline */
	if (!o->ms)
		o->ms = o->fps >= 60 ? 40 : 2400 / o->fps;
	if (!o->rounds && !o->frames)
		o->rounds = 1;
	if (!o->frames)
		o->frames = o->n_kinds ? o->every * (o->n_kinds * o->rounds + 1) : 12 * o->fps;
	return 0;
}

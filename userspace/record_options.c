// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "bpf_options.h"
#include "events_desc.h"
#include "explain_verb.h"
#include "log.h"
#include "record.h"
#include "sites.h"

#define ROW(name, letter, type, field, value, help)                                                                    \
	{                                                                                                              \
		name, letter, type, offsetof(struct record_options, field), value, help                                \
	}

static const struct option_row rows[] = {
	ROW("output", 'o', OPT_TEXT, output, "FILE",
		"default NAME-DATE-TIME.redframe; x.pftrace writes only the trace"),
	ROW("force", 'f', OPT_FLAG, force, NULL, "overwrite FILE"),
	ROW("no-trace", 0, OPT_FLAG, no_trace, NULL, "leave out the .pftrace"),
	ROW("no-symbols", 0, OPT_FLAG, no_symbols, NULL, "no names of functions in the recording: only build-ids"),
	ROW("duration", 'd', OPT_SECONDS, seconds, "SECONDS", "stop after this time"),
	ROW("frames", 0, OPT_UINT, frames, "N", "stop after N frames"),
	ROW("verify", 0, OPT_FLAG, verify, NULL,
		"then measure for some 7 s what recording did to the frame time, by taking it on and off"),
	ROW("bpf-stats", 0, OPT_FLAG, bpf_stats, NULL, "count runs and time of each BPF program; costs some itself"),
	{},
};

const struct option_row record_capture_rows[] = {
	ROW("pid", 'p', OPT_PID, pid, "PID", "the game"),
	ROW("name", 'n', OPT_TEXT, name, "NAME", "the game by its process, program or .exe name"),
	ROW("wait", 0, OPT_FLAG, wait, NULL, "with -n: wait until it starts"),
	ROW("newest", 0, OPT_FLAG, newest, NULL, "with -n: of several take the newest"),
	ROW("children", 0, OPT_FLAG, children, NULL, "record the processes that it starts as well"),
	ROW("budget", 0, OPT_TEXT, budget, "MS|NNfps|auto", "what a frame may take; default auto"),
	ROW("frame", 0, OPT_TEXT, frame, "SPEC",
		"auto, none, vulkan, usdt:PROVIDER:NAME, uprobe:LIB:SYMBOL, uprobe:PATH+0xOFF"),
	ROW("events", 0, OPT_TEXT, events, "LIST",
		"classes: sched,fault,lock,file,alloc,irq,reclaim,syscall,sample; or +x,-y"),
	ROW("alloc", 0, OPT_TEXT, alloc_word, "off|large|all|preload",
		"allocator calls: default large (64 KiB; smaller are summed); preload: all, by a library in CMD"),
	ROW("alloc-sample", 0, OPT_BYTES, alloc_sample, "SIZE",
		"of small allocations, sample one in so many bytes with its calls; default 512K, 0 off"),
	ROW("alloc-fn", 0, OPT_TEXTS, alloc_fn, "SYMBOL[:size=ARG]",
		"the game's own allocator: which argument is the size, from 0; may come again"),
	ROW("sample", 0, OPT_TEXT, sample_word, "HZ|auto",
		"CPU samples of the game's threads; default auto: 1000 a second, or less where a tick is dear; 0 off"),
	ROW("stack", 0, OPT_BYTES, stack, "SIZE", "copied of a stack to find its calls; default and most 16K, 0 off"),
	ROW("kernel-stacks", 0, OPT_TEXT, kernel_stacks_word, "off|some|all",
		"kernel stacks of blocking waits: default some, where the system call does not say it all"),
	ROW("meta", 0, OPT_TEXTS, meta, "KEY=VALUE", "kept in the recording; may come again"),
	ROW("buffer", 0, OPT_BYTES, buffer, "SIZE", "ring buffer; default 16M"),
	ROW("rings", 0, OPT_TEXT, rings_word, "N|auto",
		"of how many rings it consists, each of a group of CPUs; default auto: of 4M each"),
	ROW("max-overhead", 0, OPT_PERCENT, max_overhead, "PCT",
		"of a CPU that probes may cost the game before some are left out; default 3, 0: no bound"),
	ROW("quiet", 'q', OPT_FLAG, quiet, NULL, "only errors"),
	ROW("verbose", 'v', OPT_FLAG, verbose, NULL, "say more"),
	{},
};

static const struct verb record = {
	.name = "record",
	.synopsis = "[-p PID | -n NAME | -- CMD ARGS…] [options]",
	.about =
		"Attaches to a running game, records until it ends, Ctrl-C or a limit, then says why frames were slow.",
	.rows = rows,
	.more = record_capture_rows,
	.examples = "  redframe record -n doom -d 10\n"
		    "  redframe record -p 4242 --budget 60fps --meta commit=1a2b3c\n"
		    "  redframe record --frame uprobe:game:Renderer_Present -o hitch.redframe -- ./game --level 3\n",
};

static int class_by_name(const char *word, size_t len)
{
	for (int i = CLASS_SCHED; i < CLASS_COUNT; i++)
		if (strlen(class_names[i]) == len && !strncmp(class_names[i], word, len))
			return i;
	return -1;
}

#define EVENT_CLASSES "sched, fault, lock, file, alloc, irq, reclaim, syscall, sample"

int record_options__events(bool on[CLASS_COUNT], const char *list)
{
	bool relative = list[0] == '+' || list[0] == '-', value;
	size_t len;
	int class;

	if (!*list) {
		log_err("--events: name at least one class; there are " EVENT_CLASSES);
		return -EINVAL;
	}
	if (!relative)
		for (int i = CLASS_SCHED; i < CLASS_COUNT; i++)
			on[i] = false;
	for (const char *p = list; *p; p += len + (p[len] == ',')) {
		len = strcspn(p, ",");
		value = *p != '-';
		if (*p == '+' || *p == '-') {
			p++;
			len--;
		}
		class = class_by_name(p, len);
		if (class < 0) {
			log_err("--events: no class '%.*s'; there are " EVENT_CLASSES, (int)len, p);
			return -EINVAL;
		}
		on[class] = value;
	}
	return 0;
}

static int alloc_mode(struct record_options *o)
{
	static const char *const words[] = {
		[ALLOC_OFF] = "off", [ALLOC_LARGE] = "large", [ALLOC_ALL] = "all", [ALLOC_PRELOAD] = "preload"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strcmp(o->alloc_word, words[i]))
			continue;
		o->alloc = i;
		if (i != ALLOC_PRELOAD || o->command)
			return 0;
		log_err("--alloc preload: only a game that redframe starts can load its library: '-- CMD'; for one "
			"that "
			"runs there is --alloc all");
		return -EINVAL;
	}
	log_err("--alloc: '%s' is not off, large, all or preload", o->alloc_word);
	return -EINVAL;
}

static int kernel_stacks_mode(struct record_options *o)
{
	static const char *const words[] = {
		[KERNEL_STACKS_OFF] = "off", [KERNEL_STACKS_SOME] = "some", [KERNEL_STACKS_ALL] = "all"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (!strcmp(o->kernel_stacks_word, words[i])) {
			o->kernel_stacks = i;
			return 0;
		}
	}
	log_err("--kernel-stacks: '%s' is not off, some or all", o->kernel_stacks_word);
	return -EINVAL;
}

static int check_target(const struct record_options *o)
{
	int targets = !!o->pid + !!o->name + !!o->command;

	if (targets != 1) {
		log_err(targets ? "give one of -p PID, -n NAME and -- CMD"
				: "what to record? -p PID, -n NAME or -- CMD");
		return -EINVAL;
	}
	if ((o->wait || o->newest) && !o->name) {
		log_err("--%s goes with -n NAME", o->wait ? "wait" : "newest");
		return -EINVAL;
	}
	return 0;
}

static int check_buffer(struct record_options *o)
{
	u64 size = 4096;

	if (o->buffer < 65536 || o->buffer > 1ULL << 30) {
		log_err("--buffer: a size from 64K to 1G");
		return -EINVAL;
	}
	while (size < o->buffer) /* a ring is a power of two */
		size *= 2;
	o->buffer = size;
	return 0;
}

/* A number from min to max, or auto, which leaves *value at 0. */
static int number_or_auto(const char *option, const char *word, unsigned long min, unsigned long max, u32 *value)
{
	char *end;
	unsigned long n = strtoul(word, &end, 10);

	*value = 0;
	if (!strcmp(word, "auto"))
		return 0;
	if (*word < '0' || *word > '9' || *end || n < min || n > max) {
		log_err("--%s: '%s' is not a number from %lu to %lu, or auto", option, word, min, max);
		return -EINVAL;
	}
	*value = (u32)n;
	return 0;
}

static int check_numbers(struct record_options *o)
{
	o->sample_auto = !strcmp(o->sample_word, "auto");
	return number_or_auto("rings", o->rings_word, 1, RINGS_MAX, &o->rings)
		       ?: number_or_auto("sample", o->sample_word, 0, RECORD_SAMPLE_MAX_HZ, &o->sample_hz);
}

static int check_alloc_fn(const struct record_options *o)
{
	char symbol[512];
	int arg;

	for (int i = 0; i < o->alloc_fn.n; i++) {
		if (alloc_fn__parse(o->alloc_fn.v[i], symbol, sizeof(symbol), &arg)) {
			log_err("--alloc-fn: '%s' is not SYMBOL or SYMBOL:size=ARG, ARG from 0 to 5", o->alloc_fn.v[i]);
			return -EINVAL;
		}
	}
	return 0;
}

static int check_meta(const struct record_options *o)
{
	for (int i = 0; i < o->meta.n; i++) {
		if (!strchr(o->meta.v[i], '=') || o->meta.v[i][0] == '=') {
			log_err("--meta: '%s' is not KEY=VALUE", o->meta.v[i]);
			return -EINVAL;
		}
	}
	return 0;
}

void record_options__defaults(struct record_options *o)
{
	*o = (struct record_options){
		.frame = "auto",
		.alloc_word = "large",
		.alloc_sample = ALLOC_SAMPLE_BYTES,
		.kernel_stacks_word = "some",
		.budget = "auto",
		.buffer = CAPTURE_RING_BYTES,
		.rings_word = "auto",
		.sample_word = "auto",
		.stack = RECORD_STACK_BYTES,
		.max_overhead = RECORD_MAX_OVERHEAD,
	};
	for (int i = 0; i < CLASS_COUNT; i++)
		o->on[i] = true;
}

int record_options__check(struct record_options *o, char **argv, int n, int command)
{
	log_level = o->quiet ? LOG_QUIET : o->verbose ? LOG_VERBOSE : LOG_NORMAL;
	if (command) {
		log_err("'%s' is no option; a command to run comes after --", argv[0]);
		return -EINVAL;
	}
	if (n > command)
		o->command = argv + command;
	if ((o->events && record_options__events(o->on, o->events)) || alloc_mode(o) || kernel_stacks_mode(o) ||
		check_target(o) || check_buffer(o) || check_numbers(o) || check_meta(o) || check_alloc_fn(o))
		return -EINVAL;
	if (frame_spec__check(o->frame)) {
		log_err("--frame: '%s' is not " FRAME_SPECS, o->frame);
		return -EINVAL;
	}
	if (budget__parse(o->budget, &o->explain)) {
		log_err("--budget: '%s' is not milliseconds, NNfps or auto", o->budget);
		return -EINVAL;
	}
	if (o->stack > RECORD_STACK_BYTES) {
		log_err("--stack: at most 16K");
		return -EINVAL;
	}
	if (o->alloc_sample > 1u << 30) {
		log_err("--alloc-sample: at most 1G");
		return -EINVAL;
	}
	o->on[CLASS_SAMPLE] &= o->sample_auto || o->sample_hz;
	return 0;
}

int record_options__parse(struct record_options *o, int argc, char **argv)
{
	int n, command, err;

	record_options__defaults(o);
	err = options__parse(&record, argc, argv, o, &n, &command);
	return err ?: record_options__check(o, argv, n, command);
}

// SPDX-License-Identifier: GPL-2.0-only
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture.h"
#include "handlers.h"
#include "log.h"
#include "bpf_options.h"
#include "probe_desc.h"
#include "redframe.skel.h"
#include "sites.h"
#include "syscalls.h"

#define MAX_PROGRAMS 64

struct program {
	const char *name;
	enum ev_class class;
	struct bpf_program *prog;
	bool wanted, failed, attached;
};

struct link {
	struct bpf_link *link;
	int what; /* enum probe_what of a site, -1: no site */
};

struct capture {
	struct redframe_bpf *skel;
	struct capture_options o;
	struct program programs[MAX_PROGRAMS];
	int n_programs;
	char refused[64]; /* the program that the kernel refused, from libbpf's messages */
	char reason[256];
	struct link *links;
	int n_links, cap_links;
	int n_cpus;
	capture_note_fn note;
	void *note_arg;
};

static void note(struct capture *c, enum ev_class class, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static void note(struct capture *c, enum ev_class class, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	c->note(c->note_arg, class, text);
}

/* ---- libbpf's messages: they name the program that failed and why, the return value does not ---- */

static struct capture *listening;

static void hear(struct capture *c, const char *program, const char *reason)
{
	snprintf(c->refused, sizeof(c->refused), "%s", program);
	snprintf(c->reason, sizeof(c->reason), "%s", reason);
	c->reason[strcspn(c->reason, "\n")] = 0;
}

static int listen_to_libbpf(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char line[1024], name[64], *why;

	vsnprintf(line, sizeof(line), fmt, ap);
	if (level <= LIBBPF_WARN)
		log_debug("%s", line);
	if (!listening || level > LIBBPF_WARN || sscanf(line, "libbpf: prog '%63[^']'", name) != 1)
		return 0;
	why = strstr(line, "program load failed: ");
	if (why)
		hear(listening, name, why + strlen("program load failed: "));
	else if (strstr(line, "failed to find kernel BTF type ID"))
		hear(listening, name, "this kernel has no such tracepoint");
	return 0;
}

/* ---- which programs there are ---- */

static enum ev_class class_of(const char *program)
{
	static const char *const names[CLASS_COUNT] = {
#define X(NAME, name) [CLASS_##NAME] = #name "__",
		EV_CLASSES(X)
#undef X
	};

	for (int i = 0; i < CLASS_COUNT; i++)
		if (!strncmp(program, names[i], strlen(names[i])))
			return i;
	return CLASS_META;
}

static bool needs_syscalls(const struct capture_options *o)
{
	return o->on[CLASS_LOCK] || o->on[CLASS_FILE] || o->on[CLASS_ALLOC] || o->on[CLASS_SYSCALL];
}

static bool wanted(const struct capture *c, const char *name, enum ev_class class)
{
	if (!strncmp(name, "syscall__", 9))
		return needs_syscalls(&c->o);
	if (!strcmp(name, "sched__waking") && c->o.on[CLASS_LOCK]) /* who woke a waiter */
		return true;
	if (class == CLASS_IRQ && (c->o.on[CLASS_SCHED] || c->o.on[CLASS_LOCK])) /* whether a wakeup is anyone's */
		return true;
	return c->o.on[class];
}

static int list_programs(struct capture *c)
{
	struct bpf_program *prog;

	c->n_programs = 0;
	bpf_object__for_each_program(prog, c->skel->obj)
	{
		struct program *p = &c->programs[c->n_programs];

		if (c->n_programs == MAX_PROGRAMS)
			return -E2BIG;
		p->name = bpf_program__name(prog);
		p->class = class_of(p->name);
		p->prog = prog;
		p->wanted = wanted(c, p->name, p->class);
		bpf_program__set_autoload(prog, p->wanted && !p->failed);
		c->n_programs++;
	}
	return 0;
}

/* ---- options that depend on the kernel ---- */

/* number of arguments of a BTF tracepoint, 0 where it does not exist; the first is the tracepoint's own */
static int tracepoint_args(const struct btf *btf, const char *name)
{
	const struct btf_type *t;
	char type[96];
	int id;

	snprintf(type, sizeof(type), "btf_trace_%s", name);
	id = btf__find_by_name_kind(btf, type, BTF_KIND_TYPEDEF);
	if (id < 0)
		return 0;
	t = btf__type_by_id(btf, btf__type_by_id(btf, id)->type);
	t = t ? btf__type_by_id(btf, t->type) : NULL;
	return t && btf_is_func_proto(t) ? btf_vlen(t) - 1 : 0;
}

static bool class_wants(const struct capture_options *o, u8 handler)
{
	if (handler == HANDLE_OTHER)
		return o->on[CLASS_SYSCALL];
	if (handler <= HANDLE_SYNC)
		return o->on[CLASS_FILE];
	if (handler <= HANDLE_FUTEX2)
		return o->on[CLASS_LOCK];
	return o->on[CLASS_ALLOC];
}

static void fill_options(struct capture *c)
{
	struct redframe_bpf__rodata *ro = c->skel->rodata;
	struct btf *btf = btf__load_vmlinux_btf();

	ro->opt.tgid = c->o.tgid;
	ro->opt.sched = c->o.on[CLASS_SCHED];
	ro->opt.fault = c->o.on[CLASS_FAULT];
	ro->opt.lock = c->o.on[CLASS_LOCK];
	ro->opt.file = c->o.on[CLASS_FILE];
	ro->opt.alloc = c->o.on[CLASS_ALLOC];
	ro->opt.syscall = c->o.on[CLASS_SYSCALL];
	ro->opt.irq = c->o.on[CLASS_IRQ];
	ro->opt.alloc_min = c->o.alloc_min;
	ro->opt.syscall_min_ns = c->o.syscall_min_ns;
	if (btf) {
		ro->opt.switch_has_state = tracepoint_args(btf, "sched_switch") >= 4;
		ro->opt.uring_complete_has_cqe = tracepoint_args(btf, "io_uring_complete") == 3;
		btf__free(btf);
	}
	for (int nr = 0; nr < SYSCALL_NRS; nr++) {
		u16 id = syscall__id(nr);
		u8 handler = id & SYS_RAW ? (u8)HANDLE_OTHER : syscall__handler(id);

		ro->syscalls[nr].id = id;
		ro->syscalls[nr].handler = handler;
		ro->syscalls[nr].on = class_wants(&c->o, handler);
	}
}

/* ---- load ---- */

static int open_skeleton(struct capture *c)
{
	int err;

	redframe_bpf__destroy(c->skel);
	c->skel = redframe_bpf__open();
	if (!c->skel)
		return -errno;
	err = list_programs(c);
	if (err)
		return err;
	fill_options(c);
	err = bpf_map__set_max_entries(c->skel->maps.events, c->o.ring_bytes);
	if (!err)
		err = bpf_map__set_max_entries(c->skel->maps.probes, PROBE_MAX);
	return err;
}

static struct program *find_program(struct capture *c, const char *name)
{
	for (int i = 0; i < c->n_programs; i++)
		if (!strcmp(c->programs[i].name, name))
			return &c->programs[i];
	return NULL;
}

/* Loads; each program that the kernel refuses is taken out and the rest tried again. */
static int load(struct capture *c)
{
	struct program *p;
	int err;

	for (;;) {
		err = open_skeleton(c);
		if (err)
			return err;
		c->refused[0] = 0;
		listening = c;
		err = redframe_bpf__load(c->skel);
		listening = NULL;
		if (!err)
			return 0;
		p = c->refused[0] ? find_program(c, c->refused) : NULL;
		if (!p || p->failed || err == -EPERM)
			return err;
		p->failed = true;
		note(c, p->class, "program %s does not load here: %s", p->name, c->reason);
	}
}

int capture__load(struct capture **out, const struct capture_options *o, capture_note_fn note_fn, void *arg)
{
	struct capture *c = calloc(1, sizeof(*c));
	int err;

	*out = NULL;
	if (!c)
		return -ENOMEM;
	c->o = *o;
	c->note = note_fn;
	c->note_arg = arg;
	c->n_cpus = libbpf_num_possible_cpus();
	libbpf_set_print(listen_to_libbpf);
	err = load(c);
	if (err) {
		note(c, CLASS_META, "loading the BPF programs: %s", errstr(err));
		capture__free(c);
		return err;
	}
	*out = c;
	return 0;
}

/* ---- attach ---- */

static int keep(struct capture *c, struct bpf_link *link, int what)
{
	struct link *links;

	if (!link)
		return -errno;
	if (c->n_links == c->cap_links) {
		int cap = max(64, 2 * c->cap_links);

		links = realloc(c->links, cap * sizeof(*links));
		if (!links) {
			bpf_link__destroy(link);
			return -ENOMEM;
		}
		c->links = links;
		c->cap_links = cap;
	}
	c->links[c->n_links++] = (struct link){link, what};
	return 0;
}

static int attach_per_cpu(struct capture *c, struct program *p, u64 config, u64 period, bool frequency)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = config,
		.sample_period = period,
		.freq = frequency,
	};
	int attached = 0, err = 0;

	for (int cpu = 0; cpu < c->n_cpus; cpu++) {
		int fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

		if (fd < 0) {
			if (errno == ENODEV || errno == ENXIO)
				continue; /* not online */
			return -errno;
		}
		err = keep(c, bpf_program__attach_perf_event(p->prog, fd), -1);
		if (err) {
			close(fd);
			return err;
		}
		attached++;
	}
	return attached ? 0 : -ENODEV;
}

static int attach_program(struct capture *c, struct program *p)
{
	if (!strcmp(p->name, "fault__minor"))
		return attach_per_cpu(c, p, PERF_COUNT_SW_PAGE_FAULTS_MIN, 1, false);
	if (!strcmp(p->name, "fault__major"))
		return attach_per_cpu(c, p, PERF_COUNT_SW_PAGE_FAULTS_MAJ, 1, false);
	if (!strcmp(p->name, "sample__tick"))
		return attach_per_cpu(c, p, PERF_COUNT_SW_CPU_CLOCK, c->o.sample_hz, true);
	return keep(c, bpf_program__attach(p->prog), -1);
}

static bool is_uprobe(const struct program *p)
{
	return bpf_program__type(p->prog) == BPF_PROG_TYPE_KPROBE;
}

int capture__attach(struct capture *c)
{
	int attached = 0, err = 0, e;

	for (int i = 0; i < c->n_programs; i++) {
		struct program *p = &c->programs[i];

		if (!p->wanted || p->failed || is_uprobe(p))
			continue;
		e = attach_program(c, p);
		if (e) {
			err = e;
			note(c, p->class, "program %s does not attach: %s", p->name, errstr(e));
			continue;
		}
		p->attached = true;
		attached++;
	}
	return attached ? 0 : err;
}

static int attach_site(struct capture *c, const struct site_list *l, int i)
{
	const struct site *s = &l->sites[i];
	struct program *p = find_program(c, s->desc.what == PROBE_ALLOC ? "alloc__call" : "frame__mark");
	char path[64];
	u32 key = i;
	int err;
	LIBBPF_OPTS(bpf_uprobe_opts, opts, .bpf_cookie = i, .ref_ctr_offset = s->semaphore);

	if (!p || p->failed || !p->wanted)
		return -ENOENT;
	err = bpf_map__update_elem(c->skel->maps.probes, &key, sizeof(key), &s->desc, sizeof(s->desc), BPF_ANY);
	if (err)
		return err;
	/* the inode that the game maps, whatever its path means to us */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", l->files[s->file].fd);
	err = keep(c, bpf_program__attach_uprobe_opts(p->prog, c->o.tgid, path, s->offset, &opts), s->desc.what);
	if (!err)
		p->attached = true;
	return err;
}

int capture__attach_sites(struct capture *c, const struct site_list *l, int first)
{
	int err = 0, e;

	for (int i = first; i < l->n; i++) {
		e = attach_site(c, l, i);
		if (!e)
			continue;
		err = e;
		note(c, l->sites[i].desc.what == PROBE_ALLOC ? CLASS_ALLOC : CLASS_FRAME,
			"probe %s does not attach: %s", l->sites[i].label, errstr(e));
	}
	return err;
}

/* ---- detach ---- */

#define DETACHERS 16

struct detach {
	struct link *links;
	int n;
	int next; /* taken with an atomic add */
};

static void *detach_some(void *arg)
{
	struct detach *d = arg;
	int i;

	while ((i = __atomic_fetch_add(&d->next, 1, __ATOMIC_RELAXED)) < d->n)
		bpf_link__destroy(d->links[i].link);
	return NULL;
}

/* The kernel waits for a grace period at each uprobe (about 0.1 s): side by side they are one wait. */
static void destroy(struct link *links, int n)
{
	struct detach d = {.links = links, .n = n};
	pthread_t threads[DETACHERS];
	int started = 0;

	while (started < min(n / 2, DETACHERS) && !pthread_create(&threads[started], NULL, detach_some, &d))
		started++;
	detach_some(&d);
	while (started)
		pthread_join(threads[--started], NULL);
}

void capture__detach_sites(struct capture *c, u8 what)
{
	int kept = 0;

	for (int i = 0; i < c->n_links; i++) {
		if (c->links[i].what == what)
			continue;
		struct link moved = c->links[i];

		c->links[i] = c->links[kept];
		c->links[kept++] = moved;
	}
	destroy(c->links + kept, c->n_links - kept);
	c->n_links = kept;
}

void capture__detach(struct capture *c)
{
	destroy(c->links, c->n_links);
	c->n_links = 0;
}

void capture__free(struct capture *c)
{
	if (!c)
		return;
	capture__detach(c);
	free(c->links);
	redframe_bpf__destroy(c->skel);
	free(c);
}

int capture__ring_fd(const struct capture *c)
{
	return bpf_map__fd(c->skel->maps.events);
}

u64 capture__lost(const struct capture *c, enum ev_class class, u32 cpu)
{
	return __atomic_load_n(&c->skel->bss->lost_records[class][cpu & (LOST_CPUS - 1)], __ATOMIC_RELAXED);
}

u64 capture__alloc_calls(const struct capture *c)
{
	u64 sum = 0;

	for (int i = 0; i < LOST_CPUS; i++)
		sum += c->skel->bss->alloc_calls[i].n;
	return sum;
}

bool capture__attached(const struct capture *c, enum ev_class class)
{
	int n = 0;

	for (int i = 0; i < c->n_programs; i++) {
		const struct program *p = &c->programs[i];

		if (p->class != class || !p->wanted)
			continue;
		if (!p->attached)
			return false;
		n++;
	}
	return n > 0;
}

bool capture__program(const struct capture *c, int i, const char **name, enum ev_class *class, bool *attached)
{
	if (i >= c->n_programs)
		return false;
	*name = c->programs[i].name;
	*class = c->programs[i].class;
	*attached = c->programs[i].attached;
	return true;
}

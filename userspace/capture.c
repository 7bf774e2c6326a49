// SPDX-License-Identifier: GPL-2.0-only
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture_internal.h"
#include "handlers.h"
#include "log.h"
#include "probe_desc.h"
#include "syscalls.h"

void capture__note(struct capture *c, enum ev_class class, const char *fmt, ...)
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

/* The verifier's own words: the last line of its log before the one with its statistics. */
static void hear_verifier(struct capture *c, char *verdict)
{
	char *line, *save, *last = NULL;

	for (line = strtok_r(verdict, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (!strncmp(line, "processed ", 10) || !strncmp(line, "-- END", 6))
			break;
		last = line;
	}
	if (last)
		snprintf(c->reason + strlen(c->reason), sizeof(c->reason) - strlen(c->reason), " (%s)", last);
}

#define TOLD_MAX 1800 /* bytes of a message that are worth showing; a verifier's log counts from its end */

static int listen_to_libbpf(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	static const char log_begins[] = "-- BEGIN PROG LOAD LOG --\n";
	char *text, name[64], *why;
	int n;

	if (level > LIBBPF_WARN)
		return 0;
	n = vasprintf(&text, fmt, ap);
	if (n < 0)
		return 0;
	log_debug("%s", n > TOLD_MAX ? text + n - TOLD_MAX : text);
	if (!listening || sscanf(text, "libbpf: prog '%63[^']'", name) != 1)
		goto cleanup;
	why = strstr(text, "program load failed: ");
	if (why)
		hear(listening, name, why + strlen("program load failed: "));
	else if (strstr(text, "failed to find kernel BTF type ID"))
		hear(listening, name, "this kernel has no such tracepoint");
	else if ((why = strstr(text, log_begins)) && !strcmp(name, listening->refused))
		hear_verifier(listening, why + strlen(log_begins));
cleanup:
	free(text);
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
	if (c->o.follow && !strcmp(name, "sched__newtask"))
		return true;
	if (!strcmp(name, "sched__waking") && c->o.on[CLASS_LOCK]) /* who woke a waiter */
		return true;
	if (!strcmp(name, "sched__switch") && (c->o.on[CLASS_LOCK] || c->o.on[CLASS_SYSCALL])) /* where waits begin */
		return true;
	if (!strcmp(name, "sched__exit")) /* to forget them */
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

/* io_uring's tracepoints changed their names and arguments: bpf/uring.bpf.c says when. */
static void fit_uring(struct capture *c, const struct btf *btf)
{
	struct program *submit = capture__find_program(c, "file__uring_submit");
	struct program *complete = capture__find_program(c, "file__uring_complete");
	int args = tracepoint_args(btf, "io_uring_complete");

	c->skel->rodata->opt.uring_complete_has_cqe = args == 3;
	if (!submit->wanted || submit->failed)
		return;
	if (!tracepoint_args(btf, "io_uring_submit_req") &&
		!bpf_program__set_attach_target(submit->prog, 0, "io_uring_submit_sqe"))
		c->skel->rodata->opt.uring_submit_has_ctx = tracepoint_args(btf, "io_uring_submit_sqe") > 2;
	if (args != 4)
		return;
	/* v5.18 c73ebb685fb6: until then io_uring_complete(ctx, user_data, res, cflags) */
	submit->failed = complete->failed = true;
	c->skel->bss->fd_changing = 1; /* a descriptor may be closed through it unseen, at any time */
	bpf_program__set_autoload(submit->prog, false);
	bpf_program__set_autoload(complete->prog, false);
	capture__note(c, CLASS_FILE, "io_uring is not recorded: this kernel does not tell which request is complete");
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

/* Calls after which a descriptor that meant one file may mean another. Those that only make new ones are not among
 * them, since a new one is one that was closed before. */
static bool changes_fds(int nr)
{
#ifdef SYS_dup2
	if (nr == SYS_dup2)
		return true;
#endif
	return nr == SYS_close || nr == SYS_close_range || nr == SYS_dup3 || nr == SYS_execve || nr == SYS_execveat ||
	       nr == SYS_unshare;
}

static enum cause cause_of(u16 id)
{
	return id & SYS_RAW ? CAUSE_KERNEL : syscall__cause(id);
}

static u8 handler_of(u16 id)
{
	return id & SYS_RAW ? (u8)HANDLE_OTHER : syscall__handler(id);
}

static bool waits_on_futex(u16 id)
{
	return handler_of(id) >= HANDLE_FUTEX && handler_of(id) <= HANDLE_FUTEX2;
}

/* What blocked the thread is told by the call itself: the lock's address, the timer, the files it polls. */
static bool call_says_it(u16 id)
{
	return waits_on_futex(id) || cause_of(id) == CAUSE_SLEEP ||
	       (cause_of(id) == CAUSE_IO_WAIT && id != SYS_ID_ioctl);
}

/* It has nothing to do but to wait. A driver may work for long in an ioctl, and in a call that we do not know. */
static bool only_sleeps(u16 id)
{
	static const bool waits[CAUSE_COUNT] = {[CAUSE_SLEEP] = true,
		[CAUSE_IO_WAIT] = true,
		[CAUSE_THREAD_WAIT] = true,
		[CAUSE_LOCK_WAIT] = true,
		[CAUSE_CPU_WAIT] = true};

	return waits_on_futex(id) || (handler_of(id) == HANDLE_OTHER && waits[cause_of(id)] && id != SYS_ID_ioctl);
}

static void fill_options(struct capture *c)
{
	struct redframe_bpf__rodata *ro = c->skel->rodata;
	struct btf *btf = c->btf;

	ro->opt.tgid = c->o.tgid;
	ro->opt.follow = c->o.follow;
	ro->opt.sched = c->o.on[CLASS_SCHED];
	ro->opt.fault = c->o.on[CLASS_FAULT];
	ro->opt.lock = c->o.on[CLASS_LOCK];
	ro->opt.file = c->o.on[CLASS_FILE];
	ro->opt.alloc = c->o.on[CLASS_ALLOC];
	ro->opt.syscall = c->o.on[CLASS_SYSCALL];
	ro->opt.irq = c->o.on[CLASS_IRQ];
	ro->opt.alloc_min = c->o.alloc_min;
	ro->opt.alloc_sample_bytes = c->o.alloc_sample_bytes;
	ro->opt.syscall_min_ns = c->o.syscall_min_ns;
	ro->opt.stack_bytes = c->o.stack_bytes;
	ro->opt.stack_wait_ns = CAPTURE_STACK_WAIT_NS;
	ro->opt.stack_alloc_bytes = ALLOC_ALWAYS_BYTES;
	ro->opt.stack_ring_bytes = c->o.ring_bytes / 2;
	ro->opt.stack_sample_every = max(c->o.sample_hz / CAPTURE_STACK_SAMPLE_HZ, 1u);
	ro->opt.stacks_per_thread = CAPTURE_STACKS_PER_THREAD;
	ro->opt.stacks_per_second = CAPTURE_STACKS_PER_SECOND;
	if (c->o.kernel_stacks)
		ro->opt.kernel_stacks_per_second =
			c->o.kernel_stacks == KERNEL_STACKS_ALL ? ~0U : CAPTURE_KERNEL_STACKS_PER_SECOND;
	if (btf) {
		ro->opt.switch_has_state = tracepoint_args(btf, "sched_switch") >= 4;
		fit_uring(c, btf);
	}
	for (int nr = 0; nr < SYSCALL_NRS; nr++) {
		u16 id = syscall__id(nr);
		u8 handler = handler_of(id);

		ro->syscalls[nr].id = id;
		ro->syscalls[nr].handler = handler;
		ro->syscalls[nr].changes_fds = c->o.on[CLASS_FILE] && changes_fds(nr);
		ro->syscalls[nr].on = class_wants(&c->o, handler) || ro->syscalls[nr].changes_fds;
		ro->syscalls[nr].sleeps = class_wants(&c->o, handler) && only_sleeps(id);
		ro->syscalls[nr].kernel_stack = c->o.kernel_stacks == KERNEL_STACKS_ALL || !call_says_it(id);
	}
}

/* ---- load ---- */

bool program__is_uprobe(const struct program *p)
{
	return bpf_program__type(p->prog) == BPF_PROG_TYPE_KPROBE;
}

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
	if (c->uprobe_multi)
		for (int i = 0; i < c->n_programs; i++)
			if (program__is_uprobe(&c->programs[i]))
				bpf_program__set_expected_attach_type(
					c->programs[i].prog, (enum bpf_attach_type)UPROBE_MULTI_ATTACH_TYPE);
	err = bpf_map__set_autocreate(c->skel->maps.kernel_stacks, c->o.kernel_stacks);
	if (!err)
		err = capture__size_rings(c);
	if (!err)
		err = bpf_map__set_max_entries(c->skel->maps.probes, PROBE_MAX);
	if (!err && c->o.follow)
		err = bpf_map__set_max_entries(c->skel->maps.games, FOLLOW_MAX);
	return err;
}

struct program *capture__find_program(struct capture *c, const char *name)
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
		p = c->refused[0] ? capture__find_program(c, c->refused) : NULL;
		if (!p || p->failed || err == -EPERM)
			return err;
		p->failed = true;
		capture__note(c, p->class, "program %s does not load here: %s", p->name, c->reason);
	}
}

/* v5.15 7adfc6c9b315: without cookies a probe does not know which one it is. Some programs load on older kernels, but a
 * recording without frames, calls and faults explains nothing. */
static bool too_old(void)
{
	return libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_get_attach_cookie, NULL) == 0;
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
	c->uprobe_multi = uprobe_multi__supported();
	libbpf_set_print(listen_to_libbpf);
	if (too_old()) {
		capture__note(
			c, CLASS_META, "this kernel is too old: redframe needs Linux 5.15 or later (BPF cookies)");
		capture__free(c);
		return -EOPNOTSUPP;
	}
	c->btf = btf__load_vmlinux_btf();
	capture__choose_rings(c);
	err = load(c) ?: capture__map_rings(c);
	btf__free(c->btf);
	c->btf = NULL;
	if (err) {
		capture__note(c, CLASS_META, "loading the BPF programs: %s", errstr(err));
		capture__free(c);
		return err;
	}
	*out = c;
	return 0;
}

int capture__follow(struct capture *c, u32 tgid)
{
	u8 yes = 1;

	return bpf_map__update_elem(c->skel->maps.games, &tgid, sizeof(tgid), &yes, sizeof(yes), BPF_ANY);
}

void capture__game(struct capture *c, u32 tgid, bool only)
{
	c->o.tgid = tgid;
	c->skel->bss->game_tgid = tgid;
	__atomic_store_n(&c->skel->bss->game_only, only ? tgid : 0, __ATOMIC_RELAXED);
}

void capture__heap(struct capture *c, u64 bins)
{
	__atomic_store_n(&c->skel->bss->heap_bins, bins, __ATOMIC_RELAXED);
}

void capture__free(struct capture *c)
{
	if (!c)
		return;
	capture__detach(c);
	capture__unmap_rings(c);
	free(c->links);
	redframe_bpf__destroy(c->skel);
	free(c);
}

void capture__thin(struct capture *c, u32 thin)
{
	__atomic_store_n(&c->skel->bss->thin, thin, __ATOMIC_RELAXED);
}

// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture_internal.h"
#include "drain.h"
#include "log.h"
#include "probe_desc.h"
#include "sites.h"

static void link__destroy(struct link *l)
{
	if (l->link)
		bpf_link__destroy(l->link);
	else
		close(l->fd);
}

/* ---- attach ---- */

static int keep(struct capture *c, struct link link)
{
	struct link *links;

	if (c->n_links == c->cap_links) {
		int cap = max(64, 2 * c->cap_links);

		links = realloc(c->links, cap * sizeof(*links));
		if (!links) {
			link__destroy(&link);
			return -ENOMEM;
		}
		c->links = links;
		c->cap_links = cap;
	}
	c->links[c->n_links++] = link;
	return 0;
}

/* what libbpf returns: NULL with errno */
static int keep_link(struct capture *c, struct bpf_link *link, int what)
{
	return link ? keep(c, (struct link){.link = link, .fd = -1, .what = what}) : -errno;
}

static int attach_per_cpu(struct capture *c, struct program *p, struct perf_event_attr attr, int what)
{
	int attached = 0, err = 0;

	for (int cpu = 0; cpu < c->n_cpus; cpu++) {
		int fd;

		attr.type = PERF_TYPE_SOFTWARE;
		attr.size = sizeof(attr);
		fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

		if (fd < 0) {
			if (errno == ENODEV || errno == ENXIO)
				continue; /* not online */
			return -errno;
		}
		err = keep_link(c, bpf_program__attach_perf_event(p->prog, fd), what);
		if (err) {
			close(fd);
			return err;
		}
		attached++;
	}
	return attached ? 0 : -ENODEV;
}

/* Where a fault ends: of user code, and of the kernel's own. The event costs every process's faults some 200 ns where
 * it fires, and 45 where it is for the other of the two; so those that the game may not need can go by themselves. */
static int attach_fault_end(struct capture *c, struct program *p, u64 config, bool kernel)
{
	struct perf_event_attr attr = {
		.config = config,
		.sample_period = 1,
		.exclude_user = kernel,
		.exclude_kernel = !kernel,
	};

	return attach_per_cpu(c, p, attr, kernel ? LINK_KERNEL_FAULT : -1);
}

static int attach_timer(struct capture *c, struct program *p)
{
	struct perf_event_attr attr = {
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = NSEC_PER_SEC / c->o.sample_hz,
	};

	return attach_per_cpu(c, p, attr, LINK_SAMPLE);
}

static u64 fault_end_of(const struct program *p)
{
	return !strcmp(p->name, "fault__minor")   ? PERF_COUNT_SW_PAGE_FAULTS_MIN
	       : !strcmp(p->name, "fault__major") ? PERF_COUNT_SW_PAGE_FAULTS_MAJ
						  : 0;
}

static bool is_kernel_fault(const struct program *p)
{
	return fault_end_of(p) || !strcmp(p->name, "fault__kernel");
}

static int attach_kernel_fault(struct capture *c, struct program *p)
{
	if (fault_end_of(p))
		return attach_fault_end(c, p, fault_end_of(p), true);
	return keep_link(c, bpf_program__attach(p->prog), LINK_KERNEL_FAULT);
}

static bool is_call(const struct program *p)
{
	return !strncmp(p->name, "syscall__", 9);
}

static u32 bit_of(int what)
{
	return 1U << (what - LINK_CALL);
}

static void leave_out(struct capture *c, int what, bool out)
{
	c->left_out = out ? c->left_out | bit_of(what) : c->left_out & ~bit_of(what);
}

static bool is_left_out(const struct capture *c, int what)
{
	return c->left_out & bit_of(what);
}

static int attach_program(struct capture *c, struct program *p)
{
	if (is_kernel_fault(p)) {
		int err = fault_end_of(p) ? attach_fault_end(c, p, fault_end_of(p), false) : 0;

		return err || is_left_out(c, LINK_KERNEL_FAULT) ? err : attach_kernel_fault(c, p);
	}
	if (!strcmp(p->name, "sample__tick"))
		return is_left_out(c, LINK_SAMPLE) ? 0 : attach_timer(c, p);
	if (is_call(p))
		return is_left_out(c, LINK_CALL) ? 0 : keep_link(c, bpf_program__attach(p->prog), LINK_CALL);
	return keep_link(c, bpf_program__attach(p->prog), -1);
}

int capture__attach(struct capture *c)
{
	int attached = 0, err = 0, e;

	/* backwards, since ends come after beginnings there: what is seen to begin is also seen to end */
	for (int i = c->n_programs - 1; i >= 0; i--) {
		struct program *p = &c->programs[i];

		if (!p->wanted || p->failed || program__is_uprobe(p))
			continue;
		e = attach_program(c, p);
		if (e) {
			err = e;
			capture__note(c, p->class, "program %s does not attach: %s", p->name, errstr(e));
			continue;
		}
		p->attached = true;
		attached++;
	}
	return attached ? 0 : err;
}

/* ---- sites ---- */

/* Sites of one file for one program, to be attached together. */
struct batch {
	struct program *program;
	char path[32]; /* the inode that the game maps, whatever its path means to us */
	u64 *offsets, *semaphores, *cookies;
	int what;
	u32 n;
};

static int attach_range(struct capture *c, const struct batch *b, u32 first, u32 n)
{
	int prog = bpf_program__fd(b->program->prog), fd = -E2BIG;

	if (c->uprobe_multi)
		fd = uprobe_multi__attach(
			prog, b->path, c->o.tgid, b->offsets + first, b->semaphores + first, b->cookies + first, n);
	else if (n == 1)
		fd = uprobe__attach(
			prog, b->path, c->o.tgid, b->offsets[first], b->semaphores[first], b->cookies[first]);
	return fd < 0 ? fd : keep(c, (struct link){.fd = fd, .what = b->what});
}

struct failed {
	u32 n, first; /* how many, and which was the first */
	int err;      /* … and why */
};

/* All together where the kernel can; what fails must not take the others with it. */
static void attach_batch(struct capture *c, struct batch *b, u32 first, u32 n, struct failed *f)
{
	int err = attach_range(c, b, first, n);

	if (!err) {
		b->program->attached = true;
	} else if (n == 1 || err == -EMFILE || err == -ENFILE) {
		if (!f->n)
			*f = (struct failed){.first = first, .err = err};
		f->n += n;
	} else {
		attach_batch(c, b, first, n / 2, f);
		attach_batch(c, b, first + n / 2, n - n / 2, f);
	}
}

static void tell_failed(struct capture *c, const struct batch *b, const struct site_list *l, const struct failed *f)
{
	char more[48] = "";

	if (f->n > 1)
		snprintf(more, sizeof(more), " and %u more like it", f->n - 1);
	if (f->n)
		capture__note(c, b->what >= PROBE_ALLOC ? CLASS_ALLOC : CLASS_FRAME, "probe %s%s: not attached: %s",
			l->sites[b->cookies[f->first]].label, more, errstr(f->err));
}

static int add_to_batch(struct capture *c, struct batch *b, const struct site *s, u32 i)
{
	struct probe_desc desc = s->desc;
	int err;

	desc.stepped = s->stepped;
	err = bpf_map__update_elem(c->skel->maps.probes, &i, sizeof(i), &desc, sizeof(desc), BPF_ANY);

	if (err)
		return err;
	b->offsets[b->n] = s->offset;
	b->semaphores[b->n] = s->semaphore;
	b->cookies[b->n++] = i;
	return 0;
}

/* The sites from `first` on of one file that mean `what`. */
static int attach_file(struct capture *c, const struct site_list *l, int first, int file, int what, struct batch *b)
{
	struct failed failed = {};
	int err = 0;

	snprintf(b->path, sizeof(b->path), "/proc/self/fd/%d", l->files[file].fd);
	b->what = what;
	b->n = 0;
	b->program = capture__find_program(c, what >= PROBE_ALLOC ? "alloc__call" : "frame__mark");
	for (int i = first; i < l->n; i++)
		if (l->sites[i].file == file && l->sites[i].desc.what == what && !l->sites[i].gone)
			err = add_to_batch(c, b, &l->sites[i], i) ?: err;
	if (!b->n)
		return err;
	if (!b->program || !b->program->wanted || b->program->failed)
		return -ENOENT;
	attach_batch(c, b, 0, b->n, &failed);
	tell_failed(c, b, l, &failed);
	return failed.err ?: err;
}

static int attach_sites(struct capture *c, const struct site_list *l, int first, int from, int to)
{
	u64 *room = calloc(3 * max(l->n, 1), sizeof(u64));
	struct batch b = {.offsets = room, .semaphores = room + l->n, .cookies = room + 2 * l->n};
	int err = room ? 0 : -ENOMEM;

	for (int file = 0; room && file < l->n_files; file++)
		for (int what = from; what <= to; what++)
			if (!is_left_out(c, what))
				err = attach_file(c, l, first, file, what, &b) ?: err;
	free(room);
	return err;
}

int capture__attach_sites(struct capture *c, const struct site_list *l, int first)
{
	return attach_sites(c, l, first, PROBE_FRAME, PROBE_SAMPLED);
}

int capture__attach_sites_again(struct capture *c, const struct site_list *l, u8 what)
{
	leave_out(c, what, false);
	return attach_sites(c, l, 0, what, what);
}

/* ---- detach ---- */

static void destroy(struct link *links, int n)
{
	for (int i = n - 1; i >= 0; i--)
		link__destroy(&links[i]);
}

/* What is of that kind; or all that is not, with but. */
static void detach_what(struct capture *c, int what, bool but)
{
	int kept = 0;

	for (int i = 0; i < c->n_links; i++) {
		if ((c->links[i].what == what) != but)
			continue;
		struct link moved = c->links[i];

		c->links[i] = c->links[kept];
		c->links[kept++] = moved;
	}
	destroy(c->links + kept, c->n_links - kept);
	c->n_links = kept;
}

void capture__detach_sites(struct capture *c, u8 what)
{
	detach_what(c, what, false);
}

void capture__leave_out_sites(struct capture *c, u8 what)
{
	leave_out(c, what, true);
	detach_what(c, what, false);
}

void capture__pause(struct capture *c)
{
	detach_what(c, PROBE_FRAME, true);
}

/* While the programs at calls were gone, calls ended and descriptors were closed unseen. */
static void saw_nothing(struct capture *c)
{
	__atomic_fetch_add(&c->skel->bss->fd_changes, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&c->skel->bss->calls_since, clock_boot_ns(), __ATOMIC_RELEASE);
}

int capture__resume(struct capture *c, const struct site_list *sites)
{
	int err = capture__attach(c) ?: attach_sites(c, sites, 0, PROBE_FRAME + 1, PROBE_SAMPLED);

	saw_nothing(c);
	return err;
}

int capture__sample(struct capture *c, bool on)
{
	struct program *p = capture__find_program(c, "sample__tick");

	leave_out(c, LINK_SAMPLE, !on);
	detach_what(c, LINK_SAMPLE, false);
	return on && p && p->attached ? attach_program(c, p) : 0;
}

int capture__kernel_faults(struct capture *c, bool on)
{
	int err = 0;

	leave_out(c, LINK_KERNEL_FAULT, !on);
	detach_what(c, LINK_KERNEL_FAULT, false);
	for (int i = 0; i < c->n_programs && on && !err; i++)
		if (c->programs[i].attached && is_kernel_fault(&c->programs[i]))
			err = attach_kernel_fault(c, &c->programs[i]);
	return err;
}

static int attach_calls(struct capture *c)
{
	int err = 0;

	for (int i = c->n_programs - 1; i >= 0 && !err; i--)
		if (c->programs[i].attached && is_call(&c->programs[i]))
			err = attach_program(c, &c->programs[i]);
	saw_nothing(c);
	return err;
}

int capture__syscalls(struct capture *c, bool on)
{
	leave_out(c, LINK_CALL, !on);
	if (on)
		return attach_calls(c);
	detach_what(c, LINK_CALL, false);
	return 0;
}

/* ---- trials ---- */

struct capture_trial {
	struct link link;
};

struct capture_trial *capture__try(const struct capture *c, const char *path, u64 offset)
{
	struct program *p = capture__find_program((struct capture *)c, "alloc__call");
	struct capture_trial *t = calloc(1, sizeof(*t));
	u64 none = 0, cookie = 0;

	if (!t || !p || !p->wanted || p->failed)
		goto failed;
	t->link.fd = -1;
	if (c->uprobe_multi)
		t->link.fd =
			uprobe_multi__attach(bpf_program__fd(p->prog), path, (u32)getpid(), &offset, &none, &cookie, 1);
	else
		t->link.link = bpf_program__attach_uprobe(p->prog, false, getpid(), path, offset);
	if (t->link.link || t->link.fd >= 0)
		return t;
failed:
	free(t);
	return NULL;
}

void capture__end_try(struct capture_trial *t)
{
	link__destroy(&t->link);
	free(t);
}

void capture__detach(struct capture *c)
{
	destroy(c->links, c->n_links);
	c->n_links = 0;
}

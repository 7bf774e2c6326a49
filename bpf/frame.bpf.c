// SPDX-License-Identifier: GPL-2.0-only
/* Frame boundaries, and what the game says of itself through its markers. */
#include "probe.bpf.h"
#include "alloc.bpf.h"

__u64 stepped_marks = 0;

#define WL_SURFACE_COMMIT 6 /* wayland.xml */

/* A Wayland object begins with its interface, and that with its name: "wl_surface", as numbers, since a constant would
 * get a section of its own, which the linker loses. */
static __always_inline bool commits(u32 request, u64 object)
{
	u64 at = 0, name[2] = {};

	if (request != WL_SURFACE_COMMIT || bpf_probe_read_user(&at, sizeof(at), (void *)object) ||
		bpf_probe_read_user(&at, sizeof(at), (void *)at))
		return false;
	if (bpf_probe_read_user(name, 11, (void *)at))
		return false;
	return name[0] == 0x61667275735f6c77ULL && name[1] == 0x6563;
}

static __always_inline int frame(struct pt_regs *ctx, struct task_struct *task, const struct probe_desc *p)
{
	bool commit = p->sub == PROBE_COMMIT;
	u64 ts = now();
	struct ev_frame *e;

	if (p->stepped)
		__sync_fetch_and_add(&stepped_marks, 1);
	if (commit && !commits(probe_arg(ctx, &p->args[0]), probe_arg(ctx, &p->args[1])))
		return 0;
	alloc__flush(task, ts);
	e = reserve(frame);
	if (!e)
		return lost(CLASS_FRAME);
	*e = (struct ev_frame){
		HDR(FRAME, frame, ts, task->pid),
		.number = p->args[0].from && !commit ? probe_arg(ctx, &p->args[0]) : FRAME_NO_NUMBER,
		.stream = probe_arg(ctx, &p->args[1]),
		.site = p->site,
		.mark = commit ? FRAME_MARK : p->sub,
	};
	submit(e);
	return 0;
}

/* The string into the record's tail; what could not be read says so: not paged in, or not a string. */
static __always_inline u32 copy_text(char *to, u64 from)
{
	/* "<unreadable>" */
	u64 *words = (u64 *)to;
	long n = bpf_probe_read_user_str(to, TEXT_MAX, (void *)from);

	if (n < 0) {
		words[0] = 0x61646165726e753cULL;
		words[1] = 0x3e656c62ULL;
		return 16;
	}
	if (!n) { /* an empty one, before v6.13: since then the NUL counts as with others */
		to[0] = 0;
		n = 1;
	}
	end_text(to, n);
	return n;
}

#define TEXT_HDR(kind_, fixed, n)                                                                                      \
	((struct ev_hdr){.ts = now(),                                                                                  \
		.tid = task->pid,                                                                                      \
		.cpu = bpf_get_smp_processor_id(),                                                                     \
		.kind = (kind_),                                                                                       \
		.words = ((fixed) + (n) + 7) / 8})

static __always_inline int text(struct pt_regs *ctx, struct task_struct *task, const struct probe_desc *p)
{
	struct ev_message *e = ring_reserve(sizeof(*e) + TEXT_ROOM);
	u32 n;

	_Static_assert(sizeof(struct ev_message) == sizeof(struct ev_scene), "one layout for both");
	if (!e)
		return lost(CLASS_FRAME);
	n = copy_text(e->text, probe_arg(ctx, &p->args[0]));
	e->hdr = TEXT_HDR(p->what == PROBE_SCENE ? EV_SCENE : EV_MESSAGE, sizeof(*e), n);
	submit_bytes(e, sizeof(*e) + TEXT_ROOM);
	return 0;
}

static __always_inline int lock_name(struct pt_regs *ctx, struct task_struct *task, const struct probe_desc *p)
{
	struct ev_lock_name *e = ring_reserve(sizeof(*e) + TEXT_ROOM);
	u32 n;

	if (!e)
		return lost(CLASS_FRAME);
	e->addr = probe_arg(ctx, &p->args[0]);
	n = copy_text(e->name, probe_arg(ctx, &p->args[1]));
	e->hdr = TEXT_HDR(EV_LOCK_NAME, sizeof(*e), n);
	submit_bytes(e, sizeof(*e) + TEXT_ROOM);
	return 0;
}

SEC("?uprobe")
int frame__mark(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const struct probe_desc *p = probe_desc(ctx, task);

	if (!p)
		return 0;
	if (p->what == PROBE_FRAME)
		return frame(ctx, task, p);
	if (p->what == PROBE_LOCK_NAME)
		return lock_name(ctx, task, p);
	return text(ctx, task, p);
}

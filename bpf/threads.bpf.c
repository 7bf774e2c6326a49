// SPDX-License-Identifier: GPL-2.0-only
/* A thread's state, at its first event and at its end. */
#include "redframe.bpf.h"

static const struct thread_state fresh;

/* NULL: there are too many. What lies in a place that was left is cleared by who takes it. */
struct thread_state *threads__add(u32 tid)
{
	u32 place = tid & (THREAD_PLACES - 1);
	struct thread_state *st = bpf_map_lookup_elem(&threads, &place);

	if (st && !__sync_val_compare_and_swap(&st->tid, 0, tid)) {
		__builtin_memset((void *)st + sizeof(st->tid), 0, sizeof(*st) - sizeof(st->tid));
		return st;
	}
	bpf_map_update_elem(&more_threads, &tid, &fresh, BPF_NOEXIST);
	return bpf_map_lookup_elem(&more_threads, &tid);
}

void threads__remove(u32 tid)
{
	u32 place = tid & (THREAD_PLACES - 1);
	struct thread_state *st = bpf_map_lookup_elem(&threads, &place);

	if (st && st->tid == tid)
		st->tid = 0;
	else
		bpf_map_delete_elem(&more_threads, &tid);
}

/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "because.h"
#include "relay.h"

#define ROOT_CHILDREN 1024u   /* things of the frame itself that are told apart; then by cause only */
#define MIXED         (~0ULL) /* what: the things that are not told apart any more */
#define PAGE          4096u
#define HUGE_PAGE     (2u << 20)

void tally__add(struct tally *t, u64 id, u64 n)
{
	int least = 0;

	for (int i = 0; i < TALLY; i++) {
		if (t->id[i] == id || !t->n[i]) {
			t->id[i] = id;
			t->n[i] += n;
			return;
		}
		if (t->n[i] < t->n[least])
			least = i;
	}
	t->id[least] = id;
	t->n[least] += n;
}

u64 tally__top(const struct tally *t, u64 *n)
{
	int top = 0;

	for (int i = 1; i < TALLY; i++)
		if (t->n[i] > t->n[top])
			top = i;
	if (n)
		*n = t->n[top];
	return t->n[top] ? t->id[top] : 0;
}

/* ---- nodes ---- */

static u32 *slot_of(const struct tree *tree, u32 parent, enum cause cause, u64 what, u64 group)
{
	u32 i = hash64(what ^ hash64(group ^ hash64((u64)parent << 8 | cause))) & (tree->n_slots - 1);

	while (tree->slots[i]) {
		const struct node *n = &tree->nodes[tree->slots[i]];

		if (n->parent == parent && n->cause == (s8)cause && n->what == what && n->group == group)
			break;
		i = (i + 1) & (tree->n_slots - 1);
	}
	return &tree->slots[i];
}

static u32 node_new(struct tree *tree, u32 parent, enum cause cause, u64 what, u64 group)
{
	struct node *p = &tree->nodes[parent];
	struct node *n = &tree->nodes[tree->n];

	memset(n, 0, sizeof(*n));
	n->parent = parent;
	n->cause = cause;
	n->what = what;
	n->group = group;
	n->depth = tree->n ? p->depth + 1 : 0;
	n->key = tree->n ? hash64(p->key ^ hash64(group ^ hash64((u64)n->depth << 8 | (u8)cause))) : 0;
	n->from = ~0ULL;
	if (!tree->n)
		return tree->n++;
	if (p->last_child)
		tree->nodes[p->last_child].next = tree->n;
	else
		p->child = tree->n;
	p->last_child = tree->n;
	return tree->n++;
}

/* The child of parent for these; 0 where the frame has too many already (never for what the frame itself did). */
static u32 child(struct tree *tree, u32 parent, enum cause cause, u64 what, u64 group)
{
	u32 *slot = slot_of(tree, parent, cause, what, group);

	if (*slot)
		return *slot;
	if (!parent && tree->n_things > ROOT_CHILDREN) {
		slot = slot_of(tree, 0, cause, MIXED, 0);
		if (*slot)
			return *slot;
		what = MIXED;
		group = 0;
	} else if (parent && tree->n >= BECAUSE_NODES - CAUSE_COUNT - 1) {
		return 0;
	}
	*slot = node_new(tree, parent, cause, what, group);
	tree->nodes[*slot].slot = slot - tree->slots;
	tree->nodes[*slot].mixed = what == MIXED;
	tree->n_things += !parent;
	return *slot;
}

/* Of a frame that was unusually long. */
static void give_back(struct tree *tree)
{
	if (tree->cap_moments > PARTITION_KEPT) {
		free(tree->moments);
		tree->moments = NULL;
		tree->cap_moments = 0;
	}
	if (tree->cap_hits > PARTITION_KEPT) {
		free(tree->hits);
		tree->hits = NULL;
		tree->cap_hits = 0;
	}
}

static int reset(struct tree *tree)
{
	give_back(tree);
	if (!tree->nodes) {
		tree->n_slots = 4 * BECAUSE_NODES;
		tree->nodes = malloc((BECAUSE_NODES + ROOT_CHILDREN) * sizeof(*tree->nodes));
		tree->slots = calloc(tree->n_slots, sizeof(*tree->slots));
		if (!tree->nodes || !tree->slots)
			return -ENOMEM;
	} else {
		/* only the slots in use are cleared: a frame has few nodes as a rule */
		for (u32 i = 1; i < tree->n; i++)
			tree->slots[tree->nodes[i].slot] = 0;
	}
	return 0;
}

/* ---- what a piece is about ---- */

static bool is_file_kind(u8 kind)
{
	return kind >= EV_FILE_READ && kind <= EV_FILE_SYNC;
}

/* Pieces with the same key are one thing: a file, a mapping, a lock, a system call. */
static u64 what_key(const struct piece *p)
{
	const struct span *s = p->span;

	if (p->cause == CAUSE_CPU_WAIT && !p->off) /* not another thread: the machine itself */
		return EV_SAMPLE;
	if (p->cause == CAUSE_CPU_WAIT || p->cause == CAUSE_CODE || p->cause == CAUSE_INTERRUPT)
		return 0;
	if (p->cause == CAUSE_UNEXPLAINED)
		return p->off ? 1 + (p->off->flags & (OFF_DEAD | OFF_LOST)) : 0;
	if (!s)
		return p->off ? p->off->sys : 0;
	if (s->kind == EV_FAULT)
		return (u64)s->kind << 56 | s->what;
	if (is_file_kind(s->kind))
		return s->what ? (u64)s->kind << 56 | s->what : hash64(s->ino ^ hash64(s->dev));
	if (s->kind == EV_LOCK_WAIT)
		return lock__object(s->lock, s->addr);
	return s->kind == EV_SYSCALL ? s->sys : 0;
}

/* Whom a thread waits for: who held the lock, else who woke it; *via: the server of another process that did so for it.
 */
static u32 other_thread(const struct tree *tree, const struct piece *p, u32 self, u32 *via)
{
	u32 waker = p->phase == PHASE_BLOCKED ? p->off->waker : 0, who = 0;

	if (p->phase == PHASE_RUNNABLE)
		return 0;

	switch (p->cause) {
	case CAUSE_LOCK_WAIT:
	case CAUSE_THREAD_WAIT:
		if (p->span && p->span->kind == EV_LOCK_WAIT)
			who = p->span->owner ? p->span->owner : p->span->waker;
		if (!who)
			who = waker;
		break;
	case CAUSE_IO_WAIT:
		if (waker && model__recorded(tree->m, self) && !model__recorded(tree->m, waker))
			who = relay__asker(tree->t, tree->m, waker, self, p->off->wake);
		*via = who ? waker : 0;
		who = who ? who : waker;
		break;
	case CAUSE_SLEEP:
		break;
	default: /* the kernel's own workers complete I/O; a thread of the game held a lock of the address space */
		who = model__recorded(tree->m, waker) || p->cause == CAUSE_UNEXPLAINED ? waker : 0;
	}
	return who == self ? 0 : who;
}

/* ---- adding a piece to its node ---- */

static void add_fault(struct node *n, const struct span *s)
{
	n->bytes += s->flags & FAULT_HUGE ? HUGE_PAGE : PAGE;
	n->huge += !!(s->flags & FAULT_HUGE);
	if (s->flags & FAULT_MAJOR)
		n->major++;
	else
		n->minor++;
	if ((s->flags & FAULT_PRESENT) && (s->flags & FAULT_WRITE))
		n->copied++;
}

static void add_event(struct node *n, const struct span *s)
{
	n->count++;
	if (s->kind == EV_FAULT) {
		add_fault(n, s);
		return;
	}
	n->bytes += s->bytes;
	n->cold += s->cold;
	if (is_file_kind(s->kind) && s->kind != EV_FILE_META && s->offset != FILE_NO_OFFSET && s->bytes) {
		n->from = min(n->from, s->offset);
		n->to = max(n->to, s->offset + s->bytes);
	}
}

/* One event counts once, in however many pieces it lies. */
static void count_piece(struct node *n, const struct piece *p)
{
	if (p->cause == CAUSE_CPU_WAIT && p->off) {
		n->count += p->off != n->last_off;
	} else if (p->span) {
		if (p->span != n->last_span)
			add_event(n, p->span);
		n->last_span = p->span;
	} else if (!p->off || p->off != n->last_off) {
		n->count++;
	}
	if (p->off)
		n->last_off = p->off;
}

/* of a sleep: what lies after the moment that it asked for */
static u64 late(const struct piece *p)
{
	u64 asked = p->span->end - p->span->offset;

	return p->end > asked ? p->end - max(p->start, asked) : 0;
}

static void add_piece(struct node *n, const struct piece *p)
{
	u64 ns = p->end - p->start;

	count_piece(n, p);
	n->ns += ns;
	if (p->phase == PHASE_BLOCKED)
		n->blocked_ns += ns;
	if (p->cause == CAUSE_SLEEP && p->span && p->span->kind == EV_SYSCALL && p->span->offset)
		n->late_ns += late(p);
	if (ns > n->longest_ns) {
		n->longest_ns = ns;
		n->span = p->span;
		n->off = p->off;
	}
	if (p->span && p->span->chain && ns > n->chain_ns) {
		n->chain_ns = ns;
		n->chain = p->span->chain;
	}
}

/* Who had the CPU while a thread queued for it; returns who had it longest, 0 where nobody had. */
static u32 add_cpu_wait(const struct tree *tree, struct node *n, const struct piece *p)
{
	const struct fifo *f = timeline__cpu(tree->t, p->off->wait_cpu);
	struct tally here = {};
	u64 taken = 0;

	for (u32 i = f ? fifo__after(f, p->start) : 0; f && i < f->n; i++) {
		const struct slot *s = fifo__at(f, i);
		u64 from = max(s->start, p->start), to = min(s->end, p->end);

		if (s->start >= p->end)
			break;
		if (!s->tid || from >= to)
			continue;
		tally__add(&n->who, s->tid | (u64)s->prio << 32, to - from);
		tally__add(&here, s->tid, to - from);
		taken += to - from;
	}
	n->latency_ns += p->end - p->start - min(taken, p->end - p->start);
	if (timeline__idle_elsewhere(tree->t, p->off->wait_cpu, p->start, p->end))
		n->idle_elsewhere_ns += p->end - p->start;
	return tally__top(&here, NULL);
}

static u64 sampled_code(const struct tree *tree, const struct sample *s)
{
	return s->kernel && timeline__in_probe(tree->t, tree->m, s->ip) ? CODE_PROBE : code__at(tree->m, s->ip, s->ts);
}

static int add_hit(struct tree *tree, u32 node, u64 code, u32 chain)
{
	if (tree->n_hits == tree->cap_hits) {
		u32 cap = tree->cap_hits ? tree->cap_hits * 2 : 256;
		struct hit *hits = realloc(tree->hits, cap * sizeof(*hits));

		if (!hits)
			return -ENOMEM;
		tree->hits = hits;
		tree->cap_hits = cap;
	}
	tree->hits[tree->n_hits++] = (struct hit){.code = code, .node = node, .chain = chain};
	return 0;
}

static int by_node(const void *a, const void *b)
{
	const struct hit *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	if (x->code != y->code)
		return x->code < y->code ? -1 : 1;
	return x->chain < y->chain ? -1 : x->chain > y->chain;
}

/* Samples are taken in the timer's interrupt: what lies in one tells of the code that it interrupted. */
static int add_samples(struct tree *tree, u32 parent, const struct line *l, const struct piece *p)
{
	const struct fifo *f = &l->samples;
	u32 code = *slot_of(tree, parent, CAUSE_CODE, 0, 0);
	struct node *n = &tree->nodes[code];

	if (!code)
		return 0;
	for (u32 i = fifo__after(f, p->start ? p->start - 1 : 0); i < f->n; i++) {
		const struct sample *s = fifo__at(f, i);

		if (s->ts >= p->end)
			break;
		if (add_hit(tree, code, sampled_code(tree, s), s->chain))
			return -ENOMEM;
		n->samples++;
	}
	return 0;
}

static int add_moment(struct tree *tree, const struct piece *p, u32 node, u32 who)
{
	u32 waker = p->phase == PHASE_BLOCKED ? p->off->waker : 0;
	struct moment *last = tree->n_moments ? &tree->moments[tree->n_moments - 1] : NULL;

	if (last && last->node == node && !last->waker && last->who == who) {
		last->end = p->end;
	} else {
		if (tree->n_moments == tree->cap_moments) {
			u32 cap = tree->cap_moments ? tree->cap_moments * 2 : 256;
			struct moment *m = realloc(tree->moments, cap * sizeof(*m));

			if (!m)
				return -ENOMEM;
			tree->moments = m;
			tree->cap_moments = cap;
		}
		last = &tree->moments[tree->n_moments++];
		*last = (struct moment){.start = p->start, .end = p->end, .node = node};
	}
	last->who = who;
	last->waker = waker;
	last->waker_ts = waker ? p->off->wake : 0;
	return 0;
}

/* ---- the recursion ---- */

static int account(struct tree *tree, u32 parent, u32 tid, u64 start, u64 end);

static bool on_path(const struct tree *tree, int depth, u32 tid)
{
	for (int i = 0; i <= depth; i++)
		if (tree->path[i] == tid)
			return true;
	return false;
}

static int account_piece(struct tree *tree, u32 parent, const struct line *l, u32 tid, const struct piece *p);

/* When the id was given to another thread meanwhile, the rest of the time is that of a thread that had ended. */
static int account_mortal(struct tree *tree, u32 node, u32 who, u64 start, u64 end)
{
	static const struct off dead = {.flags = OFF_DEAD};
	const struct thread *t = model__find_thread(tree->m, who);
	struct piece gone = {.end = end, .off = &dead, .phase = PHASE_BLOCKED, .cause = CAUSE_UNEXPLAINED};
	int err;

	if (!t || t->born <= start || t->born >= end)
		return account(tree, node, who, start, end);
	tree->nodes[node].reborn = true;
	gone.start = t->born;
	err = account(tree, node, who, start, t->born);
	return err ? err : account_piece(tree, node, NULL, who, &gone);
}

static int follow(struct tree *tree, u32 node, int depth, u32 who, const struct piece *p)
{
	struct node *n = &tree->nodes[node];

	tally__add(&n->who, who, p->end - p->start);
	if (p->phase != PHASE_BLOCKED)
		return 0;
	if (on_path(tree, depth, who)) {
		n->cycle_ns += p->end - p->start;
		return 0;
	}
	if (depth == BECAUSE_DEPTH || p->end - p->start < BECAUSE_MIN_NS)
		return 0;
	return account_mortal(tree, node, who, p->start, p->end);
}

static int account_piece(struct tree *tree, u32 parent, const struct line *l, u32 tid, const struct piece *p)
{
	int depth = tree->nodes[parent].depth;
	u32 via = 0, who = other_thread(tree, p, tid, &via);
	u32 node = child(tree, parent, p->cause, what_key(p), who ? thread__group(tree->m, who) : 0);
	struct node *n = &tree->nodes[node];
	u32 had = who;
	int err = 0;

	if (!node) {
		tree->not_followed++;
		return 0;
	}
	add_piece(n, p);
	if (via)
		tally__add(&n->via, via, p->end - p->start);
	n->foreign = !model__recorded(tree->m, tid);
	tree->lost |= !depth && p->lost;
	if (tree->detail && p->cause == CAUSE_CPU_WAIT && p->off)
		had = add_cpu_wait(tree, n, p);
	if (tree->detail && l && p->code)
		err = add_samples(tree, parent, l, p);
	if (!err && tree->detail && !depth)
		err = add_moment(tree, p, node, had);
	if (!err && who)
		err = follow(tree, node, depth, who, p);
	return err;
}

static int account(struct tree *tree, u32 parent, u32 tid, u64 start, u64 end)
{
	int depth = tree->nodes[parent].depth;
	struct partition *cut = &tree->cuts[depth];
	const struct line *l = timeline__line(tree->t, tid);
	int err = partition__cut(cut, tree->t, l, start, end);

	tree->path[depth] = tid;
	for (u32 i = 0; !err && i < cut->n; i++)
		err = account_piece(tree, parent, l, tid, &cut->pieces[i]);
	partition__rest(cut);
	return err;
}

static void add_allocations(struct tree *tree, u32 tid, u64 start, u64 end)
{
	const struct line *l = timeline__line(tree->t, tid);

	for (u32 i = l ? fifo__after(&l->allocs, start) : 0; l && i < l->allocs.n; i++) {
		const struct allocation *a = fifo__at(&l->allocs, i);

		if (a->ts > end)
			break;
		if (a->sampled) {
			tally__add(&tree->alloc_bytes_at, a->site, a->sampled);
			tally__add(&tree->alloc_samples_at, a->site, 1);
			tree->alloc_samples++;
		}
		tree->alloc_calls += a->calls;
		tree->alloc_bytes += a->bytes;
		if (a->largest > tree->alloc_largest) {
			tree->alloc_largest = a->largest;
			tree->alloc_caller = a->caller;
			tree->alloc_chain = a->chain;
		}
	}
}

int tree__build(
	struct tree *tree, const struct timeline *t, const struct model *m, u32 tid, u64 start, u64 end, bool detail)
{
	int err = reset(tree);

	if (err)
		return err;
	tree->t = t;
	tree->m = m;
	tree->detail = detail;
	tree->n = tree->n_things = tree->n_moments = tree->n_hits = tree->not_followed = 0;
	tree->lost = false;
	tree->alloc_bytes = tree->alloc_largest = tree->alloc_caller = tree->alloc_calls = tree->alloc_chain = 0;
	tree->alloc_bytes_at = tree->alloc_samples_at = (struct tally){};
	tree->alloc_samples = 0;
	node_new(tree, 0, CAUSE_NONE, 0, 0);
	tree->nodes[0].ns = end - start;
	add_allocations(tree, tid, start, end);
	err = account(tree, 0, tid, start, end);
	if (tree->n_hits)
		qsort(tree->hits, tree->n_hits, sizeof(*tree->hits), by_node);
	return err;
}

void tree__free(struct tree *tree)
{
	for (int i = 0; i <= BECAUSE_DEPTH; i++)
		partition__free(&tree->cuts[i]);
	free(tree->nodes);
	free(tree->slots);
	free(tree->moments);
	free(tree->hits);
	memset(tree, 0, sizeof(*tree));
}

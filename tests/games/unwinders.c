// SPDX-License-Identifier: GPL-2.0-only
/*
 * unwinders PID SECONDS: records the stacks of a running game as redframe does, unwinds each copy twice, as redframe
 * does and by libunwind, which has a mind of its own, and says on how many the two agree. Both see the same registers
 * and the same bytes of stack and nothing more. Prints one line; the first disagreements go to stderr. Exit 1 below
 * 98 %, or 1,000 stacks that are worth comparing were not to be had.
 *
 *   same     the same calls, to the outermost
 *   cut      redframe ends earlier and says so: truncated
 *   beyond   libunwind gives up earlier: what redframe has more cannot be compared, what both have is the same
 *   astray   libunwind comes to an address where no code is: made at run time, as llvmpipe makes shaders, the code
 * before it has no call frame information, and it guesses differ   another call somewhere, or redframe takes a chain
 * for complete that goes on
 */
#include <libunwind-ptrace.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "capture.h"
#include "jit.h"
#include "log.h"
#include "maps.h"
#include "modules.h"
#include "session.h"
#include "unwind.h"

#define ENOUGH      1000
#define MIN_PERCENT 98.0
#define TOLD        5

static struct {
	const struct stack_copy *stack;
	struct maps maps;
	pid_t pid;
} now; /* what libunwind's callbacks look at: their argument belongs to its own ELF reader */

/* libunwind's numbers are DWARF's */
static const u8 pt_regs_at[] = {10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16};

/* The call frame information as it is mapped, and the personalities that it points to, in their file's data. */
static bool read_image(u64 addr, unw_word_t *word)
{
	struct iovec to = {word, sizeof(*word)}, from = {(void *)addr, sizeof(*word)};

	for (int i = 0; i < now.maps.n; i++) {
		const struct map *m = &now.maps.v[i];

		if (addr >= m->start && addr < m->end && m->ino)
			return process_vm_readv(now.pid, &to, 1, &from, 1, 0) == sizeof(*word);
	}
	return false;
}

static int access_mem(unw_addr_space_t as, unw_word_t addr, unw_word_t *word, int write, void *arg)
{
	const struct stack_copy *s = now.stack;

	if (write)
		return -UNW_EREADONLYREG;
	if (addr >= s->base && s->bytes >= sizeof(*word) && addr - s->base <= s->bytes - sizeof(*word)) {
		memcpy(word, s->data + (addr - s->base), sizeof(*word));
		return 0;
	}
	return read_image(addr, word) ? 0 : -UNW_EINVAL;
}

static int access_reg(unw_addr_space_t as, unw_regnum_t reg, unw_word_t *value, int write, void *arg)
{
	if (write || reg < 0 || reg >= (int)ARRAY_SIZE(pt_regs_at))
		return -UNW_EBADREG;
	*value = now.stack->regs[pt_regs_at[reg]];
	return 0;
}

static int no_fpreg(unw_addr_space_t as, unw_regnum_t reg, unw_fpreg_t *value, int write, void *arg)
{
	return -UNW_EBADREG;
}

static int no_dynamic_info(unw_addr_space_t as, unw_word_t *at, void *arg)
{
	return -UNW_ENOINFO;
}

static int no_resume(unw_addr_space_t as, unw_cursor_t *c, void *arg)
{
	return -UNW_EINVAL;
}

static int no_name(unw_addr_space_t as, unw_word_t ip, char *buf, size_t size, unw_word_t *off, void *arg)
{
	return -UNW_ENOINFO;
}

static unw_accessors_t accessors = {
	.find_proc_info = _UPT_find_proc_info,
	.put_unwind_info = _UPT_put_unwind_info,
	.get_dyn_info_list_addr = no_dynamic_info,
	.access_mem = access_mem,
	.access_reg = access_reg,
	.access_fpreg = no_fpreg,
	.resume = no_resume,
	.get_proc_name = no_name,
};

/* how many addresses; *ended: it came to the outermost call */
static int walk_reference(unw_addr_space_t as, void *arg, u64 *ips, bool *ended)
{
	unw_cursor_t c;
	unw_word_t ip;
	int n = 0, more;

	*ended = false;
	if (unw_init_remote(&c, as, arg))
		return 0;
	do {
		if (unw_get_reg(&c, UNW_REG_IP, &ip) || !ip)
			break;
		ips[n++] = ip;
		more = unw_step(&c);
		*ended = !more;
	} while (more > 0 && n < UNWIND_CALLS_MAX);
	return n;
}

enum result { SAME, CUT, BEYOND, ASTRAY, DIFFER, RESULTS };

static bool is_code(u64 addr)
{
	for (int i = 0; i < now.maps.n; i++)
		if (addr >= now.maps.v[i].start && addr < now.maps.v[i].end)
			return now.maps.v[i].prot & PROT_EXEC;
	return false;
}

/* Addresses of callers are return addresses to libunwind, and lie within the call to redframe. */
static enum result compare(const u64 *ours, int n, bool truncated, const u64 *ref, int m, int *at)
{
	for (*at = 0; *at < n && *at < m; ++*at)
		if (ref[*at] != ours[*at] && ref[*at] != ours[*at] + 1)
			return is_code(ref[*at]) ? DIFFER : ASTRAY;
	if (n == m)
		return SAME;
	if (n > m)
		return BEYOND;
	if (!is_code(ref[n]))
		return ASTRAY;
	return truncated ? CUT : DIFFER;
}

static void tell_place(const char *who, u64 addr)
{
	for (int i = 0; i < now.maps.n; i++)
		if (addr >= now.maps.v[i].start && addr < now.maps.v[i].end) {
			fprintf(stderr, "  %s %s+%#llx\n", who, path__base(now.maps.v[i].path),
				(unsigned long long)(addr - now.maps.v[i].start + now.maps.v[i].offset));
			return;
		}
	fprintf(stderr, "  %s %#llx\n", who, (unsigned long long)addr);
}

static void tell(const u64 *ours, int n, bool truncated, const u64 *ref, int m, int at)
{
	fprintf(stderr, "differ at call %d: redframe has %d%s, libunwind %d, of %u bytes\n", at, n,
		truncated ? ", truncated" : "", m, now.stack->bytes);
	for (int i = max(at - 2, 0); i <= at; i++) {
		if (i < n)
			tell_place("redframe ", ours[i]);
		if (i < m)
			tell_place("libunwind", ref[i]);
	}
}

static int compare_all(struct session *s, u64 results[RESULTS])
{
	struct stack_entry *e = malloc(sizeof(*e) + STACK_ROOM);
	Dwfl *dwfl = modules__open(&s->images);
	unw_addr_space_t as = unw_create_addr_space(&accessors, 0);
	void *arg = _UPT_create(now.pid);
	u64 ours[UNWIND_CALLS_MAX], ref[UNWIND_CALLS_MAX];
	struct unwinder *u = NULL;
	bool truncated, ended;
	struct jit jit = {.dwfl = dwfl};
	int err = e && dwfl && as && arg ? unwinder__new(&u, dwfl, &jit) : -1, n, m, at;

	if (!err)
		err = stacks__rewind(&s->stacks);
	unw_set_caching_policy(as, UNW_CACHE_GLOBAL);
	while (!err && stacks__next(&s->stacks, e) > 0) {
		enum result r;

		now.stack = &e->stack;
		n = unwinder__walk(u, &e->stack, ours, &truncated);
		m = walk_reference(as, arg, ref, &ended);
		r = compare(ours, n, truncated, ref, m, &at);
		if (r == DIFFER && results[DIFFER] < TOLD)
			tell(ours, n, truncated, ref, m, at);
		results[r]++;
	}
	unwinder__free(u);
	dwfl_end(dwfl);
	free(e);
	return err;
}

static int record(struct session *s, struct record_options *o, char **argv)
{
	char *args[] = {"-p", argv[1], "-d", argv[2], "--frame", "none", "-q", "--alloc", "large", NULL};

	if (record_options__parse(o, ARRAY_SIZE(args) - 1, args) || session__find(s, o) ||
		session__attach(s, memfd_create("recording", MFD_CLOEXEC)))
		return -1;
	session__run(s);
	capture__detach(s->capture);
	drain__pass(&s->drain);
	return images__refresh(&s->images, s->target.tgid);
}

int main(int argc, char **argv)
{
	struct record_options o;
	struct session s = {
		.signal_fd = -1, .target = {.pidfd = -1}, .launch = {.go = -1, .error = -1}, .stacks = {.fd = -1}};
	u64 r[RESULTS] = {}, all;
	double percent;

	if (argc != 3)
		return fprintf(stderr, "usage: unwinders PID SECONDS\n"), 2;
	now.pid = atoi(argv[1]);
	if (record(&s, &o, argv) || maps__read(&now.maps, (u32)now.pid) || compare_all(&s, r))
		return fprintf(stderr, "unwinders: %s cannot be recorded\n", argv[1]), 2;
	all = r[SAME] + r[CUT] + r[DIFFER];
	percent = all ? 100.0 * (double)r[SAME] / (double)all : 0;
	printf("%.2f %% of %llu stacks: same %llu cut %llu differ %llu; beyond %llu astray %llu\n", percent,
		(unsigned long long)all, (unsigned long long)r[SAME], (unsigned long long)r[CUT],
		(unsigned long long)r[DIFFER], (unsigned long long)r[BEYOND], (unsigned long long)r[ASTRAY]);
	session__free(&s);
	maps__free(&now.maps);
	return all < ENOUGH || percent < MIN_PERCENT;
}

// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "apart.h"
#include "jit.h"
#include "unwind.h"

struct unwinder {
	Dwfl *dwfl;
	const struct jit *jit;
	const struct stack_copy *stack;
	u64 *addrs;
	int n;
	bool unread; /* something that was needed to find the last one's caller was not copied */
	bool beyond; /* more calls than there is room for, or one that is no code */
};

/* ---- registers, by their DWARF numbers ---- */

#if defined(__x86_64__)
/* struct pt_regs: r15 r14 r13 r12 bp bx r11 r10 r9 r8 ax cx dx si di orig_ax ip cs flags sp ss */
static const u8 dwarf_regs[] = {10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16};
#elif defined(__aarch64__)
static const u8 dwarf_regs[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,
	24, 25, 26, 27, 28, 29, 30, 31};
#define PC_AT 32
#endif

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	const struct unwinder *u = arg;
	Dwarf_Word regs[ARRAY_SIZE(dwarf_regs)];

	for (size_t i = 0; i < ARRAY_SIZE(dwarf_regs); i++)
		regs[i] = u->stack->regs[dwarf_regs[i]];
#ifdef PC_AT
	dwfl_thread_state_register_pc(thread, u->stack->regs[PC_AT]);
#endif
	return dwfl_thread_state_registers(thread, 0, ARRAY_SIZE(regs), regs);
}

/* ---- memory ---- */

static bool read_stack(const struct stack_copy *s, u64 addr, u64 *word)
{
	if (addr < s->base || s->bytes < sizeof(*word) || addr - s->base > s->bytes - sizeof(*word))
		return false;
	memcpy(word, s->data + (addr - s->base), sizeof(*word));
	return true;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *word, void *arg)
{
	struct unwinder *u = arg;
	bool ok = read_stack(u->stack, addr, word);

	u->unread |= !ok;
	return ok;
}

/* ---- libdwfl's view: one process with one thread ---- */

#define THREAD 1

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
	*thread_arg = arg;
	return 0;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread_arg)
{
	*thread_arg = arg;
	return true;
}

static const Dwfl_Thread_Callbacks callbacks = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = read_memory,
	.set_initial_registers = set_registers,
};

int unwinder__new(struct unwinder **out, Dwfl *dwfl)
{
	struct unwinder *u = calloc(1, sizeof(*u));

	*out = u;
	if (!u)
		return -ENOMEM;
	u->dwfl = dwfl;
	if (dwfl_attach_state(dwfl, NULL, THREAD, &callbacks, u))
		return 0;
	free(u);
	*out = NULL;
	return -ENOSYS;
}

void unwinder__free(struct unwinder *u)
{
	free(u);
}

/* Code made at run time has no unwind tables, so libdwfl follows its frame pointer: that led to code, or it is none. */
static bool is_code(const struct unwinder *u, u64 pc)
{
	return dwfl_addrmodule(u->dwfl, pc) || jit__is_code(u->jit, pc, u->stack->rec.hdr.ts);
}

static int on_frame(Dwfl_Frame *frame, void *arg)
{
	struct unwinder *u = arg;
	Dwarf_Addr pc;
	bool exact;

	u->unread = false;
	if (!dwfl_frame_pc(frame, &pc, &exact))
		return DWARF_CB_ABORT;
	/* a return address points behind the call: the call itself may be the last instruction of its function */
	pc -= !exact;
	if (u->n == UNWIND_CALLS_MAX || (u->n && !is_code(u, pc))) {
		u->beyond = true;
		return DWARF_CB_ABORT;
	}
	u->addrs[u->n++] = pc;
	apart__at(pc); /* its caller comes next */
	return DWARF_CB_OK;
}

/* makecontext and its like let a function return to the first instruction of another one, which nothing has called: the
 * instruction before it is another function's, whose unwinding leads astray. */
static bool at_begin_of_function(struct unwinder *u, u64 pc)
{
	Dwfl_Module *mod = dwfl_addrmodule(u->dwfl, pc);
	Dwarf_Addr bias, start, end;
	Dwarf_Frame *frame;
	Dwarf_CFI *cfi = mod ? dwfl_module_eh_cfi(mod, &bias) : NULL;
	bool at = false;

	if (!cfi || dwarf_cfi_addrframe(cfi, pc - bias, &frame))
		return false;
	if (dwarf_frame_info(frame, &start, &end, NULL) >= 0)
		at = start == pc - bias;
	free(frame);
	return at;
}

int unwinder__walk(
	struct unwinder *u, const struct jit *jit, const struct stack_copy *stack, u64 *addrs, bool *truncated)
{
	int ended;

	u->jit = jit;
	u->stack = stack;
	u->addrs = addrs;
	u->n = 0;
	u->unread = u->beyond = false;
	apart__at(0);
	ended = dwfl_getthread_frames(u->dwfl, THREAD, on_frame, u);
	/* libdwfl takes a return address that it cannot read for the end */
	*truncated = ended != 0 || u->unread || u->beyond;
	if (*truncated && u->n > 1 && u->n < UNWIND_CALLS_MAX && at_begin_of_function(u, addrs[u->n - 1] + 1)) {
		addrs[u->n - 1]++;
		*truncated = false;
	}
	return u->n;
}

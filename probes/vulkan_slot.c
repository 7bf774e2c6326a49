// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which slot of the dispatch table vkQueuePresentKHR(queue, info) calls through. A queue's first word is the address of
 * its table, so the code loads that from what came in rdi and then jumps or calls through table+slot: at once, through
 * a register, or (not optimised) over the stack and a helper that returns the table. Where values are is followed along
 * the text, branches or not, and the last call through a table counts.
 */
#include <errno.h>
#include <string.h>
#include <Zydis/Zydis.h>
#include "vulkan.h"

#define SLOT_MAX   (1 << 16)
#define SPILL_MAX  16
#define CODE_LIMIT 2048 /* bytes of the function */

enum what { NOTHING, QUEUE, TABLE, FUNCTION };
struct value {
	enum what what;
	s64 slot; /* of FUNCTION */
};

struct spill {
	ZydisRegister base;
	s64 disp;
	struct value v;
};

struct slot_walk {
	struct value regs[16];
	struct spill spills[SPILL_MAX]; /* oldest first to be used again */
	u32 n_spills;
	s64 slot; /* found last; -1: none */
};

static struct value *reg(struct slot_walk *w, ZydisRegister r)
{
	return ZydisRegisterGetClass(r) == ZYDIS_REGCLASS_GPR64 ? &w->regs[ZydisRegisterGetId(r)] : NULL;
}

static bool plain_memory(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.index == ZYDIS_REGISTER_NONE && op->size == 64;
}

static bool on_stack(const ZydisDecodedOperand *op)
{
	return op->mem.base == ZYDIS_REGISTER_RSP || op->mem.base == ZYDIS_REGISTER_RBP;
}

static struct spill *spill(struct slot_walk *w, const ZydisDecodedOperand *op)
{
	for (u32 i = 0; i < SPILL_MAX && i < w->n_spills; i++)
		if (w->spills[i].base == op->mem.base && w->spills[i].disp == op->mem.disp.value)
			return &w->spills[i];
	return NULL;
}

/* what an operand that is read holds */
static struct value load(struct slot_walk *w, const ZydisDecodedOperand *op)
{
	struct value none = {NOTHING, 0}, *base;
	struct spill *s;

	if (op->type == ZYDIS_OPERAND_TYPE_REGISTER) {
		base = reg(w, op->reg.value);
		return base ? *base : none;
	}
	if (!plain_memory(op))
		return none;
	s = on_stack(op) ? spill(w, op) : NULL;
	if (s)
		return s->v;
	base = reg(w, op->mem.base);
	if (base && base->what == QUEUE && op->mem.disp.value == 0)
		return (struct value){TABLE, 0};
	if (base && base->what == TABLE && op->mem.disp.value > 0 && op->mem.disp.value < SLOT_MAX &&
		op->mem.disp.value % 8 == 0)
		return (struct value){FUNCTION, op->mem.disp.value};
	return none;
}

static void store(struct slot_walk *w, const ZydisDecodedOperand *op, struct value v)
{
	struct value *r = op->type == ZYDIS_OPERAND_TYPE_REGISTER ? reg(w, op->reg.value) : NULL;
	struct spill *s;

	if (r)
		*r = v;
	if (!plain_memory(op) || !on_stack(op))
		return;
	s = spill(w, op);
	if (!s)
		s = &w->spills[w->n_spills++ % SPILL_MAX];
	*s = (struct spill){op->mem.base, op->mem.disp.value, v};
}

static void forget_written(struct slot_walk *w, const ZydisDecodedInstruction *i, const ZydisDecodedOperand *ops)
{
	for (int k = 0; k < i->operand_count; k++) {
		ZydisRegister r = ops[k].type == ZYDIS_OPERAND_TYPE_REGISTER ? ops[k].reg.value : ZYDIS_REGISTER_NONE;
		struct value *v = reg(w, ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r));

		if (v && ops[k].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			v->what = NOTHING;
	}
}

static void after_call(struct slot_walk *w, bool direct)
{
	static const ZydisRegister lost[] = {ZYDIS_REGISTER_RAX, ZYDIS_REGISTER_RCX, ZYDIS_REGISTER_RDX,
		ZYDIS_REGISTER_RSI, ZYDIS_REGISTER_RDI, ZYDIS_REGISTER_R8, ZYDIS_REGISTER_R9, ZYDIS_REGISTER_R10,
		ZYDIS_REGISTER_R11};
	bool helper = direct && reg(w, ZYDIS_REGISTER_RDI)->what == QUEUE; /* loader_get_dispatch(queue) */

	for (size_t i = 0; i < ARRAY_SIZE(lost); i++)
		reg(w, lost[i])->what = NOTHING;
	if (helper)
		reg(w, ZYDIS_REGISTER_RAX)->what = TABLE;
}

static void step(struct slot_walk *w, const ZydisDecodedInstruction *i, const ZydisDecodedOperand *ops)
{
	bool call = i->meta.category == ZYDIS_CATEGORY_CALL;
	struct value v;

	if (call || i->mnemonic == ZYDIS_MNEMONIC_JMP) {
		v = load(w, &ops[0]);
		if (v.what == FUNCTION)
			w->slot = v.slot;
		if (call)
			after_call(w, ops[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE);
		return;
	}
	if (i->mnemonic == ZYDIS_MNEMONIC_MOV && i->operand_width == 64) {
		v = load(w, &ops[1]);
		forget_written(w, i, ops);
		store(w, &ops[0], v);
		return;
	}
	forget_written(w, i, ops);
}

int vulkan__slot(const u8 *code, size_t size, u64 *slot)
{
	struct slot_walk w = {.slot = -1};
	ZydisDecoder d;

	ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	reg(&w, ZYDIS_REGISTER_RDI)->what = QUEUE;
	size = min(size, (size_t)CODE_LIMIT);
	for (size_t at = 0; at < size;) {
		ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
		ZydisDecodedInstruction i;

		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&d, code + at, size - at, &i, ops)))
			break;
		step(&w, &i, ops);
		at += i.length;
	}
	if (w.slot < 0)
		return -ENOENT;
	*slot = (u64)w.slot;
	return 0;
}

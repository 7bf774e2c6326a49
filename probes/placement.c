// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <Zydis/Zydis.h>
#include "placement.h"
#include "regs.h"

#define UNSIZED_BYTES   4096 /* looked at where the file does not say how long a function is */
#define COLD_PARTS      64   /* out-of-line parts followed */
#define COLD_BYTES      1024 /* of each */
#define NEIGHBOUR_BYTES 16384

static const ZydisRegister argument_regs[] = {ZYDIS_REGISTER_RDI, ZYDIS_REGISTER_RSI, ZYDIS_REGISTER_RDX,
	ZYDIS_REGISTER_RCX, ZYDIS_REGISTER_R8, ZYDIS_REGISTER_R9};

struct insn {
	ZydisDecodedInstruction i;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
};

static void init_decoder(ZydisDecoder *d)
{
	ZydisDecoderInit(d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
}

/* ---- what the kernel emulates: arch/x86/kernel/uprobes.c, branch_setup_xol_ops and push_setup_xol_ops (v4.15) ---- */

static bool x86_emulated(const u8 *c, size_t n)
{
	if (n >= 1 && ((c[0] >= 0x50 && c[0] <= 0x57) || c[0] == 0x90))
		return true; /* push, nop */
	if (n >= 2 && c[0] == 0x41 && c[1] >= 0x50 && c[1] <= 0x57)
		return true; /* push r8…r15; no other REX prefix */
	if (n >= 2 && ((c[0] >= 0x70 && c[0] <= 0x7f) || c[0] == 0xeb))
		return true; /* jcc, jmp with 8 bits */
	if (n >= 5 && (c[0] == 0xe8 || c[0] == 0xe9))
		return true;                                           /* call, jmp with 32 bits */
	return n >= 6 && c[0] == 0x0f && c[1] >= 0x80 && c[1] <= 0x8f; /* jcc with 32 bits */
}

/* arch/arm64/kernel/probes/decode-insn.c: arm_probe_decode_insn and its simulated branches */
static bool arm64_emulated(const u8 *c, size_t n)
{
	u32 w;

	if (n < 4)
		return false;
	memcpy(&w, c, 4);
	return (w & 0x7c000000) == 0x14000000 || /* b, bl */
	       (w & 0xff000010) == 0x54000000 || /* b.cond */
	       (w & 0x7e000000) == 0x34000000 || /* cbz, cbnz */
	       (w & 0x7e000000) == 0x36000000 || /* tbz, tbnz */
	       (w & 0xff9ffc1f) == 0xd61f0000;   /* br, blr, ret */
}

bool placement__emulated(u16 machine, const u8 *code, size_t size)
{
	if (machine == EM_X86_64)
		return x86_emulated(code, size);
	return machine == EM_AARCH64 && arm64_emulated(code, size);
}

/* ---- what an instruction does ---- */

static bool is_branch(const ZydisDecodedInstruction *i)
{
	switch (i->meta.category) {
	case ZYDIS_CATEGORY_COND_BR:
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_INTERRUPT:
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_SYSRET:
	case ZYDIS_CATEGORY_SYSTEM:
		return true;
	default:
		/* xbegin goes elsewhere on an abort, hlt and ud2 do not go on */
		return i->attributes & ZYDIS_ATTRIB_IS_RELATIVE && i->raw.imm[0].is_relative;
	}
}

/* Address that a relative branch may go to; calls excepted, they come back. */
static bool branch_target(const ZydisDecodedInstruction *i, u64 at, u64 *target)
{
	if (i->meta.category == ZYDIS_CATEGORY_CALL || !i->raw.imm[0].is_relative)
		return false;
	*target = at + i->length + (u64)i->raw.imm[0].value.s;
	return true;
}

/* Which of the 16 general registers hold each argument still: itself, and copies of it. */
struct holders {
	u16 of[PLACEMENT_ARGS];
};

/* The general register that it is part of, as a bit; 0: it is part of none. */
static u16 register_bit(ZydisRegister r)
{
	int id;

	r = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);
	id = ZydisRegisterGetClass(r) == ZYDIS_REGCLASS_GPR64 ? ZydisRegisterGetId(r) : -1;
	return id >= 0 && id < 16 ? (u16)(1u << id) : 0;
}

static void holders__begin(struct holders *h)
{
	for (u32 a = 0; a < PLACEMENT_ARGS; a++)
		h->of[a] = register_bit(argument_regs[a]);
}

/* a whole register into a whole register */
static bool is_copy(const struct insn *in)
{
	return in->i.mnemonic == ZYDIS_MNEMONIC_MOV && in->i.operand_width == 64 &&
	       in->ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER && in->ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       register_bit(in->ops[0].reg.value) && register_bit(in->ops[1].reg.value);
}

/* Over one instruction: what it writes, in whole or in part, explicitly or not, holds its argument no more. */
static void holders__track(struct holders *h, const struct insn *in)
{
	u16 lost = 0, from = 0;

	for (int k = 0; k < in->i.operand_count; k++) {
		const ZydisDecodedOperand *op = &in->ops[k];

		if (op->type == ZYDIS_OPERAND_TYPE_REGISTER && op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			lost |= register_bit(op->reg.value);
	}
	if (is_copy(in))
		from = register_bit(in->ops[1].reg.value);
	for (u32 a = 0; a < PLACEMENT_ARGS; a++) {
		bool copied = h->of[a] & from;

		h->of[a] = copied ? h->of[a] | lost : h->of[a] & (u16)~lost;
	}
}

/* arguments that are in no register any more */
static u32 holders__lost(const struct holders *h)
{
	u32 mask = 0;

	for (u32 a = 0; a < PLACEMENT_ARGS; a++)
		mask |= h->of[a] ? 0 : ARG_BIT(a);
	return mask;
}

static void holders__tell(const struct holders *h, u16 reg[PLACEMENT_ARGS])
{
	for (int a = 0; a < PLACEMENT_ARGS; a++) {
		const char *name;
		int bytes;

		reg[a] = REG_NONE;
		if (h->of[a] & register_bit(argument_regs[a])) {
			reg[a] = reg__argument(EM_X86_64, a);
		} else if (h->of[a]) {
			name = ZydisRegisterGetString(ZYDIS_REGISTER_RAX + __builtin_ctz(h->of[a]));
			reg[a] = reg__offset(EM_X86_64, name, strlen(name), &bytes);
		}
	}
}

static bool writes_sp(const struct insn *in)
{
	for (int k = 0; k < in->i.operand_count; k++) {
		const ZydisDecodedOperand *op = &in->ops[k];

		if (op->type == ZYDIS_OPERAND_TYPE_REGISTER && (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
			ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, op->reg.value) ==
				ZYDIS_REGISTER_RSP)
			return true;
	}
	return false;
}

/* Follows the distance to the return address over one instruction; false where it is lost. */
static bool track_sp(const struct insn *in, s64 *ret)
{
	const ZydisDecodedOperand *a = &in->ops[0], *b = &in->ops[1];
	bool on_sp = a->type == ZYDIS_OPERAND_TYPE_REGISTER && a->reg.value == ZYDIS_REGISTER_RSP;

	if (!writes_sp(in))
		return true;
	switch (in->i.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_PUSHFQ:
		*ret += in->i.operand_width / 8;
		return true;
	case ZYDIS_MNEMONIC_POP:
		*ret -= in->i.operand_width / 8;
		return !on_sp;
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_ADD:
		if (!on_sp || b->type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
			return false;
		*ret += in->i.mnemonic == ZYDIS_MNEMONIC_SUB ? b->imm.value.s : -b->imm.value.s;
		return true;
	case ZYDIS_MNEMONIC_LEA:
		if (!on_sp || b->mem.base != ZYDIS_REGISTER_RSP || b->mem.index != ZYDIS_REGISTER_NONE)
			return false;
		*ret -= b->mem.disp.value;
		return true;
	default:
		return false;
	}
}

/* ---- the straight line from the entry ---- */

struct walk {
	ZydisDecoder decoder;
	const struct placement_code *c;
	u32 at;  /* of the instruction in `in` */
	s64 ret; /* before it runs */
	bool ret_known;
	struct holders args; /* before it runs */
	struct insn in;
};

static bool decode(struct walk *w)
{
	return w->at < w->c->size && w->at < PLACEMENT_REACH &&
	       ZYAN_SUCCESS(ZydisDecoderDecodeFull(
		       &w->decoder, w->c->code + w->at, w->c->size - w->at, &w->in.i, w->in.ops));
}

static bool walk__begin(struct walk *w, const struct placement_code *c)
{
	*w = (struct walk){.c = c, .ret_known = true};
	holders__begin(&w->args);
	init_decoder(&w->decoder);
	return decode(w);
}

/* To the next instruction; false where control may not get there, or got there from elsewhere. */
static bool walk__next(struct walk *w)
{
	if (is_branch(&w->in.i))
		return false;
	holders__track(&w->args, &w->in);
	w->ret_known = w->ret_known && track_sp(&w->in, &w->ret);
	w->at += w->in.i.length;
	return decode(w);
}

static u32 known_ret(const struct walk *w)
{
	return w->ret_known && w->ret >= 0 && w->ret < (1 << 20) ? (u32)w->ret : PLACEMENT_NO_RET;
}

/* ---- branches back to the entry ---- */

struct branches {
	ZydisDecoder decoder;
	u64 entry, end;       /* of the function */
	u64 lowest;           /* target after the entry */
	u64 cold[COLD_PARTS]; /* targets outside */
	int n_cold;
};

static void note_target(struct branches *b, u64 target, bool follow)
{
	if (target > b->entry && target < b->lowest)
		b->lowest = target;
	if (!follow || (target >= b->entry && target < b->end))
		return;
	for (int i = 0; i < b->n_cold; i++)
		if (b->cold[i] == target)
			return;
	if (b->n_cold < COLD_PARTS)
		b->cold[b->n_cold++] = target;
}

/* Every relative branch in size bytes. With `follow` unset it ends at the first instruction that does not go on. */
static void sweep(struct branches *b, const u8 *code, size_t size, u64 vaddr, bool follow, bool to_end)
{
	u64 furthest = 0;

	for (size_t at = 0; at < size;) {
		ZydisDecodedInstruction i;
		u64 target;
		bool ends;

		if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&b->decoder, NULL, code + at, size - at, &i))) {
			at++; /* data between code */
			continue;
		}
		if (branch_target(&i, vaddr + at, &target)) {
			note_target(b, target, follow);
			if (target < vaddr + size)
				furthest = max(furthest, target);
		}
		at += i.length;
		ends = i.meta.category == ZYDIS_CATEGORY_RET || i.meta.category == ZYDIS_CATEGORY_UNCOND_BR;
		if (!to_end && ends && furthest < vaddr + at)
			return;
	}
}

/* Hand-written functions share code: glibc's mempcpy jumps into memcpy. Whoever does so lies nearby, in the same
 * source. */
static void sweep_neighbours(struct branches *b, const struct placement_code *c)
{
	u8 *code = malloc(NEIGHBOUR_BYTES);
	u64 back = min((u64)NEIGHBOUR_BYTES, c->vaddr);

	if (!code) {
		b->lowest = b->entry;
		return;
	}
	for (; back >= 64; back /= 2) { /* the segment may begin later */
		size_t n = c->outside(c->arg, c->vaddr - back, code, (size_t)back);

		sweep(b, code, n, c->vaddr - back, false, true);
		if (n)
			break;
	}
	sweep(b, code, c->outside(c->arg, b->end, code, NEIGHBOUR_BYTES), b->end, false, true);
	free(code);
}

/* The lowest address after the entry that a branch goes to. */
static u64 lowest_target(const struct placement_code *c)
{
	struct branches b = {.entry = c->vaddr, .end = c->vaddr + c->size, .lowest = ~0ULL};
	u8 cold[COLD_BYTES];

	init_decoder(&b.decoder);
	sweep(&b, c->code, c->size, c->vaddr, true, c->whole);
	for (int i = 0; c->outside && i < b.n_cold; i++) {
		size_t n = c->outside(c->arg, b.cold[i], cold, sizeof(cold));

		sweep(&b, cold, n, b.cold[i], false, false);
	}
	if (c->outside)
		sweep_neighbours(&b, c);
	return b.lowest;
}

/* ---- choosing ---- */

static struct placement at_entry(const struct placement_code *c)
{
	struct placement p = {
		.stepped = !placement__emulated(c->machine, c->code, c->size),
		.ret = c->machine == EM_X86_64 ? 0 : PLACEMENT_NO_RET,
	};

	for (int a = 0; a < PLACEMENT_ARGS; a++)
		p.reg[a] = reg__argument(c->machine, a);
	return p;
}

struct placement placement__choose(const struct placement_code *c, u32 need)
{
	struct placement p = at_entry(c);
	struct walk w;
	u64 lowest = 0;

	if (!p.stepped || c->machine != EM_X86_64 || (c->whole && c->size > PLACEMENT_MAX) || !walk__begin(&w, c))
		return p;
	while (walk__next(&w) && !(holders__lost(&w.args) & need)) {
		if (!x86_emulated(c->code + w.at, w.in.i.length) || known_ret(&w) == PLACEMENT_NO_RET)
			continue;
		lowest = lowest ? lowest : lowest_target(c);
		if (lowest <= c->vaddr + w.at)
			return p; /* a loop goes through here, or a path around */
		p = (struct placement){.offset = w.at, .ret = known_ret(&w)};
		holders__tell(&w.args, p.reg);
		return p;
	}
	return p;
}

struct placement placement__at(const struct placement_code *c, u32 offset, u32 *live)
{
	struct placement p = at_entry(c);
	struct walk w;
	bool there = c->machine == EM_X86_64 && walk__begin(&w, c);

	p.offset = offset;
	p.ret = PLACEMENT_NO_RET;
	p.stepped = true;
	*live = offset == 0 ? 0x3f : 0;
	if (offset < c->size)
		p.stepped = !placement__emulated(c->machine, c->code + offset, c->size - offset);
	while (there && w.at < offset)
		there = walk__next(&w);
	if (there && w.at == offset && lowest_target(c) > c->vaddr + offset) {
		p.ret = known_ret(&w);
		*live = 0x3f & ~holders__lost(&w.args);
		holders__tell(&w.args, p.reg);
	}
	return p;
}

bool placement__splits(u16 machine, const u8 *code, size_t size, size_t offset)
{
	ZydisDecodedInstruction i;
	ZydisDecoder decoder;
	size_t at = 0;

	if (machine == EM_AARCH64)
		return offset & 3;
	if (machine != EM_X86_64)
		return false;
	init_decoder(&decoder);
	while (at < offset) {
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, code + at, size - at, &i)))
			return false;
		at += i.length;
	}
	return at > offset;
}

static size_t read_outside(void *arg, u64 vaddr, void *buf, size_t n)
{
	return elf_file__read_vaddr(arg, vaddr, buf, n);
}

int placement__of_symbol(struct elf_file *e, const struct elf_symbol *s, u32 need, struct placement *out)
{
	size_t size = s->size ? (size_t)min(s->size, (u64)PLACEMENT_MAX + 1) : UNSIZED_BYTES;
	u8 *code = malloc(size);
	struct placement_code c = {
		.machine = e->machine,
		.code = code,
		.whole = s->size != 0,
		.vaddr = s->vaddr,
		.outside = read_outside,
		.arg = e,
	};

	if (!code)
		return -ENOMEM;
	c.size = elf_file__read_vaddr(e, s->vaddr, code, size);
	if (c.size)
		*out = placement__choose(&c, need);
	free(code);
	return c.size ? 0 : -ENODATA;
}

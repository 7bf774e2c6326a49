// SPDX-License-Identifier: GPL-2.0-only
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include "regs.h"

/* the kernel's order in struct pt_regs of x86-64; each is 8 bytes */
static const struct {
	const char *names[4]; /* 8, 4, 2, 1 bytes */
} x86[] = {
	{{"r15", "r15d", "r15w", "r15b"}},
	{{"r14", "r14d", "r14w", "r14b"}},
	{{"r13", "r13d", "r13w", "r13b"}},
	{{"r12", "r12d", "r12w", "r12b"}},
	{{"rbp", "ebp", "bp", "bpl"}},
	{{"rbx", "ebx", "bx", "bl"}},
	{{"r11", "r11d", "r11w", "r11b"}},
	{{"r10", "r10d", "r10w", "r10b"}},
	{{"r9", "r9d", "r9w", "r9b"}},
	{{"r8", "r8d", "r8w", "r8b"}},
	{{"rax", "eax", "ax", "al"}},
	{{"rcx", "ecx", "cx", "cl"}},
	{{"rdx", "edx", "dx", "dl"}},
	{{"rsi", "esi", "si", "sil"}},
	{{"rdi", "edi", "di", "dil"}},
	{{"", "", "", ""}}, /* orig_ax */
	{{"rip", "", "", ""}},
	{{"", "", "", ""}}, /* cs */
	{{"", "", "", ""}}, /* flags */
	{{"rsp", "esp", "sp", "spl"}},
};

/* the second bytes of the first four registers have names of their own */
static const char *const high[] = {"ah", "bh", "ch", "dh"};
static const char *const high_of[] = {"rax", "rbx", "rcx", "rdx"};

static bool same(const char *a, const char *name, size_t len)
{
	return *a && strlen(a) == len && !memcmp(a, name, len);
}

static u16 x86_offset(const char *name, size_t len, int *bytes)
{
	for (size_t i = 0; i < ARRAY_SIZE(x86); i++)
		for (int w = 0; w < 4; w++)
			if (same(x86[i].names[w], name, len)) {
				*bytes = 8 >> w;
				return (u16)(8 * i);
			}
	for (size_t i = 0; i < ARRAY_SIZE(high); i++)
		if (same(high[i], name, len)) {
			u16 offset = x86_offset(high_of[i], 3, bytes);

			*bytes = 1;
			return (u16)(offset + 1);
		}
	return REG_NONE;
}

/* struct user_pt_regs: regs[31], sp, pc, pstate */
static u16 arm64_offset(const char *name, size_t len, int *bytes)
{
	int n = 0;

	*bytes = 8;
	if (same("sp", name, len))
		return 31 * 8;
	if (len < 2 || len > 3 || (name[0] != 'x' && name[0] != 'w'))
		return REG_NONE;
	for (size_t i = 1; i < len; i++) {
		if (name[i] < '0' || name[i] > '9')
			return REG_NONE;
		n = 10 * n + name[i] - '0';
	}
	*bytes = name[0] == 'x' ? 8 : 4;
	return n > 30 || (len == 3 && name[1] == '0') ? REG_NONE : (u16)(8 * n);
}

u16 reg__offset(u16 machine, const char *name, size_t len, int *bytes)
{
	if (machine == EM_X86_64)
		return x86_offset(name, len, bytes);
	if (machine == EM_AARCH64)
		return arm64_offset(name, len, bytes);
	return REG_NONE;
}

u16 reg__argument(u16 machine, int i)
{
	static const char *const names[] = {"rdi", "rsi", "rdx", "rcx", "r8", "r9"};
	int bytes;

	if (i < 0 || i > 5)
		return REG_NONE;
	if (machine == EM_X86_64)
		return x86_offset(names[i], strlen(names[i]), &bytes);
	return machine == EM_AARCH64 ? (u16)(8 * i) : REG_NONE;
}

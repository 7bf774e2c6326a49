// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "regs.h"
#include "strings.h"
#include "usdt.h"

#define STAPSDT_TYPE 3

/* ---- notes ---- */

struct stapsdt {
	u64 pc, base, semaphore;
};

/* desc holds three addresses and three strings. False where it does not. */
static bool split_note(const char *desc, size_t len, struct stapsdt *s, struct usdt_note *note)
{
	const char *strings[3];

	if (len < sizeof(*s))
		return false;
	memcpy(s, desc, sizeof(*s));
	desc += sizeof(*s);
	len -= sizeof(*s);
	for (int i = 0; i < 3; i++) {
		const char *end = memchr(desc, 0, len);

		if (!end)
			return false;
		strings[i] = desc;
		len -= (size_t)(end + 1 - desc);
		desc = end + 1;
	}
	note->provider = strings[0];
	note->name = strings[1];
	note->args = strings[2];
	return *note->provider && *note->name;
}

/* Addresses are those of link time; prelink may have moved the file since, which .stapsdt.base tells. */
static bool place_note(const struct elf_file *e, u64 base_now, struct stapsdt s, struct usdt_note *note)
{
	u64 shift = base_now && s.base ? base_now - s.base : 0;

	note->semaphore = 0;
	if (elf_file__offset(e, s.pc + shift, &note->offset))
		return false;
	return !s.semaphore || !elf_file__offset(e, s.semaphore + shift, &note->semaphore);
}

static size_t padded(u32 n)
{
	return ((size_t)n + 3) & ~(size_t)3;
}

static int walk_notes(struct elf_file *e, u64 base, const char *p, size_t len, usdt_fn fn, void *arg)
{
	int bad = 0;

	for (int i = 0; i < USDT_MAX_NOTES && len >= sizeof(Elf64_Nhdr); i++) {
		struct usdt_note note;
		struct stapsdt s;
		Elf64_Nhdr h;
		size_t name, desc;

		memcpy(&h, p, sizeof(h));
		p += sizeof(h);
		len -= sizeof(h);
		name = padded(h.n_namesz);
		if (name > len || h.n_descsz > len - name)
			return bad + 1;
		desc = min(padded(h.n_descsz), len - name); /* the last one may lack its padding */
		if (h.n_type == STAPSDT_TYPE && h.n_namesz == 8 && !memcmp(p, "stapsdt", 8)) {
			if (!split_note(p + name, h.n_descsz, &s, &note) || !place_note(e, base, s, &note))
				bad++;
			else if (!fn(&note, arg))
				return bad;
		}
		p += name + desc;
		len -= name + desc;
	}
	return len ? bad + 1 : bad;
}

int usdt__each(struct elf_file *e, usdt_fn fn, void *arg)
{
	const struct elf_section *base = elf_file__section(e, ".stapsdt.base");
	int bad = 0;

	for (u32 i = 0; i < e->n_sections; i++) {
		const struct elf_section *s = &e->sections[i];
		size_t len = (size_t)min(s->size, (u64)USDT_MAX_BYTES);
		char *buf;
		int err;

		if (s->type != SHT_NOTE || s->name >= e->names_size || strcmp(e->names + s->name, ".note.stapsdt"))
			continue;
		buf = malloc(len + 1);
		if (!buf)
			return -ENOMEM;
		err = elf_file__read(e, s->offset, buf, len);
		bad += err ? 1 : walk_notes(e, base ? base->addr : 0, buf, len, fn, arg);
		free(buf);
		return bad;
	}
	return 0;
}

/* ---- arguments ---- */

struct scan {
	const char *p, *end;
	u16 machine;
};

static bool eat(struct scan *s, char c)
{
	if (s->p == s->end || *s->p != c)
		return false;
	s->p++;
	return true;
}

static void blanks(struct scan *s)
{
	while (s->p < s->end && *s->p == ' ')
		s->p++;
}

/* decimal or 0x…, with a sign; false where there is none or it does not fit into 64 bits */
static bool number(struct scan *s, __s64 *out)
{
	char buf[32], *end;
	size_t n = 0;
	bool minus = s->p < s->end && *s->p == '-';

	while (s->p + n < s->end && n < sizeof(buf) - 1 && strchr("+-0123456789abcdefABCDEFxX", s->p[n]) && s->p[n])
		n++;
	memcpy(buf, s->p, n);
	buf[n] = 0;
	errno = 0;
	*out = minus ? strtoll(buf, &end, 0) : (__s64)strtoull(buf, &end, 0);
	if (end == buf || errno)
		return false;
	s->p += end - buf;
	return true;
}

static u16 reg(struct scan *s, int *bytes)
{
	const char *from;

	if (s->machine == EM_X86_64 && !eat(s, '%'))
		return REG_NONE;
	from = s->p;
	while (s->p < s->end && ((*s->p >= 'a' && *s->p <= 'z') || (*s->p >= '0' && *s->p <= '9')))
		s->p++;
	return reg__offset(s->machine, from, (size_t)(s->p - from), bytes);
}

/* disp(%base), disp(%base,%index,scale) */
static bool x86_memory(struct scan *s, struct probe_arg *a)
{
	__s64 scale = 1;
	int bytes;

	if (s->p < s->end && *s->p != '(' && !number(s, &a->value))
		return false;
	if (!eat(s, '('))
		return false;
	a->from = ARG_MEM;
	a->scale = 1;
	a->reg = reg(s, &bytes);
	if (a->reg == REG_NONE || bytes != 8)
		return false;
	if (eat(s, ',')) {
		a->index = reg(s, &bytes);
		if (a->index == REG_NONE || bytes != 8 || (eat(s, ',') && !number(s, &scale)))
			return false;
		if (scale != 1 && scale != 2 && scale != 4 && scale != 8)
			return false;
		a->scale = (u8)scale;
	}
	return eat(s, ')');
}

static bool x86_operand(struct scan *s, struct probe_arg *a)
{
	int bytes;

	if (eat(s, '$')) {
		a->from = ARG_CONST;
		return number(s, &a->value);
	}
	if (s->p < s->end && *s->p == '%') {
		a->from = ARG_REG;
		a->reg = reg(s, &bytes);
		return a->reg != REG_NONE && bytes >= a->size;
	}
	return x86_memory(s, a);
}

/* [x0], [sp, 12], [x0, x1], [x0, x1, lsl 3] */
static bool arm64_memory(struct scan *s, struct probe_arg *a)
{
	__s64 shift = 0;
	int bytes;

	a->from = ARG_MEM;
	a->scale = 1;
	a->reg = reg(s, &bytes);
	if (a->reg == REG_NONE || bytes != 8)
		return false;
	if (eat(s, ']'))
		return true;
	if (!eat(s, ','))
		return false;
	blanks(s);
	if (s->p < s->end && *s->p == 'x') {
		a->index = reg(s, &bytes);
		if (a->index == REG_NONE)
			return false;
		if (eat(s, ',')) {
			blanks(s);
			if (s->end - s->p < 4 || strncmp(s->p, "lsl", 3))
				return false;
			s->p += 3;
			blanks(s);
			eat(s, '#');
			if (!number(s, &shift) || shift < 0 || shift > 3)
				return false;
			a->scale = (u8)(1 << shift);
		}
		return eat(s, ']');
	}
	eat(s, '#');
	return number(s, &a->value) && eat(s, ']');
}

static bool arm64_operand(struct scan *s, struct probe_arg *a)
{
	int bytes;

	if (eat(s, '['))
		return arm64_memory(s, a);
	if (s->p < s->end && (*s->p == 'x' || *s->p == 'w' || *s->p == 's')) {
		a->from = ARG_REG;
		a->reg = reg(s, &bytes);
		return a->reg != REG_NONE && bytes >= a->size;
	}
	a->from = ARG_CONST;
	return number(s, &a->value);
}

static bool parse_one(struct scan *s, struct probe_arg *a)
{
	__s64 size;

	*a = (struct probe_arg){.index = REG_NONE, .size = 8};
	if (!number(s, &size) || !eat(s, '@'))
		return false;
	a->is_signed = size < 0;
	size = size < 0 && size >= -8 ? -size : size;
	if (size != 1 && size != 2 && size != 4 && size != 8)
		return false;
	a->size = (u8)size;
	if (!(s->machine == EM_X86_64 ? x86_operand(s, a) : s->machine == EM_AARCH64 && arm64_operand(s, a)))
		return false;
	return s->p == s->end;
}

/* Arguments are separated by blanks; within brackets a blank separates nothing. */
static const char *argument_end(const char *p)
{
	int depth = 0;

	for (; *p && (*p != ' ' || depth > 0); p++)
		depth += *p == '[' || *p == '(' ? 1 : *p == ']' || *p == ')' ? -1 : 0;
	return p;
}

int usdt__parse_args(u16 machine, const char *spec, struct probe_arg *args, int n, char *why, size_t why_size)
{
	int count = 0;

	for (int i = 0; i < n; i++)
		args[i] = (struct probe_arg){.index = REG_NONE};
	for (;; count++) {
		struct scan s = {.machine = machine};
		char text[64];

		spec += strspn(spec, " ");
		if (!*spec)
			return count;
		s.p = spec;
		s.end = argument_end(spec);
		if (count < n && !parse_one(&s, &args[count])) {
			term__escape(text, sizeof(text), spec, min((size_t)(s.end - spec), sizeof(text)));
			snprintf(why, why_size, "argument %d (%s) is where a probe cannot read it", count + 1, text);
			args[count] = (struct probe_arg){.index = REG_NONE};
			return -ENOTSUP;
		}
		spec = s.end;
	}
}

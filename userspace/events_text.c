/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Records as text: a value by its unit, a record as a line.
 */
#include <string.h>

#include "events_desc.h"
#include "strings.h"
#include "syscalls.h"

struct word {
	u64 value;
	const char *text;
};

static const struct word switch_flag_words[] = {{SWITCH_PREEMPT, "PREEMPT"}, {SWITCH_GAME, "GAME"},
	{SWITCH_NEXT_GAME, "NEXT_GAME"}, {SWITCH_USER, "USER"}, {0, NULL}};
static const struct word wake_flag_words[] = {
	{WAKE_HARDIRQ, "HARDIRQ"}, {WAKE_SOFTIRQ, "SOFTIRQ"}, {WAKE_NEW, "NEW"}, {0, NULL}};
static const struct word fault_flag_words[] = {{FAULT_MAJOR, "MAJOR"}, {FAULT_WRITE, "WRITE"}, {FAULT_EXEC, "EXEC"},
	{FAULT_KERNEL, "KERNEL"}, {FAULT_PRESENT, "PRESENT"}, {FAULT_HUGE, "HUGE"}, {0, NULL}};
/* include/linux/sched.h: __state and exit_state; the letters of ps */
static const struct word state_words[] = {{0x01, "S"}, {0x02, "D"}, {0x04, "T"}, {0x08, "t"}, {0x10, "X"}, {0x20, "Z"},
	{0x40, "P"}, {0x80, "dead"}, {0x100, "wakekill"}, {0x200, "waking"}, {0x400, "noload"}, {0x800, "new"},
	{0x1000, "rtlock"}, {0x2000, "freezable"}, {0x8000, "frozen"}, {0, NULL}};
static const struct word call_flag_words[] = {{CALL_TRUNCATED, "TRUNCATED"}, {CALL_KERNEL, "KERNEL"}, {0, NULL}};
static const struct word prot_words[] = {{1, "READ"}, {2, "WRITE"}, {4, "EXEC"}, {0x100, "SHARED"}, {0, NULL}};

/* include/uapi/linux/futex.h, the command without its flags */
static const char *const futex_words[] = {"FUTEX_WAIT", "FUTEX_WAKE", "FUTEX_FD", "FUTEX_REQUEUE", "FUTEX_CMP_REQUEUE",
	"FUTEX_WAKE_OP", "FUTEX_LOCK_PI", "FUTEX_UNLOCK_PI", "FUTEX_TRYLOCK_PI", "FUTEX_WAIT_BITSET",
	"FUTEX_WAKE_BITSET", "FUTEX_WAIT_REQUEUE_PI", "FUTEX_CMP_REQUEUE_PI", "FUTEX_LOCK_PI2"};
static const struct word futex_flag_words[] = {{128, "PRIVATE"}, {256, "CLOCK_REALTIME"}, {0, NULL}};
static const char *const mark_words[] = {"mark", "begin", "end"};
static const char *const severity_words[] = {"note", "warning", "error"};
static const char *const stack_reason_words[] = {"wait", "cold", "fault", "alloc", "sample"};
static const char *const softirq_words[] = {
	"HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"};
static const char *const alloc_words[] = {"malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign",
	"operator new", "operator new[]", "free", "operator delete", "operator delete[]", "custom"};
/* include/uapi/linux/io_uring.h, enum io_uring_op */
static const char *const uring_words[] = {"NOP", "READV", "WRITEV", "FSYNC", "READ_FIXED", "WRITE_FIXED", "POLL_ADD",
	"POLL_REMOVE", "SYNC_FILE_RANGE", "SENDMSG", "RECVMSG", "TIMEOUT", "TIMEOUT_REMOVE", "ACCEPT", "ASYNC_CANCEL",
	"LINK_TIMEOUT", "CONNECT", "FALLOCATE", "OPENAT", "CLOSE", "FILES_UPDATE", "STATX", "READ", "WRITE", "FADVISE",
	"MADVISE", "SEND", "RECV", "OPENAT2", "EPOLL_CTL", "SPLICE", "PROVIDE_BUFFERS", "REMOVE_BUFFERS", "TEE",
	"SHUTDOWN", "RENAMEAT", "UNLINKAT", "MKDIRAT", "SYMLINKAT", "LINKAT", "MSG_RING", "FSETXATTR", "SETXATTR",
	"FGETXATTR", "GETXATTR", "SOCKET", "URING_CMD", "SEND_ZC", "SENDMSG_ZC", "READ_MULTISHOT", "WAITID",
	"FUTEX_WAIT", "FUTEX_WAKE", "FUTEX_WAITV", "FIXED_FD_INSTALL", "FTRUNCATE", "BIND", "LISTEN", "RECV_ZC"};

/* which table names the values of a unit; the units not in it are numbers */
static const struct {
	const char *const *words;
	size_t n;
} enums[] = {
	[UNIT_FRAME_MARK] = {mark_words, ARRAY_SIZE(mark_words)},
	[UNIT_CLASS] = {class_names, CLASS_COUNT},
	[UNIT_URING_OP] = {uring_words, ARRAY_SIZE(uring_words)},
	[UNIT_ALLOC_FN] = {alloc_words, ARRAY_SIZE(alloc_words)},
	[UNIT_SOFTIRQ] = {softirq_words, ARRAY_SIZE(softirq_words)},
	[UNIT_STACK_REASON] = {stack_reason_words, ARRAY_SIZE(stack_reason_words)},
	[UNIT_SEVERITY] = {severity_words, ARRAY_SIZE(severity_words)},
};

static const struct word *const flag_tables[] = {
	[UNIT_STATE] = state_words,
	[UNIT_FAULT_FLAGS] = fault_flag_words,
	[UNIT_SWITCH_FLAGS] = switch_flag_words,
	[UNIT_WAKE_FLAGS] = wake_flag_words,
	[UNIT_PROT] = prot_words,
	[UNIT_CALL_FLAGS] = call_flag_words,
};

/* Text of a buffer's size: what does not fit is cut. No printf: it would be most of an export's time. */
struct cut {
	char *s;
	size_t len, size;
};

static struct cut cut_of(char *buf, size_t size)
{
	if (size)
		buf[0] = '\0';
	return (struct cut){buf, 0, size};
}

static void add_n(struct cut *c, const char *text, size_t n)
{
	if (c->len + 1 >= c->size)
		return;
	n = min(n, c->size - 1 - c->len);
	memcpy(c->s + c->len, text, n);
	c->len += n;
	c->s[c->len] = '\0';
}

static void add(struct cut *c, const char *text)
{
	add_n(c, text, strlen(text));
}

static void add_dec(struct cut *c, u64 v)
{
	char digits[FMT_DIGITS];

	add_n(c, digits, fmt__dec(digits, v));
}

static void add_hex(struct cut *c, u64 v)
{
	char digits[FMT_DIGITS];

	add_n(c, digits, fmt__hex(digits, v));
}

/* "A|B|0x40", none where no bit is set */
static void add_flags(struct cut *c, const struct word *words, u64 v, const char *none)
{
	const char *bar = "";

	if (!v)
		add(c, none);
	for (; v && words->text; words++) {
		if (!(v & words->value))
			continue;
		add(c, bar);
		add(c, words->text);
		bar = "|";
		v &= ~words->value;
	}
	if (v) {
		add(c, bar);
		add_hex(c, v);
	}
}

static void add_futex_op(struct cut *c, u64 v)
{
	u64 cmd = v & 0x7f;

	if (v == FUTEX_OP_WAITV) {
		add(c, "FUTEX_WAITV");
	} else if (cmd >= ARRAY_SIZE(futex_words)) {
		add_hex(c, v);
	} else {
		add(c, futex_words[cmd]);
		add(c, v & ~0x7fULL ? "|" : "");
		add_flags(c, futex_flag_words, v & ~0x7fULL, "");
	}
}

static void add_number(struct cut *c, const struct ev_field *f, s64 v)
{
	const char *name = v < 0 && v > -4096 && f->is_signed ? strerrorname_np((int)-v) : NULL;

	if (f->is_signed && v < 0)
		add(c, "-");
	if (name && (f->unit == UNIT_ERRNO || f->unit == UNIT_BYTES))
		add(c, name);
	else
		add_dec(c, f->is_signed && v < 0 ? 0 - (u64)v : (u64)v);
}

static void add_escaped(struct cut *c, const char *text, size_t n)
{
	if (c->len < c->size)
		c->len += term__escape(c->s + c->len, c->size - c->len, text, n);
}

static void add_dev(struct cut *c, u32 v)
{
	add_dec(c, v >> 20); /* as the kernel keeps it: 12 bits major, 20 bits minor */
	add(c, ":");
	add_dec(c, v & 0xfffff);
}

/* of units whose values have names; false: it is not one of them */
static bool add_named(struct cut *c, const struct ev_field *f, u64 v)
{
	char call[32];

	if (f->unit < ARRAY_SIZE(enums) && enums[f->unit].words && v < enums[f->unit].n)
		add(c, enums[f->unit].words[v]);
	else if (f->unit < ARRAY_SIZE(flag_tables) && flag_tables[f->unit])
		add_flags(c, flag_tables[f->unit], v, f->unit == UNIT_STATE ? "R" : "0");
	else if (f->unit == UNIT_IRQ && v == IRQ_TIMER)
		add(c, "timer");
	else if (f->unit == UNIT_SYSCALL)
		add(c, syscall__name((u16)v, call, sizeof(call)));
	else if (f->unit == UNIT_FUTEX_OP)
		add_futex_op(c, v);
	else
		return false;
	return true;
}

static void add_value(struct cut *c, const struct ev_hdr *h, const struct ev_field *f)
{
	const char *text = (const char *)h + f->offset;
	u64 v = f->unit == UNIT_TEXT ? 0 : (u64)ev__value(h, f);

	if (f->unit == UNIT_TEXT)
		add_escaped(c, text, strnlen(text, f->size));
	else if (add_named(c, f, v))
		return;
	else if (f->unit == UNIT_DEV)
		add_dev(c, (u32)v);
	else if (f->unit == UNIT_ADDR || f->unit == UNIT_HEX || f->unit == UNIT_FLAGS)
		add_hex(c, f->size < 8 ? v & ((1ULL << f->size * 8) - 1) : v);
	else if (v == ~0ULL && !f->is_signed && (f->unit == UNIT_OFFSET || f->unit == UNIT_COUNT))
		add(c, "-"); /* FILE_NO_OFFSET, FRAME_NO_NUMBER */
	else
		add_number(c, f, (s64)v);
}

const char *ev__format(const struct ev_hdr *h, const struct ev_field *f, char *buf, size_t size)
{
	struct cut c = cut_of(buf, size);

	add_value(&c, h, f);
	return buf;
}

static void add_text(struct cut *c, const struct ev_hdr *h, const char *name)
{
	char text[EV_MAX_BYTES];
	size_t n = ev__text(h, text, sizeof(text));

	add(c, " ");
	add(c, name);
	add(c, "=\"");
	if (c->size > 2 && c->len + 2 < c->size) { /* leaves room for the quote */
		c->size--;
		add_escaped(c, text, n);
		c->size++;
	}
	add(c, "\"");
}

static void add_field(struct cut *c, const struct ev_hdr *h, const struct ev_field *f)
{
	const char *quote = f->unit == UNIT_TEXT ? "\"" : "";

	add_n(c, " ", 1);
	add(c, f->name);
	add_n(c, "=", 1);
	add(c, quote);
	add_value(c, h, f);
	add(c, quote);
}

size_t ev__dump(const struct ev_hdr *h, char *buf, size_t size)
{
	const struct ev_desc *d = ev__desc(h->kind);
	struct cut c = cut_of(buf, size);

	add_dec(&c, h->ts);
	add_n(&c, " ", 1);
	add_dec(&c, h->tid);
	add_n(&c, " ", 1);
	add_dec(&c, h->cpu);
	add_n(&c, " ", 1);
	if (!d) {
		add(&c, "kind_");
		add_dec(&c, h->kind);
		return c.len;
	}
	add(&c, d->name);
	for (int i = 0; i < d->n_fields; i++)
		add_field(&c, h, &d->fields[i]);
	if (d->has_text)
		add_text(&c, h, d->text_name);
	return c.len;
}

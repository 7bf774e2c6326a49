/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Records as text: a value by its unit, a record as a line.
 */
#include <stdarg.h>
#include <stdio.h>
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
	{FAULT_KERNEL, "KERNEL"}, {FAULT_PRESENT, "PRESENT"}, {0, NULL}};
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

/* "A|B|0x40", none where no bit is set */
static const char *flags(const struct word *words, u64 v, const char *none, char *buf, size_t size)
{
	size_t len = 0;

	snprintf(buf, size, "%s", v ? "" : none);
	for (; words->text && len < size; words++) {
		if (!(v & words->value))
			continue;
		len += (size_t)snprintf(buf + len, size - len, "%s%s", len ? "|" : "", words->text);
		v &= ~words->value;
	}
	if (v && len < size)
		snprintf(buf + len, size - len, "%s0x%llx", len ? "|" : "", (unsigned long long)v);
	return buf;
}

static const char *futex_op(u64 v, char *buf, size_t size)
{
	u64 cmd = v & 0x7f;
	char more[64];

	if (v == FUTEX_OP_WAITV)
		snprintf(buf, size, "FUTEX_WAITV");
	else if (cmd >= ARRAY_SIZE(futex_words))
		snprintf(buf, size, "0x%llx", (unsigned long long)v);
	else
		snprintf(buf, size, "%s%s%s", futex_words[cmd], v & ~0x7fULL ? "|" : "",
			flags(futex_flag_words, v & ~0x7fULL, "", more, sizeof(more)));
	return buf;
}

static const char *number(const struct ev_field *f, s64 v, char *buf, size_t size)
{
	const char *name = v < 0 && v > -4096 && f->is_signed ? strerrorname_np((int)-v) : NULL;

	if (name && (f->unit == UNIT_ERRNO || f->unit == UNIT_BYTES))
		snprintf(buf, size, "-%s", name);
	else if (f->is_signed)
		snprintf(buf, size, "%lld", (long long)v);
	else
		snprintf(buf, size, "%llu", (unsigned long long)v);
	return buf;
}

static const char *comm(const struct ev_hdr *h, const struct ev_field *f, char *buf, size_t size)
{
	const char *text = (const char *)h + f->offset;

	term__escape(buf, size, text, strnlen(text, f->size));
	return buf;
}

const char *ev__format(const struct ev_hdr *h, const struct ev_field *f, char *buf, size_t size)
{
	u64 v = f->unit == UNIT_TEXT ? 0 : (u64)ev__value(h, f);

	if (f->unit < ARRAY_SIZE(enums) && enums[f->unit].words && v < enums[f->unit].n) {
		snprintf(buf, size, "%s", enums[f->unit].words[v]);
		return buf;
	}
	if (f->unit < ARRAY_SIZE(flag_tables) && flag_tables[f->unit])
		return flags(flag_tables[f->unit], v, f->unit == UNIT_STATE ? "R" : "0", buf, size);
	switch (f->unit) {
	case UNIT_IRQ:
		if (v == IRQ_TIMER)
			return snprintf(buf, size, "timer"), buf;
		break;
	case UNIT_TEXT:
		return comm(h, f, buf, size);
	case UNIT_SYSCALL:
		snprintf(buf, size, "%s", syscall__name((u16)v, (char[32]){0}, 32));
		return buf;
	case UNIT_FUTEX_OP:
		return futex_op(v, buf, size);
	case UNIT_DEV: /* as the kernel keeps it: 12 bits major, 20 bits minor */
		snprintf(buf, size, "%u:%u", (u32)v >> 20, (u32)v & 0xfffff);
		return buf;
	case UNIT_ADDR:
	case UNIT_HEX:
	case UNIT_FLAGS:
		snprintf(buf, size, "0x%llx", (unsigned long long)(f->size < 8 ? v & ((1ULL << f->size * 8) - 1) : v));
		return buf;
	default:
		break;
	}
	if (v == ~0ULL && !f->is_signed && (f->unit == UNIT_OFFSET || f->unit == UNIT_COUNT)) {
		snprintf(buf, size, "-"); /* FILE_NO_OFFSET, FRAME_NO_NUMBER */
		return buf;
	}
	return number(f, (s64)v, buf, size);
}

/* appends to buf, cut to fit; returns the new length */
__attribute__((format(printf, 4, 5))) static size_t put(char *buf, size_t len, size_t size, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (len + 1 >= size)
		return len;
	va_start(ap, fmt);
	n = vsnprintf(buf + len, size - len, fmt, ap);
	va_end(ap);
	return n < 0 ? len : min(len + (size_t)n, size - 1);
}

static size_t put_text(const struct ev_hdr *h, const char *name, char *buf, size_t len, size_t size)
{
	char text[EV_MAX_BYTES];
	size_t n = ev__text(h, text, sizeof(text));

	len = put(buf, len, size, " %s=\"", name);
	if (len + 2 < size) /* leaves room for the quote */
		len += term__escape(buf + len, size - len - 1, text, n);
	return put(buf, len, size, "\"");
}

size_t ev__dump(const struct ev_hdr *h, char *buf, size_t size)
{
	const struct ev_desc *d = ev__desc(h->kind);
	char value[128];
	size_t len;
	int i;

	if (!size)
		return 0;
	buf[0] = '\0';
	len = put(buf, 0, size, "%llu %u %u ", (unsigned long long)h->ts, h->tid, h->cpu);
	if (!d)
		return put(buf, len, size, "kind_%u", h->kind);
	len = put(buf, len, size, "%s", d->name);
	for (i = 0; i < d->n_fields; i++) {
		const struct ev_field *f = &d->fields[i];
		const char *q = f->unit == UNIT_TEXT ? "\"" : "";

		len = put(buf, len, size, " %s=%s%s%s", f->name, q, ev__format(h, f, value, sizeof(value)), q);
	}
	return d->has_text ? put_text(h, d->text_name, buf, len, size) : len;
}

// SPDX-License-Identifier: GPL-2.0-only
/* doctor: can this machine trace, and what to do if not. One line per check. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "doctor.h"
#include "log.h"
#include "maps.h"
#include "options.h"
#include "rights.h"
#include "strings.h"
#include "tracefs.h"

struct finding *finding__add(
	struct findings *f, const char *name, enum finding_status status, const char *fix, const char *fmt, ...)
{
	struct finding *one = &f->v[min(f->n, (int)ARRAY_SIZE(f->v) - 1)];
	va_list ap;

	*one = (struct finding){.status = status};
	snprintf(one->name, sizeof(one->name), "%s", name);
	snprintf(one->fix, sizeof(one->fix), "%s", status == FINDING_OK ? "" : fix);
	va_start(ap, fmt);
	vsnprintf(one->detail, sizeof(one->detail), fmt, ap);
	va_end(ap);
	if (f->n < (int)ARRAY_SIZE(f->v))
		f->n++;
	return one;
}

static void check_kernel(struct findings *f)
{
	struct utsname u;
	int major = 0, minor = 0;
	bool old;

	uname(&u);
	sscanf(u.release, "%d.%d", &major, &minor);
	old = major < 5 || (major == 5 && minor < 15);
	/* 5.15: BPF cookies, which tell the probes apart */
	finding__add(f, "kernel", old ? FINDING_FAIL : FINDING_OK, "run a kernel of 5.15 or later", "%s, %s", u.release,
		u.machine);
}

static void check_btf(struct findings *f)
{
	bool has = !access("/sys/kernel/btf/vmlinux", R_OK);

	finding__add(f, "kernel types (BTF)", has ? FINDING_OK : FINDING_FAIL,
		"use a kernel built with CONFIG_DEBUG_INFO_BTF=y (every distribution's since about 2020)",
		has ? "/sys/kernel/btf/vmlinux" : "/sys/kernel/btf/vmlinux is not there");
}

static void check_rights(struct findings *f)
{
	char missing[128] = "", lesser[256] = "";
	u64 have = rights__have();

	for (const struct right *r = rights_to_record; r->name; r++) {
		char *to = r->must ? missing : lesser;
		size_t size = r->must ? sizeof(missing) : sizeof(lesser), n = strlen(to);

		if (have >> r->bit & 1)
			continue;
		snprintf(to + n, size - n, "%s %s%s%s", n ? "," : "", r->name, r->must ? "" : " ",
			r->must ? "" : r->purpose);
	}
	if (missing[0])
		finding__add(f, "rights", FINDING_FAIL, "run it with sudo", "missing:%s", missing);
	else if (lesser[0])
		finding__add(
			f, "rights", FINDING_WARN, "run it with sudo", "enough for your own games; missing:%s", lesser);
	else
		finding__add(f, "rights", FINDING_OK, "", "%s", geteuid() ? "by capabilities" : "root");
}

static void check_tracefs(struct findings *f)
{
	const char *path = tracefs__path();

	/* BTF tracepoints and the uprobe PMU do without it */
	if (path)
		finding__add(f, "tracefs", FINDING_OK, "", "%s, %s", path, tracefs__how());
	else
		finding__add(f, "tracefs", FINDING_WARN, "mount -t tracefs tracefs /sys/kernel/tracing",
			"not to be had (%s); recording does without it", errstr(errno));
}

static void check_number(
	struct findings *f, const char *path, const char *name, long limit, const char *fix, bool fails)
{
	char *text = proc__read(path, 64, NULL);
	long n = text ? strtol(text, NULL, 10) : 0;
	bool bad = text && n > limit && geteuid();

	finding__add(
		f, name, bad ? fails ? FINDING_FAIL : FINDING_WARN : FINDING_OK, fix, text ? "%ld" : "not there", n);
	free(text);
}

static void check_lockdown(struct findings *f)
{
	char *text = proc__read("/sys/kernel/security/lockdown", 256, NULL);
	bool locked = text && strstr(text, "[confidentiality]");

	if (text)
		text[strcspn(text, "\n")] = 0;
	finding__add(f, "lockdown", locked ? FINDING_FAIL : FINDING_OK,
		"boot without lockdown=confidentiality: it forbids BPF to read memory", "%s", text ?: "none");
	free(text);
}

static void check_uprobes(struct findings *f)
{
	bool has = !access("/sys/bus/event_source/devices/uprobe/type", R_OK);

	finding__add(f, "uprobes", has ? FINDING_OK : FINDING_WARN, "use a kernel built with CONFIG_UPROBE_EVENTS=y",
		has ? "perf PMU uprobe" : "not there: no frame boundaries and no allocations, all else works");
}

static void check_io_accounting(struct findings *f)
{
	bool has = !access("/proc/self/io", F_OK);

	finding__add(f, "I/O accounting", has ? FINDING_OK : FINDING_WARN,
		"use a kernel built with CONFIG_TASK_IO_ACCOUNTING=y",
		has ? "cold bytes of reads are known" : "not there: cold reads cannot be told from warm ones");
}

static void examine(struct findings *f)
{
	check_kernel(f);
	check_btf(f);
	check_rights(f);
	check_tracefs(f);
	check_number(f, "/proc/sys/kernel/perf_event_paranoid", "perf_event_paranoid", 2,
		"sysctl kernel.perf_event_paranoid=2", true);
	check_number(f, "/proc/sys/kernel/kptr_restrict", "kptr_restrict", 1, "sysctl kernel.kptr_restrict=1", false);
	check_lockdown(f);
	check_uprobes(f);
	check_io_accounting(f);
	for (int i = 0; i < f->n; i++)
		if (f->v[i].status == FINDING_FAIL)
			return; /* loading would only say the same in worse words */
	doctor__selftest(f);
}

static const char *const words[] = {[FINDING_OK] = "ok", [FINDING_WARN] = "warn", [FINDING_FAIL] = "fail"};

static void print_text(const struct findings *f, bool can_record)
{
	for (int i = 0; i < f->n; i++) {
		const struct finding *one = &f->v[i];

		printf("%-5s %-28s %s\n", words[one->status], one->name, one->detail);
		if (one->fix[0])
			printf("      %-28s mend it: %s\n", "", one->fix);
	}
	printf("\n%s\n",
		can_record ? "redframe can record here." : "redframe cannot record here: see the lines that fail.");
}

static void print_json(const struct findings *f, bool can_record)
{
	struct str s = {};

	str__fmt(&s, "{\"schema\": 1, \"can_record\": %s, \"checks\": [", can_record ? "true" : "false");
	for (int i = 0; i < f->n; i++) {
		const struct finding *one = &f->v[i];

		str__add(&s, i ? ",\n  {" : "\n  {");
		json__member(&s, "name", one->name);
		str__fmt(&s, ", \"status\": \"%s\", ", words[one->status]);
		json__member(&s, "detail", one->detail);
		str__add(&s, ", ");
		json__member(&s, "fix", one->fix);
		str__add(&s, "}");
	}
	str__add(&s, "\n]}\n");
	fputs(s.s ?: "", stdout);
	str__free(&s);
}

struct doctor_options {
	bool json, verbose;
};

static const struct option_row rows[] = {
	{"json", 0, OPT_FLAG, offsetof(struct doctor_options, json), NULL, "machine-readable"},
	{"verbose", 'v', OPT_FLAG, offsetof(struct doctor_options, verbose), NULL, "say more"},
	{},
};

static const struct verb doctor = {
	.name = "doctor",
	.synopsis = "[--json]",
	.about = "Checks whether this machine can trace: loads and attaches every program, and provokes one event of "
		 "each "
		 "class.\nExit status 2 if recording is impossible.",
	.rows = rows,
	.examples = "  sudo redframe doctor\n",
};

int verb__doctor(int argc, char **argv)
{
	struct doctor_options o = {};
	static struct findings f;
	bool can_record = true;
	int n, command, err = options__parse(&doctor, argc, argv, &o, &n, &command);

	if (err)
		return err > 0 ? EXIT_OK : EXIT_USAGE;
	if (n) {
		log_err("doctor: takes no '%s'", argv[0]);
		return EXIT_USAGE;
	}
	log_level = o.verbose ? LOG_VERBOSE : LOG_NORMAL;
	examine(&f);
	for (int i = 0; i < f.n; i++)
		can_record &= f.v[i].status != FINDING_FAIL;
	(o.json ? print_json : print_text)(&f, can_record);
	return can_record ? EXIT_OK : EXIT_CANNOT_TRACE;
}

// SPDX-License-Identifier: GPL-2.0-only
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "maps.h"
#include "process.h"
#include "recording.h"
#include "sites.h"
#include "startup.h"
#include "pe_modules.h"

#define HDR(kind_, ts_, tid_)                                                                                          \
	{                                                                                                              \
		.ts = (ts_), .tid = (tid_), .kind = (kind_)                                                            \
	}

static int append(struct recording_writer *w, const void *fixed, size_t bytes, const char *text)
{
	return recording__append_text(w, fixed, bytes, text, strlen(text));
}

int meta__info(struct recording_writer *w, u64 ts, const char *key, const char *fmt, ...)
{
	struct ev_info e = {HDR(EV_INFO, ts, 0)};
	char text[1600];
	int n = snprintf(text, sizeof(text), "%s=", key);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text + n, sizeof(text) - n, fmt, ap);
	va_end(ap);
	return append(w, &e, sizeof(e), text);
}

int meta__note(struct recording_writer *w, u64 ts, u32 severity, enum ev_class class, const char *text)
{
	struct ev_note e = {HDR(EV_NOTE, ts, 0), .severity = severity, .class = class};

	return append(w, &e, sizeof(e), text);
}

static u64 clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

int meta__clock(struct recording_writer *w)
{
	/* the reads lie within a microsecond of each other */
	struct ev_clock e = {
		.hdr = {.ts = clock_ns(CLOCK_BOOTTIME), .kind = EV_CLOCK, .words = sizeof(e) / 8},
		.monotonic = clock_ns(CLOCK_MONOTONIC),
		.realtime = clock_ns(CLOCK_REALTIME),
	};

	return recording__append(w, &e, sizeof(e));
}

/* The first line of a file, or the text behind `key` in it, up to the line's end; false: there is none. */
static bool fact(const char *path, const char *key, char *out, size_t size)
{
	char *text = proc__read(path, 16384, NULL);
	const char *at = text && key ? strstr(text, key) : text;

	out[0] = 0;
	if (at) {
		at += key ? strlen(key) : 0;
		at += strspn(at, " \t:");
		snprintf(out, size, "%.*s", (int)strcspn(at, "\n"), at);
	}
	free(text);
	return out[0];
}

/* "0x1002 0x73bf amdgpu": the PCI ids and the driver of each card, and of those whose driver has one its version */
static void write_gpus(struct recording_writer *w, u64 ts)
{
	char path[128], vendor[32], device[32], driver[64], key[16];

	for (int i = 0; i < 8; i++) {
		snprintf(path, sizeof(path), "/sys/class/drm/card%d/device/vendor", i);
		if (!fact(path, NULL, vendor, sizeof(vendor)))
			continue;
		snprintf(path, sizeof(path), "/sys/class/drm/card%d/device/device", i);
		fact(path, NULL, device, sizeof(device));
		snprintf(path, sizeof(path), "/sys/class/drm/card%d/device/uevent", i);
		fact(path, "DRIVER=", driver, sizeof(driver));
		snprintf(key, sizeof(key), "gpu.%d", i);
		meta__info(w, ts, key, "%s %s %s", vendor, device, driver);
	}
	if (fact("/sys/module/nvidia/version", NULL, driver, sizeof(driver)))
		meta__info(w, ts, "gpu.driver", "nvidia %s", driver);
}

static void write_hardware(struct recording_writer *w, u64 ts)
{
	char text[128];

	if (fact("/proc/cpuinfo", "model name", text, sizeof(text)))
		meta__info(w, ts, "cpu.model", "%s", text);
	if (fact("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", NULL, text, sizeof(text)))
		meta__info(w, ts, "cpu.governor", "%s", text);
	if (fact("/proc/meminfo", "MemTotal:", text, sizeof(text)))
		meta__info(w, ts, "memory.total", "%s", text);
	write_gpus(w, ts);
}

int startup__machine(struct recording_writer *w, u64 ts)
{
	struct utsname u;

	uname(&u);
	meta__info(w, ts, "redframe.version", "%s", REDFRAME_VERSION);
	meta__info(w, ts, "kernel.release", "%s", u.release);
	meta__info(w, ts, "kernel.version", "%s", u.version);
	meta__info(w, ts, "kernel.machine", "%s", u.machine);
	write_hardware(w, ts);
	return meta__info(w, ts, "cpus", "%ld", sysconf(_SC_NPROCESSORS_CONF));
}

/* ---- tasks ---- */

/* the last number of a "Key:\t1\t2" line of /proc/…/status: the id in the innermost namespace; 0 where there is none */
static u32 last_number(const char *status, const char *key)
{
	/* the key begins with the newline before it */
	const char *line = strstr(status, key), *end = line ? strchr(line + 1, '\n') : NULL;
	u32 n = 0;

	if (!end)
		return 0;
	while (end > line && isdigit((unsigned char)end[-1]))
		end--;
	if (sscanf(end, "%u", &n) != 1)
		return 0;
	return n;
}

static u32 first_number(const char *status, const char *key)
{
	const char *line = strstr(status, key);
	u32 n = 0;

	return line && sscanf(line + strlen(key), "%u", &n) == 1 ? n : 0;
}

static void strip_newline(char *s)
{
	size_t n = strlen(s);

	if (n && s[n - 1] == '\n')
		s[n - 1] = 0;
}

static int write_thread(struct recording_writer *w, u64 ts, u32 tgid, u32 tid, bool of_game)
{
	struct ev_thread e = {HDR(EV_THREAD, ts, tid), .tgid = tgid, .nstid = tid};
	char path[64], *comm, *status;
	int err;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/comm", tgid, tid);
	comm = proc__read(path, 256, NULL);
	if (!comm)
		return 0; /* it ended */
	strip_newline(comm);
	if (of_game) {
		snprintf(path, sizeof(path), "/proc/%u/task/%u/status", tgid, tid);
		status = proc__read(path, 8192, NULL);
		if (status)
			e.nstid = last_number(status, "\nNSpid:") ?: tid;
		free(status);
	}
	err = append(w, &e, sizeof(e), comm);
	free(comm);
	return err;
}

static int write_process(struct recording_writer *w, u64 ts, u32 tgid)
{
	struct ev_process e = {HDR(EV_PROCESS, ts, tgid), .nspid = tgid};
	char path[64], *cmdline, *status;
	size_t len = 0;
	int err;

	snprintf(path, sizeof(path), "/proc/%u/status", tgid);
	status = proc__read(path, 8192, NULL);
	if (!status)
		return 0;
	e.parent = first_number(status, "\nPPid:");
	e.nspid = last_number(status, "\nNSpid:") ?: tgid;
	free(status);
	snprintf(path, sizeof(path), "/proc/%u/cmdline", tgid);
	cmdline = proc__read(path, 1024, &len);
	err = recording__append_text(w, &e, sizeof(e), cmdline ? cmdline : "", len);
	free(cmdline);
	return err;
}

/* A line of /proc/PID/cgroup is "N:CONTROLLERS:PATH": whether it is of the group that shares out the CPU. */
static bool shares_cpu(const char *controllers, size_t len)
{
	char list[256];

	snprintf(list, sizeof(list), ",%.*s,", (int)min(len, sizeof(list) - 3), controllers);
	return strstr(list, ",cpu,") != NULL;
}

static int write_cgroup(struct recording_writer *w, u64 ts, u32 tgid)
{
	struct ev_cgroup e = {HDR(EV_CGROUP, ts, tgid)};
	char path[64], *text, *save, *line, *found = NULL;
	int err = 0;

	snprintf(path, sizeof(path), "/proc/%u/cgroup", tgid);
	text = proc__read(path, 4096, NULL);
	for (line = text ? strtok_r(text, "\n", &save) : NULL; line; line = strtok_r(NULL, "\n", &save)) {
		char *list = strchr(line, ':'), *group = list ? strchr(list + 1, ':') : NULL;

		if (group && (shares_cpu(list + 1, group - list - 1) || (!found && group == list + 1)))
			found = group + 1;
	}
	if (found)
		err = append(w, &e, sizeof(e), found);
	free(text);
	return err;
}

/* Calls fn for each entry of a folder whose name is a number. */
static int each_number(const char *path, int (*fn)(u32 n, void *arg), void *arg)
{
	DIR *dir = opendir(path);
	struct dirent *d;
	int err = 0;

	if (!dir)
		return 0;
	while (!err && (d = readdir(dir)))
		if (isdigit((unsigned char)d->d_name[0]))
			err = fn(strtoul(d->d_name, NULL, 10), arg);
	closedir(dir);
	return err;
}

struct task_walk {
	struct recording_writer *w;
	u64 ts;
	u32 game, tgid;
};

static int walk_thread(u32 tid, void *arg)
{
	struct task_walk *k = arg;

	return write_thread(k->w, k->ts, k->tgid, tid, k->tgid == k->game);
}

static int walk_process(u32 tgid, void *arg)
{
	struct task_walk *k = arg;
	char path[64];
	int err = write_process(k->w, k->ts, tgid) ?: write_cgroup(k->w, k->ts, tgid);

	k->tgid = tgid;
	snprintf(path, sizeof(path), "/proc/%u/task", tgid);
	return err ? err : each_number(path, walk_thread, k);
}

int startup__tasks(struct recording_writer *w, u64 ts, u32 game)
{
	struct task_walk k = {.w = w, .ts = ts, .game = game};

	return each_number("/proc", walk_process, &k);
}

/* ---- the game ---- */

int startup__game(struct recording_writer *w, u64 ts, const struct target *t)
{
	meta__info(w, ts, "game.tgid", "%u", t->tgid);
	meta__info(w, ts, "game.name", "%s", t->name);
	write_process(w, ts, t->tgid);
	if (t->own_pid_ns || t->own_mnt_ns)
		meta__info(w, ts, "game.container", "%s", t->cgroup);
	return meta__info(w, ts, "game.exe", "%s", t->exe);
}

/* "VmRSS:     1234 kB" of /proc/PID/status, in bytes */
static u64 kilobytes(const char *status, const char *key)
{
	const char *line = strstr(status, key);
	unsigned long long kb = 0;

	return line && sscanf(line + strlen(key), "%llu", &kb) == 1 ? kb << 10 : 0;
}

int startup__memory(struct recording_writer *w, u64 ts, u32 tgid, int mappings)
{
	struct ev_memory e = {HDR(EV_MEMORY, ts, tgid), .mappings = (u64)mappings};
	char path[64], *status;

	snprintf(path, sizeof(path), "/proc/%u/status", tgid);
	status = proc__read(path, 8192, NULL);
	if (!status)
		return 0; /* it ended */
	e.hdr.words = sizeof(e) / 8;
	e.rss = kilobytes(status, "\nVmRSS:");
	e.heap = kilobytes(status, "\nRssAnon:");
	e.mapped = kilobytes(status, "\nVmSize:");
	free(status);
	return recording__append(w, &e, sizeof(e));
}

/* of clock ticks, as /proc counts them */
static u64 ticks_ns(unsigned long long ticks)
{
	return ticks * (NSEC_PER_SEC / (u64)sysconf(_SC_CLK_TCK));
}

static bool game_cpu(u32 tgid, __u64 *ns)
{
	unsigned long long user = 0, system = 0;
	char path[64], *text, *p;
	bool is;

	snprintf(path, sizeof(path), "/proc/%u/stat", tgid);
	text = proc__read(path, 4096, NULL);
	p = text ? strrchr(text, ')') : NULL; /* the name may hold anything */
	is = p && sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user, &system) == 2;
	free(text);
	*ns = ticks_ns(user + system);
	return is;
}

int startup__cpu_use(struct recording_writer *w, u64 ts, u32 tgid)
{
	struct ev_cpu_use e = {HDR(EV_CPU_USE, ts, tgid), .busy = 0};
	unsigned long long t[8] = {0};
	char *text = proc__read("/proc/stat", 1 << 20, NULL);
	/* user nice system idle iowait irq softirq steal; those of guests are within user */
	int n = text ? sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &t[0], &t[1], &t[2], &t[3], &t[4],
			       &t[5], &t[6], &t[7])
		     : 0;

	free(text);
	if (n != 8 || !game_cpu(tgid, &e.game))
		return 0; /* it has ended, or there is no /proc/stat here: how busy the machine was is not known */
	e.hdr.words = sizeof(e) / 8;
	e.busy = ticks_ns(t[0] + t[1] + t[2] + t[5] + t[6]);
	e.idle = ticks_ns(t[3] + t[4]);
	e.stolen = ticks_ns(t[7]);
	return recording__append(w, &e, sizeof(e));
}

int startup__maps(struct recording_writer *w, u64 ts, u32 tgid)
{
	const struct map *copied = NULL;
	struct maps maps = {};
	u64 copied_end = 0, bytes;
	int err = maps__read(&maps, tgid);

	if (err)
		return err == -ESRCH ? 0 : err;
	for (int i = 0; i < maps.n && !err; i++) {
		const struct map *m = &maps.v[i];
		struct ev_map e = {
			HDR(EV_MAP, ts, tgid),
			.start = m->start,
			.end = m->end,
			.offset = m->offset,
			.ino = m->ino,
			.dev = m->dev,
			.prot = m->prot,
		};
		bool copy = copied && !m->ino && !m->path[0] && m->start < copied_end;

		bytes = pe_modules__copied(&maps, i, tgid);
		if (bytes) {
			copied = m;
			copied_end = m->start + bytes;
		} else if (copy) {
			e.offset = m->start - copied->start;
		}
		err = append(w, &e, sizeof(e), copy ? copied->path : m->path);
	}
	maps__free(&maps);
	return err;
}

int startup__sites(struct recording_writer *w, u64 ts, const struct site_list *l, int first)
{
	char key[32];
	int err = 0;

	for (int i = first; i < l->n && !err; i++) {
		snprintf(key, sizeof(key), "probe.%d", i);
		err = meta__info(w, ts, key, "%s", l->sites[i].label);
		/* by inode and file offset: samples there are the probe's own cost */
		snprintf(key, sizeof(key), "probe.%d.at", i);
		if (!err)
			err = meta__info(w, ts, key, "%llu+%llu", (unsigned long long)l->files[l->sites[i].file].ino,
				(unsigned long long)l->sites[i].offset);
	}
	return err;
}

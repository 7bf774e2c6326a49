// SPDX-License-Identifier: GPL-2.0-only
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "maps.h"
#include "process.h"
#include "strings.h"

/* what /proc/PID/status says */
struct status {
	char name[64]; /* comm, not sanitised */
	u32 tgid, nspid, threads;
	char state;
	bool kernel;
};

static void status__line(struct status *s, const char *line)
{
	if (sscanf(line, "Tgid: %u", &s->tgid) == 1 || sscanf(line, "Threads: %u", &s->threads) == 1 ||
		sscanf(line, "State: %c", &s->state) == 1)
		return;
	if (!strncmp(line, "NSpid:", 6)) {
		const char *last = strrchr(line, '\t');

		s->nspid = last ? (u32)strtoul(last + 1, NULL, 10) : 0;
	}
}

static int read_status(u32 pid, struct status *s)
{
	char path[64], link[8], *text, *line, *save = NULL;

	*s = (struct status){0};
	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	text = proc__read(path, 1 << 20, NULL);
	if (!text)
		return errno == ENOENT ? -ESRCH : -errno;
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		status__line(s, line);
	free(text);
	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	text = proc__read(path, 256, NULL);
	if (text) {
		snprintf(s->name, sizeof(s->name), "%s", text);
		if (strlen(s->name)) /* another line's end is the name's own */
			s->name[strlen(s->name) - 1] = 0;
		free(text);
	}
	/* a kernel thread has no address space: no exe, and a zombie has none any more either */
	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	s->kernel = s->state != 'Z' && s->state != 'X' && readlink(path, link, sizeof(link)) < 0 && errno == ENOENT;
	return s->tgid ? 0 : -ESRCH;
}

static void read_exe(u32 tgid, char *out, size_t size)
{
	char path[64], link[4096];
	ssize_t n;

	out[0] = 0;
	snprintf(path, sizeof(path), "/proc/%u/exe", tgid);
	n = readlink(path, link, sizeof(link) - 1);
	if (n <= 0)
		return;
	link[n] = 0;
	if (n > 10 && !strcmp(link + n - 10, " (deleted)"))
		link[n - 10] = 0;
	utf8__sanitize(out, size, link, strlen(link));
}

/* argv[0], not sanitised; "" where there is none */
static void read_argv0(u32 tgid, char *out, size_t size)
{
	char path[64], *text;

	out[0] = 0;
	snprintf(path, sizeof(path), "/proc/%u/cmdline", tgid);
	text = proc__read(path, 4096, NULL);
	if (text)
		snprintf(out, size, "%s", text);
	free(text);
}

static bool other_namespace(u32 tgid, const char *ns)
{
	char path[64], ours[128], theirs[128];
	ssize_t a, b;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", ns);
	a = readlink(path, ours, sizeof(ours));
	snprintf(path, sizeof(path), "/proc/%u/ns/%s", tgid, ns);
	b = readlink(path, theirs, sizeof(theirs));
	return a > 0 && b > 0 && (a != b || memcmp(ours, theirs, (size_t)a) != 0);
}

static void read_cgroup(u32 tgid, char *out, size_t size)
{
	char path[64], *text, *line;

	out[0] = 0;
	snprintf(path, sizeof(path), "/proc/%u/cgroup", tgid);
	text = proc__read(path, 65536, NULL);
	if (!text)
		return;
	line = strstr(text, "0::");
	line = line ? line + 3 : strchr(text, '/');
	if (line)
		utf8__sanitize(out, size, line, strcspn(line, "\n"));
	free(text);
}

u32 process__host_tid(u32 tgid, u32 nstid)
{
	char path[64];
	struct dirent *e;
	struct status s;
	u32 found = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%u/task", tgid);
	dir = opendir(path);
	while (dir && !found && (e = readdir(dir))) {
		u32 tid = (u32)strtoul(e->d_name, NULL, 10);

		if (tid && !read_status(tid, &s) && s.nspid == nstid)
			found = tid;
	}
	if (dir)
		closedir(dir);
	return found;
}

bool target__alive(const struct target *t)
{
	struct pollfd p = {.fd = t->pidfd, .events = POLLIN};

	return t->pidfd >= 0 && poll(&p, 1, 0) == 0;
}

void target__close(struct target *t)
{
	if (t->pidfd >= 0)
		close(t->pidfd);
	t->pidfd = -1;
}

static int refuse(int err, char *why, size_t why_size, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
static int refuse(int err, char *why, size_t why_size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, why_size, fmt, ap);
	va_end(ap);
	return err;
}

static int check(u32 pid, const struct status *s, char *why, size_t why_size)
{
	char name[128];

	term__escape(name, sizeof(name), s->name, strlen(s->name));
	if (s->tgid != pid)
		return refuse(-EINVAL, why, why_size, "%u is a thread (%s) of process %u: use -p %u", pid, name,
			s->tgid, s->tgid);
	if (pid == (u32)getpid())
		return refuse(-EINVAL, why, why_size, "%u is redframe itself", pid);
	if (s->kernel)
		return refuse(-EINVAL, why, why_size, "%u (%s) is a kernel thread, which draws no frames", pid, name);
	if (s->state == 'Z' || s->state == 'X')
		return refuse(-ESRCH, why, why_size, "process %u (%s) has ended (its parent has not collected it yet)",
			pid, name);
	return 0;
}

/* comm is the beginning of a file's name, as long as nobody has changed it */
static bool is_comm_of(const char *base, const char *comm)
{
	size_t n = strlen(comm);

	return n && !strncmp(base, comm, n) && (n >= 15 || !base[n]);
}

/* A game may call its main thread what it likes: what stays is the program's name, or that of the script which it runs.
 * Under Wine the program is in argv[0]. */
static void name_it(struct target *t, const char *comm)
{
	const char *name = path__base(t->exe), *word;
	char path[64], *text;
	size_t n = 0;

	snprintf(path, sizeof(path), "/proc/%u/cmdline", t->tgid);
	text = proc__read(path, 4096, &n);
	if (text && *text && (!*name || !strncmp(name, "wine", 4)))
		name = path__base(text);
	for (word = text; word && word < text + n; word += strlen(word) + 1) {
		if (!is_comm_of(path__base(word), comm))
			continue;
		name = path__base(word);
		break;
	}
	name = *name ? name : comm;
	utf8__sanitize(t->name, sizeof(t->name), name, strlen(name));
	free(text);
}

static void describe(struct target *t, const struct status *s)
{
	t->nspid = s->nspid ? s->nspid : t->tgid;
	t->threads = s->threads;
	read_exe(t->tgid, t->exe, sizeof(t->exe));
	name_it(t, s->name);
	read_cgroup(t->tgid, t->cgroup, sizeof(t->cgroup));
	t->own_pid_ns = other_namespace(t->tgid, "pid");
	t->own_mnt_ns = other_namespace(t->tgid, "mnt");
}

int target__by_pid(struct target *t, u32 pid, char *why, size_t why_size)
{
	struct status s;
	int err;

	*t = (struct target){.tgid = pid, .pidfd = -1};
	err = pid && pid <= INT32_MAX ? read_status(pid, &s) : -ESRCH;
	if (err == -ESRCH)
		return refuse(err, why, why_size, "there is no process %u", pid);
	if (err)
		return refuse(err, why, why_size, "/proc/%u/status: %s", pid, strerror(-err));
	err = check(pid, &s, why, why_size);
	if (err)
		return err;
	t->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (t->pidfd < 0)
		return refuse(-errno, why, why_size, "process %u: pidfd_open: %s", pid, strerror(errno));
	/* Read again now that the pidfd holds it: what was looked at above may have been its predecessor. */
	err = read_status(pid, &s);
	if (!err) {
		err = check(pid, &s, why, why_size);
		describe(t, &s);
	}
	if (!target__alive(t))
		err = refuse(-ESRCH, why, why_size, "process %u ended while it was being looked at", pid);
	if (err)
		target__close(t);
	return err;
}

/* ---- by name ---- */

struct match {
	u32 tgid;
	u64 start; /* clock ticks since boot */
};

struct matches {
	struct match *v;
	int n, cap;
	char near[256]; /* names that resemble it */
};

static u64 start_time(u32 tgid)
{
	char path[64], *text, *p;
	u64 start = 0;

	snprintf(path, sizeof(path), "/proc/%u/stat", tgid);
	text = proc__read(path, 4096, NULL);
	p = text ? strrchr(text, ')') : NULL; /* the name may hold anything, a parenthesis as well */
	if (p)
		sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64,
			&start);
	free(text);
	return start;
}

static bool has_name(u32 tgid, const char *comm, const char *name)
{
	char exe[512], argv0[4096], full[16];

	/* the kernel keeps 15 bytes of a name */
	snprintf(full, sizeof(full), "%s", name);
	if (!strcmp(comm, name) || (strlen(name) > 15 && !strcmp(comm, full)))
		return true;
	read_exe(tgid, exe, sizeof(exe));
	if (exe[0] && !strcmp(path__base(exe), name))
		return true;
	read_argv0(tgid, argv0, sizeof(argv0));
	return argv0[0] && !strcmp(path__base(argv0), name);
}

static void remember_near(struct matches *m, const char *comm, const char *name)
{
	size_t used = strlen(m->near);
	char text[80];

	if (!strcasestr(comm, name) && !(strlen(comm) > 2 && strcasestr(name, comm)))
		return;
	term__escape(text, sizeof(text), comm, strlen(comm));
	if (used < sizeof(m->near) - 40 && !strstr(m->near, text))
		snprintf(m->near + used, sizeof(m->near) - used, "%s%.32s", used ? ", " : "", text);
}

static int consider(struct matches *m, u32 tgid, const char *name)
{
	struct status s;

	if (tgid == (u32)getpid() || read_status(tgid, &s) || s.tgid != tgid || s.kernel || s.state == 'Z' ||
		s.state == 'X')
		return 0;
	if (!has_name(tgid, s.name, name)) {
		remember_near(m, s.name, name);
		return 0;
	}
	if (m->n == m->cap) {
		int cap = m->cap ? 2 * m->cap : 16;
		struct match *v = reallocarray(m->v, (size_t)cap, sizeof(*v));

		if (!v)
			return -ENOMEM;
		m->v = v;
		m->cap = cap;
	}
	m->v[m->n++] = (struct match){.tgid = tgid, .start = start_time(tgid)};
	return 0;
}

static int find_all(struct matches *m, const char *name)
{
	DIR *dir = opendir("/proc");
	struct dirent *d;
	int err = 0;

	if (!dir)
		return -errno;
	while (!err && (d = readdir(dir)))
		if (isdigit((unsigned char)d->d_name[0]))
			err = consider(m, (u32)strtoul(d->d_name, NULL, 10), name);
	closedir(dir);
	return err;
}

static int by_age(const void *a, const void *b)
{
	const struct match *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->tgid < y->tgid ? -1 : x->tgid > y->tgid;
}

static int list_matches(const struct matches *m, const char *name, char *why, size_t why_size)
{
	struct str s = {0};

	str__fmt(&s,
		"%d processes are called %s; choose one with -p PID (redframe probe says which of them presents "
		"frames):",
		m->n, name);
	for (int i = 0; i < m->n && i < 20; i++) {
		char exe[512], text[600], argv0[512];

		read_exe(m->v[i].tgid, exe, sizeof(exe));
		read_argv0(m->v[i].tgid, argv0, sizeof(argv0));
		term__escape(text, sizeof(text), argv0[0] ? argv0 : exe, strlen(argv0[0] ? argv0 : exe));
		str__fmt(&s, "%s %u (%s%s)", i ? "," : "", m->v[i].tgid, text, i == m->n - 1 ? ", the newest" : "");
	}
	if (m->n > 20)
		str__fmt(&s, ", and %d more", m->n - 20);
	snprintf(why, why_size, "%s", s.s ? s.s : "out of memory");
	str__free(&s);
	return -ENOTUNIQ;
}

/* The number may be another process's by now. */
static int by_pid_still_called(struct target *t, u32 tgid, const char *name, char *why, size_t why_size)
{
	int err = target__by_pid(t, tgid, why, why_size);
	struct status s;

	if (err || (!read_status(tgid, &s) && has_name(tgid, s.name, name)))
		return err;
	target__close(t);
	return refuse(-ESRCH, why, why_size, "process %u ended while it was being looked at", tgid);
}

int target__by_name(struct target *t, const char *name, bool newest, char *why, size_t why_size)
{
	struct matches m = {0};
	char text[256];
	int err;

	*t = (struct target){.pidfd = -1};
	name = path__base(name);
	term__escape(text, sizeof(text), name, strlen(name));
	if (!name[0])
		return refuse(-EINVAL, why, why_size, "the name of the game is empty");
	err = find_all(&m, name);
	if (m.n)
		qsort(m.v, (size_t)m.n, sizeof(*m.v), by_age);
	if (err)
		refuse(err, why, why_size, "/proc: %s", strerror(-err));
	else if (m.n == 0)
		err = refuse(-ESRCH, why, why_size, "no process is called %s%s%s%s", text,
			m.near[0] ? " (there is " : "", m.near, m.near[0] ? ")" : "");
	else if (m.n > 1 && !newest)
		err = list_matches(&m, text, why, why_size);
	else
		err = by_pid_still_called(t, m.v[m.n - 1].tgid, name, why, why_size);
	free(m.v);
	return err;
}

int target__wait(struct target *t, const char *name, bool newest, int timeout_ms, bool (*stop)(void *arg), void *arg,
	char *why, size_t why_size)
{
	const struct timespec nap = {.tv_nsec = 50 * 1000 * 1000};
	int waited_ms = 0, err;

	while ((err = target__by_name(t, name, newest, why, why_size)) == -ESRCH) {
		if (stop && stop(arg))
			return refuse(-EINTR, why, why_size, "stopped before a process called %s appeared", name);
		if (timeout_ms >= 0 && waited_ms >= timeout_ms)
			return -ETIMEDOUT;
		nanosleep(&nap, NULL);
		waited_ms += 50;
	}
	return err;
}

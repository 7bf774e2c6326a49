// SPDX-License-Identifier: GPL-2.0-only
/* redframe probe without a target: the processes that look like games. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "allocators.h"
#include "frame_source.h"
#include "log.h"
#include "probe.h"
#include "process.h"
#include "strings.h"

#define TRIALS_SECONDS 6  /* in which processes are tried out */
#define CHOICE_COLUMN  47 /* below what it may present through */

/* "libc.so.6" of the first of the allocator's sites */
static void allocator_of(struct objects *o, char *out, size_t size)
{
	struct site_list l = {0};
	char why[1024] = "";
	const char *lib, *colon;

	snprintf(out, size, "not found");
	if (allocators__find(&l, o, false, true, why, sizeof(why)) > 0) {
		lib = strchr(l.sites[0].label, ':') + 1;
		colon = strrchr(lib, ':');
		snprintf(out, size, "%.*s", colon ? (int)(colon - lib) : (int)strlen(lib), lib);
	}
	sites__free(&l);
}

/* Which of them record would take: each that is not the only one is counted for a moment. */
static void put_choice(struct objects *o, bool in_time)
{
	char why[1024] = "", safe[1600];
	struct frame_choice c;

	printf("%*s", CHOICE_COLUMN, "");
	if (!in_time) {
		printf("not tried, as there are so many: redframe probe -p PID does\n");
		return;
	}
	if (frame_source__auto(&c, o, NULL, why, sizeof(why))) {
		printf("it has ended\n");
		return;
	}
	term__escape(safe, sizeof(safe), c.chosen < 0 ? "nothing" : c.v[c.chosen].source_text,
		strlen(c.chosen < 0 ? "nothing" : c.v[c.chosen].source_text));
	printf("record takes %s: ", safe);
	if (why[0])
		why__add(c.reason, sizeof(c.reason), "%s", why);
	term__escape(safe, sizeof(safe), c.reason, strlen(c.reason));
	printf("%s\n", safe);
	frame_choice__free(&c);
}

static void put_row(const struct target *t, const char *frames, const char *allocator)
{
	const char *container = t->own_pid_ns ? "pids+files" : t->own_mnt_ns ? "files" : "no";
	char name[80], safe[1024];

	term__escape(name, sizeof(name), t->name, strlen(t->name));
	term__escape(safe, sizeof(safe), frames, strlen(frames));
	printf("%8u  %-16s %7u  %-10s  ", t->tgid, name, t->threads, container);
	fputs(safe, stdout);
	term__escape(safe, sizeof(safe), allocator, strlen(allocator));
	printf("; allocator %s\n", safe);
}

/* whether it looks like a game */
static bool look_at(u32 tgid, bool first, bool in_time)
{
	char frames[1024], allocator[128], why[512];
	struct objects o;
	struct target t;
	bool is = false;

	if (target__by_pid(&t, tgid, why, sizeof(why)))
		return false;
	if (!objects__read(&o, tgid)) {
		is = frame_source__candidates(&o, frames, sizeof(frames)) > 0;
		if (is && first)
			printf("%8s  %-16s %7s  %-10s  %s\n", "pid", "name", "threads", "container",
				"what it may present frames through");
		if (is) {
			allocator_of(&o, allocator, sizeof(allocator));
			put_row(&t, frames, allocator);
			put_choice(&o, in_time);
		}
		objects__free(&o);
	}
	target__close(&t);
	return is;
}

/* It holds the markers for doctor's self-test. */
static bool is_redframe(const char *pid)
{
	char path[64];
	struct stat own, its;

	snprintf(path, sizeof(path), "/proc/%.20s/exe", pid);
	return !stat("/proc/self/exe", &own) && !stat(path, &its) && own.st_dev == its.st_dev &&
	       own.st_ino == its.st_ino;
}

int probe__list(void)
{
	DIR *dir = opendir("/proc");
	time_t until = time(NULL) + TRIALS_SECONDS;
	struct dirent *d;
	int n = 0;

	if (!dir) {
		log_err("/proc: %s", strerror(errno));
		return EXIT_CANNOT_TRACE;
	}
	while ((d = readdir(dir)))
		if (isdigit((unsigned char)d->d_name[0]) && !is_redframe(d->d_name))
			n += look_at((u32)strtoul(d->d_name, NULL, 10), n == 0, time(NULL) <= until);
	closedir(dir);
	if (!n)
		printf("no process looks like a game: none%s maps Vulkan, EGL, GLX or SDL, or has redframe's markers\n",
			geteuid() ? " that you may look into" : "");
	return n ? EXIT_OK : EXIT_NO_TARGET;
}

// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apart.h"
#include "recording.h"

#define MEMORY_MAX (16ULL << 30) /* of address space, beyond what there is: the mapped files count */

/* between the two processes */
struct shared {
	u64 at, bytes, records;
	s32 error;
	char result[512];
};

static struct shared *own; /* of the process that works; NULL in any other */

void apart__at(u64 addr)
{
	if (own)
		*(volatile u64 *)&own->at = addr;
}

static u64 address_space(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	unsigned long long pages = 0;

	if (f && fscanf(f, "%llu", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages * (u64)sysconf(_SC_PAGESIZE);
}

static void limit(u32 seconds)
{
	rlim_t most = address_space() + MEMORY_MAX;
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	setrlimit(RLIMIT_AS, &(struct rlimit){most, most});
	/* when memory runs out this process goes, not the game */
	if (fd >= 0 && write(fd, "1000", 4) != 4)
		errno = 0;
	signal(SIGALRM, SIG_DFL);
	alarm(seconds);
}

static void work(const struct apart *a, struct recording_writer *w, struct shared *shared)
{
	own = shared;
	limit(a->seconds);
	a->work(a->arg);
	shared->error = recording__flush(w);
	shared->bytes = w->bytes;
	shared->records = w->records;
	memcpy(shared->result, a->result, a->result_bytes);
	_exit(0);
}

static bool is_done(struct apart *a, pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return true;
	if (!WIFSIGNALED(status))
		snprintf(a->how, sizeof(a->how), "it ended with status %d", WEXITSTATUS(status));
	else if (WTERMSIG(status) == SIGALRM)
		snprintf(a->how, sizeof(a->how), "it took longer than %u s", a->seconds);
	else
		snprintf(a->how, sizeof(a->how), "%s", strsignal(WTERMSIG(status)));
	return false;
}

/* The two share the position in the file. */
static int undo(struct apart *a, struct recording_writer *w, const struct shared *shared)
{
	a->at = shared->at;
	if (ftruncate(w->fd, (off_t)w->bytes) || lseek(w->fd, (off_t)w->bytes, SEEK_SET) < 0)
		return w->error = -errno;
	return -EPROTO;
}

int apart__run(struct apart *a, struct recording_writer *w)
{
	struct shared *shared;
	int err = a->result_bytes > sizeof(shared->result) ? -E2BIG : recording__flush(w);
	pid_t pid;

	if (err)
		return err;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return -errno;
	pid = fork();
	if (!pid)
		work(a, w, shared);
	if (pid < 0) {
		err = -errno;
	} else if (is_done(a, pid)) {
		w->bytes = shared->bytes;
		w->records = shared->records;
		w->error = err = shared->error;
		memcpy(a->result, shared->result, a->result_bytes);
	} else {
		err = undo(a, w, shared);
	}
	munmap(shared, sizeof(*shared));
	return err;
}

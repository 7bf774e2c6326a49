// SPDX-License-Identifier: GPL-2.0-only
/* doctor's proof: a child does one thing of each class, and the recording must have it. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "capture.h"
#include "doctor.h"
#include "drain.h"
#include "events_desc.h"
#include "log.h"
#include "recording.h"
#include "redframe.h"
#include "sites.h"

/* ---- the child ---- */

__attribute__((noinline)) static void mark_frame(unsigned number)
{
	REDFRAME_FRAME(number);
	__asm__ volatile("" ::: "memory"); /* no leaf: a marker may use the stack */
}

static void touch_fresh_memory(void)
{
	volatile char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return;
	for (int i = 0; i < 1 << 20; i += 4096)
		p[i] = 1;
	munmap((void *)p, 1 << 20);
}

static long sleeps_so_far(void)
{
	struct rusage use;

	getrusage(RUSAGE_THREAD, &use);
	return use.ru_nvcsw;
}

/* Again, if the time was over before the thread had left the CPU, as in an emulator: that is no wait. */
static void wait_for_nobody(void)
{
	struct timespec t = {.tv_nsec = 1000000};
	long before = sleeps_so_far();
	u32 word = 0;

	for (int tries = 0; tries < 20 && sleeps_so_far() == before; tries++)
		syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &t, NULL, 0);
}

static void read_a_file(void)
{
	char buf[64];
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (pread(fd, buf, sizeof(buf), 0) < 0)
		buf[0] = 0;
	close(fd);
}

static void burn_ms(int ms)
{
	u64 until = clock_boot_ns() + ms * NSEC_PER_MSEC;

	while (clock_boot_ns() < until)
		;
}

static void child(int go)
{
	char byte;

	if (read(go, &byte, 1) != 1)
		_exit(1);
	mark_frame(1);
	touch_fresh_memory();
	wait_for_nobody();
	read_a_file();
	free(malloc(100000));
	burn_ms(30);
	usleep(2000);
	mark_frame(2);
	_exit(0);
}

/* ---- the observer ---- */

static void note(void *arg, enum ev_class class, const char *text)
{
	finding__add(arg, class_names[class], FINDING_WARN, "this part will be missing from recordings", "%s", text);
}

static void report_programs(struct findings *f, const struct capture *c)
{
	int loaded = 0, attached = 0;
	enum ev_class class;
	const char *name;
	bool is;

	for (int i = 0; capture__program(c, i, &name, &class, &is); i++) {
		loaded++;
		attached += is;
		if (!is)
			finding__add(f, name, FINDING_WARN, "this part will be missing from recordings",
				"did not load or attach");
	}
	finding__add(f, "BPF programs", attached ? FINDING_OK : FINDING_FAIL, "see the lines above",
		"%d of %d attached", attached, loaded);
}

static void count_classes(int fd, u64 counts[CLASS_COUNT])
{
	const struct ev_hdr *h;
	struct recording r;

	if (lseek(fd, 0, SEEK_SET) || recording__open_fd(&r, fd))
		return;
	while (recording__next(&r, &h) > 0)
		if (ev__desc(h->kind) && ev__desc(h->kind)->shape != SHAPE_META)
			counts[ev__desc(h->kind)->class]++;
	recording__close(&r);
}

static void report_classes(struct findings *f, const u64 counts[CLASS_COUNT])
{
	/* what happens by chance within 50 ms cannot be asked for */
	static const bool sure[CLASS_COUNT] = {[CLASS_FRAME] = true,
		[CLASS_SCHED] = true,
		[CLASS_FAULT] = true,
		[CLASS_LOCK] = true,
		[CLASS_FILE] = true,
		[CLASS_ALLOC] = true,
		[CLASS_SYSCALL] = true,
		[CLASS_SAMPLE] = true};
	char name[64];

	for (int i = 0; i < CLASS_COUNT; i++) {
		if (!sure[i])
			continue;
		snprintf(name, sizeof(name), "self-test: %s", class_names[i]);
		finding__add(f, name,
			counts[i]          ? FINDING_OK
			: i == CLASS_SCHED ? FINDING_FAIL
					   : FINDING_WARN,
			"this class will be missing from recordings; -v says more", "%llu events seen",
			(unsigned long long)counts[i]);
	}
}

static int observe(struct findings *f, u32 tgid, int go, int fd)
{
	struct capture_options o = {
		.tgid = tgid, .syscall_min_ns = CAPTURE_SYSCALL_MIN_NS, .sample_hz = 1000, .ring_bytes = 1 << 20};
	struct site_list sites = {};
	struct recording_writer w;
	struct capture *c = NULL;
	struct drain d = {};
	char why[512], source[128];
	int err, status;

	for (int i = 0; i < CLASS_COUNT; i++)
		o.on[i] = true;
	sites__frame(&sites, tgid, "usdt:redframe:frame", source, sizeof(source), why, sizeof(why));
	sites__alloc(&sites, tgid, true, why, sizeof(why));
	err = recording__create(&w, fd, clock_boot_ns());
	if (!err)
		err = capture__load(&c, &o, note, f);
	if (!err)
		err = drain__open(&d, c, &w);
	if (!err)
		err = capture__attach(c);
	if (!err) {
		capture__attach_sites(c, &sites, 0);
		if (write(go, "", 1) == 1)
			waitpid(tgid, &status, 0);
		err = drain__pass(&d);
		report_programs(f, c);
	}
	recording__flush(&w);
	drain__close(&d);
	capture__free(c);
	sites__free(&sites);
	return err;
}

void doctor__selftest(struct findings *f)
{
	u64 counts[CLASS_COUNT] = {};
	int go[2], fd = memfd_create("selftest", MFD_CLOEXEC), err;
	pid_t pid;

	if (fd < 0 || pipe2(go, O_CLOEXEC)) {
		finding__add(f, "self-test", FINDING_FAIL, "free some file descriptors", "%s", errstr(errno));
		return;
	}
	pid = fork();
	if (!pid) {
		close(go[1]);
		child(go[0]);
	}
	close(go[0]);
	err = pid < 0 ? -errno : observe(f, pid, go[1], dup(fd));
	close(go[1]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	if (err) {
		finding__add(f, "BPF programs", FINDING_FAIL, "run it with sudo; -v shows the kernel's reason", "%s",
			errstr(err));
		close(fd);
		return;
	}
	count_classes(fd, counts);
	report_classes(f, counts);
}

// SPDX-License-Identifier: GPL-2.0-only
/* file DIR: every call on a file that redframe knows, with its offset, result and path. Raw system calls, so that it is
 * certain which one is made. Lines: call NAME OFFSET RESULT PATH ARGUMENT */
#include <linux/openat2.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include "target.h"

#define FILE_BYTES (4 << 20)
#define MAX_ROWS   2000

struct row {
	const char *sys;
	long offset, ret;
	const char *path, *arg;
};

static struct row rows[MAX_ROWS];
static int n_rows;
static char buf[1 << 20];
static char data[4096], out[4096], none[4096], made[4096], moved[4096];

#define NO_OFFSET -1

static long tell(const char *sys, long offset, long ret, const char *path, const char *arg)
{
	MUST(n_rows < MAX_ROWS);
	rows[n_rows++] = (struct row){sys, offset, ret < 0 ? -errno : ret, path, arg};
	return ret;
}

static void preads(int fd)
{
	for (int i = 0; i < 1000; i++) {
		long offset = (i * 40993L) % (FILE_BYTES - 8192), size = 1 + (i * 37) % 8192;

		tell("pread64", offset, syscall(SYS_pread64, fd, buf, size, offset), data, NULL);
	}
	/* at the end of the file, and behind it */
	tell("pread64", FILE_BYTES - 10, syscall(SYS_pread64, fd, buf, 100, FILE_BYTES - 10L), data, NULL);
	tell("pread64", FILE_BYTES + 10, syscall(SYS_pread64, fd, buf, 100, FILE_BYTES + 10L), data, NULL);
	tell("pread64", NO_OFFSET, syscall(SYS_pread64, 9999, buf, 100, 0L), NULL, NULL);
}

static void reads(int fd)
{
	struct iovec v[2] = {{buf, 100}, {buf + 1000, 200}};

	tell("read", 0, syscall(SYS_read, fd, buf, 1234), data, NULL);
	tell("read", 1234, syscall(SYS_read, fd, buf, 10), data, NULL);
	tell("readv", 1244, syscall(SYS_readv, fd, v, 2), data, NULL);
	tell("preadv", 777, syscall(SYS_preadv, fd, v, 2, 777L, 0L), data, NULL);
	tell("preadv2", 888, syscall(SYS_preadv2, fd, v, 2, 888L, 0L, 0), data, NULL);
	tell("preadv2", 1544, syscall(SYS_preadv2, fd, v, 2, -1L, -1L, 0), data, NULL);
}

static void writes(int fd)
{
	struct iovec v[2] = {{buf, 100}, {buf + 1000, 200}};

	tell("write", 0, syscall(SYS_write, fd, buf, 1000), out, NULL);
	tell("pwrite64", 5000, syscall(SYS_pwrite64, fd, buf, 2000, 5000L), out, NULL);
	tell("writev", 1000, syscall(SYS_writev, fd, v, 2), out, NULL);
	tell("pwritev", 9000, syscall(SYS_pwritev, fd, v, 2, 9000L, 0L), out, NULL);
	tell("pwritev2", 9500, syscall(SYS_pwritev2, fd, v, 2, 9500L, 0L, 0), out, NULL);
	tell("fsync", NO_OFFSET, syscall(SYS_fsync, fd), out, NULL);
	tell("fdatasync", NO_OFFSET, syscall(SYS_fdatasync, fd), out, NULL);
}

static void copies(int from, int to)
{
	off_t at = 4096;
	loff_t from_at = 8192, to_at = 16384;

	tell("sendfile", 4096, syscall(SYS_sendfile, to, from, &at, 3000), data, NULL);
	tell("sendfile", 1844, syscall(SYS_sendfile, to, from, NULL, 1000), data, NULL);
	tell("copy_file_range", 8192, syscall(SYS_copy_file_range, from, &from_at, to, &to_at, 5000, 0), data, NULL);
}

static void opens(void)
{
	struct open_how how = {.flags = O_RDONLY};
	int fd;

	fd = tell("open", NO_OFFSET, syscall(SYS_open, data, O_RDONLY), data, NULL);
	tell("close", NO_OFFSET, syscall(SYS_close, fd), data, NULL);
	fd = tell("openat", NO_OFFSET, syscall(SYS_openat, AT_FDCWD, data, O_RDONLY), data, NULL);
	tell("close", NO_OFFSET, syscall(SYS_close, fd), data, NULL);
	fd = tell("openat2", NO_OFFSET, syscall(SYS_openat2, AT_FDCWD, data, &how, sizeof(how)), data, NULL);
	tell("close", NO_OFFSET, syscall(SYS_close, fd), data, NULL);
	fd = tell("creat", NO_OFFSET, syscall(SYS_creat, made, 0644), made, NULL);
	tell("close", NO_OFFSET, syscall(SYS_close, fd), made, NULL);
	tell("close", NO_OFFSET, syscall(SYS_close, fd), NULL, NULL);
	tell("open", NO_OFFSET, syscall(SYS_open, none, O_RDONLY), NULL, none);
	tell("openat", NO_OFFSET, syscall(SYS_openat, AT_FDCWD, none, O_RDONLY), NULL, none);
	tell("openat2", NO_OFFSET, syscall(SYS_openat2, AT_FDCWD, none, &how, sizeof(how)), NULL, none);
}

static void asks(int fd)
{
	static struct stat st;
	static struct statx stx;

	tell("stat", NO_OFFSET, syscall(SYS_stat, data, &st), NULL, data);
	tell("stat", NO_OFFSET, syscall(SYS_stat, none, &st), NULL, none);
	tell("lstat", NO_OFFSET, syscall(SYS_lstat, data, &st), NULL, data);
	tell("fstat", NO_OFFSET, syscall(SYS_fstat, fd, &st), data, NULL);
	tell("newfstatat", NO_OFFSET, syscall(SYS_newfstatat, AT_FDCWD, data, &st, 0), NULL, data);
	tell("newfstatat", NO_OFFSET, syscall(SYS_newfstatat, fd, "", &st, AT_EMPTY_PATH), data, NULL);
	tell("statx", NO_OFFSET, syscall(SYS_statx, AT_FDCWD, data, 0, STATX_ALL, &stx), NULL, data);
	tell("access", NO_OFFSET, syscall(SYS_access, none, R_OK), NULL, none);
	tell("faccessat", NO_OFFSET, syscall(SYS_faccessat, AT_FDCWD, data, R_OK), NULL, data);
	tell("readlink", NO_OFFSET, syscall(SYS_readlink, data, buf, 100), NULL, data);
	tell("rename", NO_OFFSET, syscall(SYS_rename, made, moved), NULL, made);
	tell("unlink", NO_OFFSET, syscall(SYS_unlink, moved), NULL, moved);
	tell("ftruncate", NO_OFFSET, syscall(SYS_ftruncate, fd, (long)FILE_BYTES), data, NULL);
}

static void pread_twice(int fd, const char *path)
{
	for (int i = 0; i < 2; i++)
		tell("pread64", 64, syscall(SYS_pread64, fd, buf, 10, 64L), path, NULL);
}

static void *open_out_instead(void *arg)
{
	int fd = *(int *)arg;

	close(fd);
	MUST(open(out, O_RDWR) == fd);
	return NULL;
}

/* One number for one file after the other, by this thread and by another one. */
static void renewed(int in, int to)
{
	int fd = tell("open", NO_OFFSET, syscall(SYS_open, data, O_RDONLY), data, NULL);
	pthread_t other;

	pread_twice(fd, data);
	MUST(!pthread_create(&other, NULL, open_out_instead, &fd) && !pthread_join(other, NULL));
	pread_twice(fd, out);
	MUST(syscall(SYS_dup2, in, fd) == fd);
	pread_twice(fd, data);
	MUST(syscall(SYS_dup3, to, fd, O_CLOEXEC) == fd);
	pread_twice(fd, out);
	MUST(!syscall(SYS_close_range, fd, fd, 0));
	MUST(tell("open", NO_OFFSET, syscall(SYS_open, data, O_RDONLY), data, NULL) == fd);
	pread_twice(fd, data);
	tell("close", NO_OFFSET, syscall(SYS_close, fd), data, NULL);
	MUST(tell("open", NO_OFFSET, syscall(SYS_open, out, O_RDONLY), out, NULL) == fd);
	pread_twice(fd, out);
}

static int resident(int fd, long offset, long bytes)
{
	static unsigned char pages[FILE_BYTES / 4096];
	char *p = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, offset);
	int n = 0;

	MUST(p != MAP_FAILED && !mincore(p, bytes, pages));
	for (long i = 0; i < bytes / 4096; i++)
		n += pages[i] & 1;
	munmap(p, bytes);
	return n;
}

static int cold_pages_left;

static void cold_and_warm(int fd)
{
	MUST(!fdatasync(fd) && !posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
	cold_pages_left = resident(fd, 1 << 20, 1 << 20);
	syscall(SYS_pread64, fd, buf, 1L << 20, 1L << 20);
	syscall(SYS_pread64, fd, buf, 1L << 20, 1L << 20);
}

static void setup(const char *dir)
{
	int fd;

	snprintf(data, sizeof(data), "%s/data.bin", dir);
	snprintf(out, sizeof(out), "%s/out.bin", dir);
	snprintf(none, sizeof(none), "%s/no such\tfile", dir);
	snprintf(made, sizeof(made), "%s/made.bin", dir);
	snprintf(moved, sizeof(moved), "%s/moved.bin", dir);
	fd = open(data, O_RDWR | O_CREAT | O_TRUNC, 0644);
	MUST(fd >= 0);
	memset(buf, 7, sizeof(buf));
	for (int i = 0; i < 4; i++)
		MUST(write(fd, buf, sizeof(buf)) == sizeof(buf));
	MUST(!fsync(fd));
	close(fd);
}

int main(int argc, char **argv)
{
	int in, to;

	MUST(argc == 2);
	setup(argv[1]);
	in = open(data, O_RDWR);
	to = open(out, O_RDWR | O_CREAT | O_TRUNC, 0644);
	MUST(in >= 0 && to >= 0);
	target_ready();
	preads(in);
	reads(in);
	writes(to);
	copies(in, to);
	opens();
	asks(in);
	renewed(in, to);
	cold_and_warm(in);
	for (int i = 0; i < n_rows; i++)
		printf("call %s %ld %ld %s %s\n", rows[i].sys, rows[i].offset, rows[i].ret,
			rows[i].path ? strrchr(rows[i].path, '/') + 1 : "-", rows[i].arg ? "arg" : "-");
	for (int i = 0; i < n_rows; i++)
		printf("arg %s\n", rows[i].arg ? rows[i].arg : "-");
	printf("resident %d\n", cold_pages_left);
	target_done();
	return 0;
}

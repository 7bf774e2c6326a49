// SPDX-License-Identifier: GPL-2.0-only
/* uring DIR [close]: reads through io_uring. Lines: read USER_DATA OFFSET BYTES RESULT; none WHY (there is no io_uring
 * here). With close: reads data.bin, closes it through io_uring, and reads other.bin by the same descriptor. */
#include <liburing.h>
#include "target.h"

#define READS 100

static char bufs[READS][8192];
static struct {
	long offset, bytes, result;
} rows[READS];

static int make_file(const char *dir, const char *name)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	MUST(fd >= 0 && !ftruncate(fd, 1 << 20));
	return fd;
}

static void read_all(struct io_uring *ring, int fd)
{
	struct io_uring_cqe *cqe;

	MUST(!io_uring_register_files(ring, &fd, 1));
	for (int i = 0; i < READS; i++) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

		MUST(sqe);
		rows[i].offset = i == READS - 1 ? (1 << 20) - 10 : i * 8192L + i;
		rows[i].bytes = 100 + i;
		/* the second half by a file that the ring has registered */
		io_uring_prep_read(sqe, i < READS / 2 ? fd : 0, bufs[i], rows[i].bytes, rows[i].offset);
		if (i >= READS / 2)
			sqe->flags |= IOSQE_FIXED_FILE;
		sqe->user_data = 7000 + i;
		MUST(io_uring_submit(ring) == 1);
	}
	for (int i = 0; i < READS; i++) {
		MUST(!io_uring_wait_cqe(ring, &cqe));
		rows[cqe->user_data - 7000].result = cqe->res;
		io_uring_cqe_seen(ring, cqe);
	}
}

static void read_both(struct io_uring *ring, const char *dir, int fd)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	struct io_uring_cqe *cqe;

	for (int i = 0; i < 3; i++)
		MUST(pread(fd, bufs[0], 100, i) == 100);
	MUST(sqe);
	io_uring_prep_close(sqe, fd);
	MUST(io_uring_submit(ring) == 1 && !io_uring_wait_cqe(ring, &cqe) && !cqe->res);
	MUST(make_file(dir, "other.bin") == fd);
	for (int i = 0; i < 3; i++)
		MUST(pread(fd, bufs[0], 100, i) == 100);
}

int main(int argc, char **argv)
{
	bool close_it = argc == 3;
	struct io_uring ring;
	int fd, err;

	MUST(argc == 2 || close_it);
	fd = make_file(argv[1], "data.bin");
	err = io_uring_queue_init(128, &ring, 0);
	target_ready();
	if (err < 0)
		printf("none %s\n", strerror(-err));
	else if (close_it)
		read_both(&ring, argv[1], fd);
	else
		read_all(&ring, fd);
	for (int i = 0; i < READS && err >= 0 && !close_it; i++)
		printf("read %d %ld %ld %ld\n", 7000 + i, rows[i].offset, rows[i].bytes, rows[i].result);
	target_done();
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The files that are read cold: made at the start, removed at the end.
 */
#include "game.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static int complain(const char *what, const char *on)
{
	int err = errno ? errno : EIO;

	fprintf(stderr, "hitches: %s %s: %s\n", what, on, strerror(err));
	return -err;
}

static int make_dir(struct data *d, const char *dir)
{
	const char *tmp = getenv("TMPDIR");
	size_t len;

	if (dir) {
		len = (size_t)snprintf(d->dir, sizeof(d->dir), "%s", dir);
		if (len >= sizeof(d->dir))
			return errno = ENAMETOOLONG, complain("--dir", dir);
		if (!mkdir(dir, 0755))
			d->made_dir = true;
		else if (errno != EEXIST)
			return complain("make folder", dir);
		return 0;
	}
	len = (size_t)snprintf(d->dir, sizeof(d->dir), "%s/hitches-XXXXXX", tmp && *tmp ? tmp : "/var/tmp");
	if (len >= sizeof(d->dir))
		return errno = ENAMETOOLONG, complain("TMPDIR", tmp);
	if (!mkdtemp(d->dir))
		return complain("make folder", d->dir);
	d->made_dir = true;
	return 0;
}

/* Real bytes: a hole or an unwritten extent would not be read from the device. */
static int fill(int fd, size_t size, uint64_t seed)
{
	uint64_t *block = malloc(MIB);
	size_t i, done;
	int err = 0;

	if (!block)
		return -ENOMEM;
	for (done = 0; done < size && !err; done += MIB) {
		for (i = 0; i < MIB / sizeof(*block); i++)
			block[i] = seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		errno = 0;
		if (write(fd, block, MIB) != (ssize_t)MIB)
			err = errno ? -errno : -ENOSPC;
	}
	free(block);
	return err;
}

static int make_file(struct data *d, struct data_file *f, const char *name, size_t size)
{
	int err;

	snprintf(f->path, sizeof(f->path), "%s/%s", d->dir, name);
	f->size = size;
	f->fd = open(f->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (f->fd < 0)
		return complain("make", f->path);
	err = fill(f->fd, size, (uint64_t)size);
	if (!err && fsync(f->fd))
		err = -errno;
	errno = -err;
	return err ? complain("write", f->path) : 0;
}

static bool wants(const struct options *o, enum kind k)
{
	int i;

	for (i = 0; i < o->n_kinds; i++)
		if (o->kinds[i] == k)
			return true;
	return false;
}

static int make_files(struct data *d, const struct options *o)
{
	const struct {
		enum kind kind;
		struct data_file *file;
		const char *name;
		size_t size;
	} files[] = {
		{KIND_READ, &d->navmesh, "navmesh.bin", 96 * MIB},
		{KIND_MAPPED, &d->shaders, "shaders.pak", 64 * MIB},
		{KIND_CHAIN, &d->level, "level.pak", 96 * MIB},
		{KIND_CHAIN_LOCKS, &d->textures, "textures.pak", 96 * MIB},
	};
	size_t i;
	int err = make_file(d, &d->settings, "settings.cfg", MIB);

	for (i = 0; i < sizeof(files) / sizeof(files[0]) && !err; i++)
		if (wants(o, files[i].kind))
			err = make_file(d, files[i].file, files[i].name, files[i].size);
	return err;
}

int data__make(struct data *d, const struct options *o)
{
	struct statfs fs;
	int err;

	memset(d, 0, sizeof(*d));
	d->settings.fd = d->navmesh.fd = d->shaders.fd = d->level.fd = d->textures.fd = -1;
	err = make_dir(d, o->dir);
	if (err)
		return err;
	if (!statfs(d->dir, &fs))
		d->in_memory = fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC;
	if (d->in_memory)
		fprintf(stderr, "hitches: %s is in memory: no file is cold there, choose another --dir\n", d->dir);
	return make_files(d, o);
}

static void remove_file(struct data_file *f)
{
	if (f->fd < 0)
		return;
	close(f->fd);
	unlink(f->path);
	f->fd = -1;
}

void data__remove(struct data *d)
{
	remove_file(&d->settings);
	remove_file(&d->navmesh);
	remove_file(&d->shaders);
	remove_file(&d->level);
	remove_file(&d->textures);
	if (d->made_dir)
		rmdir(d->dir);
	d->made_dir = false;
}

static ssize_t cold_bytes(const struct data_file *f)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), n = f->size / page, i, cold = 0;
	void *map = mmap(NULL, f->size, PROT_READ, MAP_SHARED, f->fd, 0);
	unsigned char *in = malloc(n);

	if (map == MAP_FAILED || !in || mincore(map, f->size, in)) {
		cold = 0;
	} else {
		for (i = 0; i < n; i++)
			cold += in[i] & 1 ? 0 : page;
	}
	if (map != MAP_FAILED)
		munmap(map, f->size);
	free(in);
	return (ssize_t)cold;
}

ssize_t data__chill(const struct data_file *f)
{
	ssize_t cold = 0;
	int i;

	if (f->fd < 0)
		return -EBADF;
	/* pages that another CPU still holds in its list of recent ones stay: ask again */
	for (i = 0; i < 5 && cold < (ssize_t)f->size; i++) {
		if (i)
			sleep_until(now_ns() + 2 * NS_PER_MS);
		posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED);
		cold = cold_bytes(f);
	}
	return cold;
}

// SPDX-License-Identifier: GPL-2.0-only
/* How many rings there are, how large, and where they are mapped. */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture_internal.h"

/* Each CPU has its own as long as none gets too small for what comes while the recorder is held up; CPUs that come
 * later, with numbers beyond those that are there now, share the first. */
void capture__choose_rings(struct capture *c)
{
	u32 cpus = (u32)max(sysconf(_SC_NPROCESSORS_ONLN), 1L);
	u32 fit = (u32)(c->o.ring_bytes / CAPTURE_RING_LEAST);
	u32 most = min(c->o.rings ?: max(fit, (cpus + CAPTURE_RING_CPUS - 1) / CAPTURE_RING_CPUS), (u32)RINGS_MAX);
	size_t bytes = CAPTURE_RING_LEAST;

	for (c->n_rings = cpus; c->n_rings > most; c->n_rings = ((cpus - 1) >> c->ring_shift) + 1)
		c->ring_shift++;
	while (2 * bytes * c->n_rings <= c->o.ring_bytes)
		bytes *= 2;
	if (c->n_rings > 1)
		c->o.ring_bytes = min(c->o.ring_bytes, bytes);
	c->chunk_bytes = min(c->o.ring_bytes, (size_t)RING_CHUNK_MAX);
}

static u32 chunks_of_a_ring(const struct capture *c)
{
	return (u32)(c->o.ring_bytes / c->chunk_bytes);
}

static size_t mapped_bytes(const struct capture *c)
{
	size_t bytes = c->n_rings * chunks_of_a_ring(c) * ring__stride(c->chunk_bytes), page = (size_t)getpagesize();

	return (bytes + page - 1) / page * page;
}

int capture__size_rings(struct capture *c)
{
	struct bpf_options *opt = (void *)&c->skel->rodata->opt;

	opt->rings = c->n_rings;
	opt->ring_shift = c->ring_shift;
	opt->ring_bytes = c->o.ring_bytes;
	opt->ring_chunk_shift = (u32)__builtin_ctzll(c->chunk_bytes);
	opt->ring_chunk_mask = (c->chunk_bytes - 1) & ~7ull; /* the verifier wants exchanges aligned */
	return bpf_map__set_max_entries(c->skel->maps.chunks, c->n_rings * chunks_of_a_ring(c))
		       ?: bpf_map__set_value_size(c->skel->maps.chunks, (u32)ring__stride(c->chunk_bytes));
}

int capture__map_rings(struct capture *c)
{
	c->mapped =
		mmap(NULL, mapped_bytes(c), PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(c->skel->maps.chunks), 0);
	if (c->mapped == MAP_FAILED) {
		c->mapped = NULL;
		return -errno;
	}
	for (u32 i = 0; i < c->n_rings; i++)
		c->rings[i] = (struct ring){
			.ends = &c->skel->bss->ring_ends[i],
			.chunks = c->mapped + i * chunks_of_a_ring(c) * ring__stride(c->chunk_bytes),
			.chunk_bytes = c->chunk_bytes,
			.n_chunks = chunks_of_a_ring(c),
		};
	return 0;
}

void capture__unmap_rings(struct capture *c)
{
	if (c->mapped)
		munmap(c->mapped, mapped_bytes(c));
	c->mapped = NULL;
}

u32 capture__rings(const struct capture *c)
{
	return c->n_rings;
}

size_t capture__ring_bytes(const struct capture *c)
{
	return c->o.ring_bytes;
}

u32 capture__ring_of(const struct capture *c, u32 cpu)
{
	u32 ring = cpu >> c->ring_shift;

	return ring < c->n_rings ? ring : 0;
}

int capture__consume(struct capture *c, u32 ring, ring_take_fn take, void *arg)
{
	return ring__consume(&c->rings[ring], take, arg);
}

int capture__consume_all(struct capture *c, ring_take_fn take, void *arg)
{
	int err = 0;

	for (u32 i = 0; i < c->n_rings && !err; i++)
		err = capture__consume(c, i, take, arg);
	return err;
}

u64 capture__unread(const struct capture *c)
{
	u64 bytes = 0;

	for (u32 i = 0; i < c->n_rings; i++)
		bytes += ring__unread(&c->rings[i]);
	return bytes;
}

/* SPDX-License-Identifier: GPL-2.0-only
 *
 * An allocator of the program's own, as engines link one in: it never gives anything back. OWN_MALLOC is what each of
 * its functions is declared with.
 */
#include <stddef.h>
#include <string.h>

static char own_heap[64 << 20] __attribute__((aligned(64)));
static size_t own_used;

static void *own_take(size_t align, size_t size)
{
	size_t at = (own_used + align + 15) / align * align;

	if (at + size > sizeof(own_heap))
		return NULL;
	own_used = at + size;
	*(size_t *)(void *)(own_heap + at - sizeof(size_t)) = size;
	return own_heap + at;
}

OWN_MALLOC void *malloc(size_t size)
{
	return own_take(16, size);
}

OWN_MALLOC void free(void *p)
{
	__asm__ volatile("" : : "r"(p) : "memory");
}

OWN_MALLOC void *calloc(size_t n, size_t size)
{
	return own_take(16, n * size); /* never used before, so it is zero */
}

OWN_MALLOC void *realloc(void *old, size_t size)
{
	void *p = own_take(16, size);

	if (p && old)
		memcpy(p, old, ((size_t *)old)[-1] < size ? ((size_t *)old)[-1] : size);
	return p;
}

OWN_MALLOC void *aligned_alloc(size_t align, size_t size)
{
	return own_take(align, size);
}

OWN_MALLOC void *memalign(size_t align, size_t size)
{
	return own_take(align, size);
}

OWN_MALLOC int posix_memalign(void **p, size_t align, size_t size)
{
	*p = own_take(align, size);
	return *p ? 0 : 12;
}

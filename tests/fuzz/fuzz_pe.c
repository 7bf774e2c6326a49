// SPDX-License-Identifier: GPL-2.0-only
/* libFuzzer: any bytes as a Windows module that a game maps. Seeded with the one of the unit test: an input is laid
 * over it, so that headers that lead somewhere need not be guessed. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "pe_file.h"
#include "unit/pe_fixture.h"

static void ask_everything(int fd)
{
	struct pe_function f;
	struct pe_file pe;

	if (pe_file__open(&pe, fd))
		return;
	for (u32 rva = 0; rva < 0x4000; rva += 64) {
		if (pe_file__function(&pe, rva, &f))
			continue;
		if (f.start > rva || f.end <= rva || f.end > pe.image_size || !memchr(f.name, 0, sizeof(f.name)))
			abort();
	}
	pe_file__close(&pe);
}

static void ask(const void *bytes, size_t n)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || write(fd, bytes, n) != (ssize_t)n)
		abort();
	ask_everything(fd);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	u8 bytes[PE_BYTES];

	ask(data, size);
	pe__make(bytes);
	/* changes: where (two bytes), and what to */
	for (size_t i = 0; i + 3 <= size; i += 3)
		bytes[(data[i] | data[i + 1] << 8) % PE_BYTES] = data[i + 2];
	ask(bytes, size % 7 ? PE_BYTES : size % PE_BYTES);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only
 *
 * libFuzzer: any bytes as a program with debug data, whose every 16th address is asked for its symbol, its line and
 * what is inlined there. It is done apart as when recording, since libdw may crash: whatever happens, the recording is
 * whole. What a sanitizer finds in redframe's own code ends the child with a status, and so the run.
 */
#include <elfutils/libdwfl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "apart.h"
#include "recording.h"
#include "sources.h"
#include "symbols.h"

#define BIAS      0x100000000ULL
#define ADDRESSES 1024

struct input {
	const uint8_t *data;
	size_t size;
	struct recording_writer w;
	u32 lines;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static Dwfl_Module *report(Dwfl *dwfl, const struct input *in)
{
	int fd = memfd_create("program", MFD_CLOEXEC);
	Dwfl_Module *mod;

	if (fd < 0 || write(fd, in->data, in->size) != (ssize_t)in->size)
		abort();
	dwfl_report_begin(dwfl);
	mod = dwfl_report_elf(dwfl, "program", "program", fd, BIAS, true);
	dwfl_report_end(dwfl, NULL, NULL);
	if (!mod)
		close(fd);
	return mod;
}

static void ask(void *arg)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_build_id_find_elf, .find_debuginfo = dwfl_standard_find_debuginfo};
	static struct symbol_hit hits[ADDRESSES];
	static u64 addrs[ADDRESSES];
	struct input *in = arg;
	Dwfl *dwfl = dwfl_begin(&callbacks);
	Dwarf_Addr start, end;
	Dwfl_Module *mod;
	u32 n = 0;

	signal(SIGSEGV, SIG_DFL); /* libdw's; libFuzzer would make a status of them */
	signal(SIGBUS, SIG_DFL);
	signal(SIGFPE, SIG_DFL);
	mod = dwfl ? report(dwfl, in) : NULL;
	if (!mod)
		return;
	dwfl_module_info(mod, NULL, &start, &end, NULL, NULL, NULL, NULL);
	for (u64 addr = start; addr < end && n < ADDRESSES; addr += 16)
		addrs[n++] = addr;
	if (symbols__find(mod, addrs, n, hits))
		abort();
	for (u32 i = 0; i < n; i++)
		if (hits[i].name && (hits[i].start > addrs[i] || hits[i].end <= addrs[i]))
			abort();
	sources__write(&in->w, dwfl, 1, addrs, n, &in->lines);
	dwfl_end(dwfl);
}

static void must_be_whole(int fd)
{
	const struct ev_hdr *h;
	struct recording r;

	lseek(fd, 0, SEEK_SET);
	if (recording__open_fd(&r, fd))
		abort();
	while (recording__next(&r, &h) > 0)
		;
	if (r.truncated || r.malformed || r.unknown || r.cut_bytes)
		abort();
	recording__close(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {.data = data, .size = size};
	int fd = memfd_create("recording", MFD_CLOEXEC), read_fd = dup(fd);
	struct apart a = {.work = ask, .arg = &in, .result = &in.lines, .result_bytes = sizeof(in.lines), .seconds = 5};

	if (recording__create(&in.w, fd, 0))
		abort();
	if (!apart__run(&a, &in.w))
		ask(&in); /* where libFuzzer sees what it reaches */
	else if (strstr(a.how, "status") || strstr(a.how, "Aborted"))
		abort();
	if (recording__finish(&in.w, true))
		abort();
	must_be_whole(read_fd);
	return 0;
}

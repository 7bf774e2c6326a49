/* SPDX-License-Identifier: GPL-2.0-only
 *
 * libFuzzer: any bytes as a program with debug data, whose addresses are asked for their symbols, their lines and what
 * is inlined there. libdw may crash on them: redframe does this work in a process of its own (apart.h), which is too
 * slow here, so a crash in the library only ends the input. One in redframe's own code, or a record that is not well
 * formed, ends the run.
 */
#include <dlfcn.h>
#include <elfutils/libdwfl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "demangle.h"
#include "events_desc.h"
#include "recording.h"
#include "sources.h"
#include "symbols.h"

#define BIAS      0x100000000ULL
#define ADDRESSES 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- crashes of the library ---- */

static sigjmp_buf out;
static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGABRT};
static struct sigaction libfuzzers[ARRAY_SIZE(signals)];
static u64 inputs, crashes;
static Dwfl *lost[4096]; /* what those held can be reached from here: no leak */

#if defined(__x86_64__)
#define PC(context) ((void *)(context)->uc_mcontext.gregs[REG_RIP])
#else
#define PC(context) ((void *)(context)->uc_mcontext.pc)
#endif

static bool in_library(void *pc)
{
	Dl_info own, at;

	return dladdr((void *)LLVMFuzzerTestOneInput, &own) && dladdr(pc, &at) && at.dli_fbase != own.dli_fbase;
}

static void on_crash(int sig, siginfo_t *info, void *context)
{
	if (in_library(PC((ucontext_t *)context)))
		siglongjmp(out, sig);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (signals[i] == sig)
			sigaction(sig, &libfuzzers[i], NULL); /* and so it comes again */
	if (sig == SIGABRT)
		raise(sig);
}

static void tell_crashes(void)
{
	fprintf(stderr, "%llu inputs, of which %llu crashed libdw\n", (unsigned long long)inputs,
		(unsigned long long)crashes);
}

static void take_signals(void)
{
	struct sigaction sa = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaction(signals[i], &sa, &libfuzzers[i]);
	atexit(tell_crashes);
}

/* ---- the program ---- */

static int no_debug_file(Dwfl_Module *mod, void **user, const char *name, Dwarf_Addr base, const char *file,
	const char *link, GElf_Word crc, char **found)
{
	return -1;
}

static Dwfl_Module *report(Dwfl *dwfl, const uint8_t *data, size_t size)
{
	int fd = memfd_create("program", MFD_CLOEXEC);
	Dwfl_Module *mod;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	dwfl_report_begin(dwfl);
	mod = dwfl_report_elf(dwfl, "program", "program", fd, BIAS, true);
	dwfl_report_end(dwfl, NULL, NULL);
	if (!mod)
		close(fd);
	return mod;
}

static int check_record(void *arg, const struct ev_hdr *h)
{
	const struct ev_desc *d = ev__desc(h->kind);

	if (!d || ev__bytes(h) < d->size || ev__bytes(h) > EV_MAX_BYTES)
		abort();
	return 0;
}

static void ask(Dwfl *dwfl, Dwfl_Module *mod)
{
	static struct symbol_hit hits[ADDRESSES];
	static u64 addrs[ADDRESSES];
	struct recording_writer w;
	Dwarf_Addr start, end;
	u64 step;
	u32 n = 0, lines;

	dwfl_module_info(mod, NULL, &start, &end, NULL, NULL, NULL, NULL);
	step = max((end - start) / ADDRESSES, 1ULL);
	for (u64 addr = start; addr < end && addr >= start && n < ADDRESSES; addr += step)
		addrs[n++] = addr;
	if (symbols__find(mod, addrs, n, hits))
		abort();
	for (u32 i = 0; i < n; i++) {
		if (!hits[i].name)
			continue;
		if (hits[i].start > addrs[i] || hits[i].end <= addrs[i])
			abort();
		free(demangle(hits[i].name));
	}
	recording__to(&w, check_record, NULL);
	sources__write(&w, dwfl, 1, addrs, n, &lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf, .find_debuginfo = no_debug_file};
	Dwfl *volatile dwfl;
	Dwfl_Module *mod;

	if (!inputs++)
		take_signals();
	dwfl = dwfl_begin(&callbacks);
	if (!dwfl)
		return 0;
	if (sigsetjmp(out, 1)) {
		if (crashes < ARRAY_SIZE(lost))
			lost[crashes] = dwfl;
		crashes++;
		return 0;
	}
	mod = report(dwfl, data, size);
	if (mod)
		ask(dwfl, mod);
	dwfl_end(dwfl);
	return 0;
}

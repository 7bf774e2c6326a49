// SPDX-License-Identifier: GPL-2.0-only
/*
 * unwinders PID SECONDS: records the stacks of a running game as redframe does, unwinds a random thousand of the copies
 * twice, as redframe does and by gdb, and says on how many the two agree. gdb sees each as a core file with the very
 * registers and bytes that redframe had, beside the game's files, and nothing more. Prints one line; the first
 * disagreements go to stderr. Exit 1 below 98 % or where there were fewer than a thousand.
 *
 *   same     the same calls, to the outermost
 *   cut      redframe ends earlier and says so: truncated
 *   beyond   gdb gives up earlier; what both have is the same
 *   differ   another call somewhere, or redframe takes a chain for complete that goes on
 *
 * The innermost call of some stacks is in code that was made at run time, as llvmpipe makes shaders. It has no call
 * frame information, and gdb does not guess. Those are counted apart: gdb is asked anew from the call on that redframe
 * found by the frame pointer, with its registers as they were, and has to confirm the rest of the chain.
 *
 *   same     it does, to the outermost call, and a call instruction stands before the place that it returned to
 *   cut      redframe says that it does not know the caller, or does not come to the outermost one
 *   differ   anything else; or the top of the stack looks like another return, as where the code has just been entered
 * and the frame pointer is its caller's still
 */
#include <dirent.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include "capture.h"
#include "jit.h"
#include "maps.h"
#include "modules.h"
#include "session.h"
#include "unwind.h"

#define ENOUGH      1000
#define MOST        1100
#define MIN_PERCENT 98.0
#define TOLD        5

/* x86-64's struct pt_regs */
enum { AT_BP = 4, AT_IP = 16, AT_SP = 19, PT_REGS = 21 };

struct one {
	u64 ours[UNWIND_CALLS_MAX];
	int n;
	bool truncated;
	u64 top;     /* of the stack */
	int core;    /* number of its core file; -1: none, the caller is not known */
	bool made;   /* its innermost call is in code made at run time: the core begins at its caller */
	u64 *theirs; /* return addresses; NULL: gdb had nothing */
	int m;
	bool ended; /* gdb came to the outermost call */
};

static struct {
	struct maps maps;
	pid_t pid;
	char dir[64];
	int cores;
} now;

/* ---- what gdb is given ---- */

struct core {
	Elf64_Ehdr eh;
	Elf64_Phdr note, stack;
	Elf64_Nhdr nh;
	char name[8];
	struct elf_prstatus status;
} __attribute__((packed));

static int write_core(const struct stack_copy *s, const void *regs)
{
	struct core c = {
		.eh = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			.e_type = ET_CORE,
			.e_machine = EM_X86_64,
			.e_version = EV_CURRENT,
			.e_phoff = offsetof(struct core, note),
			.e_ehsize = sizeof(Elf64_Ehdr),
			.e_phentsize = sizeof(Elf64_Phdr),
			.e_phnum = 2},
		.note = {.p_type = PT_NOTE,
			.p_offset = offsetof(struct core, nh),
			.p_filesz = sizeof(c) - offsetof(struct core, nh),
			.p_align = 4},
		.stack = {.p_type = PT_LOAD,
			.p_flags = PF_R | PF_W,
			.p_offset = sizeof(c),
			.p_vaddr = s->base,
			.p_filesz = s->bytes,
			.p_memsz = s->bytes,
			.p_align = 1},
		.nh = {.n_namesz = 5, .n_descsz = sizeof(c.status), .n_type = NT_PRSTATUS},
		.name = "CORE",
		.status = {.pr_pid = 1},
	};
	char path[128];
	FILE *f;
	int i = now.cores++;

	memcpy(&c.status.pr_reg, regs, PT_REGS * sizeof(u64)); /* the same order; then segments, which nothing needs */
	snprintf(path, sizeof(path), "%s/core.%d", now.dir, i);
	f = fopen(path, "we");
	if (!f || fwrite(&c, sizeof(c), 1, f) != 1 || fwrite(s->data, s->bytes, 1, f) != 1 || fclose(f))
		exit(2);
	return i;
}

static bool stack_word(const struct stack_copy *s, u64 addr, u64 *word)
{
	if (addr < s->base || s->bytes < sizeof(*word) || addr - s->base > s->bytes - sizeof(*word))
		return false;
	memcpy(word, s->data + (addr - s->base), sizeof(*word));
	return true;
}

/* The registers at the return from the innermost call, whose frame pointer is rbp; false: that is not how it was left.
 */
static bool at_caller(const struct stack_copy *s, const struct one *o, u64 *regs)
{
	u64 bp = s->regs[AT_BP];

	memcpy(regs, s->regs, PT_REGS * sizeof(*regs));
	if (!stack_word(s, bp, &regs[AT_BP]) || !stack_word(s, bp + 8, &regs[AT_IP]))
		return false;
	regs[AT_SP] = bp + 16;
	return regs[AT_IP] == o->ours[1] + 1;
}

static const struct map *map_at(u64 addr)
{
	for (int i = 0; i < now.maps.n; i++)
		if (addr >= now.maps.v[i].start && addr < now.maps.v[i].end)
			return &now.maps.v[i];
	return NULL;
}

static bool is_made(u64 addr)
{
	const struct map *m = map_at(addr);

	return !m || (!m->ino && strcmp(m->path, "[vdso]"));
}

static bool is_code(u64 addr)
{
	const struct map *m = map_at(addr);

	return m && m->prot & PROT_EXEC;
}

/* before a return address: call rel32, or call through a register or memory, of two to eight bytes */
static bool after_a_call(u64 addr)
{
	u8 b[8];
	struct iovec to = {b, sizeof(b)}, from = {(void *)(addr - sizeof(b)), sizeof(b)};

	if (process_vm_readv(now.pid, &to, 1, &from, 1, 0) != sizeof(b))
		return false;
	if (b[3] == 0xe8)
		return true;
	for (int i = 0; i < 7; i++)
		if (b[i] == 0xff && (b[i + 1] >> 3 & 7) == 2)
			return true;
	return false;
}

static int put_module(Dwfl_Module *mod, void **user, const char *name, Dwarf_Addr start, void *arg)
{
	Dwarf_Addr bias;
	Elf *elf = dwfl_module_getelf(mod, &bias);
	size_t size = 0;
	char path[128], *image = elf ? elf_rawfile(elf, &size) : NULL;
	static int n;
	FILE *f;

	if (!image)
		return DWARF_CB_OK;
	snprintf(path, sizeof(path), "%s/file.%d", now.dir, n++);
	f = fopen(path, "we");
	if (!f || fwrite(image, size, 1, f) != 1 || fclose(f))
		exit(2);
	fprintf(arg, "gdb.execute('add-symbol-file %s -o %#llx', to_string=True)\n", path, (unsigned long long)bias);
	return DWARF_CB_OK;
}

/* Prints for each core its number, how it ended, and the addresses. */
static void write_script(Dwfl *dwfl)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/script.py", now.dir);
	f = fopen(path, "we");
	if (!f)
		exit(2);
	fputs("import gdb\n"
	      "for s in ('confirm off', 'pagination off', 'debuginfod enabled off', 'backtrace past-main on',\n"
	      "          'backtrace past-entry on', 'auto-solib-add off', 'complaints 0', 'print inferior-events "
	      "off'):\n"
	      "    gdb.execute('set ' + s)\n",
		f);
	dwfl_getmodules(dwfl, put_module, f, 0);
	fprintf(f,
		"for i in range(%d):\n"
		"    out, ended = [], 0\n"
		"    try:\n"
		"        gdb.execute('core-file %s/core.%%d' %% i, to_string=True)\n"
		"        frame = gdb.newest_frame()\n"
		"        while frame:\n"
		"            if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):\n"
		"                out.append('%%x' %% frame.pc())\n"
		"            ended = frame.unwind_stop_reason() == gdb.FRAME_UNWIND_OUTERMOST\n"
		"            frame = frame.older()\n"
		"    except gdb.error:\n"
		"        pass\n"
		"    print('stack', i, int(ended), *out, flush=True)\n",
		now.cores, now.dir);
	fclose(f);
}

static void ask_gdb(struct one *all, int n)
{
	char cmd[256], *line = NULL;
	size_t size = 0;
	FILE *f;

	snprintf(cmd, sizeof(cmd), "gdb -nx -batch -x %s/script.py 2>%s/gdb.err </dev/null", now.dir, now.dir);
	f = popen(cmd, "r");
	while (f && getline(&line, &size, f) > 0) {
		int core, ended, used;
		char *at = line;

		if (sscanf(line, "stack %d %d%n", &core, &ended, &used) < 2)
			continue;
		for (int i = 0; i < n; i++) {
			struct one *o = &all[i];

			if (o->core != core)
				continue;
			o->theirs = calloc(UNWIND_CALLS_MAX, sizeof(u64));
			o->ended = ended;
			for (at += used; o->m < UNWIND_CALLS_MAX && *at == ' ';)
				o->theirs[o->m++] = strtoull(at, &at, 16);
			if (o->m && !is_code(o->theirs[o->m - 1])) { /* it has lost its way */
				o->m--;
				o->ended = false;
			}
		}
	}
	if (f)
		pclose(f);
	free(line);
}

/* ---- comparing ---- */

enum result { SAME, CUT, BEYOND, DIFFER, RESULTS };

/* Addresses of callers are return addresses to gdb, and lie within the call to redframe. */
static enum result compare(const struct one *o, int *at)
{
	int skip = o->made; /* what gdb was not asked of */

	*at = 0;
	if (o->core < 0)
		return CUT;
	for (int i = 0; i < o->m && i + skip < o->n; i++, ++*at)
		if (o->theirs[i] != o->ours[i + skip] && o->theirs[i] != o->ours[i + skip] + 1)
			return DIFFER;
	if (o->made && (!o->m || !after_a_call(o->theirs[0])))
		return DIFFER;
	if (o->made && o->top != o->theirs[0] && !is_made(o->top) && is_code(o->top) && after_a_call(o->top))
		return DIFFER;
	if (o->m == o->n - skip && o->ended)
		return o->truncated ? CUT : SAME;
	if (o->m == o->n - skip)
		return o->truncated ? SAME : BEYOND; /* neither knows more */
	if (o->m > o->n - skip)
		return o->truncated ? CUT : DIFFER;
	return o->ended ? DIFFER : BEYOND;
}

static void tell_place(const char *who, u64 addr)
{
	const struct map *m = map_at(addr);

	if (m)
		fprintf(stderr, "  %s %s+%#llx\n", who, path__base(m->path),
			(unsigned long long)(addr - m->start + m->offset));
	else
		fprintf(stderr, "  %s %#llx\n", who, (unsigned long long)addr);
}

static void tell(const struct one *o, int at)
{
	fprintf(stderr, "%sdiffer at call %d: redframe has %d%s, gdb %d%s\n", o->made ? "in made code, " : "", at, o->n,
		o->truncated ? ", truncated" : "", o->m, o->ended ? ", to the outermost" : "");
	for (int i = max(at - 2, 0); i <= at + 1; i++) {
		if (i + o->made < o->n)
			tell_place("redframe", o->ours[i + o->made]);
		if (i < o->m)
			tell_place("gdb     ", o->theirs[i]);
	}
}

/* ---- the stacks ---- */

static void unwind_one(struct one *o, struct unwinder *u, const struct jit *jit, const struct stack_copy *s)
{
	u64 regs[PT_REGS];

	o->n = unwinder__walk(u, jit, s, o->ours, &o->truncated);
	o->made = is_made(o->ours[0]);
	stack_word(s, s->regs[AT_SP], &o->top);
	o->core = -1;
	if (!o->made)
		o->core = write_core(s, s->regs);
	else if (o->n > 1 && at_caller(s, o, regs))
		o->core = write_core(s, regs);
}

/* a random MOST of them; how many, or -1 */
static int unwind_all(struct session *s, Dwfl *dwfl, struct one *all)
{
	struct stack_entry *e = malloc(sizeof(*e) + STACK_ROOM);
	struct jit jit = {.dwfl = dwfl};
	struct unwinder *u = NULL;
	u64 left = s->stacks.n;
	int n = 0;

	if (!e || unwinder__new(&u, dwfl) || stacks__rewind(&s->stacks))
		return -1;
	srandom(1);
	while (stacks__next(&s->stacks, e) > 0 && n < MOST) {
		if ((u64)random() % left-- < (u64)(MOST - n))
			unwind_one(&all[n++], u, &jit, &e->stack);
	}
	unwinder__free(u);
	free(e);
	return n;
}

static void remove_dir(void)
{
	DIR *d = opendir(now.dir);
	struct dirent *e;

	while (d && (e = readdir(d)))
		unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	rmdir(now.dir);
}

static int compare_all(struct session *s, u64 results[2][RESULTS])
{
	struct one *all = calloc(MOST, sizeof(*all));
	Dwfl *dwfl = modules__open(&s->images);
	int n, at, told = 0;

	snprintf(now.dir, sizeof(now.dir), "/var/tmp/redframe-unwinders.XXXXXX");
	if (!all || !dwfl || !mkdtemp(now.dir))
		return -1;
	atexit(remove_dir);
	n = unwind_all(s, dwfl, all);
	write_script(dwfl);
	ask_gdb(all, max(n, 0));
	for (int i = 0; i < n; i++) {
		enum result r = compare(&all[i], &at);

		if (r == DIFFER && told++ < TOLD)
			tell(&all[i], at);
		results[all[i].made][r]++;
		free(all[i].theirs);
	}
	dwfl_end(dwfl);
	free(all);
	return n < 0 ? -1 : 0;
}

static int record(struct session *s, struct record_options *o, char **argv)
{
	char *args[] = {"-p", argv[1], "-d", argv[2], "--frame", "none", "-q", "--alloc", "large", NULL};

	if (record_options__parse(o, ARRAY_SIZE(args) - 1, args) || session__find(s, o) ||
		session__attach(s, memfd_create("recording", MFD_CLOEXEC)))
		return -1;
	session__run(s);
	capture__detach(s->capture);
	drain__pass(&s->drain);
	return images__refresh(&s->images, s->target.tgid);
}

static u64 print_results(const char *what, const u64 r[RESULTS])
{
	u64 all = r[SAME] + r[CUT] + r[BEYOND] + r[DIFFER];

	printf("%s%.2f %% of %llu: same %llu cut %llu beyond %llu differ %llu", what,
		all ? 100.0 * (double)r[SAME] / (double)all : 0, (unsigned long long)all, (unsigned long long)r[SAME],
		(unsigned long long)r[CUT], (unsigned long long)r[BEYOND], (unsigned long long)r[DIFFER]);
	return all;
}

int main(int argc, char **argv)
{
	struct record_options o;
	struct session s = {
		.signal_fd = -1, .target = {.pidfd = -1}, .launch = {.go = -1, .error = -1}, .stacks = {.fd = -1}};
	u64 r[2][RESULTS] = {}, all;

	if (argc != 3)
		return fprintf(stderr, "usage: unwinders PID SECONDS\n"), 2;
	now.pid = atoi(argv[1]);
	if (record(&s, &o, argv) || maps__read(&now.maps, (u32)now.pid) || compare_all(&s, r))
		return fprintf(stderr, "unwinders: %s cannot be recorded\n", argv[1]), 2;
	all = print_results("", r[0]);
	all += print_results("; in made code ", r[1]);
	printf("\n");
	session__free(&s);
	maps__free(&now.maps);
	return all < ENOUGH || (double)(r[0][SAME] + r[1][SAME]) * 100.0 < MIN_PERCENT * (double)all;
}

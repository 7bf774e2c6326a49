// SPDX-License-Identifier: GPL-2.0-only
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <sys/stat.h>
#include "build_fixture.h"
#include "allocators.h"
#include "elf_file.h"
#include "regs.h"
#include "sites.h"

#define MAIN                                                                                                           \
	"#include <unistd.h>\nint main(void) { if (getenv(\"RF_RUN\")) run(); write(1, \"x\", 1); for (;;) pause(); "  \
	"}\n"
#define HEADER "#include <stdlib.h>\n#include \"redframe.h\"\n"

static char why[4096], source[128];
static struct site_list list;

static int frame(pid_t pid, const char *spec)
{
	sites__free(&list);
	return sites__frame(&list, (u32)pid, spec, source, sizeof(source), why, sizeof(why));
}

static pid_t start(const char *name, const char *flags, const char *program)
{
	return fixture__run(fixture__build(name, flags, program), name);
}

static const struct site *site(const char *label)
{
	for (int i = 0; i < list.n; i++)
		if (!strcmp(list.sites[i].label, label))
			return &list.sites[i];
	fail_msg("there is no site %s", label);
	return NULL;
}

static bool has(const char *label)
{
	for (int i = 0; i < list.n; i++)
		if (!strncmp(list.sites[i].label, label, strlen(label)))
			return true;
	return false;
}

/* ---- markers ---- */

static void test_auto_takes_the_games_own_markers_first(void **state)
{
	pid_t pid = start("marks", "-O1 -Iprobes", HEADER "void run(void) { REDFRAME_FRAME(1); }\n" MAIN);
	u16 semaphore = 1;

	assert_true(frame(pid, "auto") >= 1);
	assert_string_equal(source, "usdt:redframe:frame");
	assert_string_equal(list.sites[0].label, "usdt:redframe:frame");
	assert_int_equal(list.sites[0].desc.what, PROBE_FRAME);
	assert_int_equal(list.sites[0].desc.sub, FRAME_MARK);
	assert_int_equal(list.sites[0].desc.site, 0);
	assert_true(list.sites[0].desc.args[0].from != ARG_NONE);
	assert_int_equal(list.sites[0].desc.args[0].size, 8);
	assert_false(list.sites[0].stepped);
	assert_true(list.sites[0].semaphore != 0);
	assert_int_equal(pread(list.files[0].fd, &semaphore, 2, (off_t)list.sites[0].semaphore), 2);
	assert_int_equal(semaphore, 0);
	assert_string_equal(why, "");
	assert_true(frame(pid, "usdt:redframe:frame") >= 1);
	fixture__kill(pid);
}

static void test_begin_and_end_are_taken_where_there_is_no_plain_mark(void **state)
{
	pid_t pid = start("spans", "-O1 -Iprobes",
		HEADER "void run(void) { REDFRAME_FRAME_BEGIN(1, 2); REDFRAME_FRAME_END(1, 2); }\n" MAIN);

	assert_int_equal(frame(pid, "auto"), 2);
	assert_int_equal(site("usdt:redframe:frame_begin")->desc.sub, FRAME_BEGIN);
	assert_int_equal(site("usdt:redframe:frame_end")->desc.sub, FRAME_END);
	fixture__kill(pid);
	pid = start("both", "-O1 -Iprobes",
		HEADER
		"void run(void) { REDFRAME_FRAME(1); REDFRAME_FRAME_BEGIN(1, 2); REDFRAME_FRAME_END(1, 2); }\n" MAIN);
	assert_true(frame(pid, "auto") >= 1);
	for (int i = 0; i < list.n; i++)
		assert_int_equal(list.sites[i].desc.sub, FRAME_MARK); /* or each frame would count twice */
	fixture__kill(pid);
}

static void test_markers_come_with_their_strings(void **state)
{
	pid_t pid = start("markers", "-O1 -Iprobes",
		HEADER "int lock; void run(void) { REDFRAME_SCENE(\"a\"); REDFRAME_LOCK_NAME(&lock, \"b\"); "
		       "REDFRAME_MESSAGE(\"c\"); }\n" MAIN);

	sites__free(&list);
	assert_int_equal(sites__markers(&list, (u32)pid, why, sizeof(why)), 3);
	assert_int_equal(site("usdt:redframe:scene")->desc.what, PROBE_SCENE);
	assert_true(site("usdt:redframe:scene")->desc.args[0].from != ARG_NONE);
	assert_int_equal(site("usdt:redframe:lock_name")->desc.what, PROBE_LOCK_NAME);
	assert_true(site("usdt:redframe:lock_name")->desc.args[1].from != ARG_NONE);
	assert_int_equal(site("usdt:redframe:message")->desc.what, PROBE_MESSAGE);
	fixture__kill(pid);
}

#define ODD(name, args)                                                                                                \
	"__asm__(\"990: nop\\n.pushsection .note.stapsdt,\\\"\\\",\\\"note\\\"\\n.balign 4\\n.4byte "                  \
	"992f-991f,994f-993f,3\\n"                                                                                     \
	"991: .asciz \\\"stapsdt\\\"\\n992: .balign 4\\n993: .8byte 990b,0,0\\n.asciz \\\"redframe\\\"\\n.asciz "      \
	"\\\"" name "\\\"\\n.asciz \\\"" args "\\\"\\n994: .balign 4\\n.popsection\\n\");"

static void test_marker_whose_string_cannot_be_read_is_left_out_and_named(void **state)
{
	pid_t pid = start("odd", "-O1",
		"#include <stdlib.h>\nvoid run(void) {" ODD("scene", "8@sym(%rip)") ODD("message", "")
			ODD("frame", "4@sym(%rip)") "}\n" MAIN);

	sites__free(&list);
	assert_int_equal(sites__markers(&list, (u32)pid, why, sizeof(why)), 0);
	assert_non_null(strstr(why, "usdt:redframe:scene: argument 1 (8@sym(%rip))"));
	assert_non_null(strstr(why, "usdt:redframe:message: it lacks an argument"));
	/* a frame counts without its number */
	assert_int_equal(frame(pid, "auto"), 1);
	assert_int_equal(list.sites[0].desc.args[0].from, ARG_NONE);
	assert_non_null(strstr(why, "argument 1 (4@sym(%rip))"));
	fixture__kill(pid);
}

/* ---- the inode that is mapped ---- */

static void test_replaced_program_is_probed_in_the_file_that_runs(void **state)
{
	const char *text = HEADER "void run(void) { REDFRAME_FRAME(1); }\n" MAIN;
	pid_t pid = start("replaced", "-O1 -Iprobes", text);
	struct stat was, now;

	assert_int_equal(stat(fixture__path("replaced"), &was), 0);
	assert_int_equal(rename(fixture__path("replaced"), fixture__path("aside")), 0);
	unlink(fixture__path("aside"));
	fixture__write("replaced", "something else", 14);
	assert_true(frame(pid, "auto") >= 1);
	assert_int_equal(fstat(list.files[0].fd, &now), 0);
	assert_int_equal(now.st_ino, was.st_ino);
	fixture__kill(pid);
}

/* ---- uprobe: specs ---- */

static const char named[] =
	"#include <stdlib.h>\n__attribute__((noinline)) int render_world(int a) { __asm__ volatile(\"\"); return a + "
	"1; }\n"
	"__attribute__((noinline)) int render_water(int a) { __asm__ volatile(\"\"); return a + 2; }\n"
	"static int real(void) { return 1; } static void *pick(void) { return real; }\n"
	"int chosen(void) __attribute__((ifunc(\"pick\")));\n"
	"void glXSwapBuffers(void *d, unsigned long w) { __asm__ volatile(\"push %rbx\\n pop %rbx\"); }\n"
	"int run(void) { glXSwapBuffers(0, 0); return render_world(1) + render_water(1) + chosen(); }\n" MAIN;

static void test_uprobe_names_a_function_of_the_program_or_a_library(void **state)
{
	pid_t pid = start("my game", "-O1", named);
	char spec[600];

	assert_int_equal(frame(pid, "uprobe:my game:render_world"), 1);
	assert_string_equal(source, "uprobe:my game:render_world");
	assert_int_equal(
		list.sites[0].desc.args[1].from, ARG_NONE); /* any function's second argument is no swapchain */
	snprintf(spec, sizeof(spec), "uprobe:%s:render_water", fixture__path("my game"));
	assert_int_equal(frame(pid, spec), 1);
	assert_int_equal(frame(pid, "uprobe:libc.so.6:getpid"), 1);
	assert_int_equal(frame(pid, "uprobe:libc:getpid"), 1);
	assert_int_equal(frame(pid, "uprobe:my game:glXSwapBuffers"), 1);
	assert_int_equal(list.sites[0].desc.args[1].from, ARG_REG); /* its drawable */
	assert_int_equal(list.sites[0].desc.args[1].reg, 104);
	fixture__kill(pid);
}

static void test_label_of_a_site_names_the_same_place_again(void **state)
{
	pid_t pid = start("again", "-O1", named);
	char label[120];
	u64 offset;

	assert_int_equal(frame(pid, "uprobe:libc.so.6:free"), 1);
	snprintf(label, sizeof(label), "%s", list.sites[0].label);
	offset = list.sites[0].offset;
	assert_int_equal(frame(pid, label), 1);
	assert_int_equal(list.sites[0].offset, offset);
	assert_string_equal(list.sites[0].label, label);
	fixture__kill(pid);
}

static void test_file_offset_is_taken_as_it_is(void **state)
{
	pid_t pid = start("offset", "-O1", named);
	char spec[700];
	u64 offset;

	assert_int_equal(frame(pid, "uprobe:offset:render_world"), 1);
	offset = list.sites[0].offset;
	snprintf(spec, sizeof(spec), "uprobe:%s+0x%llx", fixture__path("offset"), (unsigned long long)offset);
	assert_int_equal(frame(pid, spec), 1);
	assert_int_equal(list.sites[0].offset, offset);
	snprintf(spec, sizeof(spec), "uprobe:offset+0x%llx", (unsigned long long)offset);
	assert_int_equal(frame(pid, spec), 1);
	assert_int_equal(frame(pid, "uprobe:offset+0x10"), -EINVAL); /* the ELF header */
	assert_non_null(strstr(why, "not in the code"));
	assert_int_equal(frame(pid, "uprobe:offset+0xffffffffffffffff"), -EINVAL);
	fixture__kill(pid);
}

/* the breakpoint would be a part of the number that the game reads there */
static void test_place_within_an_instruction_is_refused(void **state)
{
	static const char code[] =
		"__asm__(\".text\\n.globl five\\n.type five,@function\\nfive:\\n.cfi_startproc\\nmov $1,%eax\\nret\\n"
		".cfi_endproc\\n.size five,.-five\\n\");\n#include <unistd.h>\n"
		"int five(void);\nint main(void) { five(); write(1, \"x\", 1); for (;;) pause(); }\n";
	pid_t pid = start("within", "-O1", code);
	char spec[700];
	u64 offset;

	assert_int_equal(frame(pid, "uprobe:within:five"), 1);
	offset = list.sites[0].offset;
	for (u64 i = 0; i <= 5; i++) {
		int want = i == 0 || i == 5 ? 1 : -EILSEQ; /* mov has five bytes */

		snprintf(spec, sizeof(spec), "uprobe:within+0x%llx", (unsigned long long)(offset + i));
		assert_int_equal(frame(pid, spec), want);
		snprintf(spec, sizeof(spec), "uprobe:within:five+0x%llx", (unsigned long long)i);
		assert_int_equal(frame(pid, spec), want);
		assert_int_equal(strstr(why, "middle of an instruction") != NULL, want < 0);
	}
	fixture__kill(pid);
}

static void test_marker_within_an_instruction_is_left_out(void **state)
{
	static const char code[] =
		"__asm__(\".text\\nfive:\\n.cfi_startproc\\nmov $1,%eax\\nret\\n.cfi_endproc\\n"
		".pushsection .note.stapsdt,\\\"\\\",\\\"note\\\"\\n.balign 4\\n.4byte 992f-991f,994f-993f,3\\n"
		"991: .asciz \\\"stapsdt\\\"\\n992: .balign 4\\n993: .8byte five+1\\n.8byte 0\\n.8byte 0\\n"
		".asciz \\\"engine\\\"\\n.asciz \\\"swap\\\"\\n.asciz \\\"\\\"\\n994: .balign 4\\n.popsection\\n\");\n"
		"#include <unistd.h>\nint main(void) { write(1, \"x\", 1); for (;;) pause(); }\n";
	pid_t pid = start("marker", "-O1 -no-pie", code);

	assert_true(frame(pid, "usdt:engine:swap") <= 0);
	if (!strstr(why, "within an instruction"))
		fail_msg("it says: %s", why);
	fixture__kill(pid);
}

static void test_wrong_specs_say_what_there_is(void **state)
{
	pid_t pid = start("wrong", "-O1", named);
	static const char *const malformed[] = {"uprobe:", "uprobe:libc", "uprobe::x",
		"uprobe:libc:", "usdt:", "usdt:a", "usdt::b", "usdt:a:", "always", "", "uprobe:libc+12",
		"uprobe:+0x12"};

	assert_int_equal(frame(pid, "uprobe:wrong:render_wordl"), -ENOENT);
	assert_non_null(strstr(why, "render_world"));
	assert_int_equal(frame(pid, "uprobe:libGLY:glXSwapBuffers"), -ENOENT);
	assert_non_null(strstr(why, "maps no libGLY"));
	assert_int_equal(frame(pid, "uprobe:wrong:chosen"), -ENOTSUP);
	assert_non_null(strstr(why, "IFUNC"));
	assert_int_equal(frame(pid, "usdt:no:such"), -ENOENT);
	assert_non_null(strstr(why, "usdt:no:such"));
	for (size_t i = 0; i < ARRAY_SIZE(malformed); i++) {
		if (frame(pid, malformed[i]) >= 0)
			fail_msg("'%s' was taken", malformed[i]);
		assert_non_null(strstr(why, "usdt:PROVIDER:NAME"));
		assert_true(frame_spec__check(malformed[i]) < 0);
	}
	assert_int_equal(frame(pid, "none"), 0);
	assert_int_equal(frame(pid, "auto"), 0);
	assert_non_null(strstr(why, "no redframe markers"));
	assert_string_equal(source, "none");
	fixture__kill(pid);
}

static void test_process_that_ended_is_named(void **state)
{
	pid_t pid = start("ended", "-O1", named);

	fixture__kill(pid);
	assert_int_equal(frame(pid, "auto"), -ESRCH);
	assert_non_null(strstr(why, "has ended"));
}

/* ---- allocators ---- */

static int alloc(pid_t pid, bool with_free)
{
	sites__free(&list);
	return sites__alloc(&list, (u32)pid, with_free, why, sizeof(why));
}

static const char plain[] = "#include <stdlib.h>\nvoid run(void) {}\n" MAIN;

static void test_libc_is_the_allocator_of_a_plain_program(void **state)
{
	pid_t pid = start("plain", "-O1", plain);
	const struct site *s;

	assert_true(alloc(pid, false) >= 3);
	assert_true(
		has("uprobe:libc.so.6:malloc") && has("uprobe:libc.so.6:calloc") && has("uprobe:libc.so.6:realloc"));
	assert_false(has("uprobe:libc.so.6:free"));
	for (int i = 0; i < list.n; i++) {
		s = &list.sites[i];
		assert_int_equal(s->desc.site, i);
		assert_int_equal(s->desc.what, PROBE_ALLOC);
		assert_int_equal(s->desc.args[0].from, ARG_REG);
		assert_false(s->stepped);
		for (int k = 0; k < i; k++)
			assert_true(s->file != list.sites[k].file || s->offset != list.sites[k].offset);
		if (s->desc.sub == ALLOC_CALLOC)
			assert_true(s->desc.args[0].reg == 104 &&
				    s->desc.args[1].reg == 112); /* size is the second argument */
		if (s->desc.sub == ALLOC_REALLOC)
			assert_true(s->desc.args[0].reg == 104 && s->desc.args[2].reg == 112);
		if (s->desc.sub == ALLOC_POSIX_MEMALIGN)
			assert_true(s->desc.args[0].reg == 96 && s->desc.args[1].reg == 104);
	}
	assert_true(alloc(pid, true) >= 4);
	assert_true(has("uprobe:libc.so.6:free"));
	fixture__kill(pid);
}

#define OWN_MALLOC                                                                                                     \
	"#include <stddef.h>\nstatic char pool[1 << 22]; static size_t used;\n"                                        \
	"void *malloc(size_t n) { void *p = pool + used; __asm__ volatile(\"push %rbx\\n pop %rbx\"); used += (n + "   \
	"15) & ~15ul;"                                                                                                 \
	" return p; }\n"                                                                                               \
	"void free(void *p) { __asm__ volatile(\"push %rbx\\n pop %rbx\"); }\n"

static void test_exported_malloc_of_the_program_replaces_libcs(void **state)
{
	pid_t pid = start("own", "-O1 -rdynamic -fno-builtin -fcf-protection=none",
		OWN_MALLOC "void *calloc(size_t a, size_t b) { return malloc(a * b); }\n#include <stdlib.h>\nvoid "
			   "run(void) {}\n" MAIN);

	assert_true(alloc(pid, true) >= 3);
	assert_true(has("uprobe:own:malloc") && has("uprobe:own:free"));
	assert_false(has("uprobe:libc.so.6:malloc") || has("uprobe:libc.so.6:free"));
	assert_true(has("uprobe:libc.so.6:realloc")); /* which it does not define */
	fixture__kill(pid);
}

static void test_preloaded_allocator_replaces_libcs(void **state)
{
	pid_t pid;

	fixture__build("libown.so", "-O1 -shared -fPIC -fno-builtin -fcf-protection=none", OWN_MALLOC);
	fixture__build("preloaded", "-O1", plain);
	setenv("LD_PRELOAD", fixture__path("libown.so"), 1);
	pid = fixture__run(fixture__path("preloaded"), "preloaded");
	unsetenv("LD_PRELOAD");
	assert_true(alloc(pid, true) >= 3);
	assert_true(has("uprobe:libown.so:malloc") && has("uprobe:libown.so:free"));
	assert_false(has("uprobe:libc.so.6:malloc"));
	fixture__kill(pid);
}

static void test_hidden_malloc_of_the_program_is_taken_beside_libcs(void **state)
{
	pid_t pid = start("hidden", "-O1 -fvisibility=hidden -fno-builtin -fcf-protection=none",
		OWN_MALLOC "#include <stdlib.h>\nvoid run(void) { free(malloc(1)); }\n" MAIN);

	assert_true(alloc(pid, true) >= 3);
	assert_true(has("uprobe:hidden:malloc") && has("uprobe:libc.so.6:malloc"));
	fixture__kill(pid);
}

static void test_static_program_has_its_own_malloc(void **state)
{
	pid_t pid = start("static", "-O1 -static", plain);

	assert_true(alloc(pid, true) >= 4);
	assert_true(has("uprobe:static:malloc") && has("uprobe:static:free"));
	fixture__kill(pid);
}

static void test_stripped_static_program_says_that_no_allocator_was_found(void **state)
{
	pid_t pid = start("bare", "-O1 -static -s", plain);

	assert_int_equal(alloc(pid, true), 0);
	assert_non_null(strstr(why, "no allocator found"));
	fixture__kill(pid);
}

static void test_allocator_that_would_be_stepped_is_left_out_and_named(void **state)
{
	pid_t pid = start("slow", "-O1 -rdynamic -fno-builtin -fcf-protection=none",
		"#include <stddef.h>\n"
		"__asm__(\".globl free\\n.type free,@function\\nfree: xor %eax,%eax\\nret\\n.size free,.-free\");\n"
		"#include <stdlib.h>\nvoid run(void) {}\n" MAIN);
	struct objects o;

	sites__free(&list);
	why[0] = 0;
	assert_int_equal(objects__read(&o, (u32)pid), 0);
	assert_true(allocators__find(&list, &o, true, false, why, sizeof(why)) >= 3);
	objects__free(&o);
	assert_false(has("uprobe:slow:free"));
	assert_false(has("uprobe:libc.so.6:free")); /* which nobody calls */
	assert_non_null(strstr(why, "single-stepped: free"));
	fixture__kill(pid);
}

#define OWN_NAMES                                                                                                      \
	"#include <stddef.h>\nstatic char heap[1 << 16]; static size_t used;\n"                                        \
	"__attribute__((noinline)) void *je_malloc(size_t n) { used += n; return heap + used; }\n"                     \
	"__attribute__((noinline)) void je_free(void *p) { used++; }\n"                                                \
	"__attribute__((noinline)) void *_rjem_malloc(size_t n) { used += n; return heap + used; }\n"                  \
	"__attribute__((noinline)) void *mi_new(size_t n) { used += n; return heap + used; }\n"                        \
	"__attribute__((noinline)) void *scalable_malloc(size_t n) { used += n; return heap + used; }\n"               \
	"__attribute__((noinline)) void *engine_alloc(int pool, size_t n) { used += n + pool; return heap + used; }\n" \
	"void run(void) { je_free(je_malloc(1)); _rjem_malloc(1); mi_new(1); scalable_malloc(1); engine_alloc(0, 1); " \
	"}\n"

static void test_allocators_linked_into_the_program_are_found_by_their_names(void **state)
{
	pid_t pid = start("linked", "-O1 -fvisibility=hidden", OWN_NAMES MAIN);

	assert_true(alloc(pid, true) >= 8);
	assert_true(has("uprobe:linked:je_malloc") && has("uprobe:linked:je_free"));
	assert_true(has("uprobe:linked:_rjem_malloc") && has("uprobe:linked:mi_new"));
	assert_true(has("uprobe:linked:scalable_malloc") && has("uprobe:libc.so.6:malloc"));
	fixture__kill(pid);
}

static int alloc_fn(pid_t pid, const char *spec)
{
	sites__free(&list);
	return sites__alloc_fn(&list, (u32)pid, spec, why, sizeof(why));
}

static void test_function_that_the_user_names_is_an_allocator(void **state)
{
	pid_t pid = start("engine", "-O1 -fvisibility=hidden", OWN_NAMES MAIN);
	int bytes;

	assert_int_equal(alloc_fn(pid, "engine_alloc:size=1"), 1);
	assert_memory_equal(list.sites[0].label, "uprobe:engine:engine_alloc", 26);
	assert_int_equal(list.sites[0].desc.what, PROBE_ALLOC);
	assert_int_equal(list.sites[0].desc.sub, ALLOC_CUSTOM);
	assert_int_equal(list.sites[0].desc.args[0].from, ARG_REG);
	assert_int_equal(list.sites[0].desc.args[0].reg, reg__offset(EM_X86_64, "rsi", 3, &bytes));
	assert_int_equal(alloc_fn(pid, "mi_new"), 1);
	assert_int_equal(list.sites[0].desc.args[0].reg, reg__offset(EM_X86_64, "rdi", 3, &bytes));
	assert_int_equal(alloc_fn(pid, "engine_free"), -ENOENT);
	assert_non_null(strstr(why, "has a function engine_free"));
	fixture__kill(pid);
}

static void test_malformed_names_of_allocators_are_refused(void **state)
{
	static const char *const malformed[] = {
		"", ":size=1", "a:size=", "a:size=6", "a:size=-1", "a:size=1x", "a:size=99999999999"};
	char symbol[16];
	int arg;

	for (size_t i = 0; i < ARRAY_SIZE(malformed); i++)
		if (!alloc_fn__parse(malformed[i], symbol, sizeof(symbol), &arg))
			fail_msg("'%s' was taken", malformed[i]);
	assert_int_equal(alloc_fn__parse("abcdefghijklmnop", symbol, sizeof(symbol), &arg), -EINVAL); /* no room */
	assert_int_equal(alloc_fn__parse("engine::Heap:size=5", symbol, sizeof(symbol), &arg), 0);
	assert_string_equal(symbol, "engine::Heap");
	assert_int_equal(arg, 5);
}

static void test_ifunc_leads_to_the_implementation_that_the_process_is_bound_to(void **state)
{
	static const char lib[] = "static int slow(int x) { __asm__ volatile(\"\"); return x + 1; }\n"
				  "int fast(int x) { __asm__ volatile(\"\"); return x + 2; }\n"
				  "static void *choose(void) { return fast; }\nvoid *unused(void) { return slow; }\n"
				  "int work(int x) __attribute__((ifunc(\"choose\")));\n";
	char flags[512];
	const struct site *s;
	u64 offset;
	pid_t pid;

	fixture__build("libifn.so", "-O1 -shared -fPIC -Wl,-soname,libifn.so", lib);
	snprintf(flags, sizeof(flags), "-O1 -Wl,-z,now -Wl,-rpath,%s -Wl,--no-as-needed -Wl,%s/libifn.so", fixture_dir,
		fixture_dir);
	pid = start("bound", flags, "int work(int);\nint run(void) { return work(1); }\n" MAIN);
	assert_int_equal(frame(pid, "uprobe:libifn.so:fast"), 1);
	offset = list.sites[0].offset;
	assert_int_equal(frame(pid, "uprobe:libifn.so:work"), 1);
	s = &list.sites[0];
	assert_int_equal(s->offset, offset);
	assert_memory_equal(s->label, "uprobe:libifn.so:work", 21);
	fixture__kill(pid);
	/* nobody is bound to it */
	snprintf(flags, sizeof(flags), "-O1 -Wl,-rpath,%s -Wl,--no-as-needed -Wl,%s/libifn.so", fixture_dir,
		fixture_dir);
	pid = start("unbound", flags, "void run(void) {}\n" MAIN);
	assert_int_equal(frame(pid, "uprobe:libifn.so:work"), -ENOTSUP);
	assert_non_null(strstr(why, "IFUNC"));
	fixture__kill(pid);
	/* libc's own, which everything is bound to */
	pid = start("strings", "-O0 -fno-builtin -Wl,-z,now",
		"#include <stdlib.h>\n#include <string.h>\nsize_t n; void run(void) { n = strlen(getenv(\"PATH\")); "
		"}\n#include "
		"<stdlib.h>\n" MAIN);
	assert_int_equal(frame(pid, "uprobe:libc.so.6:strlen"), 1);
	fixture__kill(pid);
}

static void test_of_several_versions_the_one_that_the_process_is_bound_to_is_probed(void **state)
{
	static const char lib[] = "__asm__(\".symver old_fn,fn@V1\\n.symver new_fn,fn@@V2\");\n"
				  "int old_fn(void) { __asm__ volatile(\"\"); return 1; }\n"
				  "int new_fn(void) { __asm__ volatile(\"\"); return 2; }\n";
	static const char map[] = "V1 { global: fn; old_fn; };\nV2 { global: fn; new_fn; } V1;\n";
	static const struct {
		const char *name, *symver, *bound;
	} games[] = {{"oldest", "fn@V1", "uprobe:libver.so:old_fn"}, {"newest", "fn@V2", "uprobe:libver.so:new_fn"}};
	char flags[512], game[512];
	u64 offset;
	pid_t pid;

	fixture__write("versions.map", map, sizeof(map) - 1);
	snprintf(flags, sizeof(flags), "-O1 -shared -fPIC -Wl,-soname,libver.so -Wl,--version-script=%s",
		fixture__path("versions.map"));
	fixture__build("libver.so", flags, lib);
	snprintf(flags, sizeof(flags), "-O1 -Wl,-z,now -Wl,-rpath,%s -Wl,--no-as-needed -Wl,%s/libver.so", fixture_dir,
		fixture_dir);
	for (size_t i = 0; i < ARRAY_SIZE(games); i++) {
		snprintf(game, sizeof(game),
			"__asm__(\".symver used,%s\");\nint used(void);\nint run(void) { return used(); }\n%s",
			games[i].symver, MAIN);
		pid = start(games[i].name, flags, game);
		assert_int_equal(frame(pid, games[i].bound), 1);
		offset = list.sites[0].offset;
		assert_int_equal(frame(pid, "uprobe:libver.so:fn"), 1);
		assert_int_equal(list.sites[0].offset, offset);
		fixture__kill(pid);
	}
}

static int cleanup(void **state)
{
	sites__free(&list);
	return fixture__teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_auto_takes_the_games_own_markers_first),
		cmocka_unit_test(test_begin_and_end_are_taken_where_there_is_no_plain_mark),
		cmocka_unit_test(test_markers_come_with_their_strings),
		cmocka_unit_test(test_marker_whose_string_cannot_be_read_is_left_out_and_named),
		cmocka_unit_test(test_replaced_program_is_probed_in_the_file_that_runs),
		cmocka_unit_test(test_uprobe_names_a_function_of_the_program_or_a_library),
		cmocka_unit_test(test_label_of_a_site_names_the_same_place_again),
		cmocka_unit_test(test_file_offset_is_taken_as_it_is),
		cmocka_unit_test(test_place_within_an_instruction_is_refused),
		cmocka_unit_test(test_marker_within_an_instruction_is_left_out),
		cmocka_unit_test(test_wrong_specs_say_what_there_is),
		cmocka_unit_test(test_process_that_ended_is_named),
		cmocka_unit_test(test_libc_is_the_allocator_of_a_plain_program),
		cmocka_unit_test(test_exported_malloc_of_the_program_replaces_libcs),
		cmocka_unit_test(test_preloaded_allocator_replaces_libcs),
		cmocka_unit_test(test_hidden_malloc_of_the_program_is_taken_beside_libcs),
		cmocka_unit_test(test_static_program_has_its_own_malloc),
		cmocka_unit_test(test_stripped_static_program_says_that_no_allocator_was_found),
		cmocka_unit_test(test_allocator_that_would_be_stepped_is_left_out_and_named),
		cmocka_unit_test(test_allocators_linked_into_the_program_are_found_by_their_names),
		cmocka_unit_test(test_function_that_the_user_names_is_an_allocator),
		cmocka_unit_test(test_malformed_names_of_allocators_are_refused),
		cmocka_unit_test(test_of_several_versions_the_one_that_the_process_is_bound_to_is_probed),
		cmocka_unit_test(test_ifunc_leads_to_the_implementation_that_the_process_is_bound_to),
	};

	return cmocka_run_group_tests(tests, fixture__setup, cleanup);
}

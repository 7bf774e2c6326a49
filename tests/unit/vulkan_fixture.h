/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A made-up Vulkan: a loader with dispatch tables as the real one's, drivers, a layer, and games that present through
 * pointers which no library exports.
 */
#ifndef REDFRAME_VULKAN_FIXTURE_H
#define REDFRAME_VULKAN_FIXTURE_H

#include "build_fixture.h"

#define VK_TYPES                                                                                                       \
	"#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n#include <sys/mman.h>\n"   \
	"#include <stdint.h>\n#include <dlfcn.h>\n#define MAGIC 0x10ADED040410ADEDULL\n#define SLOT 191\n"             \
	"typedef int (*present_fn)(void *queue, void *info);\n"                                                        \
	"typedef struct { uint64_t magic; void *fn[256]; } table;\n"                                                   \
	"typedef struct { char a[40]; uint64_t *swapchains; char b[16]; } present_info;\n"

/* vkCreateDevice(device, core function, present function) */
#define VK_LOADER                                                                                                      \
	VK_TYPES "static table *get(void *q) { table *t = q ? *(table **)q : 0; return t && t->magic == MAGIC ? t : "  \
		 "0; "                                                                                                 \
		 "}\n"                                                                                                 \
		 "int vkQueuePresentKHR(void *q, void *info)\n{\n\ttable *t = get(q);\n"                               \
		 "\tif (!t) { fprintf(stderr, \"bad queue\\n\"); abort(); }\n"                                         \
		 "\treturn ((present_fn)t->fn[SLOT - 1])(q, info);\n}\n"                                               \
		 "int vkCreateDevice(table **d, void *core, void *present)\n{\n"                                       \
		 "\t*d = calloc(1, sizeof(table));\n\tfor (int i = 0; i < 255; i++) (*d)->fn[i] = core;\n"             \
		 "\t(*d)->fn[SLOT - 1] = present;\n\t(*d)->magic = MAGIC;\n\treturn 0;\n}\n"

/* As lavapipe's: the structure's register is used for something else before the first instruction that is emulated. */
#define VK_DRIVER(name)                                                                                                \
	"static int core(void) { return 7; }\n"                                                                        \
	"static int present(long *q, char *info);\n"                                                                   \
	"__asm__(\".text\\n.type present,@function\\npresent: .cfi_startproc\\nmov %rsi,%r8\\nmov "                    \
	"8(%rdi),%rsi\\ntest "                                                                                         \
	"%rsi,%rsi\\nje 1f\\nadd $1,%rsi\\n1: xor %eax,%eax\\nret\\n.cfi_endproc\\n.size present,.-present\\n\");\n"   \
	"void *" name "_core(void) { return core; }\nvoid *" name "_present(void) { return present; }\n"

static inline void vulkan__library(const char *file, const char *flags, const char *code)
{
	char all[512];

	snprintf(all, sizeof(all), "%s -shared -fPIC -Wl,-soname,%s", flags, file);
	fixture__build(file, all, code);
}

/* The program's symbols are stripped: nothing names the drivers' functions. */
static inline void vulkan__libraries(void)
{
	vulkan__library("libvulkan.so.1", "-O2 -s", VK_LOADER);
	vulkan__library("libdriver_a.so", "-O2 -s", VK_DRIVER("a"));
	vulkan__library("libdriver_b.so", "-O2 -s", VK_DRIVER("b"));
	/* a layer presents by the driver below it */
	vulkan__library("liblayer.so", "-O2 -s",
		"static int (*below)(void *, void *);\nstatic int n;\n"
		"static int present(void *q, void *info) { n++; return below(q, info) + n * 0; }\n"
		"void *layer_present(void *b) { below = b; return present; }\n");
}

/* body: what main does before it says that it is ready */
static inline const char *vulkan__game(const char *name, const char *body, const char *then)
{
	char flags[1024], text[8192];

	snprintf(flags, sizeof(flags),
		"-O1 -Wl,--no-as-needed -Wl,-rpath,%s -Wl,%s/libvulkan.so.1 -Wl,%s/libdriver_a.so "
		"-Wl,%s/libdriver_b.so "
		"-Wl,%s/liblayer.so",
		fixture_dir, fixture_dir, fixture_dir, fixture_dir, fixture_dir);
	snprintf(text, sizeof(text),
		VK_TYPES AWAIT_PROBE
		"int vkCreateDevice(table **d, void *core, void *present);\nvoid *a_core(void), *b_core(void), "
		"*a_present(void), *b_present(void), *layer_present(void *);\n"
		"static uint64_t chains[4] = {0x5c0001, 0x5c0002, 0x5c0003, 0x5c0004};\n"
		"static void show(table *t, int chain)\n{\n\tvoid *queue[8] = {t};\n"
		"\tpresent_info info = {.swapchains = &chains[chain]};\n"
		"\t((present_fn)t->fn[SLOT - 1])(queue, &info);\n}\n"
		"static table *device(void *core, void *present) { table *t; vkCreateDevice(&t, core, present); return "
		"t; }\n"
		"int main(void)\n{\n\ttable *d, *e;\n\t(void)d; (void)e; (void)show; "
		"(void)await_probe;\n%s\n\tsetvbuf(stdout, 0, _IONBF, "
		"0);\n"
		"\twrite(1, \"ready\\n\", 6);\n%s\n\tfor (;;) pause();\n}\n",
		body, then);
	return fixture__build(name, flags, text);
}

#endif

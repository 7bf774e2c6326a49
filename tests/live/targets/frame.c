// SPDX-License-Identifier: GPL-2.0-only
/* frame: 300 frames by each way that redframe can see them, and texts that a game should not have. Lines: stream
 * ADDRESS; lock ADDRESS; offset OFFSET (of present() in the file); semaphore ADDRESS (of redframe:frame). */
#include <link.h>
#include <stdint.h>
#include <sys/mman.h>
#include "redframe.h"
#include "target.h"

#define FRAMES 300

static int surface, lock;

__attribute__((noinline)) int present(int number);
int present(int number)
{
	__asm__ volatile("");
	return number + 1;
}

/* a marker of another maker, in the form of <sys/sdt.h>: without a semaphore, one argument a constant */
__attribute__((noinline)) static void swap(long number)
{
	__asm__ volatile("990: nop\n"
			 ".pushsection .note.stapsdt,\"\",\"note\"\n"
			 ".balign 4\n"
			 ".4byte 992f-991f, 994f-993f, 3\n"
			 "991: .asciz \"stapsdt\"\n"
			 "992: .balign 4\n"
			 "993: .8byte 990b\n"
			 ".8byte _.stapsdt.base\n"
			 ".8byte 0\n"
			 ".asciz \"engine\"\n"
			 ".asciz \"swap\"\n"
#if defined(__x86_64__)
			 ".asciz \"-8@%0 8@$77\"\n"
#else
			 ".asciz \"-8@%0 8@77\"\n"
#endif
			 "994: .balign 4\n"
			 ".popsection\n"
			 :
			 : "r"(number)
			 : "memory");
}

/* as redframe.h does it, without touching the text first */
__attribute__((noinline)) static void untouched_message(const char *text)
{
	REDFRAME_ASM(REDFRAME_NOTE("message", REDFRAME_ARG(0)) : : "r"(text) : "memory");
}

static int first_object(struct dl_phdr_info *info, size_t size, void *base)
{
	(void)size;
	*(uintptr_t *)base = info->dlpi_addr;
	return 1;
}

/* the last byte of its page, and of all that is mapped there */
static const char *endless_text(void)
{
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(p != MAP_FAILED && !munmap(p + 4096, 4096));
	memset(p, 'y', 4096);
	return p + 4096 - 20;
}

static void texts(const char *fresh_page, const char *endless)
{
	static char longer[301];

	memset(longer, 'x', 300);
	REDFRAME_SCENE("harbour");
	REDFRAME_LOCK_NAME(&lock, "World::lock");
	REDFRAME_MESSAGE("boss spawned");
	REDFRAME_MESSAGE("\033[31mred\007\r\n");
	REDFRAME_MESSAGE("bad \xff\xfe\xc3 utf-8");
	REDFRAME_MESSAGE("");
	REDFRAME_MESSAGE(longer);
	untouched_message(fresh_page);
	REDFRAME_MESSAGE("say \"hi\", 'it\\s' {\"a\": 1}");
	untouched_message(endless);
	untouched_message((const char *)8);
	REDFRAME_MESSAGEF("wave %d", 7);
}

int main(void)
{
	char *fresh = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const char *endless = endless_text();
	uintptr_t base = 0;

	MUST(fresh != MAP_FAILED);
	dl_iterate_phdr(first_object, &base);
	printf("stream %lu\nlock %lu\n", (unsigned long)&surface, (unsigned long)&lock);
	printf("offset 0x%lx\n", (unsigned long)((uintptr_t)present - base));
	printf("semaphore %lu\n", (unsigned long)&redframe_frame_semaphore);
	target_ready();
	for (int i = 0; i < FRAMES; i++) {
		REDFRAME_FRAME_STREAM(1000 + i, &surface);
		present(i);
		swap(-5 + i);
	}
	texts(fresh, endless);
	target_done();
	return 0;
}

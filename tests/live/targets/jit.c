// SPDX-License-Identifier: GPL-2.0-only
/* jit: code made at run time, as a compiler of scripts makes it, listed in /tmp/perf-PID.map; the same place has other
 * code later. Arguments: DIR [link], link: the map is a symbolic link. Lines: chain NAME BEGIN END FUNCTION<FUNCTION<…
 */
#include <sys/mman.h>
#include "target.h"

#define CODE_BYTES 64
#define LOOK_US    500000

static unsigned long long began, ended;

static __attribute__((noinline)) void nap(void)
{
	began = boot_ns();
	usleep(3000);
	ended = boot_ns();
	__asm__ volatile("" ::: "memory");
}

/* push rbp; mov rbp, rsp; mov rax, callee; call rax; pop rbp; ret */
static void make(unsigned char *at, const void *callee)
{
	static const unsigned char code[] = {
		0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xd0, 0x5d, 0xc3};

	memcpy(at, code, sizeof(code));
	memcpy(at + 6, &callee, sizeof(callee));
}

static void list(const char *path, const void *at, const char *name)
{
	FILE *f = fopen(path, "a");

	MUST(f);
	fprintf(f, "%lx %x %s\n", (unsigned long)at, CODE_BYTES, name);
	fclose(f);
}

static __attribute__((noinline)) void run(unsigned char *code, const char *chain)
{
	usleep(LOOK_US); /* the map is looked at ten times a second */
	((void (*)(void))code)();
	usleep(LOOK_US);
	printf("chain jit %llu %llu nap<%s<run<main\n", began, ended, chain);
}

/* about a third of a second: mov ecx, 0x20000000; 1: dec ecx; jnz 1b; ret */
static void spin(unsigned char *code)
{
	static const unsigned char loop[] = {0xb9, 0, 0, 0, 0x20, 0xff, 0xc9, 0x75, 0xfc, 0xc3};

	memcpy(code, loop, sizeof(loop));
	((void (*)(void))code)();
	printf("spin %lu\n", (unsigned long)code);
}

int main(int argc, char **argv)
{
	unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char path[64], other[256];

	MUST(code != MAP_FAILED);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	unlink(path);
	if (argc > 2) {
		snprintf(other, sizeof(other), "%s/elsewhere.map", argv[1]);
		list(other, code, "Elsewhere");
		MUST(!symlink(other, path));
	}
	make(code, nap);
	make(code + CODE_BYTES, code);
	list(path, code, "Player::move");
	list(path, code + CODE_BYTES, "update@player.lua:7");
	target_ready();
	run(code + CODE_BYTES, "Player::move<update@player.lua:7");
	list(path, code, "Enemy::think"); /* the same place */
	run(code + CODE_BYTES, "Enemy::think<update@player.lua:7");
	list(path, code + 2 * CODE_BYTES, "Spin");
	usleep(LOOK_US);
	spin(code + 2 * CODE_BYTES);
	target_done();
	unlink(path);
	return 0;
}

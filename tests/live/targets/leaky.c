// SPDX-License-Identifier: GPL-2.0-only
/* leaky VISITS: goes from menu to level so often, a second there each, and loses small blocks in one function. */
#include "redframe.h"
#include "target.h"

#define FRAMES 110 /* of 10 ms, a visit */
#define LOST   450 /* blocks of 64 bytes, a frame */

static void *volatile last;

__attribute__((noinline)) static void leak_particles(void)
{
	for (int i = 0; i < LOST; i++)
		last = malloc(64);
}

__attribute__((noinline)) static void shuffle_cards(void)
{
	for (int i = 0; i < LOST / 3; i++) {
		last = malloc(64);
		free(last);
	}
}

static void play(const char *scene, int frames, unsigned long *n)
{
	REDFRAME_SCENE(scene);
	for (int i = 0; i < frames; i++) {
		leak_particles();
		shuffle_cards();
		usleep(10000);
		REDFRAME_FRAME((*n)++);
	}
}

int main(int argc, char **argv)
{
	int visits = argc > 1 ? atoi(argv[1]) : 1;
	unsigned long n = 0;

	for (int i = 0; i < visits; i++) {
		play("menu", 3, &n);
		play("level", FRAMES, &n);
	}
	play("menu", 3, &n);
	return 0;
}

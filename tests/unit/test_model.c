/* SPDX-License-Identifier: GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "model.h"
#include "recfile.h"
#include "recording.h"
#include "strings.h"

#define WHATS 64
static char whats[WHATS][256]; /* model__what of each record as it was fed */

/* a model of what the lines say */
static struct model *model_of(const char *lines)
{
	struct model *m = model__new();
	const struct ev_hdr *rec;
	struct recording r;
	int i = 0;

	assert_non_null(m);
	assert_int_equal(recording__open_fd(&r, recfile__from_string(lines)), 0);
	while (recording__next(&r, &rec) == 1) {
		assert_int_equal(model__event(m, rec), 0);
		model__what(m, rec, whats[i % WHATS], sizeof(whats[0]));
		i++;
	}
	recording__close(&r);
	return m;
}

#define GAME                                                                                                           \
	"0 0 0 info text=\"game.tgid=100\"\n"                                                                          \
	"0 100 0 thread tgid=100 nstid=100 name=\"Main\"\n"                                                            \
	"0 101 0 thread tgid=100 nstid=101 name=\"Render\"\n"                                                          \
	"0 900 0 thread tgid=900 nstid=900 name=\"Xorg\"\n"

static void test_threads_of_the_game_are_told_from_others(void **state)
{
	/* whichever comes first, the threads or the game's id */
	struct model *m = model_of("0 100 0 thread tgid=100 nstid=100 name=\"Main\"\n" GAME
				   "5 102 0 fork tgid=100 parent=100 clone_flags=0x10000 comm=\"Worker\"\n"
				   "5 103 0 fork tgid=103 parent=100 comm=\"Helper\"\n");

	assert_int_equal(model__game(m), 100);
	assert_true(model__find_thread(m, 100)->game);
	assert_true(model__find_thread(m, 102)->game);
	assert_false(model__find_thread(m, 103)->game);
	assert_false(model__find_thread(m, 900)->game);
	assert_int_equal(model__find_thread(m, 102)->born, 5);
	assert_int_equal(model__find_process(m, 103)->parent, 100);
	assert_string_equal(model__find_process(m, 100)->name, "Main");
	assert_null(model__find_thread(m, 55));
	assert_int_equal(model__thread(m, 55)->tid, 55);
	model__free(m);
}

static void test_a_fork_of_a_known_id_begins_a_new_life(void **state)
{
	struct model *m = model_of(GAME "5 101 0 exit tgid=100\n"
					"9 101 0 fork tgid=700 parent=700 comm=\"bash\"\n");
	const struct thread *t = model__find_thread(m, 101);

	assert_string_equal(t->name, "bash");
	assert_false(t->game);
	assert_false(t->exited);
	assert_int_equal(t->born, 9);
	model__free(m);
}

static void test_rename_and_exec_change_names(void **state)
{
	struct model *m = model_of(GAME "1 101 0 rename tgid=100 comm=\"R2\"\n"
					"2 900 0 rename tgid=900 comm=\"X\"\n");

	assert_string_equal(model__find_thread(m, 101)->name, "R2");
	assert_string_equal(model__find_process(m, 900)->name, "X");
	model__free(m);
	m = model_of(GAME "3 100 0 exec old_tid=101 tgid=100 comm=\"game.bin\"\n");
	assert_string_equal(model__find_thread(m, 100)->name, "game.bin");
	assert_string_equal(model__find_process(m, 100)->name, "game.bin");
	assert_false(model__find_thread(m, 100)->exited);
	assert_true(model__find_thread(m, 101)->exited);
	model__free(m);
}

static void test_hostile_names_become_valid_text(void **state)
{
	struct model *m = model_of("0 100 0 thread tgid=100 name=\"\\xff\\xfeX\"\n");

	assert_string_equal(model__find_thread(m, 100)->name, "\xef\xbf\xbd\xef\xbf\xbdX");
	model__free(m);
}

static void test_ids_of_the_games_namespace_are_translated(void **state)
{
	struct model *m = model_of(GAME);

	assert_int_equal(model__host_tid(m, 101), 101);
	assert_int_equal(model__host_tid(m, 900), 0); /* no thread of the game */
	assert_int_equal(model__host_tid(m, 77), 0);
	model__free(m);
	m = model_of("0 0 0 info text=\"game.tgid=100\"\n0 100 0 thread tgid=100 nstid=1 name=\"Main\"\n"
		     "0 105 0 thread tgid=100 nstid=6 name=\"R\"\n");
	assert_int_equal(model__host_tid(m, 1), 100);
	assert_int_equal(model__host_tid(m, 6), 105);
	assert_int_equal(model__host_tid(m, 105), 0);
	model__free(m);
}

static void test_paths_are_joined_from_their_parts(void **state)
{
	struct model *m = model_of("0 1 0 path dev=8:1 ino=7 mode=0x81a4 parts=\"c\\0b\\0a\\0\"\n"
				   "0 1 0 path dev=8:1 ino=8 mode=0x81a4 cut=1 parts=\"c\\0b\\0\"\n"
				   "0 1 0 path dev=8:1 ino=2 mode=0x41ed parts=\"\"\n"
				   "0 1 0 path dev=0:12 ino=9 mode=0x1180 parts=\"\"\n"
				   "0 1 0 path dev=0:8 ino=10 mode=0xc1ff parts=\"TCP\\0\"\n"
				   "0 1 0 path dev=0:14 ino=11 mode=0x180 parts=\"[eventfd]\\0\"\n"
				   "0 1 0 path dev=8:2 ino=7 mode=0x81a4 parts=\"other\\0\"\n");
	u32 disk = 8 << 20 | 1;

	assert_string_equal(model__path(m, disk, 7), "/a/b/c");
	assert_string_equal(model__path(m, disk, 8), "…/b/c");
	assert_string_equal(model__path(m, disk, 2), "/");
	assert_string_equal(model__path(m, 12, 9), "pipe:[9]");
	assert_string_equal(model__path(m, 8, 10), "socket:[10]");
	assert_string_equal(model__path(m, 14, 11), "[eventfd]");
	assert_string_equal(model__path(m, disk + 1, 7), "/other");
	assert_null(model__path(m, disk, 99));
	model__free(m);
}

static void test_a_path_argument_belongs_to_the_next_file_event_of_its_thread(void **state)
{
	struct model *m = model_of("1 5 0 path_arg path=\"missing.txt\"\n"
				   "2 6 0 file_meta dur=1 ret=-ENOENT fd=-1 sys=openat\n"
				   "3 5 0 file_meta dur=1 ret=-ENOENT fd=-1 sys=openat\n"
				   "4 5 0 file_meta dur=1 ret=0 fd=-1 sys=stat\n");

	assert_string_equal(whats[1], "openat ");
	assert_string_equal(whats[2], "missing.txt");
	assert_string_equal(whats[3], "stat ");
	model__free(m);
}

#define MAPS                                                                                                           \
	"0 100 0 map start=0x1000 end=0x9000 offset=0 dev=8:1 ino=5 path=\"/game\"\n"                                  \
	"0 100 0 map start=0x20000 end=0x22000 path=\"[heap]\"\n"                                                      \
	"0 100 0 map start=0x10000000 end=0x10021000 path=\"[stack]\"\n"                                               \
	"0 900 0 map start=0x50000 end=0x51000 path=\"/other\"\n"

static void test_mappings_follow_the_calls_that_change_them(void **state)
{
	struct model *m =
		model_of(GAME MAPS "1 100 0 mem_call addr=0x3000 len=0x2000 ret=0 sys=munmap\n"
				   "2 100 0 mem_call addr=0 len=0xff1 ret=0x4000 sys=mmap\n"
				   "3 100 0 mem_call was=0x22000 ret=0x30000 sys=brk\n"
				   "4 100 0 mem_call addr=0x5000 was=0x1000 len=0x3000 ret=0x40000 sys=mremap\n"
				   "5 100 0 mem_call addr=0x1000 len=0x1000 ret=-ENOMEM sys=munmap\n"
				   "6 900 0 mem_call addr=0x1000 len=0x1000 ret=0 sys=munmap\n");
	const struct mapping *map;

	assert_string_equal(
		model__mapping(m, 0x1000)->path, "/game"); /* the failed one and the stranger's did nothing */
	assert_int_equal(model__mapping(m, 0x2fff)->end, 0x3000);
	assert_null(model__mapping(m, 0x3000));
	assert_string_equal(model__mapping(m, 0x4000)->path, "");
	assert_int_equal(model__mapping(m, 0x4000)->end, 0x5000); /* whole pages */
	assert_null(model__mapping(m, 0x5000));
	assert_int_equal(model__mapping(m, 0x6000)->offset, 0x5000);
	map = model__mapping(m, 0x42000);
	assert_string_equal(map->path, "/game");
	assert_int_equal(map->offset, 0x4000);
	assert_int_equal(map->end, 0x43000);
	assert_string_equal(model__mapping(m, 0x2ffff)->path, "[heap]");
	assert_int_equal(model__mapping(m, 0x2ffff)->start, 0x20000);
	assert_string_equal(model__mapping(m, 0xffff000)->path, "[stack]"); /* grown since */
	assert_null(model__mapping(m, 0x50000));
	model__free(m);
}

static void test_a_mapping_without_a_name_takes_its_files(void **state)
{
	struct model *m = model_of(GAME "0 100 0 map start=0x1000 end=0x2000 dev=8:1 ino=7 path=\"\"\n"
					"1 100 0 path dev=8:1 ino=7 mode=0x81a4 parts=\"x.pak\\0\"\n"
					"2 100 0 fault dur=1 addr=0x1800\n"
					"3 100 0 fault dur=1 addr=0x5800\n");

	assert_string_equal(model__mapping(m, 0x1234)->path, "/x.pak");
	assert_string_equal(whats[6], "/x.pak");
	assert_string_equal(whats[7], "0x5800");
	model__free(m);
}

static void test_of_symbols_in_one_another_the_innermost_is_found_and_the_outer_ones_behind_it(void **state)
{
	struct model *m = model_of("9 0 0 symbol addr=0x1000 size=0x100 name=\"read\"\n"
				   "9 0 0 symbol addr=0x1010 size=0x10 name=\"nocancel\"\n"
				   "9 0 0 symbol addr=0x1014 size=4 name=\"inmost\"\n"
				   "9 0 0 symbol addr=0x1000 size=8 name=\"entry\"\n"
				   "9 0 0 symbol addr=0x1200 size=0x10 name=\"next\"\n");

	assert_string_equal(model__symbol(m, 0x1007)->name, "entry");
	assert_string_equal(model__symbol(m, 0x1008)->name, "read");
	assert_string_equal(model__symbol(m, 0x1012)->name, "nocancel");
	assert_string_equal(model__symbol(m, 0x1017)->name, "inmost");
	assert_string_equal(model__symbol(m, 0x1018)->name, "nocancel");
	assert_string_equal(model__symbol(m, 0x1020)->name, "read");
	assert_string_equal(model__symbol(m, 0x10ff)->name, "read");
	assert_null(model__symbol(m, 0x1100));
	assert_null(model__symbol(m, 0x1210));
	model__free(m);
}

static void test_symbols_are_found_by_any_address_in_them(void **state)
{
	struct model *m = model_of("9 0 0 symbol addr=0x3000 size=0x10 name=\"late\\0game\"\n"
				   "9 0 0 symbol addr=0x1000 size=0x100 name=\"update(World&)\\0game\"\n"
				   "9 0 0 symbol addr=0x1000 size=0x100 name=\"update(World&)\\0game\"\n"
				   "9 0 0 symbol addr=0x2000 size=0 name=\"label\"\n"
				   "9 1 0 sample ip=0x10ff\n");

	assert_string_equal(model__symbol(m, 0x1000)->name, "update(World&)");
	assert_string_equal(model__symbol(m, 0x10ff)->object, "game");
	assert_null(model__symbol(m, 0x1100));
	assert_string_equal(model__symbol(m, 0x2000)->name, "label");
	assert_string_equal(model__symbol(m, 0x2000)->object, "");
	assert_null(model__symbol(m, 0x2001));
	assert_null(model__symbol(m, 0));
	assert_string_equal(whats[4], "update(World&)");
	model__free(m);
}

static void test_counts_and_losses_are_kept_per_class(void **state)
{
	struct model *m = model_of(GAME "10 100 0 file_read dur=1 fd=3\n11 100 0 file_read dur=1 fd=3\n"
					"12 100 0 fault dur=1\n13 100 0 alloc_sum calls=50 bytes=800\n14 100 0 free\n"
					"15 100 0 switch flags=GAME\n16 900 0 switch\n17 100 0 waking waker=101\n"
					"18 0 0 lost class=file count=7 since=10\n"
					"19 0 0 note severity=warning class=lock text=\"no lock names\"\n");
	const struct model_stats *s = model__stats(m);
	u32 severity, class;
	u64 ts;

	assert_int_equal(s->counts[CLASS_FILE], 2);
	assert_int_equal(s->counts[CLASS_FAULT], 1);
	assert_int_equal(s->counts[CLASS_ALLOC], 50);
	assert_int_equal(s->counts[CLASS_SCHED], 1);
	assert_int_equal(s->counts[CLASS_META], 0);
	assert_int_equal(s->lost[CLASS_FILE], 7);
	assert_int_equal(s->kinds[EV_FILE_READ], 2);
	assert_int_equal(s->kinds[EV_THREAD], 3);
	assert_int_equal(s->events, 8);
	assert_int_equal(s->first, 10);
	assert_int_equal(s->last, 17);
	assert_string_equal(model__note(m, 0, &severity, &class, &ts), "no lock names");
	assert_int_equal(severity, 1);
	assert_int_equal(class, CLASS_LOCK);
	assert_null(model__note(m, 1, &severity, &class, &ts));
	model__free(m);
}

static void test_info_keeps_order_and_the_last_value(void **state)
{
	struct model *m = model_of("0 0 0 info text=\"a=1\"\n0 0 0 info text=\"b=x=y\"\n0 0 0 info text=\"a=2\"\n"
				   "0 0 0 info text=\"no value\"\n");
	const char *key, *value;

	assert_int_equal(model__info_count(m), 2);
	assert_string_equal(model__info(m, "a"), "2");
	assert_string_equal(model__info(m, "b"), "x=y");
	assert_null(model__info(m, "c"));
	model__info_at(m, 0, &key, &value);
	assert_string_equal(key, "a");
	model__free(m);
}

static void test_what_says_what_a_person_wants_to_know(void **state)
{
	struct model *m = model_of(GAME "1 1 0 lock_name addr=0x10 name=\"World::lock\"\n"
					"2 100 0 lock_wait dur=1 addr=0x10\n"
					"3 100 0 lock_wait dur=1 addr=0x77\n"
					"4 100 0 mem_call len=2M ret=0 sys=munmap addr=0x100000\n"
					"5 100 0 mem_call len=4K ret=0 sys=madvise flags=4\n"
					"6 100 0 mem_call was=0x10000 ret=0x8000 sys=brk\n"
					"7 100 0 switch next_tid=101\n"
					"8 100 0 switch next_tid=0\n"
					"9 100 0 waking waker=900\n"
					"10 100 0 frame number=12\n"
					"11 100 0 softirq dur=1 vec=NET_RX\n"
					"12 100 0 syscall dur=1 sys=ioctl\n"
					"13 100 0 file_read dur=1 fd=5\n"
					"14 100 0 alloc size=64K fn=calloc\n"
					"15 100 0 frame\n");
	static const char *const want[] = {"World::lock", "World::lock", "0x77", "munmap 2.0 MiB",
		"madvise DONTNEED 4 KiB", "brk -32 KiB", "to Render", "to idle", "by Xorg", "frame 12", "NET_RX",
		"ioctl", "file descriptor 5", "calloc 64 KiB", ""};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(want); i++)
		assert_string_equal(whats[4 + i], want[i]);
	model__free(m);
}

static void path_record(struct model *m, u64 ino)
{
	u64 rec[EV_MAX_BYTES / 8] = {0};
	struct ev_path *e = (struct ev_path *)rec;
	int n = snprintf(
		e->parts, 128, "a-file-with-a-long-name-%020llu.tmp%ccache%cdata", (unsigned long long)ino, 0, 0);

	e->hdr = (struct ev_hdr){.ts = ino, .kind = EV_PATH, .words = (u8)((sizeof(*e) + (size_t)n + 8) / 8)};
	e->ino = ino;
	e->dev = 1;
	e->mode = 0x81a4;
	assert_int_equal(model__event(m, &e->hdr), 0);
}

static void test_what_ended_is_forgotten_and_what_lives_is_not(void **state)
{
	struct model *m = model_of("0 0 0 info text=\"game.tgid=100\"\n"
				   "0 100 0 process nspid=100 cmdline=\"game\\0--level\\0\"\n"
				   "0 100 0 thread tgid=100 nstid=100 name=\"Main\"\n"
				   "0 100 0 map start=0x1000 end=0x2000 path=\"/lib/x.so\"\n"
				   "0 100 0 symbol addr=0x1000 size=16 name=\"f\\0x.so\"\n"
				   "0 100 0 lock_name addr=0x5000 name=\"the lock\"\n"
				   "1s 200 0 fork tgid=200 parent=100\n"
				   "2s 200 0 exit tgid=200\n"
				   "9s 201 0 fork tgid=201 parent=100\n"
				   "10s 201 0 exit tgid=201\n");
	const u64 files = 200000;

	for (u64 ino = 1; ino <= files; ino++)
		path_record(m, ino);
	assert_int_equal(model__forget_dead(m, 5 * NSEC_PER_SEC), 0);
	assert_null(model__find_thread(m, 200));
	assert_null(model__find_process(m, 200));
	assert_non_null(model__find_thread(m, 201)); /* not so long ago */
	assert_string_equal(model__find_thread(m, 100)->name, "Main");
	assert_memory_equal(model__find_process(m, 100)->cmdline, "game\0--level", 13);
	assert_string_equal(model__info(m, "game.tgid"), "100");
	assert_string_equal(model__mapping(m, 0x1800)->path, "/lib/x.so");
	assert_string_equal(model__symbol(m, 0x1008)->name, "f");
	assert_string_equal(model__symbol(m, 0x1008)->object, "x.so");
	assert_string_equal(model__lock_name(m, 0x5000), "the lock");
	assert_null(model__path(m, 1, 1));
	assert_string_equal(model__path(m, 1, files), "/data/cache/a-file-with-a-long-name-00000000000000200000.tmp");
	model__free(m);
}

static int hear(void *arg, const void *fixed, size_t bytes, const char *text, size_t len)
{
	u64 rec[EV_MAX_BYTES / 8] = {0};
	struct ev_hdr *h = (struct ev_hdr *)rec;

	memcpy(rec, fixed, bytes);
	memcpy((char *)rec + bytes, text, len);
	h->words = (u8)((bytes + len + 8) / 8);
	return model__event(arg, h);
}

static void test_what_a_model_tells_makes_another_that_knows_the_same(void **state)
{
	struct model *m =
		model_of("0 0 0 info text=\"game.tgid=100\"\n"
			 "0 100 0 process parent=7 nspid=5 cmdline=\"game\\0--level\\0\"\n"
			 "0 100 0 cgroup path=\"/user.slice\"\n"
			 "0 100 0 thread tgid=100 nstid=5 name=\"Main\"\n"
			 "0 100 0 map start=0x1000 end=0x2000 offset=0x3000 ino=9 dev=8:1 path=\"/lib/x.so\"\n"
			 "0 100 0 lock_name addr=0x5000 name=\"the lock\"\n"
			 "0 100 0 path ino=7 dev=8:1 mode=0x81a4 parts=\"a.bin\\0data\\0\"\n"
			 "0 100 0 path ino=8 dev=8:1 mode=0x11a4 parts=\"\"\n"
			 "1ms 101 0 fork tgid=100 parent=100 nstid=6 comm=\"Worker\"\n"
			 "2ms 102 0 fork tgid=100 parent=100 comm=\"Gone\"\n"
			 "3ms 102 0 exit tgid=100\n");
	struct model *n = model__new();

	assert_int_equal(model__tell(m, 5000000, hear, n), 0);
	for (u64 ino = 7; ino <= 8; ino++)
		assert_int_equal(model__tell_path(m, 5000000, 8 << 20 | 1, ino, hear, n), 0);
	assert_int_equal(model__game(n), 100);
	assert_memory_equal(model__find_process(n, 100)->cmdline, "game\0--level", 13);
	assert_int_equal(model__find_process(n, 100)->parent, 7);
	assert_string_equal(model__find_process(n, 100)->cgroup, "/user.slice");
	assert_string_equal(model__find_thread(n, 101)->name, "Worker");
	assert_true(model__find_thread(n, 101)->game);
	assert_null(model__find_thread(n, 102));
	assert_int_equal(model__host_tid(n, 6), 101);
	assert_int_equal(model__mapping(n, 0x1800)->offset, 0x3000);
	assert_string_equal(model__lock_name(n, 0x5000), "the lock");
	assert_string_equal(model__path(n, 8 << 20 | 1, 7), "/data/a.bin");
	assert_string_equal(model__path(n, 8 << 20 | 1, 8), model__path(m, 8 << 20 | 1, 8));
	model__free(m);
	model__free(n);
}

static void test_what_others_had_of_the_cpus_is_neither_the_games_nor_idle(void **state)
{
	struct model *m =
		model_of("1s 100 0 cpu_use busy=7s idle=3s stolen=1s game=2s\n"
			 "2s 100 0 cpu_use busy=8s idle=3500ms stolen=1500ms game=2400ms\n"
			 "3s 100 0 cpu_use busy=9s idle=3400ms stolen=1500ms game=3400ms\n" /* idle went back */
			 "4s 200 0 cpu_use busy=20s idle=9s stolen=1500ms game=1s\n");      /* another game */
	struct cpu_use u = model__cpu_use(m);

	assert_int_equal(u.all_ns, 3000000000);
	assert_int_equal(u.others_ns, 600000000);
	assert_int_equal(u.stolen_ns, 500000000);
	model__free(m);
	m = model_of("1s 100 0 cpu_use busy=7s idle=3s stolen=1s game=2s\n");
	assert_int_equal(model__cpu_use(m).all_ns, 0);
	model__free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads_of_the_game_are_told_from_others),
		cmocka_unit_test(test_what_others_had_of_the_cpus_is_neither_the_games_nor_idle),
		cmocka_unit_test(test_a_fork_of_a_known_id_begins_a_new_life),
		cmocka_unit_test(test_rename_and_exec_change_names),
		cmocka_unit_test(test_hostile_names_become_valid_text),
		cmocka_unit_test(test_ids_of_the_games_namespace_are_translated),
		cmocka_unit_test(test_paths_are_joined_from_their_parts),
		cmocka_unit_test(test_a_path_argument_belongs_to_the_next_file_event_of_its_thread),
		cmocka_unit_test(test_mappings_follow_the_calls_that_change_them),
		cmocka_unit_test(test_a_mapping_without_a_name_takes_its_files),
		cmocka_unit_test(test_symbols_are_found_by_any_address_in_them),
		cmocka_unit_test(test_of_symbols_in_one_another_the_innermost_is_found_and_the_outer_ones_behind_it),
		cmocka_unit_test(test_counts_and_losses_are_kept_per_class),
		cmocka_unit_test(test_info_keeps_order_and_the_last_value),
		cmocka_unit_test(test_what_says_what_a_person_wants_to_know),
		cmocka_unit_test(test_what_ended_is_forgotten_and_what_lives_is_not),
		cmocka_unit_test(test_what_a_model_tells_makes_another_that_knows_the_same),
	};

	return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}

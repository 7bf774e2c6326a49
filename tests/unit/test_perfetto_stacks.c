// SPDX-License-Identifier: GPL-2.0-only
/* Call chains in a trace, by what the trace processor makes of them: what the UI draws its flame graphs from. */
#include "perfetto_fixture.h"

#include "recfile.h"
#include "recording.h"

/* main calls Level::update, into which load is inlined, which calls the C library's read; the program is mapped from
 * its second page on and linked to 0x400000 */
static const char code[] =
	"0 4242 0 map start=0x55001000 end=0x55009000 offset=0x1000 ino=7 prot=READ|EXEC path=\"/opt/game/hitches\"\n"
	"0 4242 0 map start=0x7f0000000000 end=0x7f0000100000 offset=0 ino=8 prot=READ|EXEC path=\"/lib/libc.so.6\"\n"
	"0 0 0 image start=0x55001000 end=0x55009000 bias=0x54c00000 text=\"00112233445566778899aabbccddeeff01234567"
	"\\0/opt/game/hitches\"\n"
	"0 0 0 call id=1 addr=0x55001104\n"
	"0 0 0 call id=2 caller=1 addr=0x55002208\n"
	"0 0 0 call id=3 caller=2 addr=0x7f0000000310\n"
	"0 0 0 call id=4 caller=1 addr=0x55003000\n"
	"0 0 0 symbol addr=0x55001100 size=256 name=\"main\\0hitches\"\n"
	"0 0 0 symbol addr=0x55002200 size=256 name=\"Level::update\\0hitches\"\n"
	"0 0 0 symbol addr=0x7f0000000300 size=64 name=\"read\\0libc.so.6\"\n"
	"0 0 0 source addr=0x55001104 line=12 level=0 text=\"main\\0/src/main.cpp\"\n"
	"0 0 0 source addr=0x55002208 line=33 level=0 text=\"load\\0/src/file.h\"\n"
	"0 0 0 source addr=0x55002208 line=70 level=1 text=\"Level::update\\0/src/level.cpp\"\n";

static void play(struct trace *t, const char *events)
{
	char *text = NULL;
	const struct ev_hdr *h;
	struct recording r;

	trace__start(t);
	assert_true(asprintf(&text, "%s%s", code, events) > 0);
	assert_int_equal(recording__open_fd(&r, recfile__from_string(text)), 0);
	while (recording__next(&r, &h) == 1)
		assert_int_equal(model__foretell(t->m, h), 0);
	assert_int_equal(recording__rewind(&r), 0);
	while (recording__next(&r, &h) == 1)
		trace__put(t, h);
	trace__end(t);
	recording__close(&r);
	free(text);
}

static const char samples[] =
	"1ms 4242 2 stack chain=3 reason=sample\n1ms 4242 2 sample ip=0x7f0000000310 kernel=1\n"
	"2ms 4242 2 stack chain=3 reason=sample\n2ms 4242 2 sample ip=0x7f0000000310 kernel=0\n"
	"3ms 4242 2 stack chain=4 reason=sample\n3ms 4242 2 sample ip=0x55003000 kernel=0\n"
	"4ms 4243 3 stack chain=2 reason=sample\n4ms 4243 3 sample ip=0x55002208 kernel=0\n"
	"5ms 4243 3 sample ip=0x55002208 kernel=0\n"; /* without a chain: no part of a flame graph */

static void test_a_sample_has_its_thread_cpu_mode_and_chain(void **state)
{
	struct trace t;

	need_tp();
	play(&t, samples);
	expect_clean(&t);
	expect(&t,
		"select s.ts / 1000000 as ms, tid, cpu, cpu_mode, depth, f.name from perf_sample s join thread using "
		"(utid) "
		"join stack_profile_callsite c on s.callsite_id = c.id join stack_profile_frame f on c.frame_id = f.id "
		"order by s.ts",
		"1,4242,2,kernel,3,read\n2,4242,2,user,3,read\n3,4242,2,user,1,hitches+0x3000\n4,4243,3,user,2,load\n");
	trace__close(&t);
}

static void test_a_chain_leads_from_the_outermost_function_with_inlined_ones_on_the_way(void **state)
{
	struct trace t;

	need_tp();
	play(&t, samples);
	expect(&t,
		"select c.depth, f.name, p.depth from stack_profile_callsite c left join stack_profile_callsite p on "
		"c.parent_id = p.id join stack_profile_frame f on c.frame_id = f.id where f.name <> 'hitches+0x3000' "
		"group by c.depth, f.name order by c.depth",
		"0,main,[NULL]\n1,Level::update,0\n2,load,1\n3,read,2\n");
	trace__close(&t);
}

static void test_frames_have_file_and_line(void **state)
{
	struct trace t;

	need_tp();
	play(&t, samples);
	expect(&t,
		"select distinct f.name, s.name, source_file, line_number from stack_profile_frame f join "
		"stack_profile_symbol s using (symbol_set_id) order by line_number",
		"main,main,/src/main.cpp,12\nload,load,/src/file.h,33\nLevel::update,Level::update,/src/"
		"level.cpp,70\n");
	expect(&t, "select distinct name from stack_profile_frame where symbol_set_id is null order by name",
		"hitches+0x3000\nread\n");
	trace__close(&t);
}

/* so that traceconv and others can look the names up themselves */
static void test_frames_have_their_address_in_the_file_and_its_build_id(void **state)
{
	struct trace t;

	need_tp();
	play(&t, samples);
	expect(&t,
		"select distinct f.name, printf('%x', rel_pc), m.name, build_id from stack_profile_frame f join "
		"stack_profile_mapping m on f.mapping = m.id where f.name in ('main', 'load', 'read') order by f.name",
		"load,402208,/opt/game/hitches,00112233445566778899aabbccddeeff01234567\n"
		"main,401104,/opt/game/hitches,00112233445566778899aabbccddeeff01234567\n"
		"read,310,/lib/libc.so.6,\n");
	trace__close(&t);
}

/* The very table that the UI's flame graph of CPU samples is drawn from. */
static void test_the_flame_graph_counts_each_function_with_all_that_it_called(void **state)
{
	struct trace t;

	need_tp();
	play(&t, samples);
	expect(&t,
		"include perfetto module linux.perf.samples; select name, source_file, line_number, sum(self_count), "
		"sum(cumulative_count) from linux_perf_samples_summary_tree group by name order by 5 desc, name",
		"main,/src/main.cpp,12,0,4\nLevel::update,/src/level.cpp,70,0,3\nload,/src/file.h,33,1,3\n"
		"read,[NULL],[NULL],2,2\nhitches+0x3000,[NULL],[NULL],1,1\n");
	trace__close(&t);
}

static void test_a_wait_and_its_slice_have_the_chain_of_the_call(void **state)
{
	struct trace t;

	need_tp();
	play(&t, "9ms 4242 2 stack chain=3 reason=wait\n"
		 "9ms 4242 2 file_read dur=2ms offset=0 ret=4096 dev=8:1 ino=9 fd=3 sys=read\n");
	expect_clean(&t);
	expect(&t,
		"select s.name, s.dur / 1000000, f.name from slice s join __intrinsic_track_event_callstacks e on "
		"e.slice_id = s.id join stack_profile_callsite c on e.callsite_id = c.id join stack_profile_frame f on "
		"c.frame_id = f.id",
		"file_read,2,read\n");
	expect(&t, "select count(*) from perf_sample", "0\n");
	trace__close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_sample_has_its_thread_cpu_mode_and_chain),
		cmocka_unit_test(test_a_chain_leads_from_the_outermost_function_with_inlined_ones_on_the_way),
		cmocka_unit_test(test_frames_have_file_and_line),
		cmocka_unit_test(test_frames_have_their_address_in_the_file_and_its_build_id),
		cmocka_unit_test(test_the_flame_graph_counts_each_function_with_all_that_it_called),
		cmocka_unit_test(test_a_wait_and_its_slice_have_the_chain_of_the_call),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

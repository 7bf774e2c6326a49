// SPDX-License-Identifier: GPL-2.0-only
/* The kernel side, without a kernel: no package archive has a 5.15 to boot, so what it asks for is held against
 * what 5.15 had. What that kernel's verifier thinks of the code is not tested by this. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <bpf/libbpf.h>
#include "capture_internal.h" /* the skeleton, and the types in it */

/* include/uapi/linux/bpf.h of v5.15 */
#define LAST_HELPER   175 /* BPF_FUNC_task_pt_regs; the next, get_branch_snapshot, came with 5.16 */
#define LAST_MAP_TYPE 29  /* BPF_MAP_TYPE_TASK_STORAGE; the next, BLOOM_FILTER, came with 5.16 */
#define MAX_INSNS     1000000

static struct redframe_bpf *skel;

static int open_skeleton(void **state)
{
	skel = redframe_bpf__open();
	return skel ? 0 : -1;
}

static int close_skeleton(void **state)
{
	redframe_bpf__destroy(skel);
	return 0;
}

static void check_call(const char *program, const struct bpf_insn *insn)
{
	if (insn->src_reg == BPF_PSEUDO_CALL)
		return; /* a function of its own */
	if (insn->src_reg)
		fail_msg("%s calls a function of the kernel (kfunc): v5.18 for tracing programs", program);
	if (insn->imm <= 0 || insn->imm > LAST_HELPER)
		fail_msg("%s calls helper %d, which came after 5.15", program, insn->imm);
}

static void test_every_program_calls_only_helpers_that_linux_5_15_has(void **state)
{
	struct bpf_program *p;
	int programs = 0, calls = 0;

	bpf_object__for_each_program(p, skel->obj)
	{
		const struct bpf_insn *insns = bpf_program__insns(p);
		size_t n = bpf_program__insn_cnt(p);

		for (size_t i = 0; i < n; i++) {
			if (insns[i].code != (BPF_JMP | BPF_CALL))
				continue;
			check_call(bpf_program__name(p), &insns[i]);
			calls++;
		}
		assert_in_range(n, 1, MAX_INSNS);
		programs++;
	}
	assert_true(programs > 20 && calls > programs);
}

static void test_every_program_is_of_a_type_that_linux_5_15_has(void **state)
{
	struct bpf_program *p;

	bpf_object__for_each_program(p, skel->obj)
	{
		enum bpf_prog_type type = bpf_program__type(p);
		enum bpf_attach_type attach = bpf_program__expected_attach_type(p);

		if (type == BPF_PROG_TYPE_TRACING && attach == BPF_TRACE_RAW_TP)
			continue;
		if (type != BPF_PROG_TYPE_KPROBE && type != BPF_PROG_TYPE_PERF_EVENT &&
			type != BPF_PROG_TYPE_TRACEPOINT && type != BPF_PROG_TYPE_RAW_TRACEPOINT)
			fail_msg("%s is a program of type %d, attached as %d", bpf_program__name(p), type, attach);
	}
}

static void test_every_map_is_of_a_type_that_linux_5_15_has(void **state)
{
	struct bpf_map *m;
	int n = 0;

	bpf_object__for_each_map(m, skel->obj)
	{
		if (bpf_map__type(m) > LAST_MAP_TYPE)
			fail_msg("%s is a map of type %d, which came after 5.15", bpf_map__name(m), bpf_map__type(m));
		n++;
	}
	assert_true(n > 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_program_calls_only_helpers_that_linux_5_15_has),
		cmocka_unit_test(test_every_program_is_of_a_type_that_linux_5_15_has),
		cmocka_unit_test(test_every_map_is_of_a_type_that_linux_5_15_has),
	};

	return cmocka_run_group_tests(tests, open_skeleton, close_skeleton);
}

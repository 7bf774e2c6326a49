// SPDX-License-Identifier: GPL-2.0-only
/* Page faults: each touch of a page that is not there is one record with its address, kind and time. */
#include "live.h"

static bool in_region(const struct live *l, u64 addr)
{
	for (size_t i = 0; i < live__rows(l, "region"); i++)
		if (addr >= (u64)live__num(l, "region", i, 0) && addr < (u64)live__num(l, "region", i, 1))
			return true;
	return false;
}

static bool touched(const struct live *l, u64 addr)
{
	for (size_t i = 0; i < live__rows(l, "fault"); i++)
		if ((u64)live__num(l, "fault", i, 0) == addr)
			return true;
	return false;
}

static u64 flags_of(const char *word)
{
	static const struct {
		const char *word;
		u64 flags;
	} words[] = {
		{"write", FAULT_WRITE},
		{"read", 0},
		{"cow", FAULT_WRITE | FAULT_PRESENT},
		{"kernel", FAULT_WRITE | FAULT_KERNEL},
		{"major", FAULT_MAJOR},
		{"exec", FAULT_EXEC},
		{"huge", FAULT_WRITE | FAULT_HUGE},
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(words[i].word, word))
			return words[i].flags;
	fail_msg("no such fault: %s", word);
	return 0;
}

static void same_fault(const struct live *l, size_t i, const struct ev_fault *f)
{
	u64 addr = (u64)live__num(l, "fault", i, 0), begin = (u64)live__num(l, "fault", i, 2),
	    end = (u64)live__num(l, "fault", i, 3);
	char word[16];

	live__word(l, "fault", i, 1, word, sizeof(word));
	if (f->addr != addr)
		fail_msg("fault %zu (%s) at %#llx was recorded at %#llx", i, word, (unsigned long long)addr,
			(unsigned long long)f->addr);
	if (f->flags != flags_of(word) && !(!strcmp(word, "exec") && (f->flags & ~FAULT_MAJOR) == FAULT_EXEC))
		fail_msg("fault %zu: %s was recorded with flags %#llx", i, word, (unsigned long long)f->flags);
	if (f->hdr.ts > end || f->hdr.ts - f->dur < begin || !f->dur)
		fail_msg("fault %zu (%s) lasted from %llu to %llu, recorded from %llu to %llu", i, word,
			(unsigned long long)begin, (unsigned long long)end, (unsigned long long)(f->hdr.ts - f->dur),
			(unsigned long long)f->hdr.ts);
}

/* What lies between the touch and the fault is a few instructions and the entry to the kernel: of all the time that the
 * target measured, the recorded durations are the larger part. */
static void durations_cover(const struct live *l, u64 recorded)
{
	u64 measured = 0;

	for (size_t i = 0; i < live__rows(l, "fault"); i++)
		measured += (u64)(live__num(l, "fault", i, 3) - live__num(l, "fault", i, 2));
	assert_true(recorded <= measured);
	assert_true(recorded >= measured / 5);
}

/* NULL: a region that asks for huge pages gets them */
static const char *no_huge_pages(void)
{
	FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
	char word[64] = "";

	if (!f)
		return "this kernel has no transparent huge pages: their faults";
	if (!fgets(word, sizeof(word), f))
		word[0] = 0;
	fclose(f);
	return strstr(word, "[never]") ? "transparent huge pages are off: their faults" : NULL;
}

static void test_every_fault_is_recorded_once_with_address_kind_and_time(void **state)
{
	const struct live_event *e;
	size_t i = 0, major = 0;
	struct live l;
	u64 recorded = 0;
	const char *not_tested = no_huge_pages();
	size_t huge = not_tested ? 0 : 10;

	live__init(&l);
	live__start(&l, "fault", l.dir, huge ? "10" : "0", NULL);
	live__record(&l, "--frame", "none", NULL);
	live__run(&l);
	live__each(&l, at, e, EV_FAULT)
	{
		const struct ev_fault *f = (const void *)e->hdr;

		if (!in_region(&l, f->addr) && !touched(&l, f->addr))
			continue;
		assert_int_equal(f->hdr.tid, live__tid(&l, model__game(l.model)));
		if (i >= live__rows(&l, "fault"))
			fail_msg("more faults than the target caused; the next at %#llx", (unsigned long long)f->addr);
		same_fault(&l, i++, f);
		recorded += f->dur;
		major += f->flags & FAULT_MAJOR;
	}
	assert_int_equal(i, live__rows(&l, "fault"));
	durations_cover(&l, recorded);
	assert_int_equal(i, 500 + 100 + 100 + 20 + 20 + 10 + huge);
	if (not_tested)
		fprintf(stderr, "*** NOT TESTED: %s\n", not_tested);
	if (!major)
		fprintf(stderr, "*** NOT TESTED: the page cache kept the file; major faults\n");
	live__free(&l);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_every_fault_is_recorded_once_with_address_kind_and_time),
};
LIVE_MAIN(tests)

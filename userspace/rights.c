/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rights.h"

/* what the kernel's headers may be too old to know; v5.8, v5.9 */
#define RIGHT_PERFMON            38
#define RIGHT_BPF                39
#define RIGHT_CHECKPOINT_RESTORE 40
#define RIGHT_LAST               63

const struct right rights_to_record[] = {
	{RIGHT_BPF, "CAP_BPF", "to load BPF programs", true},
	{RIGHT_PERFMON, "CAP_PERFMON", "to attach them", true},
	{CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "for games of other users", false},
	{CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH", "for games whose files others may not read", false},
	{RIGHT_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE", "for game files that were deleted or replaced", false},
	{},
};

/* root's own, to write where the invoking user may, and to hand the file over; nothing for anybody else */
#define TO_WRITE_FILES (1ULL << CAP_CHOWN | 1ULL << CAP_DAC_OVERRIDE)

struct sets {
	u64 effective, permitted;
};

static int get(struct sets *s)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2] = {};

	if (syscall(SYS_capget, &h, d))
		return -errno;
	s->effective = d[0].effective | (u64)d[1].effective << 32;
	s->permitted = d[0].permitted | (u64)d[1].permitted << 32;
	return 0;
}

static int set_effective(u64 permitted, u64 effective)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2] = {
		{.effective = (u32)effective, .permitted = (u32)permitted},
		{.effective = (u32)(effective >> 32), .permitted = (u32)(permitted >> 32)},
	};

	return syscall(SYS_capset, &h, d) ? -errno : 0;
}

static bool admin_is_more(u64 have)
{
	return have >> CAP_SYS_ADMIN & 1;
}

u64 rights__have(void)
{
	struct sets s = {};

	if (get(&s))
		return 0;
	if (admin_is_more(s.effective))
		s.effective |= 1ULL << RIGHT_BPF | 1ULL << RIGHT_PERFMON;
	return s.effective;
}

static u64 worth_keeping(void)
{
	u64 keep = geteuid() ? 0 : TO_WRITE_FILES;

	for (const struct right *r = rights_to_record; r->name; r++)
		keep |= 1ULL << r->bit;
	return keep;
}

/* What an exec could bring back. It takes CAP_SETPCAP, which most do not have: then no_new_privs alone stands guard. */
static void shrink_bounds(u64 keep)
{
	for (int bit = 0; bit <= RIGHT_LAST; bit++)
		if (!(keep >> bit & 1) && prctl(PR_CAPBSET_READ, bit, 0, 0, 0) == 1)
			prctl(PR_CAPBSET_DROP, bit, 0, 0, 0);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

/* Debian's and Ubuntu's kernels know a perf_event_paranoid of 3 and 4, at which CAP_PERFMON does not open perf events.
 */
static bool perf_needs_admin(const struct sets *s)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = PERF_COUNT_SW_DUMMY};
	const u64 admin = 1ULL << CAP_SYS_ADMIN;
	int fd;

	if (!(s->effective & admin) || set_effective(s->permitted, s->effective & ~admin))
		return false;
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	set_effective(s->permitted, s->effective);
	if (fd < 0)
		return errno == EACCES || errno == EPERM;
	close(fd);
	return false;
}

int rights__drop(void)
{
	u64 keep = worth_keeping();
	struct sets s = {};
	int err = get(&s);

	if (err)
		return err;
	/* who holds CAP_SYS_ADMIN alone in place of the two that it was split into still needs it */
	if (admin_is_more(s.permitted) && (keep & ~s.permitted & (1ULL << RIGHT_BPF | 1ULL << RIGHT_PERFMON)))
		keep |= 1ULL << CAP_SYS_ADMIN;
	if (perf_needs_admin(&s)) /* probes that come later are perf events where there is no uprobe_multi */
		keep |= 1ULL << CAP_SYS_ADMIN;
	shrink_bounds(keep);
	err = set_effective(s.permitted & keep, s.permitted & keep);
	if (!err && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		err = -errno;
	return err;
}

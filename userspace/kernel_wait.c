/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdio.h>
#include <string.h>

#include "kernel_wait.h"
#include "strings.h"

#define CALLS_TOLD 4

/* By the innermost function of which something is known. Names as of Linux 5.15 to 6.18. */
static const struct {
	const char *begins;
	enum cause cause;
} functions[] = {
	{"dma_fence_", CAUSE_GPU_WAIT},
	{"dma_resv_wait", CAUSE_GPU_WAIT},
	{"drm_", CAUSE_GPU_WAIT},
	{"ttm_", CAUSE_GPU_WAIT},
	{"amdgpu_", CAUSE_GPU_WAIT},
	{"i915_", CAUSE_GPU_WAIT},
	{"xe_", CAUSE_GPU_WAIT},
	{"nouveau_", CAUSE_GPU_WAIT},
	{"ntsync_", CAUSE_THREAD_WAIT},
	{"try_to_free_", CAUSE_RECLAIM},
	{"mem_cgroup_handle_over_high", CAUSE_RECLAIM},
	{"throttle_direct_reclaim", CAUSE_RECLAIM},
	{"handle_userfault", CAUSE_PAGE_FAULT},
	{"handle_mm_fault", CAUSE_PAGE_FAULT},
	{"do_user_addr_fault", CAUSE_PAGE_FAULT},
	{"do_page_fault", CAUSE_PAGE_FAULT},
	/* stopped from outside: by a signal, a debugger, the freezer */
	{"do_signal_stop", CAUSE_UNEXPLAINED},
	{"ptrace_stop", CAUSE_UNEXPLAINED},
	{"__refrigerator", CAUSE_UNEXPLAINED},
	{"do_freezer_trap", CAUSE_UNEXPLAINED},
};

const char *kernel_wait__function(const struct model *m, u32 *id)
{
	const struct call *c = model__call(m, *id);
	const struct symbol *s = c && c->flags & CALL_KERNEL ? model__symbol(m, c->addr) : NULL;

	*id = c ? c->caller : 0;
	return s ? s->name : c ? "" : NULL;
}

enum cause kernel_wait__cause(const struct model *m, u32 chain)
{
	const char *name;

	while ((name = kernel_wait__function(m, &chain)))
		for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
			if (!strncmp(name, functions[i].begins, strlen(functions[i].begins)))
				return functions[i].cause;
	return CAUSE_NONE;
}

void kernel_wait__text(const struct model *m, u32 chain, char *buf, size_t size)
{
	char raw[CALLS_TOLD * 96] = "";
	const char *name;
	int n = 0;

	while (n < CALLS_TOLD && (name = kernel_wait__function(m, &chain))) {
		size_t len = strlen(raw);

		if (*name)
			snprintf(raw + len, sizeof(raw) - len, "%s%.80s", n++ ? " ← " : "", name);
	}
	utf8__sanitize(buf, size, raw, strlen(raw));
}

// SPDX-License-Identifier: GPL-2.0-only
/* Definitions that the event classes share. */
#include "probe.bpf.h"

char LICENSE[] SEC("license") = "GPL";

const volatile struct bpf_options opt = {};
const volatile struct bpf_syscall syscalls[SYSCALL_NRS] = {};
__u64 lost_records[CLASS_COUNT][LOST_CPUS] = {};

struct cpu_state cpu_states[LOST_CPUS] = {};
struct alloc_calls alloc_calls[LOST_CPUS] = {};
struct other_faults other_faults[LOST_CPUS] = {};
struct calls calls[LOST_CPUS] = {};

struct chunks chunks SEC(".maps");
struct threads threads SEC(".maps");
struct more_threads more_threads SEC(".maps");
struct probes probes SEC(".maps");
struct games games SEC(".maps");
struct kernel_stacks kernel_stacks SEC(".maps");
struct kernel_stack_count kernel_stack_counts[LOST_CPUS] = {};
__u32 game_tgid = 0, game_only = 0;
__u32 thin = 0;
__u64 fd_changes = 0, fd_changing = 0;
__u64 calls_since = 0;
__u64 heap_bins = 0, heap_looked = 0;

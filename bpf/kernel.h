/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The kernel's types, as far as redframe reads them: libbpf relocates each field to where the running kernel has it
 * (CO-RE), so neither this machine's BTF nor a generated vmlinux.h is needed to build. A type with a ___suffix is the
 * same type of an older kernel.
 */
#ifndef REDFRAME_KERNEL_H
#define REDFRAME_KERNEL_H

typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_STACK_TRACE = 7,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum { BPF_ANY = 0, BPF_NOEXIST = 1 };
enum { BPF_F_NO_PREALLOC = 1, BPF_F_MMAPABLE = 1024 };
enum { BPF_RB_NO_WAKEUP = 1 };
enum { BPF_LOCAL_STORAGE_GET_F_CREATE = 1 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct super_block {
	u32 s_dev;
};

struct inode {
	u16 i_mode;
	unsigned long i_ino;
	u32 i_generation;
	struct super_block *i_sb;
};

struct qstr {
	u32 len;
	const unsigned char *name;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	struct path f_path;
	struct inode *f_inode;
	s64 f_pos;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct task_io_accounting {
	u64 read_bytes;
};

struct percpu_counter {
	s64 count; /* what its CPUs have not yet added is missing: less than a batch each */
};

struct mm_struct {
	unsigned long brk, start_stack;
	struct percpu_counter rss_stat[4]; /* MM_FILEPAGES, ANONPAGES, SWAPENTS, SHMEMPAGES */
};

/* v6.2 f1a7941243c1: rss_stat became per-CPU counters */
struct mm_rss_stat {
	long count[4]; /* atomic_long_t */
};
struct mm_struct___before_6_2 {
	struct mm_rss_stat rss_stat;
};

struct thread_info {
	u32 cpu;
};

struct upid {
	int nr;
};

struct signal_struct {
	int nr_threads;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

#if defined(__TARGET_ARCH_arm64)
struct thread_struct {
	struct {
		unsigned long tp_value;
	} uw;
};
#define THREAD_POINTER(task) ((task)->thread.uw.tp_value)
#else
struct thread_struct {
	unsigned long fsbase;
};
#define THREAD_POINTER(task) ((task)->thread.fsbase)
#endif

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	int exit_state;
	int exit_code;
	int pid;
	int tgid;
	int prio;
	char comm[16];
	struct mm_struct *mm;
	struct files_struct *files;
	struct task_io_accounting ioac;
	struct pid *thread_pid;
	struct signal_struct *signal;
	struct thread_struct thread;
};

/* v5.14 2f064a59a1: task->state became __state */
struct task_struct___before_5_14 {
	long state;
};

/* v5.16 bcf9033e54: task->cpu moved into thread_info on x86 */
struct task_struct___before_5_16 {
	unsigned int cpu;
};

struct kiocb {
	s64 ki_pos;
};

struct io_rw {
	struct kiocb kiocb;
	u64 addr;
	u32 len;
};

struct io_cqe {
	u64 user_data;
	s32 res;
	int fd; /* until the request completes */
};

struct io_uring_cqe {
	u64 user_data;
	s32 res;
};

struct io_kiocb {
	struct file *file;
	u8 opcode;
	u64 flags;
	struct io_cqe cqe;
};

/* v5.19 cef216fc32: user_data moved into cqe */
struct io_kiocb___before_5_19 {
	u64 user_data;
};

struct linux_binprm;
struct irqaction;
struct io_ring_ctx;

#pragma clang attribute pop

/* The saved registers are an ABI, not something to relocate. */
#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};
#define REGS_IP(r)   ((r)->ip)
#define REGS_SP(r)   ((r)->sp)
#define REGS_ARG0(r) ((r)->di)
#define REGS_ARG1(r) ((r)->si)
#define REGS_ARG2(r) ((r)->dx)
#define REGS_ARG3(r) ((r)->r10)
#define REGS_ARG4(r) ((r)->r8)
#define REGS_ARG5(r) ((r)->r9)
/* The system call in progress, -1 in an exception or interrupt: entry code sets orig_ax so */
#define REGS_NR(r) ((long)(r)->orig_ax)
/* A probe's trap: an instruction of one byte, which the saved address lies behind */
#define TRAP_BYTES 1
#define TRAP_INSN  0xcc
/* of a function call: where the first two arguments lie */
#define REGS_FIRST_ARG  di
#define REGS_SECOND_ARG si
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
	unsigned long regs[31], sp, pc, pstate, orig_x0;
	s32 syscallno;
	u32 unused2;
};
#define REGS_IP(r)      ((r)->pc)
#define REGS_SP(r)      ((r)->sp)
#define REGS_ARG0(r)    ((r)->orig_x0)
#define REGS_ARG1(r)    ((r)->regs[1])
#define REGS_ARG2(r)    ((r)->regs[2])
#define REGS_ARG3(r)    ((r)->regs[3])
#define REGS_ARG4(r)    ((r)->regs[4])
#define REGS_ARG5(r)    ((r)->regs[5])
#define REGS_NR(r)      ((long)(r)->syscallno)
#define REGS_FIRST_ARG  regs[0]
#define REGS_SECOND_ARG regs[1]
#else
#error "redframe knows x86-64 and arm64"
#endif

struct bpf_perf_event_data {
	struct pt_regs regs;
	u64 sample_period;
	u64 addr;
};

#endif

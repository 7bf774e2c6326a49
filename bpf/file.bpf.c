// SPDX-License-Identifier: GPL-2.0-only
/* Calls on files: what was read or written, how much of it came from the device, how long it took. */
#include "syscalls.bpf.h"

struct file *file__of_fd(struct task_struct *task, u32 fd)
{
	struct fdtable *fdt = task->files->fdt;
	struct file *file = NULL;

	if (fd >= fdt->max_fds)
		return NULL;
	bpf_probe_read_kernel(&file, sizeof(file), fdt->fd + fd);
	return file;
}

/* false: the pointer led nowhere (the file was closed meanwhile) */
bool file__identify(struct file *file, struct file_id *id)
{
	struct inode *inode = NULL;
	struct super_block *sb = NULL;

	if (bpf_core_read(&inode, sizeof(inode), &file->f_inode) || !inode)
		return false;
	bpf_core_read(&id->ino, sizeof(id->ino), &inode->i_ino);
	bpf_core_read(&sb, sizeof(sb), &inode->i_sb);
	bpf_core_read(&id->dev, sizeof(id->dev), &sb->s_dev);
	id->generation = BPF_CORE_READ(inode, i_generation);
	id->mode = BPF_CORE_READ(inode, i_mode);
	return true;
}

/* The file that fd means, its path told; false where it is none. A game reads one file many times in a row: then which
 * it is is known, as long as no descriptor changed. A process that is not recorded but shares the game's descriptors
 * could close one unseen. */
static __always_inline bool identify_fd(struct call *c, s32 fd, struct file_id *id)
{
	u64 changes = fd_changes + 1;
	struct thread_state *st = c->st;
	struct file *file;
	bool sure = !fd_changing;

	if (sure && fd == st->known_fd && st->fd_changes == changes) {
		*id = st->known;
		return true;
	}
	file = file__of_fd(c->task, fd);
	if (!file || !file__identify(file, id))
		return false;
	path__tell(file, id, st, c->task->pid);
	if (sure && st->seen_ino == id->ino && st->seen_dev == id->dev) {
		st->known = *id;
		st->known_fd = fd;
		st->fd_changes = changes;
	}
	return true;
}

/* What is about to be closed: afterwards the descriptor is gone. */
void file__close(struct task_struct *task, struct thread_state *st, u32 fd)
{
	struct file *file = file__of_fd(task, fd);
	struct file_id id = {};

	if (file)
		file__identify(file, &id);
	st->close_ino = id.ino;
	st->close_dev = id.dev;
	st->close_mode = id.mode;
}

/* Where the call began to read: from the position after it for the calls that use the file's own. */
static __always_inline u64 offset_of(struct call *c, struct pt_regs *regs, u8 handler, s32 fd, u32 mode)
{
	u64 pos = 0, at = 0;
	struct file *file;

	if ((mode & S_IFMT) != S_IFREG)
		return FILE_NO_OFFSET;
	if (handler == HANDLE_PREAD || handler == HANDLE_PWRITE)
		return REGS_ARG3(regs);
	if (handler == HANDLE_PREADV2 || handler == HANDLE_PWRITEV2) {
		if ((s64)REGS_ARG3(regs) != -1)
			return REGS_ARG3(regs);
	} else if (handler == HANDLE_SENDFILE || handler == HANDLE_COPY_RANGE) {
		at = handler == HANDLE_SENDFILE ? REGS_ARG2(regs) : REGS_ARG1(regs);
		if (at && bpf_probe_read_user(&pos, sizeof(pos), (void *)at))
			return FILE_NO_OFFSET;
	}
	if (!at) {
		file = file__of_fd(c->task, fd);
		bpf_core_read(&pos, sizeof(pos), &file->f_pos);
	}
	return c->ret > 0 ? pos - c->ret : pos;
}

static __always_inline void tell_stack(struct call *c, u64 cold)
{
	stack__tell(c->ts, cold || c->dur >= opt.stack_wait_ns, cold ? STACK_COLD : STACK_WAIT);
}

static __always_inline int data(struct call *c, struct pt_regs *regs, u8 handler)
{
	bool read = handler >= HANDLE_READ && handler <= HANDLE_COPY_RANGE;
	s32 fd = handler == HANDLE_SENDFILE ? REGS_ARG1(regs) : REGS_ARG0(regs);
	struct file_id id = {};
	struct ev_file_read *e;
	u64 cold;

	_Static_assert(sizeof(struct ev_file_read) == sizeof(struct ev_file_write), "one layout for both");
	identify_fd(c, fd, &id);
	cold = c->task->ioac.read_bytes - c->st->call_cold;
	tell_stack(c, cold);
	e = reserve(file_read);
	if (!e)
		return lost(CLASS_FILE);
	*e = (struct ev_file_read){
		HDR_SIZED(read ? EV_FILE_READ : EV_FILE_WRITE, c->ts, c->task->pid, sizeof(*e)),
		.dur = c->dur,
		.offset = offset_of(c, regs, handler, fd, id.mode),
		.cold = cold,
		.ino = id.ino,
		.ret = c->ret,
		.dev = id.dev,
		.fd = fd,
		.mode = id.mode,
		.sys = c->sys,
	};
	submit(e);
	return 0;
}

/* The path as the game gave it: read at the exit, when the kernel itself has touched the page. */
static __always_inline bool tell_path_arg(struct call *c, u64 user)
{
	struct ev_path_arg *e = ring_reserve(sizeof(*e) + TEXT_ROOM);
	long n;

	if (!e) {
		lost(CLASS_FILE);
		return true;
	}
	n = bpf_probe_read_user_str(e->path, TEXT_MAX, (void *)user);
	if (n <= 1) { /* empty: the call meant its descriptor, or the string cannot be read */
		discard_bytes(e, sizeof(*e) + TEXT_ROOM);
		return false;
	}
	e->hdr = (struct ev_hdr){
		.ts = c->ts,
		.tid = c->task->pid,
		.cpu = bpf_get_smp_processor_id(),
		.kind = EV_PATH_ARG,
		.words = (sizeof(*e) + n + 7) / 8,
	};
	end_text(e->path, n);
	submit_bytes(e, sizeof(*e) + TEXT_ROOM);
	return true;
}

static __always_inline int meta(struct call *c, struct pt_regs *regs, u8 handler)
{
	struct file_id id = {};
	struct ev_file_meta *e;
	s32 fd = -1;
	u64 cold;

	if (handler == HANDLE_CLOSE) {
		fd = REGS_ARG0(regs);
		id = (struct file_id){.ino = c->st->close_ino, .dev = c->st->close_dev, .mode = c->st->close_mode};
	} else if (handler == HANDLE_FSTAT) {
		fd = REGS_ARG0(regs);
	} else if ((handler == HANDLE_OPEN || handler == HANDLE_OPENAT) && c->ret >= 0) {
		fd = c->ret;
	} else if (!tell_path_arg(
			   c, handler == HANDLE_OPEN || handler == HANDLE_STAT ? REGS_ARG0(regs) : REGS_ARG1(regs))) {
		fd = REGS_ARG0(regs);
	}
	if (fd >= 0 && handler != HANDLE_CLOSE)
		identify_fd(c, fd, &id);
	cold = c->task->ioac.read_bytes - c->st->call_cold;
	tell_stack(c, cold);
	e = reserve(file_meta);
	if (!e)
		return lost(CLASS_FILE);
	*e = (struct ev_file_meta){
		HDR(FILE_META, file_meta, c->ts, c->task->pid),
		.dur = c->dur,
		.cold = cold,
		.ino = id.ino,
		.ret = c->ret,
		.dev = id.dev,
		.fd = fd,
		.mode = id.mode,
		.sys = c->sys,
	};
	submit(e);
	return 0;
}

static __always_inline int sync(struct call *c, struct pt_regs *regs)
{
	struct file_id id = {};
	struct ev_file_sync *e;

	identify_fd(c, REGS_ARG0(regs), &id);
	tell_stack(c, 0);
	e = reserve(file_sync);
	if (!e)
		return lost(CLASS_FILE);
	*e = (struct ev_file_sync){
		HDR(FILE_SYNC, file_sync, c->ts, c->task->pid),
		.dur = c->dur,
		.ino = id.ino,
		.ret = c->ret,
		.dev = id.dev,
		.fd = REGS_ARG0(regs),
		.mode = id.mode,
		.sys = c->sys,
	};
	submit(e);
	return 0;
}

int file__exit(struct call *c, struct pt_regs *regs, u8 handler)
{
	if (thin & THIN_FILE && c->dur < opt.syscall_min_ns)
		return 0;
	if (handler <= HANDLE_PWRITEV2)
		return data(c, regs, handler);
	if (handler == HANDLE_SYNC)
		return sync(c, regs);
	return meta(c, regs, handler);
}

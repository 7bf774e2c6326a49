// SPDX-License-Identifier: GPL-2.0-only
/* io_uring: requests are submitted by the game's threads and complete anywhere. */
#include "redframe.bpf.h"

struct request {
	u64 ts;
	u64 user_data;
	u64 offset;
	u64 ino;
	u32 dev;
	u32 tid;
	u32 op;
	u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, u64); /* struct io_kiocb * */
	__type(value, struct request);
} requests SEC(".maps");

static __always_inline u64 user_data_of(struct io_kiocb *req)
{
	struct io_kiocb___before_5_19 *old = (void *)req;

	if (bpf_core_field_exists(req->cqe))
		return BPF_CORE_READ(req, cqe.user_data);
	return BPF_CORE_READ(old, user_data);
}

/* include/uapi/linux/io_uring.h: the operations whose command is a struct io_rw */
static __always_inline bool is_rw(u8 op)
{
	return op == 1 || op == 2 || op == 4 || op == 5 || op == 22 || op == 23;
}

#define OP_CLOSE 19 /* there too: from then on a descriptor may mean another file */

#define REQ_F_FIXED_FILE 1 /* include/linux/io_uring_types.h: fd is an index into the ring's own files */

/* v5.19 6bf9c47a3989: a request has its file only when it is issued, after this tracepoint. NULL for a file that the
 * ring has registered: io_uring_complete tells which. */
static __always_inline struct file *file_of(struct task_struct *task, struct io_kiocb *req)
{
	struct file *file = NULL;

	bpf_core_read(&file, sizeof(file), &req->file);
	if (file || !bpf_core_field_exists(req->cqe) || BPF_CORE_READ(req, flags) & REQ_F_FIXED_FILE)
		return file;
	return file__of_fd(task, BPF_CORE_READ(req, cqe.fd));
}

/* v6.4 2ad57931db64: until then io_uring_submit_sqe; userspace/capture.c attaches to the one that there is. Until v6.0
 * 48863ffd3e81 its arguments were (void *ctx, void *req, ...): no types that could be followed without reading. */
SEC("?tp_btf/io_uring_submit_req")
int file__uring_submit(u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 key = ctx[0], bytes = 0;
	struct io_kiocb *req;
	struct io_rw *rw; /* the command lies at the start of the request */
	struct request r = {};
	struct file_id id = {};
	struct ev_uring_submit *e;
	struct file *file;

	if (!traced(task))
		return 0;
	barrier_var(key); /* two loads, not one at a computed place: the verifier takes no such */
	if (opt.uring_submit_has_ctx)
		key = ctx[1];
	req = (void *)key;
	rw = (void *)key;
	r.ts = now();
	r.tid = task->pid;
	r.op = BPF_CORE_READ(req, opcode);
	r.user_data = user_data_of(req);
	r.offset = FILE_NO_OFFSET;
	if (is_rw(r.op)) {
		r.offset = BPF_CORE_READ(rw, kiocb.ki_pos);
		bytes = BPF_CORE_READ(rw, len);
	}
	file = file_of(task, req);
	if (file && file__identify(file, &id)) {
		path__tell(file, &id, NULL, task->pid);
		r.ino = id.ino;
		r.dev = id.dev;
	}
	bpf_map_update_elem(&requests, &key, &r, BPF_ANY);
	if (r.op == OP_CLOSE)
		__sync_fetch_and_add(&fd_changing, 1);
	e = reserve(uring_submit);
	if (!e)
		return lost(CLASS_FILE);
	*e = (struct ev_uring_submit){
		HDR(URING_SUBMIT, uring_submit, r.ts, r.tid),
		.req = key,
		.user_data = r.user_data,
		.offset = r.offset,
		.bytes = bytes,
		.ino = r.ino,
		.dev = r.dev,
		.op = r.op,
	};
	submit(e);
	return 0;
}

/* the file of a request whose submission did not know it */
static __always_inline void identify_late(struct io_kiocb *req, struct request *r)
{
	struct file_id id = {};
	struct file *file = NULL;

	bpf_core_read(&file, sizeof(file), &req->file);
	if (!file || !file__identify(file, &id))
		return;
	path__tell(file, &id, NULL, r->tid);
	r->ino = id.ino;
	r->dev = id.dev;
}

SEC("?tp_btf/io_uring_complete")
int file__uring_complete(u64 *ctx)
{
	u64 key = ctx[1];
	struct request *r = bpf_map_lookup_elem(&requests, &key);
	struct ev_uring_done *e;
	s64 ret;

	if (!r)
		return 0; /* not the game's, or submitted before we came */
	if (r->op == OP_CLOSE) {
		__sync_fetch_and_add(&fd_changes, 1);
		__sync_fetch_and_add(&fd_changing, -1);
	}
	if (!r->ino)
		identify_late((void *)key, r);
	if (opt.uring_complete_has_cqe)
		ret = ((struct io_uring_cqe *)ctx[2])->res;
	else
		ret = (s32)ctx[3];
	e = reserve(uring_done);
	if (!e) {
		lost(CLASS_FILE);
	} else {
		u64 ts = now();

		*e = (struct ev_uring_done){
			HDR(URING_DONE, uring_done, ts, r->tid),
			.dur = ts - r->ts,
			.req = key,
			.user_data = r->user_data,
			.offset = r->offset,
			.ino = r->ino,
			.ret = ret,
			.dev = r->dev,
			.op = r->op,
		};
		submit(e);
	}
	bpf_map_delete_elem(&requests, &key);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/* A file's path, told once: its names from the leaf up to the root of the mount tree. Joining them is userspace's. */
#include "redframe.bpf.h"

#define PATH_DEPTH 40
#define NAME_ROOM  256  /* NAME_MAX and its NUL */
#define PARTS_ROOM 1024 /* what a PATH record holds at most; a further NAME_ROOM is reserved for the last name */

struct file_key {
	u64 ino;
	u32 dev;
	u32 generation;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct file_key);
	__type(value, u8);
} told SEC(".maps");

/* Lies in the reserved record, behind the names: what is read back from there the verifier knows nothing of, so that
 * the steps look alike to it and are checked once instead of in every combination (2 ms instead of 400). */
struct walk {
	struct dentry *dentry;
	struct mount *mount;
	struct dentry *root; /* of the mount */
	u32 used;
	u32 more;
};
#define WALK_AT       (PARTS_ROOM + 2 * NAME_ROOM)
#define PATH_RESERVED (sizeof(struct ev_path) + WALK_AT + sizeof(struct walk))

/* n, and where it is used a bound that verifiers before v6.8 see as well: they lose the one that was checked on a copy
 * of n, and the compiler leaves out a second check. */
static __always_inline u64 at_most(u64 n, const u32 max)
{
	asm volatile("if %[n] <= %[max] goto +1\n%[n] = %[max]" : [n] "+r"(n) : [max] "i"(max));
	return n;
}

static __always_inline struct mount *mount_of(struct vfsmount *mnt)
{
	return (void *)mnt - bpf_core_field_offset(struct mount, mnt);
}

/* Up over a mount point: false at the top of the tree. */
static __always_inline bool cross(struct walk *w)
{
	struct mount *mount = w->mount, *parent = BPF_CORE_READ(mount, mnt_parent);

	if (parent == mount)
		return false;
	w->dentry = BPF_CORE_READ(mount, mnt_mountpoint);
	w->mount = parent;
	w->root = BPF_CORE_READ(parent, mnt.mnt_root);
	return true;
}

/* One step: the name of a directory entry into the record. false: done. */
static __always_inline bool step(struct walk *w, struct ev_path *e)
{
	struct dentry *dentry = w->dentry, *parent;
	const unsigned char *name;
	u64 at = w->used;
	long n;

	if (dentry == w->root)
		return cross(w);
	parent = BPF_CORE_READ(dentry, d_parent);
	if (at > PARTS_ROOM)
		return false;
	name = BPF_CORE_READ(dentry, d_name.name);
	at = at_most(at, PARTS_ROOM);
	n = bpf_probe_read_kernel_str(&e->parts[at], NAME_ROOM, name);
	if (n > 0)
		w->used = at + n;
	if (parent == dentry)
		return false; /* no mount: a pipe, a socket, an anonymous inode, an unlinked tree */
	w->dentry = parent;
	return true;
}

static __always_inline void start(struct walk *w, struct file *file)
{
	struct vfsmount *mnt = BPF_CORE_READ(file, f_path.mnt);

	w->dentry = BPF_CORE_READ(file, f_path.dentry);
	w->mount = mount_of(mnt);
	w->root = BPF_CORE_READ(mnt, mnt_root);
	w->used = 0;
	w->more = 1;
}

/* 0, or 1 where the ring was full: to be told another time */
__noinline int path__walk(u64 file, struct file_id *id, u32 tid)
{
	struct file_key key = {};
	struct ev_path *e;
	struct walk *w;
	u8 yes = 1;
	u32 used;

	if (!id)
		return 0;
	key = (struct file_key){.ino = id->ino, .dev = id->dev, .generation = id->generation};
	if (bpf_map_lookup_elem(&told, &key))
		return 0;
	e = ring_reserve(PATH_RESERVED);
	if (!e) {
		lost(CLASS_FILE);
		return 1;
	}
	w = (void *)e->parts + WALK_AT;
	start(w, (struct file *)file);
	for (int i = 0; i < PATH_DEPTH && w->more; i++)
		w->more = step(w, e);
	used = w->used;
	if (used > PARTS_ROOM + NAME_ROOM)
		used = PARTS_ROOM + NAME_ROOM;
	for (int i = 0; i < 8; i++)
		e->parts[used + i] = 0;
	*e = (struct ev_path){
		HDR_SIZED(EV_PATH, now(), tid, sizeof(*e) + used + 7),
		.ino = id->ino,
		.dev = id->dev,
		.generation = id->generation,
		.cut = w->more || used > PARTS_ROOM,
		.mode = id->mode,
	};
	submit_bytes(e, PATH_RESERVED);
	bpf_map_update_elem(&told, &key, &yes, BPF_ANY);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Where probes go in a running game: found through the files that it maps, held open by fd, so that a path that merely
 * looks the same is never touched.
 */
#ifndef REDFRAME_SITES_H
#define REDFRAME_SITES_H

#include "common.h"
#include "probe_desc.h"

struct maps;

struct site {
	struct probe_desc desc; /* desc.site is the index in the list */
	int file;               /* index into site_list.files */
	u64 offset;             /* file offset of the instruction */
	u64 semaphore;          /* file offset of the USDT semaphore (the kernel's ref_ctr_offset); 0: none */
	bool gone;              /* detached for good */
	bool stepped;           /* no instruction there that the kernel emulates: every hit is single-stepped */
	bool counted;           /* stepped: calls_per_sec is known */
	u64 calls_per_sec;
	char label[120]; /* "usdt:redframe:frame", "uprobe:libGLX.so.0:glXSwapBuffers+0x4"; valid UTF-8 */
};

struct site_file {
	int fd; /* of the inode that the game maps: attach through /proc/self/fd/N */
	u32 dev;
	u64 ino;
	bool deleted;   /* the path is gone, or means another file now */
	char path[512]; /* as the game sees it, for messages; valid UTF-8 */
};

struct site_list {
	struct site *sites;
	int n, cap;
	struct site_file *files;
	int n_files, cap_files;
	bool unsure; /* of the frame source: it has not been seen to fire, and another may turn out to be the right one
		      */
};

void sites__free(struct site_list *l); /* closes the files */

/* Each adds to the list and returns how many sites it added (0: nothing there), or -errno with `why` in words. */

/* SPEC of --frame: "auto", "none", "vulkan", "usdt:PROVIDER:NAME", "uprobe:LIB:SYMBOL", "uprobe:PATH+0xOFF". With auto
 * exactly one source is chosen, so that no frame counts twice; `source` says which, in the same words, or what was
 * looked for. SITES_AUTO_BUT and sources, one a line: one that fires, but none of these.
 */
#define SITES_AUTO_BUT "auto but\n"
#define FRAME_SPECS    "auto, none, vulkan, usdt:PROVIDER:NAME, uprobe:LIB:SYMBOL or uprobe:PATH+0xOFFSET"
int sites__frame(
	struct site_list *l, u32 pid, const char *spec, char *source, size_t source_size, char *why, size_t why_size);
int frame_spec__check(const char *spec); /* whether SPEC has one of these forms: 0 or -errno */
/* redframe:scene, redframe:lock_name, redframe:message of probes/redframe.h */
int sites__markers(struct site_list *l, u32 pid, char *why, size_t why_size);
/* malloc and family of the allocator in use; frees too if with_free. What would be single-stepped is counted for 0.2 s
 * first: above 1,000 calls/s it is left out and named in `why` (the return value still counts the others). */
int sites__alloc(struct site_list *l, u32 pid, bool with_free, char *why, size_t why_size);
/* Once they are attached: whether the probe of this site is in the code that the process runs. It is not where the file
 * was written to beneath it on an overlay file system, which gives the name to a copy. True where that cannot be seen.
 */
bool sites__in_place(const struct site_list *l, const struct site *s, const struct maps *maps, u32 pid);

/* The function of the interposer that a sampled call goes through: before any process maps the library. */
int sites__sampled(struct site_list *l, const char *library);
/* SPEC of --alloc-fn: "SYMBOL" or "SYMBOL:size=ARG", a function of any mapped file whose ARG-th argument (from 0; 0
 * where it is not said) is a size in bytes. -ENOENT: there is none; what is left out is named in `why`. */
int sites__alloc_fn(struct site_list *l, u32 pid, const char *spec, char *why, size_t why_size);
/* Takes SPEC apart: 0 or -EINVAL. */
int alloc_fn__parse(const char *spec, char *symbol, size_t size, int *arg);

#endif

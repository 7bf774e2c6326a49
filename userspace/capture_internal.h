/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Shared by capture.c (load), capture_rings.c and capture_attach.c (attach, detach).
 */
#ifndef REDFRAME_CAPTURE_INTERNAL_H
#define REDFRAME_CAPTURE_INTERNAL_H

#include <bpf/libbpf.h>

#include "bpf_options.h"
#include "capture.h"
#include "redframe.skel.h"
#include "uprobe_multi.h"

#define MAX_PROGRAMS 64
#define FOLLOW_MAX   16384 /* processes that are recorded at once */

struct program {
	const char *name;
	enum ev_class class;
	struct bpf_program *prog;
	bool wanted, failed, attached;
};

#define LINK_SAMPLE       (-2)
#define LINK_KERNEL_FAULT (-3) /* faults in the kernel's own code, their begin and end */
#define LINK_CALL         (-4) /* entry and exit of system calls */
struct link {
	struct bpf_link *link;
	int fd;   /* of a link that libbpf does not know, when link is NULL */
	int what; /* enum probe_what of a site, LINK_…, -1: anything else */
};

struct capture {
	struct redframe_bpf *skel;
	struct capture_options o;
	struct program programs[MAX_PROGRAMS];
	int n_programs;
	char refused[64]; /* the program that the kernel refused, from libbpf's messages */
	char reason[256];
	struct link *links;
	int n_links, cap_links;
	u32 left_out; /* bit_of each `what` that is off: it stays so when all is paused and resumed */
	int n_cpus;
	u32 n_rings, ring_shift;
	size_t chunk_bytes; /* bpf/ring_layout.h */
	char *mapped;       /* the chunks of all of them */
	struct ring rings[RINGS_MAX];
	struct btf *btf;   /* the kernel's, while loading; NULL where it has none */
	bool uprobe_multi; /* the kernel has it: the programs for sites are loaded for it */
	capture_note_fn note;
	void *note_arg;
};

void capture__note(struct capture *c, enum ev_class class, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Their number and size; then into the skeleton, before it is loaded; then into memory. 0 or -errno. */
void capture__choose_rings(struct capture *c);
int capture__size_rings(struct capture *c);
int capture__map_rings(struct capture *c);
void capture__unmap_rings(struct capture *c);
bool program__is_uprobe(const struct program *p);
struct program *capture__find_program(struct capture *c, const char *name);

#endif

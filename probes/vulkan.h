/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The present function of a Vulkan game that runs already. Games call a pointer from vkGetDeviceProcAddr, which is the
 * driver's own function (or the first layer's), exported by nobody. The loader keeps the same pointer for each device
 * in a dispatch table in the game's memory, and its exported vkQueuePresentKHR shows which slot of the table it is.
 */
#ifndef REDFRAME_VULKAN_H
#define REDFRAME_VULKAN_H

#include "site_build.h"

#define VULKAN_LOADER    "libvulkan.so" /* as object__is takes it */
#define VULKAN_FUNCTIONS 16             /* distinct present functions of one game */
#define VULKAN_SWAPCHAIN 40             /* of VkPresentInfoKHR: pSwapchains, the first of which is a frame's stream */

struct vulkan_scan {
	u64 bytes; /* of the game's memory that were looked at */
	u64 ns;
	u32 tables; /* dispatch tables of devices that can present */
	bool cut;   /* by VULKAN_SCAN_MS or VULKAN_SCAN_BYTES */
};
#define VULKAN_SCAN_MS    2000
#define VULKAN_SCAN_BYTES (16ULL << 30)

/* Offset in the dispatch table that the code of vkQueuePresentKHR calls through; -ENOENT where it shows none. */
int vulkan__slot(const u8 *code, size_t size, u64 *slot);
/* Adds a site for each function that a device of the process presents through, the swapchain as its stream. Returns how
 * many sites were added or -errno; what was not found, or cut, is in why. *scan may be NULL. */
int vulkan__sites(struct site_list *l, struct objects *o, struct vulkan_scan *scan, char *why, size_t why_size);
/* Adds a site on the loader's vkCreateDevice, whose hits mean that there may be more tables soon. */
int vulkan__create_device(struct site_list *l, struct objects *o);

#endif

/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A Windows game that shows frames through Vulkan, as Proton's translation of Direct3D does: two windows in turn with a
 * swapchain each, and the pointer to vkQueuePresentKHR asked of the device. wine_vulkan.exe [FRAMES]
 */
#include <stdio.h>
#include <stdlib.h>
#include <windows.h>

#define VK_USE_PLATFORM_WIN32_KHR
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#define FRAME_MS 8
#define WINDOWS  2
#define IMAGES   8u

#define GLOBALS(X) X(CreateInstance)
#define INSTANCE(X)                                                                                                    \
	X(EnumeratePhysicalDevices)                                                                                    \
	X(CreateDevice)                                                                                                \
	X(GetDeviceProcAddr)                                                                                           \
	X(CreateWin32SurfaceKHR)                                                                                       \
	X(GetPhysicalDeviceSurfaceCapabilitiesKHR)                                                                     \
	X(GetPhysicalDeviceSurfaceFormatsKHR)                                                                          \
	X(GetPhysicalDeviceSurfaceSupportKHR)
#define DEVICE(X)                                                                                                      \
	X(GetDeviceQueue)                                                                                              \
	X(CreateSwapchainKHR)                                                                                          \
	X(GetSwapchainImagesKHR)                                                                                       \
	X(AcquireNextImageKHR)                                                                                         \
	X(QueuePresentKHR)                                                                                             \
	X(QueueSubmit)                                                                                                 \
	X(QueueWaitIdle)                                                                                               \
	X(CreateFence)                                                                                                 \
	X(WaitForFences)                                                                                               \
	X(ResetFences)                                                                                                 \
	X(CreateCommandPool)                                                                                           \
	X(AllocateCommandBuffers)                                                                                      \
	X(BeginCommandBuffer)                                                                                          \
	X(CmdPipelineBarrier)                                                                                          \
	X(EndCommandBuffer)

#define DECLARE(name) static PFN_vk##name vk##name;
GLOBALS(DECLARE)
INSTANCE(DECLARE)
DEVICE(DECLARE)

static void need(int ok, const char *what)
{
	if (ok)
		return;
	printf("no %s\n", what);
	exit(1);
}

struct screen {
	HWND window;
	VkSwapchainKHR swapchain;
	VkCommandBuffer to_screen[IMAGES]; /* brings an image into the layout that is shown */
};

static VkInstance instance;
static VkPhysicalDevice gpu;
static VkDevice device;
static VkQueue queue;
static VkFence fence;
static VkCommandPool pool;

static void make_instance(void)
{
	static const char *const extensions[] = {"VK_KHR_surface", "VK_KHR_win32_surface"};
	HMODULE library = LoadLibraryA("vulkan-1.dll");
	PFN_vkGetInstanceProcAddr get;
	VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
		.enabledExtensionCount = 2,
		.ppEnabledExtensionNames = extensions};

	need(library != NULL, "vulkan-1.dll");
	get = (PFN_vkGetInstanceProcAddr)(void *)GetProcAddress(library, "vkGetInstanceProcAddr");
#define LOAD(name) vk##name = (PFN_vk##name)get(instance, "vk" #name);
	GLOBALS(LOAD)
	need(vkCreateInstance(&info, NULL, &instance) == VK_SUCCESS, "Vulkan");
	INSTANCE(LOAD)
}

static void make_device(void)
{
	static const char *const extensions[] = {"VK_KHR_swapchain"};
	static const float priority = 1;
	VkDeviceQueueCreateInfo queues = {
		.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1, .pQueuePriorities = &priority};
	VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
		.queueCreateInfoCount = 1,
		.pQueueCreateInfos = &queues,
		.enabledExtensionCount = 1,
		.ppEnabledExtensionNames = extensions};
	VkFenceCreateInfo fences = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
	VkCommandPoolCreateInfo pools = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
	uint32_t n = 1;

	need(vkEnumeratePhysicalDevices(instance, &n, &gpu) >= 0 && n, "device");
	need(vkCreateDevice(gpu, &info, NULL, &device) == VK_SUCCESS, "device with a swapchain");
#define LOAD_DEVICE(name) vk##name = (PFN_vk##name)vkGetDeviceProcAddr(device, "vk" #name);
	DEVICE(LOAD_DEVICE)
	vkGetDeviceQueue(device, 0, 0, &queue);
	need(vkCreateFence(device, &fences, NULL, &fence) == VK_SUCCESS, "fence");
	need(vkCreateCommandPool(device, &pools, NULL, &pool) == VK_SUCCESS, "command pool");
}

static void record(VkCommandBuffer commands, VkImage image)
{
	VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
	VkImageMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER,
		.newLayout = VK_IMAGE_LAYOUT_PRESENT_SRC_KHR,
		.image = image,
		.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1}};

	need(vkBeginCommandBuffer(commands, &begin) == VK_SUCCESS, "command buffer");
	vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, 0, 0,
		NULL, 0, NULL, 1, &barrier);
	need(vkEndCommandBuffer(commands) == VK_SUCCESS, "command buffer");
}

static void record_images(struct screen *s)
{
	VkCommandBufferAllocateInfo buffers = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
		.commandPool = pool,
		.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
		.commandBufferCount = IMAGES};
	VkImage images[IMAGES];
	uint32_t n = IMAGES;

	need(vkGetSwapchainImagesKHR(device, s->swapchain, &n, images) == VK_SUCCESS, "images");
	need(vkAllocateCommandBuffers(device, &buffers, s->to_screen) == VK_SUCCESS, "command buffers");
	for (uint32_t i = 0; i < n; i++)
		record(s->to_screen[i], images[i]);
}

static void make_swapchain(struct screen *s)
{
	VkWin32SurfaceCreateInfoKHR surface_info = {.sType = VK_STRUCTURE_TYPE_WIN32_SURFACE_CREATE_INFO_KHR,
		.hinstance = GetModuleHandleA(NULL),
		.hwnd = s->window};
	VkSwapchainCreateInfoKHR info = {.sType = VK_STRUCTURE_TYPE_SWAPCHAIN_CREATE_INFO_KHR,
		.imageArrayLayers = 1,
		.imageUsage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT,
		.compositeAlpha = VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR,
		.presentMode = VK_PRESENT_MODE_FIFO_KHR,
		.clipped = VK_TRUE};
	VkSurfaceCapabilitiesKHR can;
	VkSurfaceFormatKHR format;
	VkBool32 shows = VK_FALSE;
	uint32_t n = 1;

	need(vkCreateWin32SurfaceKHR(instance, &surface_info, NULL, &info.surface) == VK_SUCCESS, "surface");
	need(vkGetPhysicalDeviceSurfaceSupportKHR(gpu, 0, info.surface, &shows) == VK_SUCCESS && shows,
		"way to show it");
	need(vkGetPhysicalDeviceSurfaceCapabilitiesKHR(gpu, info.surface, &can) == VK_SUCCESS, "capabilities");
	need(vkGetPhysicalDeviceSurfaceFormatsKHR(gpu, info.surface, &n, &format) >= 0 && n, "format");
	info.minImageCount = can.minImageCount;
	info.imageExtent = can.currentExtent;
	info.imageFormat = format.format;
	info.imageColorSpace = format.colorSpace;
	info.preTransform = can.currentTransform;
	need(vkCreateSwapchainKHR(device, &info, NULL, &s->swapchain) == VK_SUCCESS, "swapchain");
	record_images(s);
}

static void show(struct screen *s)
{
	VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1};
	VkPresentInfoKHR present = {
		.sType = VK_STRUCTURE_TYPE_PRESENT_INFO_KHR, .swapchainCount = 1, .pSwapchains = &s->swapchain};
	uint32_t image;

	need(vkAcquireNextImageKHR(device, s->swapchain, UINT64_MAX, VK_NULL_HANDLE, fence, &image) >= 0, "image");
	vkWaitForFences(device, 1, &fence, VK_TRUE, UINT64_MAX);
	vkResetFences(device, 1, &fence);
	submit.pCommandBuffers = &s->to_screen[image];
	need(vkQueueSubmit(queue, 1, &submit, VK_NULL_HANDLE) == VK_SUCCESS, "queue");
	vkQueueWaitIdle(queue);
	present.pImageIndices = &image;
	need(vkQueuePresentKHR(queue, &present) >= 0, "picture");
}

int main(int argc, char **argv)
{
	WNDCLASSA class = {.lpfnWndProc = DefWindowProcA, .lpszClassName = "game"};
	int frames = argc > 1 ? atoi(argv[1]) : 1000000;
	struct screen screens[WINDOWS] = {};
	MSG msg;

	RegisterClassA(&class);
	make_instance();
	make_device();
	for (int i = 0; i < WINDOWS; i++) {
		screens[i].window = CreateWindowA(
			"game", "game", WS_OVERLAPPEDWINDOW | WS_VISIBLE, 320 * i, 0, 320, 240, NULL, NULL, NULL, NULL);
		make_swapchain(&screens[i]);
	}
	for (int i = 0; i < frames; i++) {
		while (PeekMessageA(&msg, NULL, 0, 0, PM_REMOVE))
			DispatchMessageA(&msg);
		show(&screens[i % WINDOWS]);
		Sleep(FRAME_MS);
	}
	printf("%d frames\n", frames);
	return 0;
}

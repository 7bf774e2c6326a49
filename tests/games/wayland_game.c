/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A Wayland game that draws by itself into shared memory: no library presents for it. Each frame calls shown().
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <wayland-client.h>

#define WIDTH  320
#define HEIGHT 240
#define STRIDE (WIDTH * 4)

static struct wl_compositor *compositor;
static struct wl_shm *shm;

__attribute__((noinline)) void shown(void);
void shown(void)
{
	__asm__ volatile("nop");
}

static void take_global(
	void *data, struct wl_registry *registry, uint32_t name, const char *interface, uint32_t version)
{
	if (!strcmp(interface, "wl_compositor"))
		compositor = wl_registry_bind(registry, name, &wl_compositor_interface, 1);
	else if (!strcmp(interface, "wl_shm"))
		shm = wl_registry_bind(registry, name, &wl_shm_interface, 1);
}

static void lose_global(void *data, struct wl_registry *registry, uint32_t name)
{
}

static const struct wl_registry_listener listener = {take_global, lose_global};

static struct wl_buffer *buffer(unsigned char **pixels)
{
	int fd = memfd_create("pixels", 0);

	if (fd < 0 || ftruncate(fd, STRIDE * HEIGHT))
		exit(1);
	*pixels = mmap(NULL, STRIDE * HEIGHT, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return wl_shm_pool_create_buffer(
		wl_shm_create_pool(shm, fd, STRIDE * HEIGHT), 0, WIDTH, HEIGHT, STRIDE, WL_SHM_FORMAT_XRGB8888);
}

int main(void)
{
	struct wl_display *display = wl_display_connect(NULL);
	struct wl_surface *surface;
	struct wl_buffer *picture;
	unsigned char *pixels;

	if (!display)
		return 1;
	wl_registry_add_listener(wl_display_get_registry(display), &listener, NULL);
	wl_display_roundtrip(display);
	if (!compositor || !shm)
		return 1;
	surface = wl_compositor_create_surface(compositor);
	picture = buffer(&pixels);
	for (int i = 0; wl_display_roundtrip(display) >= 0; i++) {
		memset(pixels, i, STRIDE * HEIGHT);
		wl_surface_attach(surface, picture, 0, 0);
		wl_surface_damage(surface, 0, 0, WIDTH, HEIGHT);
		wl_surface_commit(surface);
		shown();
		usleep(8000);
	}
	return 0;
}

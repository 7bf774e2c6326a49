/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A Windows game that shows frames through OpenGL, and every so often waits for another of its threads: each 60th frame
 * for an event that Worker sets after 40 ms of work, 20 frames later for a critical section that Holder has for 30 ms.
 * wine_game.exe [FRAMES]
 */
#include <stdio.h>
#include <stdlib.h>
#include <windows.h>

HRESULT WINAPI SetThreadDescription(HANDLE thread, PCWSTR description); /* not in every version of the header */

#define FRAME_MS 8
#define TURNS    20000 /* of work between looks at the clock */

static HANDLE asked, done, take, taken;
static CRITICAL_SECTION section;

static void spend(DWORD ms)
{
	LARGE_INTEGER hz, from, now;
	volatile unsigned int sum = 0;

	QueryPerformanceFrequency(&hz);
	QueryPerformanceCounter(&from);
	do {
		for (int i = 0; i < TURNS; i++)
			sum = sum * 31 + i;
		QueryPerformanceCounter(&now);
	} while ((now.QuadPart - from.QuadPart) * 1000 / hz.QuadPart < ms);
}

/* exported, with all of spend in it: the name is what a recording is to tell */
__declspec(dllexport) __attribute__((noinline, flatten)) void decompress_level(void)
{
	spend(40);
}

static DWORD WINAPI worker(void *arg)
{
	SetThreadDescription(GetCurrentThread(), L"Worker");
	for (;;) {
		WaitForSingleObject(asked, INFINITE);
		decompress_level();
		SetEvent(done);
	}
	return 0;
}

static DWORD WINAPI holder(void *arg)
{
	SetThreadDescription(GetCurrentThread(), L"Holder");
	for (;;) {
		WaitForSingleObject(take, INFINITE);
		EnterCriticalSection(&section);
		SetEvent(taken);
		spend(30);
		LeaveCriticalSection(&section);
	}
	return 0;
}

static HDC window(void)
{
	PIXELFORMATDESCRIPTOR format = {.nSize = sizeof(format),
		.nVersion = 1,
		.dwFlags = PFD_DRAW_TO_WINDOW | PFD_SUPPORT_OPENGL | PFD_DOUBLEBUFFER,
		.cColorBits = 24};
	WNDCLASSA class = {.lpfnWndProc = DefWindowProcA, .lpszClassName = "game"};
	HWND window;
	HDC dc;

	RegisterClassA(&class);
	window =
		CreateWindowA("game", "game", WS_OVERLAPPEDWINDOW | WS_VISIBLE, 0, 0, 320, 240, NULL, NULL, NULL, NULL);
	dc = GetDC(window);
	if (!SetPixelFormat(dc, ChoosePixelFormat(dc, &format), &format) || !wglMakeCurrent(dc, wglCreateContext(dc))) {
		printf("no OpenGL\n");
		exit(1);
	}
	return dc;
}

static void start_threads(void)
{
	InitializeCriticalSection(&section);
	asked = CreateEventA(NULL, FALSE, FALSE, NULL);
	done = CreateEventA(NULL, FALSE, FALSE, NULL);
	take = CreateEventA(NULL, FALSE, FALSE, NULL);
	taken = CreateEventA(NULL, FALSE, FALSE, NULL);
	CreateThread(NULL, 0, worker, NULL, 0, NULL);
	CreateThread(NULL, 0, holder, NULL, 0, NULL);
}

int main(int argc, char **argv)
{
	int frames = argc > 1 ? atoi(argv[1]) : 1000000;
	HDC dc = window();
	MSG msg;

	start_threads();
	for (int i = 0; i < frames; i++) {
		while (PeekMessageA(&msg, NULL, 0, 0, PM_REMOVE))
			DispatchMessageA(&msg);
		if (i % 60 == 59) {
			SetEvent(asked);
			WaitForSingleObject(done, INFINITE);
		} else if (i % 60 == 19) {
			SetEvent(take);
			WaitForSingleObject(taken, INFINITE);
			EnterCriticalSection(&section);
			LeaveCriticalSection(&section);
		}
		SwapBuffers(dc);
		Sleep(FRAME_MS);
	}
	printf("%d frames\n", frames);
	return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * redframe.h: markers that tell redframe what a game is doing. Copy this one file into the game; it needs nothing else.
 *
 *	REDFRAME_FRAME(number);			where a frame is presented; number is the frame that ends here
 *	REDFRAME_FRAME_STREAM(number, stream);	the same with several windows or swapchains: any integer or pointer
 *	REDFRAME_FRAME_BEGIN(number, stream);	where one does not follow on the other: a frame's begin …
 *	REDFRAME_FRAME_END(number, stream);	… and its end, on the same thread
 *	REDFRAME_SCENE("harbour");		the level, menu or cutscene from here on
 *	REDFRAME_LOCK_NAME(&lock, "World::lock");	what to call this lock
 *	REDFRAME_MESSAGE("boss spawned");	a remark on the time line
 *	REDFRAME_MESSAGEF("wave %d", n);	the same, formatted, and only when somebody listens
 *	if (REDFRAME_ENABLED(message)) …	is somebody listening to frame, frame_begin, frame_end, scene,
 *						lock_name or message?
 *
 * Each marker is one 1-byte nop (arm64: one instruction) beside what it takes to have its arguments in registers, and a
 * USDT note in the file that says where it is: provider "redframe", so other tools see it as usdt:redframe:frame and so
 * on. The markers with text look at a counter first (REDFRAME_ENABLED) and do nothing more while nobody listens.
 * A marker may stand anywhere in C99, C11 or C++11 and later: in a leaf function, in an inline function or template, in
 * any number of files and shared libraries. With REDFRAME_OFF defined before the #include, and on systems other than
 * Linux on x86-64 and arm64, markers compile to nothing and their arguments are checked but not evaluated.
 *
 * Copyright (c) 2025 the redframe authors
 *
 * Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
 * documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
 * rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to
 * permit persons to whom the Software is furnished to do so, subject to the following conditions:
 *
 * The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
 * Software.
 *
 * THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
 * WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
 * COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
 * OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
 */
#ifndef REDFRAME_H
#define REDFRAME_H
/* clang-format off */ /* asm keeps its columns, macros their lines */

#if !defined(REDFRAME_OFF) && defined(__linux__) && defined(__ELF__) && defined(__LP64__) && \
	(defined(__x86_64__) || defined(__aarch64__))
#define REDFRAME_ON 1
#else
#define REDFRAME_ON 0
#endif

#define REDFRAME_TEXT_MAX 256 /* bytes of a text that are read, and of a formatted message with its NUL */

#if defined(__GNUC__)
#define REDFRAME_FN	    __attribute__((always_inline, unused)) static __inline__
#define REDFRAME_PRINTF	    __attribute__((format(printf, 1, 2), unused)) static __inline__
#else
#define REDFRAME_FN	    static inline
#define REDFRAME_PRINTF	    static inline
#endif

#if REDFRAME_ON

/* A note's arguments: registers only. Constants and memory operands have spellings (%rip-relative,
 * indexed) that readers of notes disagree on. The second half is for -masm=intel, which drops the percent sign. */
#if defined(__x86_64__)
#define REDFRAME_ARG(n)	 "8@{|%%}%" #n
#define REDFRAME_ARG_ZERO "8@\\0440" /* "8@$0": clang with -masm=intel eats a plain dollar sign */
#else
#define REDFRAME_ARG(n)	 "8@%" #n
#define REDFRAME_ARG_ZERO "8@0"
#endif

/* gcc takes each line of an asm for an instruction when it decides what to inline, unless told that it is short */
#if defined(__GNUC__) && __GNUC__ >= 9 && !defined(__clang__)
#define REDFRAME_ASM __asm__ __volatile__ __inline__
#else
#define REDFRAME_ASM __asm__ __volatile__
#endif

/* "?": the note joins the comdat group of an inline function, and is dropped along with it */
#define REDFRAME_NOTE(name, args) \
	"990:	nop\n" \
	"	.pushsection .note.stapsdt,\"?\",\"note\"\n" \
	"	.balign 4\n" \
	"	.4byte 992f-991f, 994f-993f, 3\n" \
	"991:	.asciz \"stapsdt\"\n" \
	"992:	.balign 4\n" \
	"993:	.8byte 990b\n" \
	"	.8byte _.stapsdt.base\n" \
	"	.8byte redframe_" name "_semaphore\n" \
	"	.asciz \"redframe\"\n" \
	"	.asciz \"" name "\"\n" \
	"	.asciz \"" args "\"\n" \
	"994:	.balign 4\n" \
	"	.popsection\n" \
	".ifndef _.stapsdt.base\n" \
	"	.pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
	"	.weak _.stapsdt.base\n" \
	"	.hidden _.stapsdt.base\n" \
	"_.stapsdt.base:\n" \
	"	.space 1\n" \
	"	.size _.stapsdt.base, 1\n" \
	"	.popsection\n" \
	".endif\n"

/* Not 0 while a tracer listens: the kernel adds 1 for the place, not for each tracer. "used" and "retain", because only
 * the notes refer to some. */
#if defined(__has_attribute)
#if __has_attribute(retain)
#define REDFRAME_KEEP used, retain
#endif
#endif
#ifndef REDFRAME_KEEP
#define REDFRAME_KEEP used
#endif
#define REDFRAME_SEMAPHORE(name) \
	extern unsigned short redframe_##name##_semaphore; \
	__attribute__((weak, visibility("hidden"), section(".probes"), REDFRAME_KEEP)) \
	unsigned short redframe_##name##_semaphore

#ifdef __cplusplus
extern "C" {
#endif
REDFRAME_SEMAPHORE(frame);
REDFRAME_SEMAPHORE(frame_begin);
REDFRAME_SEMAPHORE(frame_end);
REDFRAME_SEMAPHORE(scene);
REDFRAME_SEMAPHORE(lock_name);
REDFRAME_SEMAPHORE(message);
#ifdef __cplusplus
}
#endif

#define REDFRAME_ENABLED(name) __builtin_expect(__atomic_load_n(&redframe_##name##_semaphore, __ATOMIC_RELAXED) != 0, 0)

/* A tracer cannot fault a page in: text in a page that was not touched yet would read as empty. */
REDFRAME_FN void redframe_touch(const char *text)
{
	const volatile char *p = text;
	unsigned int n = 0;

	while (n < REDFRAME_TEXT_MAX && p[n])
		n++;
}

REDFRAME_FN void redframe_frame(unsigned long long number)
{
	REDFRAME_ASM(REDFRAME_NOTE("frame", REDFRAME_ARG(0) " " REDFRAME_ARG_ZERO) : : "r"(number) : "memory");
}

REDFRAME_FN void redframe_frame_stream(unsigned long long number, unsigned long long stream)
{
	REDFRAME_ASM(REDFRAME_NOTE("frame", REDFRAME_ARG(0) " " REDFRAME_ARG(1))
		: : "r"(number), "r"(stream) : "memory");
}

REDFRAME_FN void redframe_frame_begin(unsigned long long number, unsigned long long stream)
{
	REDFRAME_ASM(REDFRAME_NOTE("frame_begin", REDFRAME_ARG(0) " " REDFRAME_ARG(1))
		: : "r"(number), "r"(stream) : "memory");
}

REDFRAME_FN void redframe_frame_end(unsigned long long number, unsigned long long stream)
{
	REDFRAME_ASM(REDFRAME_NOTE("frame_end", REDFRAME_ARG(0) " " REDFRAME_ARG(1))
		: : "r"(number), "r"(stream) : "memory");
}

REDFRAME_FN void redframe_scene(const char *name)
{
	if (!name)
		return;
	redframe_touch(name);
	REDFRAME_ASM(REDFRAME_NOTE("scene", REDFRAME_ARG(0)) : : "r"(name) : "memory");
}

REDFRAME_FN void redframe_lock_name(const volatile void *lock, const char *name)
{
	if (!name)
		return;
	redframe_touch(name);
	REDFRAME_ASM(REDFRAME_NOTE("lock_name", REDFRAME_ARG(0) " " REDFRAME_ARG(1))
		: : "r"(lock), "r"(name) : "memory");
}

REDFRAME_FN void redframe_message(const char *text)
{
	if (!text)
		return;
	redframe_touch(text);
	REDFRAME_ASM(REDFRAME_NOTE("message", REDFRAME_ARG(0)) : : "r"(text) : "memory");
}

/* The compiler's builtins, so that the game need not include stdio.h and stdarg.h for this. */
REDFRAME_PRINTF void redframe_messagef(const char *format, ...)
{
	char text[REDFRAME_TEXT_MAX] = "";
	__builtin_va_list args;

	__builtin_va_start(args, format);
	__builtin_vsnprintf(text, sizeof(text), format, args);
	__builtin_va_end(args);
	redframe_message(text);
}

#else /* the same shapes, so that arguments are still checked */

#define REDFRAME_ENABLED(name) 0

REDFRAME_FN void redframe_frame(unsigned long long number)
{
	(void)number;
}
REDFRAME_FN void redframe_frame_stream(unsigned long long number, unsigned long long stream)
{
	(void)number;
	(void)stream;
}
REDFRAME_FN void redframe_frame_begin(unsigned long long number, unsigned long long stream)
{
	(void)number;
	(void)stream;
}
REDFRAME_FN void redframe_frame_end(unsigned long long number, unsigned long long stream)
{
	(void)number;
	(void)stream;
}
REDFRAME_FN void redframe_scene(const char *name)
{
	(void)name;
}
REDFRAME_FN void redframe_lock_name(const volatile void *lock, const char *name)
{
	(void)lock;
	(void)name;
}
REDFRAME_FN void redframe_message(const char *text)
{
	(void)text;
}
REDFRAME_PRINTF void redframe_messagef(const char *format, ...)
{
	(void)format;
}

#endif

/* An integer of any width and sign, or a pointer. C++ has no cast that takes both without a warning. */
#ifdef __cplusplus
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#endif
template <class T> REDFRAME_FN unsigned long long redframe_u64(T value)
{
	return (unsigned long long)value;
}
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
#define REDFRAME_U64(value) redframe_u64(value)
#else
#define REDFRAME_U64(value) ((unsigned long long)(value))
#endif

#define REDFRAME_IF(condition, call) \
	do { \
		if (condition) \
			call; \
	} while (0)

#define REDFRAME_FRAME(number) REDFRAME_IF(REDFRAME_ON, redframe_frame(REDFRAME_U64(number)))
#define REDFRAME_FRAME_STREAM(number, stream) \
	REDFRAME_IF(REDFRAME_ON, redframe_frame_stream(REDFRAME_U64(number), REDFRAME_U64(stream)))
#define REDFRAME_FRAME_BEGIN(number, stream) \
	REDFRAME_IF(REDFRAME_ON, redframe_frame_begin(REDFRAME_U64(number), REDFRAME_U64(stream)))
#define REDFRAME_FRAME_END(number, stream) \
	REDFRAME_IF(REDFRAME_ON, redframe_frame_end(REDFRAME_U64(number), REDFRAME_U64(stream)))
#define REDFRAME_SCENE(name)		REDFRAME_IF(REDFRAME_ENABLED(scene), redframe_scene(name))
#define REDFRAME_LOCK_NAME(lock, name)	REDFRAME_IF(REDFRAME_ENABLED(lock_name), redframe_lock_name(lock, name))
#define REDFRAME_MESSAGE(text)		REDFRAME_IF(REDFRAME_ENABLED(message), redframe_message(text))
#define REDFRAME_MESSAGEF(...)		REDFRAME_IF(REDFRAME_ENABLED(message), redframe_messagef(__VA_ARGS__))

#endif

// SPDX-License-Identifier: GPL-2.0-only
/* calls_cxx: the same as calls, for what C++ adds. */
#include <stdexcept>
#include "target.h"

#define NOINLINE __attribute__((noinline, noclone))
#define NO_TAIL  __asm__ volatile("" ::: "memory")

static unsigned long long began, ended;

namespace game
{
NOINLINE static void nap()
{
	began = boot_ns();
	usleep(2000);
	ended = boot_ns();
	NO_TAIL;
}

template <typename T> struct Pool {
	NOINLINE T grow(T n)
	{
		nap();
		NO_TAIL;
		return n;
	}
};

template <int N> NOINLINE void level()
{
	level<N - 1>();
	NO_TAIL;
}

template <> NOINLINE void level<0>()
{
	Pool<int>().grow(1);
	NO_TAIL;
}

struct Actor {
	virtual ~Actor()
	{
	}
	virtual void update() = 0;
};

struct Player : Actor {
	NOINLINE void update() override
	{
		nap();
		NO_TAIL;
	}
};

struct Guard {
	NOINLINE ~Guard()
	{
		nap();
		NO_TAIL;
	}
};

NOINLINE static void thrower()
{
	throw std::runtime_error("level");
}

NOINLINE static void unwound()
{
	Guard guard;

	thrower();
}

NOINLINE static void update_all(Actor *a)
{
	a->update();
	NO_TAIL;
}
} // namespace game

static void tell(const char *name, const char *chain)
{
	printf("chain %s %llu %llu %s\n", name, began, ended, chain);
}

int main()
{
	game::Player player;

	target_ready();
	game::level<2>();
	tell("templates", "game::nap<game::Pool<int>::grow<game::level<0><game::level<1><game::level<2><main");
	game::update_all(&player);
	tell("virtual", "game::nap<game::Player::update<game::update_all<main");
	try {
		game::unwound();
	} catch (const std::exception &) {
	}
	tell("unwinding", "game::nap<game::Guard::~Guard<game::unwound<main");
	target_done();
	return 0;
}

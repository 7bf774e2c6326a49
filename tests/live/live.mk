# SPDX-License-Identifier: GPL-2.0-only
# What the tests on the running kernel need beside their own sources: the programs that they record.
LIVE_TARGETS := $(patsubst tests/live/targets/%,$(O)/live/targets/%,$(basename $(wildcard tests/live/targets/*.c tests/live/targets/*.cc)))
LIVE_TARGETS := $(patsubst %/crasher,%/crasher.so,$(patsubst %/late_lib,%/late_lib.so,$(patsubst %/plugin,%/plugin.so,$(LIVE_TARGETS))))
LIVE_TARGETS := $(patsubst %/clock_step,%/clock_step.so,$(LIVE_TARGETS))
TARGET_FLAGS  = $(WARN) -O1 -g -Iprobes

$(O)/live/test_% $(O)/obj/tests/live/%: private ALL_CFLAGS += -DLIVE_BUILD='"$(abspath $(O))"'
$(LIVE_PROGRAMS): | $(LIVE_TARGETS)

# as games are built; then without symbols beside a file that has them, beside one of another build, and static
CALLS_FLAGS = -std=gnu11 -D_GNU_SOURCE $(WARN) -O2 -g -fomit-frame-pointer -fno-ipa-icf
$(O)/live/targets/calls $(O)/live/targets/calls_static: tests/live/targets/calls.c tests/live/targets/target.h
	@mkdir -p $(@D)
	$(CC) $(CALLS_FLAGS) $(if $(findstring static,$@),-static) -o $@ $< -lpthread
$(O)/live/targets/calls_cxx: tests/live/targets/calls_cxx.cc tests/live/targets/target.h
	@mkdir -p $(@D)
	$(CXX) -Wall -Wextra -O2 -g -fomit-frame-pointer -o $@ $<
$(O)/live/targets/stripped/calls: $(O)/live/targets/calls
	@mkdir -p $(@D)
	objcopy --only-keep-debug $< $@.debug
	cd $(@D) && objcopy --strip-all --add-gnu-debuglink=calls.debug $(abspath $<) calls
$(O)/live/targets/stale/calls: $(O)/live/targets/calls $(O)/live/targets/stripped/calls
	@mkdir -p $(@D)
	cp $(O)/live/targets/stripped/calls $@
	objcopy --only-keep-debug $(O)/live/targets/calls_cxx $@.debug
$(O)/live/targets/stale/calls: $(O)/live/targets/calls_cxx
$(O)/live/test_preload: | $(O)/live/targets/calls_static $(O)/libredframe-alloc.so
$(O)/live/test_stacks: | $(addprefix $(O)/live/targets/,calls_static stripped/calls stale/calls)

# the shapes that linkers give to programs
SHAPES = static_pie fixed far shared_pages
static_pie_FLAGS   = -static-pie
fixed_FLAGS        = -no-pie
far_FLAGS          = -Wl,--section-start=.text=0x1234560
shared_pages_FLAGS = -fuse-ld=lld -no-pie -Wl,--image-base=0x7654000
$(SHAPES:%=$(O)/live/targets/frame_%): $(O)/live/targets/frame_%: tests/live/targets/frame.c tests/live/targets/target.h probes/redframe.h
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -D_GNU_SOURCE $(TARGET_FLAGS) $($*_FLAGS) -o $@ $<
$(SHAPES:%=$(O)/live/targets/calls_%): $(O)/live/targets/calls_%: tests/live/targets/calls.c tests/live/targets/target.h
	@mkdir -p $(@D)
	$(CC) $(CALLS_FLAGS) $($*_FLAGS) -o $@ $< -lpthread
$(O)/live/test_shapes: | $(SHAPES:%=$(O)/live/targets/frame_%)
$(O)/live/test_stacks: | $(SHAPES:%=$(O)/live/targets/calls_%)

# a game that presents through two layers
$(O)/live/targets/hot_layers: tests/live/targets/hot_source.c tests/live/targets/target.h
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -D_GNU_SOURCE $(TARGET_FLAGS) -DLAYERED -o $@ $<
$(O)/live/test_cost: | $(O)/live/targets/hot_layers

# whose malloc it is: its own for everyone, its own for itself alone, the C library's within it, and that without names
ALLOCS = own hidden static nameless
ALLOC_FLAGS = $(TARGET_FLAGS) -std=gnu11 -D_GNU_SOURCE -fno-builtin
own_ALLOC      = '-DOWN_MALLOC=__attribute__((noinline))' -rdynamic
hidden_ALLOC   = '-DOWN_MALLOC=__attribute__((noinline, visibility("hidden")))'
static_ALLOC   = -static
nameless_ALLOC = -static -s
$(ALLOCS:%=$(O)/live/targets/alloc_%): $(O)/live/targets/alloc_%: tests/live/targets/alloc.c $(wildcard tests/live/targets/*.h)
	@mkdir -p $(@D)
	$(CC) $(ALLOC_FLAGS) $($*_ALLOC) -o $@ $<
$(O)/live/test_alloc: | $(ALLOCS:%=$(O)/live/targets/alloc_%)

$(O)/live/targets/%.so: tests/live/targets/%.c probes/redframe.h
	@mkdir -p $(@D)
	$(CC) -D_GNU_SOURCE $(TARGET_FLAGS) -shared -fPIC -o $@ $<
$(O)/live/targets/%: tests/live/targets/%.c tests/live/targets/target.h probes/redframe.h
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -D_GNU_SOURCE $(TARGET_FLAGS) -o $@ $< -lpthread -ldl $(if $(findstring uring,$@),-luring)
$(O)/live/targets/%: tests/live/targets/%.cc tests/live/targets/target.h
	@mkdir -p $(@D)
	$(CXX) -Wall -Wextra -O1 -g -o $@ $< -lpthread

# as many real games as are installed
.PHONY: test-games
test-games: $(O)/redframe $(O)/live/targets/count_calls $(O)/games/unwinders
	@O='$(O)' tests/games/run
# the unwinder beside another one
$(O)/games/unwinders: tests/games/unwinders.c $(O)/libredframe.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -o $@ $< $(O)/libredframe.a $(LIBS)

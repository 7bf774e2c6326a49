# SPDX-License-Identifier: GPL-2.0-only
# redframe: why was this frame slow?   make | make deps | make demo | make test | make bench | make install
PREFIX  ?= /usr/local
DESTDIR ?=
O       ?= build
CC      ?= cc
CLANG   ?= clang
BPFTOOL ?= $(shell command -v bpftool || echo /usr/sbin/bpftool)
CFLAGS  ?= -O2 -g
JOBS    ?= $(shell nproc)
# make V=1 shows the commands
Q       := $(if $(V),,@)
VERSION := $(shell cat VERSION)

ARCH    := $(shell uname -m)
BPF_ARCH := $(if $(filter aarch64,$(ARCH)),arm64,x86)
WARN    := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wno-unused-parameter
# -iquote: userspace/strings.h must not stand in for the system's <strings.h>
INC     := $(addprefix -iquote ,. bpf probes userspace exporters $(O))
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE -DREDFRAME_VERSION='"$(VERSION)"' $(WARN) $(INC) $(CFLAGS)
# libbpf is linked statically: Debian's library package is named after a version that other releases lack
LIBS    := -l:libbpf.a -ldw -lelf -l:libiberty.a -lZydis -ldeflate -lz -lsqlite3 -lm -lpthread

SRC  := $(filter-out userspace/main.c,$(wildcard userspace/*.c probes/*.c exporters/*.c))
OBJ  := $(SRC:%.c=$(O)/obj/%.o)
# core first: the linker of libbpf 1.1 misplaces a map that is used before it is defined
BPF_SRC := bpf/core.bpf.c $(filter-out bpf/core.bpf.c,$(wildcard bpf/*.bpf.c))
BPF_OBJ := $(BPF_SRC:bpf/%.bpf.c=$(O)/bpf/%.bpf.o)
SKEL := $(O)/redframe.skel.h

.PHONY: all deps demo sample test test-programs test-unit test-san test-live test-accuracy fuzz bench bench-rings bench-symbols install clean check-format check-docs check-static
.DELETE_ON_ERROR:
all: $(O)/redframe $(O)/libredframe-alloc.so $(O)/examples/hitches

# ---- what the build needs: said before anything is built; make deps installs it (the list: deps.txt) ----
$(O)/.needs: scripts/needs
	@mkdir -p $(O)
	@CC='$(CC)' CLANG='$(CLANG)' BPFTOOL='$(BPFTOOL)' LIBS='$(LIBS)' scripts/needs
	@touch $@
deps:
	@scripts/deps

$(O)/redframe: $(O)/obj/userspace/main.o $(O)/libredframe.a
	@echo "  LD    $@"
	$Q$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(O)/libredframe.a: $(OBJ)
	@rm -f $@
	@$(AR) rcs $@ $^

$(O)/obj/%.o: %.c | $(SKEL)
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$Q$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# ---- the kernel side: one object per event class, linked, one skeleton ----
$(O)/bpf/%.bpf.o: bpf/%.bpf.c | $(O)/.needs
	@mkdir -p $(@D)
	@echo "  BPF   $<"
	$Q$(CLANG) -O2 -g -Wall -Wextra -Wno-unused-parameter -Wno-visibility -target bpf -mcpu=v3 -D__TARGET_ARCH_$(BPF_ARCH) -Ibpf -MMD -MP -c -o $@ $<
$(O)/redframe.bpf.o: $(BPF_OBJ)
	@echo "  BPFLD $@"
	$Q$(BPFTOOL) gen object $@ $^
$(SKEL): $(O)/redframe.bpf.o
	@echo "  SKEL  $@"
	$Q$(BPFTOOL) gen skeleton $< name redframe_bpf > $@

# what --alloc preload loads into the game
$(O)/libredframe-alloc.so: preload/preload.c preload/area.h bpf/events.h bpf/events.def bpf/exponential.h
	@echo "  LD    $@"
	$Q$(CC) -std=gnu11 -D_GNU_SOURCE $(WARN) -O2 -g -fPIC -shared -fvisibility=hidden -fexceptions -iquote bpf -o $@ $<

# without frame pointers, as games are
$(O)/examples/hitches: $(wildcard examples/hitches/*.c examples/hitches/*.h) probes/redframe.h | $(O)/.needs
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$Q$(CC) -std=gnu11 -D_GNU_SOURCE $(WARN) -O2 -g -fomit-frame-pointer -Iprobes -o $@ $(filter %.c,$^) -lpthread -lm

# ---- what it costs ----
$(O)/bench/workload: bench/workload.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -D_GNU_SOURCE $(WARN) -O2 -g -o $@ $< -lpthread
$(O)/bench/limits.bpf.o: bench/limits.bpf.c bpf/kernel.h
	@mkdir -p $(@D)
	@echo "  BPF   $<"
	$Q$(CLANG) -O2 -g -Wall -target bpf -mcpu=v3 -D__TARGET_ARCH_$(BPF_ARCH) -Ibpf -c -o $@ $<
$(O)/bench/limits.skel.h: $(O)/bench/limits.bpf.o
	$(BPFTOOL) gen skeleton $< name limits_bpf > $@
$(O)/bench/limits: bench/limits.c $(O)/bench/limits.skel.h $(O)/libredframe.a
	$(CC) $(ALL_CFLAGS) -iquote $(O)/bench -o $@ $< $(O)/libredframe.a $(LIBS)

# many CPUs, simulated
$(O)/bench/rings: bench/rings.c $(O)/libredframe.a
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$Q$(CC) $(ALL_CFLAGS) -o $@ $< $(O)/libredframe.a $(LIBS)

$(O)/bench/packets: bench/packets.c
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$Q$(CC) $(ALL_CFLAGS) -o $@ $< -lz

# recordings of any length, to time explain and export with
$(O)/bench/generate: bench/generate.c $(O)/libredframe.a
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$Q$(CC) $(ALL_CFLAGS) -o $@ $< $(O)/libredframe.a $(LIBS)

# places in a program's code, to time symbolize with
$(O)/bench/addresses: bench/addresses.c $(O)/libredframe.a
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$Q$(CC) $(ALL_CFLAGS) -o $@ $< $(O)/libredframe.a $(LIBS)

# ---- to see what it does ----
demo:
	@scripts/deps build
	@+$(MAKE) --no-print-directory -j$(JOBS) all
	@O='$(O)' scripts/demo
# the recording that demo explains where nothing can be traced
$(O)/scrub: scripts/scrub.c $(O)/libredframe.a
	$(CC) $(ALL_CFLAGS) -o $@ $< $(O)/libredframe.a $(LIBS)
sample: all $(O)/scrub
	@O='$(O)' scripts/sample

# ---- tests ----
TEST_LIB := $(wildcard tests/*.c)
TEST_HDR := $(wildcard tests/*.h tests/unit/*.h)
TESTS := $(patsubst tests/unit/%.c,%,$(wildcard tests/unit/test_*.c))
LIVE  := $(patsubst tests/live/%.c,%,$(wildcard tests/live/test_*.c))
LIVE_LIB := $(filter-out tests/live/test_%,$(wildcard tests/live/*.c))
UNIT_PROGRAMS = $(TESTS:%=$(O)/tests/%)
SAN_PROGRAMS  = $(TESTS:%=$(O)/san/tests/%)
LIVE_PROGRAMS = $(LIVE:%=$(O)/live/%)
# these keep a frame rate, so nothing else may run beside them
TIMED := $(O)/tests/test_hitches $(O)/san/tests/test_hitches
RUN_TESTS = O='$(O)' MAKE='$(MAKE)' scripts/run-tests -j $(JOBS)
SAN   := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer

# what several tests share
$(O)/obj/tests/% $(O)/san/obj/tests/%: private ALL_CFLAGS += -Itests
$(O)/tests/libtest.a: $(TEST_LIB:%.c=$(O)/obj/%.o)
$(O)/san/tests/libtest.a: $(TEST_LIB:%.c=$(O)/san/obj/%.o)
$(O)/live/liblive.a: $(LIVE_LIB:%.c=$(O)/obj/%.o)
$(O)/tests/libtest.a $(O)/san/tests/libtest.a $(O)/live/liblive.a $(O)/san/libredframe.a:
	@mkdir -p $(@D)
	@rm -f $@
	@$(AR) rcs $@ $^

$(O)/tests/%: tests/unit/%.c $(TEST_HDR) $(O)/tests/libtest.a $(O)/libredframe.a
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$Q$(CC) $(ALL_CFLAGS) -Itests -o $@ $< $(filter %.a,$^) -lcmocka $(LIBS)
$(O)/san/obj/%.o: %.c | $(SKEL)
	@mkdir -p $(@D)
	@echo "  SAN   $<"
	$Q$(CC) $(ALL_CFLAGS) -O1 $(SAN) -MMD -MP -c -o $@ $<
$(O)/san/libredframe.a: $(SRC:%.c=$(O)/san/obj/%.o)
$(O)/san/tests/%: tests/unit/%.c $(TEST_HDR) $(O)/san/tests/libtest.a $(O)/san/libredframe.a
	@mkdir -p $(@D)
	@echo "  SAN   $@"
	$Q$(CC) $(ALL_CFLAGS) -O1 $(SAN) -Itests -o $@ $< $(filter %.a,$^) -lcmocka $(LIBS)

$(O)/tests/test_hitches $(O)/san/tests/test_hitches: | $(O)/examples/hitches

# on the running kernel
$(O)/live/%: tests/live/%.c $(TEST_HDR) $(wildcard tests/live/*.h) $(O)/live/liblive.a $(O)/tests/libtest.a $(O)/libredframe.a
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$Q$(CC) $(ALL_CFLAGS) -Itests -o $@ $< $(filter %.a,$^) -lcmocka $(LIBS)

test:
	@scripts/deps build test
	@+$(MAKE) --no-print-directory -j$(JOBS) test-programs
	@+$(RUN_TESTS) make:check-static make:check-format make:check-docs $(filter-out $(TIMED),$(UNIT_PROGRAMS) $(SAN_PROGRAMS)) \
		--alone $(filter $(TIMED),$(UNIT_PROGRAMS) $(SAN_PROGRAMS)) $(LIVE_PROGRAMS)
test-programs: all $(UNIT_PROGRAMS) $(SAN_PROGRAMS) $(LIVE_PROGRAMS) $(O)/games/unwinders
test-unit: $(UNIT_PROGRAMS)
	@+$(RUN_TESTS) $^
test-san: $(SAN_PROGRAMS)
	@+$(RUN_TESTS) $^
test-live: all $(LIVE_PROGRAMS)
	@+$(RUN_TESTS) --alone $(LIVE_PROGRAMS)
# redframe against the log of examples/hitches: every kind 20 times in both shapes, and 10,000 frames without a hitch
test-accuracy: all $(O)/live/test_hitches
	REDFRAME_ROUNDS=$${REDFRAME_ROUNDS:-20} REDFRAME_FRAMES=$${REDFRAME_FRAMES:-10000} $(O)/live/test_hitches
-include tests/live/live.mk tests/vm/vm.mk

# ---- for arm64: all of it cross-compiled, the unit tests under user-mode emulation; docs/kernels.md says which not ----
ARM64_LIBS = $(O)/arm64-libs
ARM64_MAKE = $(MAKE) --no-print-directory O=$(O)/arm64 ARCH=aarch64 CC='aarch64-linux-gnu-gcc --sysroot=$(abspath $(ARM64_LIBS))/root'
ARM64_TESTS = $(filter-out test_hitches test_naming test_postgres test_sites test_vulkan,$(TESTS))
.PHONY: arm64
arm64:
	@scripts/deps build arm64
	@scripts/arm64-libraries $(ARM64_LIBS)
	@+$(ARM64_MAKE) -j$(JOBS) all $(ARM64_TESTS:%=$(O)/arm64/tests/%)
	@+QEMU_LD_PREFIX=$(abspath $(ARM64_LIBS))/root O='$(O)/arm64' scripts/run-tests -u qemu-aarch64-static -j $(JOBS) \
		$(ARM64_TESTS:%=$(O)/arm64/tests/%)

# ---- the source itself ----
check-format: # the lists in *.def are tables, laid out by hand
	@git ls-files '*.c' '*.h' | xargs clang-format --dry-run -Werror
check-docs: $(O)/redframe
	@O='$(O)' scripts/check-docs
# clang-tidy, by .clang-tidy; only what changed is looked at again. Nearly all of its time is the analyzer's walk through
# each function: `make check-static ANALYZER_NODES=225000` lets it go as far as it does by itself, for three times as long.
ANALYZER_NODES ?= 50000
TIDY = $(O)/tidy/$(ANALYZER_NODES)
check-static: $(patsubst %.c,$(TIDY)/%.ok,$(wildcard userspace/*.c probes/*.c exporters/*.c))
$(TIDY)/%.ok: %.c .clang-tidy | $(SKEL)
	@mkdir -p $(@D)
	@echo "  TIDY  $<"
	$Qclang-tidy --quiet --warnings-as-errors='*' $< -- $(ALL_CFLAGS) -Xclang -analyzer-config -Xclang max-nodes=$(ANALYZER_NODES) \
		-MMD -MF $(@:.ok=.d) -MT $@ 2>$@.log || { cat $@.log; exit 1; }
	@touch $@

# ---- fuzzing: every tests/fuzz/fuzz_*.c under libFuzzer with the sanitizers, seeded with the golden recordings ----
FUZZ_SECONDS ?= 60
FUZZ  := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_CC = $(CLANG) $(ALL_CFLAGS) -O1 $(SAN) -fsanitize=fuzzer
$(O)/fuzz/obj/%.o: %.c | $(SKEL)
	@mkdir -p $(@D)
	@$(FUZZ_CC)-no-link -MMD -MP -c -o $@ $<
$(O)/fuzz/libredframe.a: $(SRC:%.c=$(O)/fuzz/obj/%.o)
	@rm -f $@
	@$(AR) rcs $@ $^
$(O)/fuzz/%: tests/fuzz/%.c $(O)/fuzz/libredframe.a
	$(FUZZ_CC) -Itests -o $@ $< $(O)/fuzz/libredframe.a $(LIBS)
SYMBOLIZE_SEEDS = $(addprefix $(O)/fuzz/fuzz_symbolize.corpus/seed-,gdwarf-3 gdwarf-4 gdwarf-5 gz gno-column-info)
$(O)/fuzz/fuzz_symbolize.corpus/seed-%: tests/fuzz/seed_symbolize.cc
	@mkdir -p $(@D)
	$(CXX) -O2 -g -$* -shared -fPIC -nostdlib -o $@ $<
fuzz: $(FUZZ:%=$(O)/fuzz/%) | $(SYMBOLIZE_SEEDS)
	@for f in $^; do mkdir -p $$f.corpus && $$f -max_total_time=$(FUZZ_SECONDS) -max_len=65536 -timeout=10 \
		-artifact_prefix=$$f- $$f.corpus || exit 1; done

# ---- elsewhere ----
# what other tools are measured too is optional: bench/run says which are not there
bench: all $(O)/bench/workload $(O)/bench/limits $(O)/bench/generate $(O)/bench/packets $(O)/live/targets/marks
	-@scripts/deps bench
	-@bench/perfetto $(O)/bench/perfetto
	@bench/run $(O) README.md
bench-rings: $(O)/bench/rings
	$(O)/bench/rings
bench-symbols: all $(O)/bench/addresses
	@bench/symbols $(O)
install: $(O)/redframe
	install -Dm755 $(O)/redframe $(DESTDIR)$(PREFIX)/bin/redframe
	install -Dm755 $(O)/libredframe-alloc.so $(DESTDIR)$(PREFIX)/lib/redframe/libredframe-alloc.so
	install -Dm644 probes/redframe.h $(DESTDIR)$(PREFIX)/include/redframe.h
	install -d $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/doc/redframe
	install -m644 docs/*.1 $(DESTDIR)$(PREFIX)/share/man/man1
	install -m644 README.md LICENSE LICENSES/* $(wildcard docs/*.md) $(DESTDIR)$(PREFIX)/share/doc/redframe
clean:
	rm -rf $(O)

-include $(shell find $(O) -name '*.d' 2>/dev/null)

# SPDX-License-Identifier: MIT
# primefs: `make help` lists the targets.
#
#   CUDA=1|0            with or without the CUDA back end (1 when nvcc is found)
#   CUDA_ARCHS="80 90"  device architectures; PTX of the last one is included
#   ARCHIVE=1|0         with or without libarchive (import and export of archives)
#   EDIT=1|0            with or without libedit (the prompt of primefs query)
#   SAN=address,undefined   sanitizers; VERIFY=1 checks invariants; WERROR=1 as CI builds
#   PREFIX, DESTDIR     where `make install` puts things

PREFIX  ?= /usr/local
NVCC    ?= nvcc
CUDA    ?= $(if $(shell command -v $(NVCC) 2>/dev/null),1,0)
CUDA_ARCHS ?= 80 90
ARCHIVE ?= 1
EDIT    ?= $(if $(shell pkg-config --exists libedit && echo 1),1,0)
SAN     ?=
VERIFY  ?= 0
WERROR  ?= 0
NDEBUG  ?= 0

VERSION := $(shell git describe --always --dirty 2>/dev/null || echo unknown)
comma   := ,
empty   :=
space   := $(empty) $(empty)
variant := $(subst $(space),-,$(strip $(if $(SAN),san-$(subst $(comma),-,$(SAN)),release) \
	$(if $(filter 0,$(CUDA)),host) $(if $(filter 1,$(VERIFY)),verify) \
	$(if $(filter 1,$(NDEBUG)),ndebug) $(if $(filter clang%,$(CC)),$(notdir $(CC))) \
	$(if $(filter 0,$(ARCHIVE)),noarchive) $(if $(filter 0,$(EDIT)),noedit)))
B       ?= build/$(variant)

CFLAGS  ?= -O2 -g
WARNINGS := -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes \
	-Wold-style-definition -Wundef -Wvla -Wformat=2 -Wimplicit-fallthrough -Wwrite-strings

# Packages: pkg-config name and the Debian package that has it.
packages := fuse3 sqlite3 gmp primesieve libxxhash $(if $(filter 1,$(ARCHIVE)),libarchive) $(if $(filter 1,$(EDIT)),libedit)
debian   := lemon re2c libfuse3-dev libsqlite3-dev libgmp-dev libprimesieve-dev libxxhash-dev libarchive-dev libedit-dev libcmocka-dev
no_deps  := help clean test demo setup print-build lint-shell lint-man format
goals    := $(if $(MAKECMDGOALS),$(MAKECMDGOALS),all)
ifneq ($(filter-out $(no_deps),$(goals)),)
missing := $(shell for p in $(packages) cmocka; do pkg-config --exists $$p || echo $$p; done; \
	for p in lemon re2c; do command -v $$p >/dev/null || echo $$p; done)
ifneq ($(strip $(missing)),)
$(error not installed: $(missing).  On Debian or Ubuntu: apt-get install build-essential pkg-config $(debian))
endif
endif

PKG_CFLAGS := $(shell pkg-config --cflags $(packages) 2>/dev/null)
PKG_LIBS   := $(shell pkg-config --libs $(filter-out libarchive libxxhash,$(packages)) 2>/dev/null)
# primesieve is C++: as an archive it saves every command from loading that library, half a millisecond.
static_cxx := $(if $(SAN)$(filter 1,$(CUDA)),,$(wildcard $(foreach a,libprimesieve.a libstdc++.a,$(shell $(CC) -print-file-name=$a))))
ifeq ($(words $(static_cxx)),2)
PKG_LIBS := $(filter-out -lprimesieve,$(PKG_LIBS)) -Wl,-Bstatic -lprimesieve -lstdc++ -Wl,-Bdynamic -static-libgcc
endif
archive_so := $(shell objdump -p "$$($(CC) -print-file-name=libarchive.so)" 2>/dev/null | sed -n 's/ *SONAME *//p')

# clang does not say that it makes such a build, as gcc does; NULL + 0 is NULL in C++ and the next C.
clang_san := $(if $(filter clang%,$(CC)),$(if $(findstring address,$(SAN)),-D__SANITIZE_ADDRESS__) -fno-sanitize=pointer-overflow)
all_cflags := -std=gnu11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DFUSE_USE_VERSION=312 -I. -I$(B) \
	-DPFS_ARCHIVE=$(ARCHIVE) -DPFS_EDIT=$(EDIT) -DPFS_PREFIX='"$(PREFIX)"' \
	$(PKG_CFLAGS) $(WARNINGS) $(if $(filter 1,$(WERROR)),-Werror) \
	$(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=undefined $(clang_san)) \
	$(if $(filter 1,$(VERIFY)),-DPFS_VERIFY) $(if $(filter 1,$(NDEBUG)),-DNDEBUG) \
	-pthread -MMD -MP $(CFLAGS)
$(addprefix $(B)/,tools/primefs.o lint/tools/primefs.c.tidy lint/tools/primefs.c.analyzer): \
	all_cflags += -DPFS_VERSION='"$(VERSION)"' # not for all: it differs from commit to commit
$(B)/tools/primefs.o: $(B)/version
$(addprefix $(B)/,tools/archive.o lint/tools/archive.c.tidy lint/tools/archive.c.analyzer): \
	all_cflags += $(if $(archive_so),-DPFS_ARCHIVE_LIBRARY='"$(archive_so)"') # loaded when needed
all_ldflags := $(if $(SAN),-fsanitize=$(SAN)) -pthread $(LDFLAGS)

# Sources: every .c and .cu of a folder belongs to it.
sources := $(wildcard base/*.c meta/*.c meta/*/*.c gpu/*.c gpu/host/*.c fs/*/*.c fs/*/*/*.c)
ifeq ($(CUDA),1)
sources += $(filter-out %_none.c,$(wildcard gpu/cuda/*.c))
cu_sources := $(wildcard gpu/cuda/*.cu)
CUDA_HOME ?= $(patsubst %/bin/,%,$(dir $(realpath $(shell command -v $(NVCC)))))
all_cflags += -I$(CUDA_HOME)/include
cuda_libs := $(if $(cu_sources),-L$(CUDA_HOME)/lib64 -lcudart_static -ldl -lrt -lstdc++)
else
sources += $(wildcard gpu/cuda/*_none.c)
cu_sources :=
endif
bench_sources := $(wildcard tools/bench/*.c)
tool_sources := $(filter-out $(bench_sources),$(wildcard tools/*.c tools/*/*.c))
NVCCFLAGS ?= -O3
all_nvccflags := -std=c++17 -I. $(NVCCFLAGS) -lineinfo -Xfatbin -compress-all -Xcompiler -Wall,-Wextra,-fPIC \
	$(foreach a,$(CUDA_ARCHS),-gencode=arch=compute_$(a),code=sm_$(a)) \
	-gencode=arch=compute_$(lastword $(CUDA_ARCHS)),code=compute_$(lastword $(CUDA_ARCHS))

schema_sources := $(patsubst %.sql,$(B)/%.c,$(wildcard meta/*.sql))
# The B+-trees once more, for values of 64 bits (gpu/index_value.h).
wide_sources := base/btree.c base/btree_batch.c base/btree_bulk.c gpu/host/index.c gpu/index_upper.c \
	$(filter gpu/cuda/cuda_index%.c,$(sources))
wide_cu_sources := $(filter gpu/cuda/index%.cu,$(cu_sources))
objects := $(sources:%.c=$(B)/%.o) $(cu_sources:%.cu=$(B)/%.cu.o) \
	$(wide_sources:%.c=$(B)/%.wide.o) $(wide_cu_sources:%.cu=$(B)/%.wide.cu.o) $(schema_sources:%.c=%.o) \
	$(B)/fs/query/parse/grammar.o $(B)/fs/query/parse/lexer.o
tool_objects := $(tool_sources:%.c=$(B)/%.o)
bench_objects := $(bench_sources:%.c=$(B)/%.o)
library := $(B)/libprimefs.a
tool_library := $(B)/libtools.a
ref_objects := $(patsubst %.c,$(B)/%.o,$(wildcard tests/ref/*.c))
test_programs := $(patsubst %.c,$(B)/%,$(wildcard tests/unit/test_*.c))
mount_programs := $(patsubst %.c,$(B)/%,$(filter-out %/probe.c %/twin_trees.c,$(wildcard tests/mount/*.c tests/crash/*.c)))
fuzz_programs := $(patsubst %.c,$(B)/%_replay,$(wildcard tests/fuzz/*_fuzzer.c))
libs = $(PKG_LIBS) $(cuda_libs) -ldl -lm

in_build := $(if $(filter build/release%,$(B)),1)
all: $(B)/primefs $(if $(in_build),build/primefs) ## build the program (build/primefs)

primefs-bench: $(B)/primefs-bench $(if $(in_build),build/primefs build/primefs-bench) ## build/primefs-bench: measures, and makes hierarchies to measure with

build/primefs build/primefs-bench: build/%: $(B)/%
	@cp -f $< $@

$(B)/version: FORCE
	@mkdir -p $(@D)
	@echo '$(VERSION)' | cmp -s - $@ || echo '$(VERSION)' > $@

$(B)/primefs: $(tool_objects) $(library)
	$(CC) $(all_ldflags) -o $@ $^ $(libs)

$(B)/primefs-bench: $(bench_objects) $(tool_library) $(library)
	$(CC) $(all_ldflags) -o $@ $^ $(libs)

$(library): $(objects)
	@rm -f $@
	$(AR) rcs $@ $^

# The tools without main(), for tests.
$(tool_library): $(filter-out $(B)/tools/primefs.o,$(tool_objects))
	@rm -f $@
	$(AR) rcs $@ $^

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(all_cflags) -c -o $@ $<

$(B)/%.wide.o: %.c
	@mkdir -p $(@D)
	$(CC) $(all_cflags) -DPFS_WIDE_VALUES -c -o $@ $<

$(B)/%.wide.cu.o: %.cu
	@mkdir -p $(@D)
	$(NVCC) $(all_nvccflags) -DPFS_WIDE_VALUES -MMD -MF $(@:.o=.d) -c -o $@ $<

$(B)/%.cu.o: %.cu
	@mkdir -p $(@D)
	$(NVCC) $(all_nvccflags) -MMD -MF $(@:.o=.d) -c -o $@ $<

$(schema_sources): $(B)/meta/%.c: meta/%.sql
	@mkdir -p $(@D)
	@(echo 'extern const char pfs_$*_sql[]; const char pfs_$*_sql[] ='; \
	  sed 's/\\/\\\\/g; s/"/\\"/g; s/.*/"&\\n"/' $<; echo ';') > $@

$(schema_sources:%.c=%.o): %.o: %.c
	$(CC) $(all_cflags) -c -o $@ $<

# The parser of statements: Lemon's and re2c's C is compiled without our warnings.
parse := $(B)/fs/query/parse
$(parse)/grammar.h: $(parse)/grammar.c ;
$(parse)/grammar.c: fs/query/parse/grammar.y
	@mkdir -p $(@D)
	lemon -q -d$(@D) $<
	@touch $@ $(@:.c=.h)

$(parse)/lexer.c: fs/query/parse/lexer.re
	@mkdir -p $(@D)
	re2c --no-debug-info -o $@ $<

$(parse)/grammar.o $(parse)/lexer.o: %.o: %.c $(parse)/grammar.h
	$(CC) $(all_cflags) -w -c -o $@ $<

$(parse)/parse.o $(B)/lint/fs/query/parse/parse.c.tidy $(B)/lint/fs/query/parse/parse.c.analyzer: $(parse)/grammar.h

# A unit test may need symbols wrapped: WRAP_test_store := calloc sqlite3_step
-include tests/wrap.mk
$(B)/tests/unit/test_%: $(B)/tests/unit/test_%.o $(ref_objects) $(tool_library) $(library)
	$(CC) $(all_ldflags) $(foreach w,$(WRAP_test_$*),-Wl,--wrap=$(w)) -o $@ $^ $(libs) -lcmocka
$(B)/tests/unit/test_import_tar: libs += $(if $(filter 1,$(ARCHIVE)),-larchive)
$(B)/tests/mount/%: $(B)/tests/mount/%.o $(B)/tests/mount/probe.o
	$(CC) $(all_ldflags) -o $@ $^
$(B)/tests/mount/statements: $(B)/tests/ref/statements.o
$(B)/tests/mount/twin: $(B)/tests/mount/twin_trees.o
$(B)/tests/crash/%: $(B)/tests/crash/%.o $(B)/tests/mount/probe.o
	$(CC) $(all_ldflags) -o $@ $^
$(B)/tests/fuzz/parse_fuzzer_replay $(B)/tests/fuzz/parse_fuzzer: $(B)/tests/ref/unparse.o
$(B)/tests/fuzz/%_fuzzer_replay: $(B)/tests/fuzz/%_fuzzer.o $(B)/tests/fuzz/replay.o $(tool_library) $(library)
	$(CC) $(all_ldflags) -o $@ $^ $(libs)

tests: all primefs-bench $(test_programs) $(mount_programs) $(fuzz_programs) ## build every test program

-include mk/*.mk

help: ## this list
	@grep -hE '^[a-z][a-z-]*:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | sort -u | \
		awk -F'\t' '{printf "  make %-16s %s\n", $$1, $$2}'
	@sed -n '4,10s/^# *//p' Makefile

clean: ## remove build/
	rm -rf build

.PHONY: all primefs-bench tests help clean FORCE
.SECONDARY:
.DEFAULT_GOAL := all

-include $(shell find $(B) -name '*.d' 2>/dev/null)

# SPDX-License-Identifier: MIT
# Installing, and the bundle: one binary for machines where nothing can be installed.
#
# mount(8) looks for its helper in /sbin, whatever PREFIX is.

SBINDIR ?= /sbin
bindir := $(DESTDIR)$(PREFIX)/bin
mandir := $(DESTDIR)$(PREFIX)/share/man
helper := $(DESTDIR)$(SBINDIR)/mount.fuse.primefs
manuals := $(wildcard docs/man/*.[1-8])

install: all ## install under PREFIX (and DESTDIR); mount(8)'s helper in SBINDIR
	install -D -m 755 $(B)/primefs $(bindir)/primefs
	$(foreach m,$(manuals),install -D -m 644 $(m) $(mandir)/man$(subst .,,$(suffix $(m)))/$(notdir $(m)) &&) :
	mkdir -p $(dir $(helper))
	sed 's|@bindir@|$(PREFIX)/bin|' tools/mount.fuse.primefs > $(helper)
	chmod 755 $(helper)

uninstall: ## remove what install installed
	rm -f $(bindir)/primefs $(helper)
	rm -f $(foreach m,$(manuals),$(mandir)/man$(subst .,,$(suffix $(m)))/$(notdir $(m)))

# Static archives for all but glibc and libstdc++; reading archives and editing at the prompt are left out.
bundle_libs := -Wl,-Bstatic -lfuse3 -lsqlite3 -lgmp -lprimesieve \
	$(if $(cu_sources),-L$(CUDA_HOME)/lib64 -lcudart_static) -Wl,-Bdynamic \
	-lstdc++ -ldl -lrt -lm

kit := build/gpu-kit
kit_tests := $(addprefix $(kit)/,test_engine test_engine_sets test_engine_large test_engine_faults \
	test_engine_threads test_code_index test_modexact test_tree_codes test_relation test_relation_ends test_relation_shapes \
	test_relation_texts test_relation_chosen test_index test_index_device \
	test_index_history test_prefix test_prefix_calls test_resident \
	test_resolve_device test_path_table)
kit_probes := $(mount_programs:$(B)/%=$(kit)/%)

gpu-kit: ## build/gpu-kit: what tests/gpu-kit needs on a GPU machine where nothing can be installed
	@$(MAKE) --no-print-directory ARCHIVE=0 EDIT=0 CUDA=1 build-gpu-kit

bundle: ## build/primefs-bundle and build/primefs-bench-bundle: need only glibc and libstdc++ (CUDA=1 CUDA_ARCHS=90)
	@$(MAKE) --no-print-directory ARCHIVE=0 EDIT=0 CUDA=$(CUDA) build/primefs-bundle build/primefs-bench-bundle

ifeq ($(ARCHIVE),0)
build/primefs-bundle: $(tool_objects) $(library)
build/primefs-bench-bundle: $(bench_objects) $(tool_library) $(library)
build/primefs-bundle build/primefs-bench-bundle:
	$(CC) $(all_ldflags) -o $@ $^ $(bundle_libs)
	@! ldd $@ | grep -E 'fuse|sqlite|gmp|primesieve|cudart|archive'

build-gpu-kit: $(kit)/primefs $(kit)/primefs-bench $(kit_tests) $(kit_probes)
	cp -L $$($(CC) -print-file-name=libcmocka.so.0) $$(command -v getfattr) $$(command -v setfattr) $(kit)
	strip $(kit)/primefs $(kit)/primefs-bench $(kit_tests)

$(kit)/primefs $(kit)/primefs-bench: $(kit)/%: build/%-bundle
	@mkdir -p $(@D)
	cp -f $< $@

$(kit)/tests/%: $(B)/tests/%
	@mkdir -p $(@D)
	cp -f $< $@

$(kit_tests): $(kit)/%: $(B)/tests/unit/%.o $(ref_objects) $(tool_library) $(library)
	@mkdir -p $(@D)
	$(CC) $(all_ldflags) $(foreach w,$(WRAP_$(@F)),-Wl,--wrap=$(w)) -o $@ $^ -lcmocka $(bundle_libs)
endif

.PHONY: install uninstall bundle gpu-kit build-gpu-kit

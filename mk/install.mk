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

# Static archives for all but glibc and libstdc++; reading archives is left out.
bundle_libs := -Wl,-Bstatic -lfuse3 -lsqlite3 -lgmp -lprimesieve \
	$(if $(cu_sources),-L$(CUDA_HOME)/lib64 -lcudart_static) -Wl,-Bdynamic \
	-lstdc++ -ldl -lrt -lm

bundle: ## build/primefs-bundle: needs only glibc and libstdc++ (CUDA=1 CUDA_ARCHS=90)
	@$(MAKE) --no-print-directory ARCHIVE=0 CUDA=$(CUDA) build/primefs-bundle

ifeq ($(ARCHIVE),0)
build/primefs-bundle: $(tool_objects) $(library)
	$(CC) $(all_ldflags) -o $@ $^ $(bundle_libs)
	@! ldd $@ | grep -E 'fuse|sqlite|gmp|primesieve|cudart|archive'
endif

.PHONY: install uninstall bundle

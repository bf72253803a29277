# SPDX-License-Identifier: MIT
# Linters; `tools/setup lint` installs them.  Each finding is an error.  Files that are clean are
# remembered in $(B)/lint until they, or something they include, change.

lint_sources := $(sources) $(tool_sources) $(bench_sources) $(wildcard tests/*/*.c)
cuda_only := $(if $(filter 0,$(CUDA)),$(wildcard gpu/cuda/*.h)) # include CUDA's own
lint_headers := $(filter-out $(cuda_only),$(wildcard base/*.h meta/*.h meta/*/*.h gpu/*.h gpu/*/*.h fs/*/*.h fs/*/*/*.h tools/*.h tools/*/*.h tests/*/*.h))
lint_scripts := $(wildcard tools/setup tools/test tools/demo mk/tidy tests/run tests/layering tests/faults tests/gpu-kit tests/install tests/*.sh tests/*/*.sh .ci/run) \
	$(wildcard tools/*.sh tools/mount.fuse.primefs)
man_pages := $(wildcard docs/man/*.[1-8])

# gcc 12's -fanalyzer loses track of arrays that grow in place and of those filled in a loop: leaks and
# uninitialised reads are left to the sanitizers and valgrind.  cppcheck does not know the cleanup
# attribute.
analyzed := $(sources) $(tool_sources) $(bench_sources)
# clang's analyzer follows up to 225,000 states of a function, which takes four times as long as 50,000 of them;
# `make lint-tidy DEEP=1` lets it.
tidy_depth := $(if $(filter 1,$(DEEP)),,$(addprefix --extra-arg=,-Xclang -analyzer-config -Xclang max-nodes=50000))
analyzer_flags := -fanalyzer -Wno-analyzer-malloc-leak -Wno-analyzer-use-of-uninitialized-value

lint: lint-layering lint-headers lint-tidy lint-analyzer lint-cppcheck lint-shell lint-man ## all linters

layering: lint-layering
headercheck: lint-headers

lint-layering: $(filter-out %.cu.o,$(objects)) $(tool_objects) $(bench_objects) ## includes go down only, libraries stay where they belong
	@B=$(B) tests/layering

lint-headers: $(lint_headers:%=$(B)/lint/%.ok) ## each header compiles alone
lint-tidy: $(lint_sources:%=$(B)/lint/%.tidy) ## clang-tidy
lint-analyzer: $(analyzed:%=$(B)/lint/%.analyzer) ## gcc -fanalyzer

$(B)/lint/%.h.ok: %.h
	@mkdir -p $(@D)
	@$(CC) $(all_cflags) -Wno-unused-function -MF $@.d -MT $@ -Werror -fsyntax-only -x c $<
	@case $< in gpu/cuda/*) $(CXX) -std=c++17 -I. -Wall -Wextra -Werror -fsyntax-only -x c++ $<;; esac
	@touch $@

$(B)/lint/%.tidy: % .clang-tidy
	@mkdir -p $(@D)
	@echo "clang-tidy $<"
	@mk/tidy $< $(tidy_depth) -- $(filter-out -MMD -MP,$(all_cflags))
	@$(CC) $(filter-out -MMD -MP,$(all_cflags)) -M -MT $@ -MF $@.d $<
	@touch $@

$(B)/lint/%.analyzer: %
	@mkdir -p $(@D)
	@echo "gcc -fanalyzer $<"
	@gcc $(all_cflags) $(analyzer_flags) -Werror -MF $@.d -MT $@ -c -o /dev/null $<
	@touch $@

lint-cppcheck: ## cppcheck
	@cppcheck --quiet --error-exitcode=1 --std=c11 --language=c --inline-suppr --max-configs=1 \
		--enable=warning,performance,portability --suppress=missingIncludeSystem \
		--suppress=unknownMacro --suppress=memleak --suppress=resourceLeak --suppress=normalCheckLevelMaxBranches \
		-I. -D_GNU_SOURCE -D__GNUC__ -DPFS_VERSION='""' -DPFS_PREFIX='""' -DPFS_ARCHIVE=1 -DPFS_EDIT=1 \
		-DSQLITE_VERSION_NUMBER=3038000 -j 2 $(sources) $(tool_sources) $(bench_sources)

lint-shell: ## shellcheck; tests call nothing that a small system has not
	@shellcheck $(lint_scripts)
	@! grep -nE '\<(python3|pgrep|pkill|ps|jq|xxd|strace) ' $(wildcard tests/*/*.sh) /dev/null

# A mark that is a word of its own is set without the space before it, which an example cannot do without: \&. and the like keep it.
lint-man: ## manual pages
	@$(if $(man_pages),mandoc -Tlint -Wwarning $(man_pages))
	@! grep -nE '^\.(Dl|D1) (.* )?[].,:;()?![]( |$$)' $(man_pages) /dev/null

format: ## clang-format, on the lines changed since the last commit only
	@git clang-format --extensions c,h,cu HEAD || true

.PHONY: lint layering headercheck lint-layering lint-headers lint-tidy lint-analyzer lint-cppcheck
.PHONY: lint-shell lint-man format

-include $(shell find $(B)/lint -name '*.d' 2>/dev/null)

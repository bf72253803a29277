# SPDX-License-Identifier: MIT
# Tests.  They need no root; what cannot run here is skipped and said so.

run_tests := tests/run --build $(B)

test: ## set up, build, run every test (tools/test)
	@tools/test

demo: ## set up, build, show what primefs does (tools/demo)
	@tools/demo

setup: ## install the dependencies (tools/setup)
	@tools/setup

check: tests ## unit, fuzz replay, mount and command-line tests
	@$(run_tests)

check-unit: all $(test_programs) ## unit tests
	@$(run_tests) unit

# A store's own tests have no second thread: there is nothing for ThreadSanitizer to see.
one_thread := store_crash store_damage store_fault store_feed store_version
check-threads: all $(test_programs) ## unit tests of what threads share
	@$(run_tests) $(filter-out $(one_thread:%=$(B)/tests/unit/test_%),$(filter $(B)/tests/unit/%,$(test_programs)))

check-mount: all $(mount_programs) ## tests through a mounted filesystem
	@$(run_tests) mount

check-cli: all $(mount_programs) ## tests of the command line
	@$(run_tests) cli

check-crash: all $(mount_programs) ## kill -9 of the daemon, damaged stores
	@$(run_tests) crash

check-long: tests ## every test, those that take minutes too
	@$(run_tests) --long

durability_tests := store_crash store_version store_damage store_fault tree_crash tree_fault content_crash change_crash change_fault
check-durability: tests ## crashes, faults and damage by the thousand (half an hour)
	@$(run_tests) --long crash $(durability_tests:%=$(B)/tests/unit/test_%)

fresh_tests := crash/refresh crash/image_kill cli/refresh mount/refresh_random
check-fresh: tests ## kills of refreshes and of image files' writers, random changes of a folder, damaged image files, by the thousand (an hour)
	@$(run_tests) --long $(B)/tests/unit/test_imagefile_damage $(fresh_tests:%=tests/%.sh)

check-gaps: $(B)/tests/unit/test_query_gaps ## how long statements go without a look at the clock (a quarter of an hour, alone on the machine)
	@PFS_LONG=1 $<

check-leaks: $(B)/tests/unit/test_query_leaks ## a million short statements of each kind leave no memory and no descriptor behind (ten minutes)
	@PFS_LONG=1 $<

# The tables that some of the statements read are made by others, first.
check-latency: all primefs-bench $(B)/tests/mount/statements ## lookups while each statement of the tests runs over 3,000,000 nodes (a quarter of an hour, alone on the machine)
	@{ $(B)/tests/mount/statements && cat tests/query/statements.sql; } >$(B)/latency.sql
	@$(B)/primefs-bench beside $(LATENCY_NODES:%=--nodes=%) $(B)/latency.sql

HELD_SECONDS ?= 3600
check-held: all $(mount_programs) ## answers held open, half read, beside many changes (an hour, or HELD_SECONDS)
	@PFS_HELD=$(HELD_SECONDS) $(run_tests) --long tests/mount/query_held.sh

check-faults: ## each of the relational engine's seeded faults is found by a test (a quarter of an hour)
	@tests/faults

check-races: ## under ThreadSanitizer: .query with sixteen readers and four writers for a minute
	@$(MAKE) --no-print-directory CUDA=0 SAN=thread races

race_tests := pool tree_threads content_threads dispatch
races: tests
	@$(run_tests) --long tests/mount/query_stress.sh
	@$(run_tests) $(race_tests:%=$(B)/tests/unit/test_%)

valgrind-unit: export PFS_TEST_SMALL = 1

check-valgrind: ## unit tests under valgrind's memcheck
	@$(MAKE) --no-print-directory CUDA=0 valgrind-unit

valgrind-unit: $(test_programs)
	@$(run_tests) --under 'valgrind -q --error-exitcode=99 --leak-check=full' unit

coverage: ## line coverage by gcov, worst files first
	@$(MAKE) --no-print-directory -s CUDA=0 B=build/coverage \
		CFLAGS='-O0 -g --coverage' LDFLAGS=--coverage tests
	@-tests/run --build build/coverage unit fuzz mount cli | tail -n 1
	@find build/coverage -name '*.gcda' ! -path '*/tests/*' -exec gcov -n -r {} + 2>/dev/null | \
		awk -F"'" '/^File/ {file = $$2} \
			/^Lines executed/ && file ~ /\.c$$/ {sub(/.*:/, "", $$0); print $$0 "  " file; file = ""}' | \
		sort -n

print-build:
	@echo $(B)

.PHONY: test demo setup check check-unit check-threads check-mount check-cli check-crash check-long check-durability check-fresh coverage
.PHONY: check-gaps check-held check-leaks check-latency check-races races check-valgrind valgrind-unit print-build

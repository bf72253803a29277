# SPDX-License-Identifier: MIT
# primefs with a device that is none (tests/device/as_cuda.c), for tests of what happens with one.

WRAP_test_tree_codes := pfs_cuda_open
WRAP_test_device_follow := pfs_cuda_resident_open
WRAP_test_query_device := pfs_cuda_operators_open pfs_host_select_rows

as_cuda_objects := tests/device/as_cuda.o tests/ref/stand_in.o tests/ref/stand_in_resident.o gpu/cuda/cuda_probe_none.o

$(B)/tests/device/primefs: $(as_cuda_objects:%=$(B)/%) $(tool_objects) $(library)
	@mkdir -p $(@D)
	$(CC) $(all_ldflags) -o $@ $^ $(libs)

tests: $(B)/tests/device/primefs

# A folder for `tests/run --build`, whose primefs has that device for its engine: one that works, and some
# that fail at a call.
check-device: tests ## mount tests with a device that is none, working and failing
	@failed=0; for n in 0 1 20 200; do \
		dir=$(B)/device-$$n && mkdir -p $$dir && ln -sfn $(CURDIR)/$(B)/tests $$dir/tests && \
		{ echo '#!/bin/sh'; echo "export PRIMEFS_CUDA_FAIL_AT=$$n"; \
		  echo 'case $$1 in mount|check) verb=$$1; shift; set -- $$verb --engine=cuda "$$@";; esac'; \
		  echo 'exec $(CURDIR)/$(B)/tests/device/primefs "$$@"'; } >$$dir/primefs && \
		chmod 755 $$dir/primefs && PFS_COMPARE=1 tests/run --build $$dir mount cli || failed=1; \
	done; exit $$failed

.PHONY: check-device

check check-mount check-cli: $(B)/tests/device/primefs

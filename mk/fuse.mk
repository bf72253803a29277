# SPDX-License-Identifier: MIT
# primefs as it is built with libfuse 3.17 and later (fs/mount/session.c), with whichever is installed.

old_fuse := $(shell pkg-config --exists 'fuse3 >= 3.17' || echo -DFUSE_CAP_HANDLE_KILLPRIV_V2=0)

$(B)/tests/fuse-fd/session.o: fs/mount/session.c
	@mkdir -p $(@D)
	$(CC) $(all_cflags) -DPFS_FUSE_BY_FD $(old_fuse) -c -o $@ $<

# The library's own session.o is left out: what it defines is defined before it is looked for.
$(B)/tests/fuse-fd/primefs: $(B)/tests/fuse-fd/session.o $(tool_objects) $(library)
	$(CC) $(all_ldflags) -o $@ $^ $(libs)

tests: $(B)/tests/fuse-fd/primefs

check-fuse-fd: tests ## mount tests as with libfuse 3.17 and later
	@dir=$(B)/fuse-fd && mkdir -p $$dir && ln -sfn $(CURDIR)/$(B)/tests $$dir/tests && \
		ln -sfn $(CURDIR)/$(B)/tests/fuse-fd/primefs $$dir/primefs && tests/run --build $$dir mount

.PHONY: check-fuse-fd

check check-mount: $(B)/tests/fuse-fd/primefs

# SPDX-License-Identifier: MIT
# The VFS that fails on demand and plays crashes back (tests/vfs/faultvfs.h).

vfs_objects := $(B)/tests/vfs/faultvfs.o $(B)/tests/vfs/faultrecord.o

$(addprefix $(B)/tests/unit/test_,store_crash store_fault tree_crash tree_fault content_crash): $(vfs_objects)

WRAP_test_store_crash := fsync
WRAP_test_tree_crash := fsync
WRAP_test_content_crash := fsync

$(B)/tests/vfs/primefs-fault: $(B)/tests/vfs/fault_start.o $(vfs_objects) $(tool_objects) $(library)
	$(CC) $(all_ldflags) -o $@ $^ $(libs)

tests: $(B)/tests/vfs/primefs-fault

check check-crash check-mount: $(B)/tests/vfs/primefs-fault

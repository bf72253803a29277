# SPDX-License-Identifier: MIT
# The VFS that fails on demand and plays crashes back (tests/vfs/faultvfs.h).

vfs_objects := $(B)/tests/vfs/faultvfs.o $(B)/tests/vfs/faultrecord.o

$(addprefix $(B)/tests/unit/test_,store_crash store_version store_fault tree_crash tree_fault content_crash change_crash change_fault change_memory history_crash): $(vfs_objects)

crash_tests := store_crash tree_crash content_crash change_crash
$(crash_tests:%=$(B)/tests/unit/test_%): $(B)/tests/vfs/foldersync.o
$(foreach t,$(crash_tests),$(eval WRAP_test_$(t) := fsync))

memory_tests := content_memory totals change_memory imagefile_columns
$(memory_tests:%=$(B)/tests/unit/test_%): $(B)/tests/vfs/memory.o
$(foreach t,$(memory_tests),$(eval WRAP_test_$(t) += malloc calloc realloc mmap))

$(B)/tests/vfs/primefs-fault: $(B)/tests/vfs/fault_start.o $(vfs_objects) $(tool_objects) $(library)
	$(CC) $(all_ldflags) -o $@ $^ $(libs)

tests: $(B)/tests/vfs/primefs-fault

check check-crash check-mount: $(B)/tests/vfs/primefs-fault

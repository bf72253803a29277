# SPDX-License-Identifier: MIT
# Symbols that a unit test replaces: WRAP_test_<name> := symbol ...
WRAP_test_content := pfs_store_commit
WRAP_test_content_model := pfs_store_commit
WRAP_test_content_threads := pfs_store_commit
WRAP_test_xattr := pfs_store_commit
WRAP_test_link := pfs_store_commit
WRAP_test_link_copy := pfs_store_commit
WRAP_test_original := pfs_store_commit openat64
WRAP_test_journal := pfs_store_commit pfs_store_space pfs_store_put_node pfs_store_remove_node pfs_history_prune
WRAP_test_journal_space := $(WRAP_test_journal)
WRAP_test_part := pfs_store_commit
WRAP_test_content_memory := pfs_store_commit
WRAP_test_temporary := fstatvfs64
WRAP_test_answer := $(addprefix pfs_query_,start finish columns column_name next parts value rests) fstatvfs64
WRAP_test_sql_number := sqlite3_value_dup
WRAP_test_parse := malloc calloc realloc
WRAP_test_row_groups := pfs_store_put_node pfs_store_put_attr pfs_store_remove_attr \
	pfs_store_commit pfs_row_changed
WRAP_test_tree_codes_fill := pfs_snapshot_fetch pfs_snapshot_is_given_up pfs_engine_load
WRAP_test_visible_changes := pfs_scan_lock
WRAP_test_columns := pfs_attr_reader_close
WRAP_test_plancache := pfs_sql_sides_named pfs_side_table_get
WRAP_test_query_replay_corpus := clock_gettime
WRAP_test_pending := fuse_req_interrupt_func pfs_respond_error
WRAP_test_dispatch := pfs_thread_start getrlimit64
WRAP_test_pool := pfs_thread_start

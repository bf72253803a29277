/* SPDX-License-Identifier: MIT */
/* tests/ref/tree_model.h - a simple model of a tree, and random operations done on both.
 *
 * A state (names, places, attributes, links) is summed up in one number.  One model to a
 * program. */
#ifndef PFS_TESTS_REF_TREE_MODEL_H
#define PFS_TESTS_REF_TREE_MODEL_H

#include "fs/tree/tree.h"

void tree_model_start(struct pfs_tree *of, uint64_t seed); /* it is empty */
void tree_model_reopened(struct pfs_tree *of);	   /* no references are held any more */

/* From now on operations may fail with -EROFS, -EIO, -ENOSPC and -ENOMEM. */
void tree_model_allow_faults(bool allow);

/* One random operation; the test fails when its result is not the model's. */
void tree_model_step(void);

uint64_t tree_model_state(void);
uint64_t tree_model_state_of(struct pfs_tree *of);

uint32_t tree_model_random(uint32_t n); /* below n */

#endif

/* SPDX-License-Identifier: MIT */
#include "meta/account.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/reserve.h"

/* bytes that a thread counts for itself before it adds them to `used` */
#define SLACK	   ((int64_t)64 << 10)
#define OPEN	   ((int64_t)1 << 62)  /* part of `used` until the owner closes the account */
#define LOOK_WORK  1024		       /* allocations or pieces between two looks */
#define PIECE_BITS 13 /* a piece of memory is so large: 8 KiB */

struct pfs_account {
	/* Bytes of blocks and charges, and OPEN. The thread that brings it to 0 frees the account:
	 * its owner, or else the thread that frees the last block. */
	_Atomic int64_t used;
	/* not in `used` yet; belongs to the thread that has entered, as do the next members */
	int64_t pending;
	int64_t work;	      /* work that is left until the next look */
	uint64_t allocations; /* allocations that are left */
	bool counts;
	_Atomic int refusal;
	uint64_t limit;
	int (*look)(void *arg);
	void *arg;
};

/* The head of each block that SQLite allocates. */
struct block {
	struct pfs_account *account; /* NULL: none */
	size_t size;
};
_Static_assert(sizeof(struct block) % 16 == 0, "blocks are aligned as malloc's");

static _Thread_local struct pfs_account *entered;
static _Atomic int64_t total_used;
static _Atomic uint64_t total_limit;

/* ---- counting ---- */

static bool refuse(struct pfs_account *account, enum pfs_refusal why)
{
	atomic_store_explicit(&account->refusal, (int)why, memory_order_relaxed);
	return false;
}

static bool fits(struct pfs_account *account)
{
	int64_t used = atomic_load_explicit(&account->used, memory_order_relaxed) - OPEN;
	uint64_t most = atomic_load_explicit(&total_limit, memory_order_relaxed);

	if (account->limit && used > (int64_t)account->limit)
		return refuse(account, PFS_REFUSED_MEMORY);
	if (most && atomic_load_explicit(&total_used, memory_order_relaxed) > (int64_t)most)
		return refuse(account, PFS_REFUSED_TOTAL);
	return true;
}

/* Counts bytes so that all threads see it. */
static void tell(struct pfs_account *account, int64_t bytes)
{
	(void)atomic_fetch_add_explicit(&total_used, bytes, memory_order_relaxed);
	(void)atomic_fetch_add_explicit(&account->used, bytes, memory_order_relaxed);
}

/* Takes bytes off an account, which may be freed by that. */
static void take_off(struct pfs_account *account, int64_t bytes)
{
	(void)atomic_fetch_sub_explicit(&total_used, bytes, memory_order_relaxed);
	if (atomic_fetch_sub(&account->used, bytes) == bytes)
		free(account);
}

static void settle(struct pfs_account *account)
{
	int64_t pending = account->pending;

	account->pending = 0;
	tell(account, pending);
}

static bool take(struct pfs_account *account, int64_t bytes)
{
	if (account != entered) { /* a block that grows belongs to another account */
		tell(account, bytes);
		return true;
	}
	account->pending += bytes;
	if (account->pending < SLACK)
		return true;
	settle(account);
	if (fits(account))
		return true;
	tell(account, -bytes);
	return false;
}

static void give_back(struct pfs_account *account, int64_t bytes)
{
	if (account != entered) {
		take_off(account, bytes);
		return;
	}
	account->pending -= bytes;
	if (account->pending < -SLACK)
		settle(account);
}

static bool has_time(struct pfs_account *account, uint64_t bytes)
{
	account->work -= (int64_t)(1 + (bytes >> PIECE_BITS));
	if (account->work > 0 || !account->look)
		return true;
	account->work = LOOK_WORK;
	return account->look(account->arg) ? refuse(account, PFS_REFUSED_TIME) : true;
}

bool pfs_account_has_time(uint64_t bytes)
{
	return !entered || has_time(entered, bytes);
}

/* Returns true if an allocation may be made now. */
static bool may_go_on(struct pfs_account *account, uint64_t bytes)
{
	if (account->counts && account->allocations-- == 0) {
		account->allocations = 0;
		return refuse(account, PFS_REFUSED_NUMBER);
	}
	return has_time(account, bytes);
}

/* ---- SQLite's allocator ---- */

static struct block *block_of(void *memory)
{
	return (struct block *)memory - 1;
}

static void *allocate(int size)
{
	struct pfs_account *account = entered;
	size_t whole = (size_t)size + sizeof(struct block);
	struct block *block;

	if (account && (!may_go_on(account, whole) || !take(account, (int64_t)whole)))
		return NULL;
	block = malloc(whole);
	if (!block && account)
		account->pending -= (int64_t)whole;
	if (!block)
		return NULL;
	*block = (struct block){account, (size_t)size};
	return block + 1;
}

static void release(void *memory)
{
	struct block *block = block_of(memory);

	if (block->account)
		give_back(block->account, (int64_t)(block->size + sizeof(*block)));
	free(block);
}

static void *reallocate(void *memory, int size)
{
	struct block *block = block_of(memory), *moved;
	struct pfs_account *account = block->account;
	int64_t more = (int64_t)size - (int64_t)block->size;

	if (account && account == entered && more > 0 && !may_go_on(account, (size_t)size))
		return NULL;
	if (account && !take(account, more))
		return NULL;
	moved = realloc(block, (size_t)size + sizeof(*block));
	if (!moved && account)
		tell(account, -more);
	if (!moved)
		return NULL;
	moved->size = (size_t)size;
	return moved + 1;
}

static int size_of(void *memory)
{
	return memory ? (int)block_of(memory)->size : 0;
}

static int round_up(int size)
{
	return (size + 7) & ~7;
}

static int start(void *arg PFS_UNUSED)
{
	return SQLITE_OK;
}

static void stop(void *arg PFS_UNUSED)
{
}

static void configure(void)
{
	static const sqlite3_mem_methods methods = {
		.xMalloc = allocate,
		.xFree = release,
		.xRealloc = reallocate,
		.xSize = size_of,
		.xRoundup = round_up,
		.xInit = start,
		.xShutdown = stop,
	};

	(void)sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
	/* otherwise every allocation takes one lock */
	(void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	atomic_store(&total_limit, pfs_quarter_of_memory());
}

void pfs_accounts_begin(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, configure);
}

/* ---- accounts ---- */

void pfs_accounts_limit(uint64_t bytes)
{
	pfs_accounts_begin();
	atomic_store(&total_limit, bytes);
}

uint64_t pfs_accounts_used(void)
{
	int64_t used = atomic_load(&total_used);

	return used > 0 ? (uint64_t)used : 0;
}

bool pfs_accounts_crowded(void)
{
	uint64_t most = atomic_load(&total_limit);

	return most && pfs_accounts_used() > most / 2;
}

int pfs_account_open(struct pfs_account **out, uint64_t limit, int (*look)(void *arg), void *arg)
{
	struct pfs_account *account = calloc(1, sizeof(*account));

	*out = account;
	if (!account)
		return -ENOMEM;
	atomic_init(&account->used, OPEN);
	account->work = LOOK_WORK;
	account->limit = limit > INT64_MAX ? INT64_MAX : limit;
	account->look = look;
	account->arg = arg;
	return 0;
}

void pfs_account_close(struct pfs_account *account)
{
	if (!account)
		return;
	settle(account);
	if (atomic_fetch_sub(&account->used, OPEN) == OPEN)
		free(account);
}

struct pfs_account *pfs_account_enter(struct pfs_account *account)
{
	struct pfs_account *before = entered;

	entered = account;
	return before;
}

int pfs_account_charge(struct pfs_account *account, int64_t bytes)
{
	if (!account)
		return 0;
	tell(account, bytes);
	return bytes > 0 && !fits(account) ? -ENOMEM : 0;
}

void pfs_account_discharge(struct pfs_account *account, uint64_t bytes)
{
	if (account)
		tell(account, -(int64_t)bytes);
}

uint64_t pfs_account_left(const struct pfs_account *account)
{
	int64_t used = atomic_load_explicit(&account->used, memory_order_relaxed) - OPEN;

	if (!account->limit)
		return UINT64_MAX;
	return used < (int64_t)account->limit ? account->limit - (uint64_t)(used > 0 ? used : 0)
					      : 0;
}

void pfs_account_count(struct pfs_account *account, uint64_t allocations)
{
	account->allocations = allocations;
	account->counts = allocations != 0;
}

enum pfs_refusal pfs_account_refusal(const struct pfs_account *account)
{
	return account ? (enum pfs_refusal)atomic_load_explicit(&account->refusal,
								  memory_order_relaxed)
		       : PFS_REFUSED_NOTHING;
}

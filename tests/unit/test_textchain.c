/* SPDX-License-Identifier: MIT */
/* instr and replace in texts of all lengths about which the search changes, beside memmem. */
#include "fs/query/relational/textchain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ref/random.h"

#define LENGTH_MAX 300
#define ROUNDS	   40

static uint64_t seed = 20261124;

static void fill(char *out, size_t len, unsigned letters)
{
	for (size_t i = 0; i < len; i++)
		out[i] = (char)("ab\0`c"[random_below(&seed, letters)]);
}

static void check_place(struct pfs_text_room *room, const uint8_t *text, size_t len,
			const struct pfs_constant *part)
{
	const struct pfs_text_step step = {.op = PFS_TEXT_PLACE, .a = *part};
	const uint8_t *found = memmem(text, len, part->text, part->len), *shown = text;
	int64_t place = -1;

	assert_int_equal(pfs_text_apply(&step, 1, room, &shown, &len, &place), 0);
	assert_int_equal(place, found ? found - text + 1 : 0);
}

static void check_replace(struct pfs_text_room *room, const uint8_t *text, size_t len,
			  const struct pfs_constant *part)
{
	const struct pfs_text_step step = {.op = PFS_TEXT_REPLACE,
					   .a = *part,
					   .b = {.type = PFS_IS_TEXT, .text = "xy", .len = 2}};
	const uint8_t *shown = text;
	uint8_t wanted[2 * LENGTH_MAX + 2];
	size_t n = 0, shown_len = len;
	int64_t place;

	for (size_t at = 0; at < len;) {
		if (part->len <= len - at && memcmp(text + at, part->text, part->len) == 0) {
			wanted[n++] = 'x';
			wanted[n++] = 'y';
			at += part->len;
		} else {
			wanted[n++] = text[at++];
		}
	}
	assert_int_equal(pfs_text_apply(&step, 1, room, &shown, &shown_len, &place), 0);
	assert_int_equal(shown_len, n);
	assert_memory_equal(shown, wanted, n);
}

static void test_search(void **state)
{
	struct pfs_text_room room = {.buffers = {{.bytes = NULL}}};

	(void)state;
	for (size_t len = 1; len <= LENGTH_MAX; len++) {
		for (unsigned i = 0; i < ROUNDS; i++) {
			unsigned letters = 2 + i % 4;
			char part[12], *text = malloc(len); /* exactly, for AddressSanitizer */
			struct pfs_constant constant = {.type = PFS_IS_TEXT, .text = part};

			assert_non_null(text);
			fill(text, len, letters);
			constant.len = 1 + random_below(&seed, sizeof(part));
			fill(part, constant.len, letters);
			check_place(&room, (const uint8_t *)text, len, &constant);
			check_replace(&room, (const uint8_t *)text, len, &constant);
			free(text);
		}
	}
	pfs_text_room_finish(&room);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_search)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Texts as keys of kernels: equal where the host's comparison says so, and then of the same
 * hash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/host/text.h"
#include "gpu/textkey.h"
#include "tests/ref/random.h"

#define SEED UINT64_C(0x5eed0f7ab1e5)

static uint64_t seeded = 0x7e47;

/* Few bytes, so that many texts are equal: what is beside the letters, NUL, spaces, bytes beyond
 * ASCII. */
static uint32_t random_text(uint8_t *text, uint32_t most)
{
	static const uint8_t bytes[] = "aAzZ@[`{ \0\xc1\xe1\xff";
	uint32_t len = random_below(&seeded, most + 1);

	for (uint32_t i = 0; i < len; i++)
		text[i] = bytes[random_below(&seeded, sizeof(bytes) - 1)];
	return len;
}

/* The same again, but for the size of letters, a byte, or spaces at its end. */
static uint32_t like(uint8_t *text, const uint8_t *other, uint32_t len)
{
	memcpy(text, other, len);
	for (uint32_t i = 0; i < len; i++)
		if ((text[i] | 32) >= 'a' && (text[i] | 32) <= 'z' && random_below(&seeded, 2))
			text[i] ^= 32;
	if (len && random_below(&seeded, 3) == 0)
		text[random_below(&seeded, len)] ^= 32;
	for (uint32_t n = random_below(&seeded, 3); n; n--)
		text[len++] = ' ';
	return len;
}

static void check_pair(const uint8_t *a, uint32_t a_len, const uint8_t *b, uint32_t b_len)
{
	for (unsigned i = PFS_BINARY; i <= PFS_RTRIM; i++) {
		enum pfs_collation by = (enum pfs_collation)i;
		bool is_equal = pfs_text_compare(by, a, a_len, b, b_len) == 0;
		uint32_t a_size = pfs_textkey_size(by, a, a_len);
		uint32_t b_size = pfs_textkey_size(by, b, b_len);

		assert_int_equal(pfs_textkey_equal(by, a, a_size, b, b_size), is_equal);
		if (is_equal)
			assert_int_equal(pfs_textkey_hash(by, a, a_size, SEED),
					 pfs_textkey_hash(by, b, b_size, SEED));
		else
			assert_int_not_equal(pfs_textkey_hash(by, a, a_size, SEED),
					     pfs_textkey_hash(by, b, b_size, SEED));
	}
}

static void as_the_host_has_it(void **state)
{
	uint8_t a[64], b[64];

	(void)state;
	for (unsigned round = 0; round < 200000; round++) {
		uint32_t most = round % 2 ? 3 : 40;
		uint32_t a_len = random_text(a, most);

		check_pair(a, a_len, b,
			   random_below(&seeded, 2) ? like(b, a, a_len) : random_text(b, most));
	}
}

/* Words of a text that has no byte before it or behind it. */
static void words_of_exact_texts(void **state)
{
	(void)state;
	for (uint32_t len = 1; len < 30; len++) {
		uint8_t *text = malloc(len);

		assert_non_null(text);
		for (uint32_t i = 0; i < len; i++)
			text[i] = (uint8_t)(random_below(&seeded, 255) + 1);
		for (uint32_t at = 0; at < len; at += 8) {
			uint64_t word = 0;

			for (uint32_t i = 0; i < 8 && at + i < len; i++)
				word |= (uint64_t)text[at + i] << i * 8;
			assert_true(pfs_textkey_word(text, at, len) == word);
		}
		free(text);
	}
}

static void each_byte_in_small(void **state)
{
	(void)state;
	for (unsigned c = 0; c < 256; c++) {
		unsigned small = c >= 'A' && c <= 'Z' ? c + 32 : c;

		assert_int_equal(pfs_textkey_lower(PFS_EACH_BYTE * c), PFS_EACH_BYTE * small);
	}
}

/* Texts whose hashes meet under one seed do so no more than others under another. */
static void seed_is_needed(void **state)
{
	uint8_t met[1024] = {0}, most = 0;
	char text[24];

	(void)state;
	for (unsigned i = 0, n = 0; n < 100; i++) {
		uint32_t len = (uint32_t)snprintf(text, sizeof(text), "name-%u", i);
		const uint8_t *at = (const uint8_t *)text;

		if (pfs_textkey_hash(PFS_BINARY, at, len, SEED) % sizeof(met))
			continue;
		n++;
		met[pfs_textkey_hash(PFS_BINARY, at, len, SEED + 1) % sizeof(met)]++;
	}
	for (unsigned i = 0; i < sizeof(met); i++)
		most = met[i] > most ? met[i] : most;
	assert_in_range(most, 1, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_the_host_has_it),
		cmocka_unit_test(each_byte_in_small),
		cmocka_unit_test(words_of_exact_texts),
		cmocka_unit_test(seed_is_needed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include "fs/query/relational/textchain.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

#define RESULT_MAX ((size_t)1 << 20) /* of what is longer SQLite knows whether it is too long */
#define SHORT_MAX  256

struct text {
	const uint8_t *bytes;
	size_t len;
};

void pfs_text_room_finish(struct pfs_text_room *room)
{
	for (size_t i = 0; i < PFS_COUNT(room->buffers); i++)
		free(room->buffers[i].bytes);
	*room = (struct pfs_text_room){.buffers = {{.bytes = NULL}}};
}

static bool is_inside(uint8_t byte)
{
	return (byte & 0xc0) == 0x80;
}

/* ---- where a part is ---- */

/* Has the high bit of each of the eight bytes that is `byte`, and maybe of others behind one. */
static uint64_t same_bytes(const uint8_t *bytes, uint8_t byte)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	word = le64toh(word) ^ ones * byte;
	return (word - ones) & ~word & ones << 7;
}

/* Returns the first of the eight places from `at` on at which the part stands, or NULL. */
static const uint8_t *find_in_eight(const uint8_t *at, const struct pfs_constant *part)
{
	size_t last = part->len - 1;
	uint64_t hits = same_bytes(at, (uint8_t)part->text[0]) &
			same_bytes(at + last, (uint8_t)part->text[last]);

	for (; hits; hits &= hits - 1) {
		const uint8_t *found = at + __builtin_ctzll(hits) / 8;

		if (memcmp(found, part->text, part->len) == 0)
			return found;
	}
	return NULL;
}

/* The first place of the part, which is not empty, or NULL.  What memmem prepares for each text
 * takes longer than to look through a short one, such as a name. */
static const uint8_t *find(const struct text *text, const struct pfs_constant *part)
{
	const uint8_t *found = NULL;
	size_t places;

	if (part->len > text->len)
		return NULL;
	places = text->len - part->len + 1;
	if (places < 8 || text->len > SHORT_MAX)
		return memmem(text->bytes, text->len, part->text, part->len);
	for (size_t at = 0; at < places && !found; at += 8)
		found = find_in_eight(text->bytes + PFS_MIN(at, places - 8), part);
	return found;
}

/* ---- results in the room ---- */

static int begin(struct pfs_text_buffer *out, size_t size)
{
	out->size = 0;
	if (size > RESULT_MAX)
		return -EOPNOTSUPP;
	return pfs_grow(&out->bytes, &out->capacity, size + 1, 1);
}

void pfs_text_buffer_put(struct pfs_text_buffer *out, const void *bytes, size_t len)
{
	if (len)
		memcpy(out->bytes + out->size, bytes, len);
	out->size += len;
}

static int change_case(struct pfs_text_buffer *out, const struct text *text, uint8_t first)
{
	PFS_TRY(begin(out, text->len));
	for (size_t i = 0; i < text->len; i++) {
		uint8_t c = text->bytes[i];

		out->bytes[i] = (uint8_t)(c - first) < 26 ? c ^ 0x20 : c;
	}
	out->size = text->len;
	return 0;
}

static int join(struct pfs_text_buffer *out, const void *a, size_t a_len, const void *b,
		size_t b_len)
{
	PFS_TRY(begin(out, a_len + b_len));
	pfs_text_buffer_put(out, a, a_len);
	pfs_text_buffer_put(out, b, b_len);
	return 0;
}

static int replace(struct pfs_text_buffer *out, struct text text, const struct pfs_constant *part,
		   const struct pfs_constant *by)
{
	size_t grown = by->len > part->len ? text.len / part->len * (by->len - part->len) : 0;
	const uint8_t *found;

	PFS_TRY(begin(out, text.len + grown));
	while ((found = find(&text, part))) {
		size_t before = (size_t)(found - text.bytes);

		pfs_text_buffer_put(out, text.bytes, before);
		pfs_text_buffer_put(out, by->text, by->len);
		text.bytes = found + part->len;
		text.len -= before + part->len;
	}
	pfs_text_buffer_put(out, text.bytes, text.len);
	return 0;
}

/* ---- parts of the text ---- */

static bool is_among(const struct pfs_constant *set, uint8_t byte)
{
	return memchr(set->text, byte, set->len) != NULL;
}

static void trim(struct text *text, const struct pfs_text_step *step)
{
	while (step->at_left && text->len && is_among(&step->a, *text->bytes)) {
		text->bytes++;
		text->len--;
	}
	while (step->at_right && text->len && is_among(&step->a, text->bytes[text->len - 1]))
		text->len--;
}

/* The byte behind n characters, a NUL ends the text. */
static size_t skip(const struct text *text, size_t at, int64_t n)
{
	for (; n > 0 && at < text->len && text->bytes[at]; n--) {
		if (text->bytes[at++] < 0xc0)
			continue;
		while (at < text->len && is_inside(text->bytes[at]))
			at++;
	}
	return at;
}

static int64_t count_characters(const struct text *text)
{
	int64_t n = 0;

	for (size_t at = 0; at < text->len && text->bytes[at]; n++)
		at = skip(text, at, 1);
	return n;
}

static void cut(struct text *text, int64_t from, int64_t count)
{
	size_t at, end;

	if (from < 0) {
		from += count_characters(text);
		if (from < 0) {
			count = PFS_MAX(count + from, 0);
			from = 0;
		}
	} else if (from > 0) {
		from--;
	} else if (count > 0) {
		count--;
	}
	at = skip(text, 0, from);
	end = skip(text, at, count);
	text->bytes += at;
	text->len = end - at;
}

static int64_t place_of(const struct text *text, const struct pfs_constant *part)
{
	const uint8_t *found;
	int64_t place = 1;

	if (!part->len)
		return 1;
	found = find(text, part);
	for (const uint8_t *at = text->bytes; found && at < found; at++)
		place += !is_inside(at[1]);
	return found ? place : 0;
}

/* ---- steps ---- */

/* What the step makes in `out`; *made: it has, and not only told of a part or a place. */
static int apply_step(struct pfs_text_buffer *out, bool *made, struct text *now, int64_t *place,
		      const struct pfs_text_step *step)
{
	*made = true;
	switch (step->op) {
	case PFS_TEXT_UPPER:
		return change_case(out, now, 'a');
	case PFS_TEXT_LOWER:
		return change_case(out, now, 'A');
	case PFS_TEXT_PREPEND:
		return join(out, step->a.text, step->a.len, now->bytes, now->len);
	case PFS_TEXT_APPEND:
		return join(out, now->bytes, now->len, step->a.text, step->a.len);
	case PFS_TEXT_REPLACE:
		return replace(out, *now, &step->a, &step->b);
	case PFS_TEXT_TRIM:
		trim(now, step);
		break;
	case PFS_TEXT_PART:
		cut(now, step->from, step->count);
		break;
	case PFS_TEXT_PLACE:
		*place = place_of(now, &step->a);
		break;
	}
	*made = false;
	return 0;
}

int pfs_text_apply(const struct pfs_text_step *steps, size_t n, struct pfs_text_room *room,
		   const uint8_t **text, size_t *len, int64_t *place)
{
	struct text now = {*text, *len};
	unsigned next = 0;

	for (size_t i = 0; i < n; i++) {
		struct pfs_text_buffer *out = &room->buffers[next];
		bool is_made;

		PFS_TRY(apply_step(out, &is_made, &now, place, &steps[i]));
		if (is_made) {
			now = (struct text){out->bytes, out->size};
			next = !next;
		}
	}
	*text = now.bytes;
	*len = now.len;
	return 0;
}

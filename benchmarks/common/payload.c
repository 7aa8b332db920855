/* SPDX-License-Identifier: Apache-2.0 */
#include "payload.h"

#include "check.h"

#include <string.h>

uint64_t payload_key(int sender, long step)
{
    return payload_mix((uint64_t)(uint32_t)sender + 1) + (uint64_t)step;
}

static uint64_t payload_word(uint64_t key, size_t offset)
{
    return payload_mix(payload_mix(key) ^ (offset + 1));
}

void payload_fill(void *message, size_t size_bytes, uint64_t key)
{
    for (size_t i = 0; i < size_bytes; i += sizeof(uint64_t)) {
        uint64_t word = payload_word(key, i);
        size_t left = size_bytes - i;

        memcpy((char *)message + i, &word,
               left < sizeof(word) ? left : sizeof(word));
    }
}

bool payload_check(void *message, size_t size_bytes, uint64_t key, int sender)
{
    unsigned char *found = message;

#ifdef PLANT_CORRUPTION
    if (size_bytes > 0) {
        found[size_bytes / 2] ^= 1;
    }
#endif
    for (size_t i = 0; i < size_bytes; i++) {
        uint64_t word = payload_word(key, i & ~(sizeof(word) - 1));
        unsigned char expected[sizeof(word)];

        memcpy(expected, &word, sizeof(word));
        if (i % sizeof(word) == 0 && i + sizeof(word) <= size_bytes &&
            memcmp(found + i, expected, sizeof(word)) == 0) {
            i += sizeof(word) - 1;
        } else if (found[i] != expected[i % sizeof(word)]) {
            check_print("validation failed: %zu bytes, byte %zu, sent by rank "
                        "%d: expected 0x%02x, found 0x%02x",
                        size_bytes, i, sender, expected[i % sizeof(word)],
                        found[i]);
            return false;
        }
    }
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_PAYLOAD_H
#define SEATRIAL_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Mix a key so that every bit changes half of the bits (SplitMix64). */
static inline uint64_t payload_mix(uint64_t key)
{
    key = (key ^ (key >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    key = (key ^ (key >> 27)) * UINT64_C(0x94d049bb133111eb);
    return key ^ (key >> 31);
}

/** The key of what a rank sends in a step. */
uint64_t payload_key(int sender, long step);

/** Fill a message with bytes that follow from the key. */
void payload_fill(void *message, size_t size_bytes, uint64_t key);

/**
 * Compare a received message with what payload_fill makes of the key; prints
 * the first wrong byte. A test build (PLANT_CORRUPTION) damages one byte
 * before.
 */
bool payload_check(void *message, size_t size_bytes, uint64_t key, int sender);

#endif

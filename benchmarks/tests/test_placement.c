/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "p2p.h"
#include "payload.h"
#include "placement.h"
#include "unit.h"

#include <string.h>

static void test_one_host(void)
{
    struct placement found;

    placement_create(MPI_COMM_WORLD, 0, &found);
    EXPECT(found.nodes == 1 && found.node == 0);
    EXPECT(found.local_rank == found.rank && found.local_size == found.np);
    EXPECT(strchr(found.hosts[0], '/') == NULL);
    placement_free(&found);
}

static void test_pretended_nodes(void)
{
    struct placement found;

    placement_create(MPI_COMM_WORLD, 2, &found);
    EXPECT(found.nodes == (found.np + 1) / 2);
    EXPECT(found.node == found.rank / 2);
    EXPECT(found.local_rank == found.rank % 2);
    for (int r = 0; r < found.np; r++) {
        EXPECT(found.node_of[r] == r / 2 && found.local_of[r] == r % 2);
        EXPECT(found.first_rank[r / 2] == r / 2 * 2);
    }
    EXPECT(strcmp(strchr(found.hosts[0], '/'), "/0") == 0);
    placement_free(&found);
}

static void test_payload(void)
{
    unsigned char message[100];

    for (size_t size = 0; size <= sizeof(message); size++) {
        payload_fill(message, size, payload_key(1, 7));
        EXPECT(payload_check(message, size, payload_key(1, 7), 1));
        EXPECT(size < 8 || !payload_check(message, size, payload_key(2, 7), 2));
        for (size_t i = 0; i < size; i++) {
            message[i] ^= 0x10;
            EXPECT(!payload_check(message, size, payload_key(1, 7), 1));
            message[i] ^= 0x10;
        }
    }
}

int main(int argc, char **argv)
{
    CHECK_MPI(MPI_Init(&argc, &argv), "start");
    test_one_host();
    test_pretended_nodes();
    test_payload();
    CHECK_MPI(MPI_Finalize(), "end");
    return 0;
}

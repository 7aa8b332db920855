/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the verbs programs that need no adapter. */
#include "gid.h"
#include "port.h"
#include "spread.h"
#include "unit.h"
#include "verbs_settings.h"

#include <string.h>

static struct ibv_gid_entry entry(uint32_t type, const char *first_bytes,
                                  uint32_t index, uint32_t ib_port)
{
    struct ibv_gid_entry entry = {
        .gid_index = index, .port_num = ib_port, .gid_type = type};

    memcpy(entry.gid.raw, first_bytes, 2);
    return entry;
}

static struct ibv_gid_entry ipv4(uint32_t type, uint32_t index)
{
    struct ibv_gid_entry result = entry(type, "\0\0", index, 1);

    memset(result.gid.raw + 10, 0xff, 2);
    result.gid.raw[12] = 10;
    return result;
}

static void test_gid(void)
{
    struct ibv_gid_entry table[] = {
        entry(IBV_GID_TYPE_ROCE_V1, "\xfe\x80", 0, 1),
        entry(IBV_GID_TYPE_ROCE_V2, "\xfe\x80", 1, 1),
        entry(IBV_GID_TYPE_ROCE_V2, "\x20\x01", 2, 1),
        ipv4(IBV_GID_TYPE_ROCE_V1, 3),
        ipv4(IBV_GID_TYPE_ROCE_V2, 5),
        ipv4(IBV_GID_TYPE_ROCE_V2, 4),
        entry(IBV_GID_TYPE_IB, "\xfe\x80", 0, 2),
        entry(IBV_GID_TYPE_ROCE_V2, "\0\0", 1, 2),
    };

    EXPECT(gid_choose(table, 1, 1) == 0);
    EXPECT(gid_choose(table, 2, 1) == 1);
    EXPECT(gid_choose(table, 4, 1) == 2);
    EXPECT(gid_choose(table, 5, 1) == 4);
    EXPECT(gid_choose(table, 8, 1) == 5); /* the lower index */
    EXPECT(gid_choose(table, 8, 2) == 6);
    EXPECT(gid_choose(table, 8, 3) == -1);
    EXPECT(gid_choose(table + 7, 1, 2) == -1); /* an empty one is none */
    EXPECT(strcmp(gid_name(gid_kind_of(&table[5])), "roce_v2_ipv4") == 0);
}

static void test_sizes(void)
{
    struct verbs_settings settings = VERBS_DEFAULTS;
    struct options_span sizes = {8, 100};

    EXPECT(verbs_count_sizes(&settings, sizes) == 4); /* 8, 16, 32, 64 */
    settings.factor = 4;
    EXPECT(verbs_next_size(&settings, sizes, 8) == 32);
    EXPECT(verbs_next_size(&settings, sizes, 32) == 100);
    EXPECT(verbs_next_size(&settings, sizes, 100) > 100);
    EXPECT(verbs_count_sizes(&settings, sizes) == 3);
}

static void test_port_names(void)
{
    static const char *const BAD[] = {
        "",     ",",   "a,",    ":1",    "a:",      "a:0",      "a:256",
        "a:1x", "a:x", "a,b,c", "a:1:2", "a:1,b:y", "a:1,,b:1",
    };
    struct port_name names[2];
    char error[OPTIONS_ERROR_SIZE] = "";

    EXPECT(port_parse(NULL, 2, names, error) == 1);
    EXPECT(names[0].device[0] == '\0' && names[0].ib_port == 0);
    EXPECT(port_parse("mlx5_0", 1, names, error) == 1);
    EXPECT(strcmp(names[0].device, "mlx5_0") == 0 && names[0].ib_port == 0);
    EXPECT(port_parse("mlx5_0:1,mlx5_1:2", 2, names, error) == 2);
    EXPECT(strcmp(names[1].device, "mlx5_1") == 0 && names[1].ib_port == 2);
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
        error[0] = '\0';
        EXPECT(port_parse(BAD[i], 2, names, error) == 0);
        EXPECT(strstr(error, "is not NAME[:PORT]") != NULL);
    }
    EXPECT(port_parse("a,b", 1, names, error) == 0);
}

static void test_mtu(void)
{
    EXPECT(port_mtu_bytes(IBV_MTU_256) == 256);
    EXPECT(port_mtu_bytes(IBV_MTU_4096) == 4096);
    EXPECT(port_mtu_bytes((enum ibv_mtu)0) == 0);
    EXPECT(port_mtu_bytes((enum ibv_mtu)6) == 0);
    EXPECT(port_mtu_from_bytes(1024) == IBV_MTU_1024);
    EXPECT(port_mtu_from_bytes(1500) == 0);
    EXPECT(port_mtu_from_bytes(0) == 0);
}

static void test_spread(void)
{
    const int64_t first[] = {100, 200, 300};
    const int64_t last[] = {150, 401, 400};
    const double all[] = {1, 2, 3, 10, 20, 30}; /* of two pairs */
    double samples[6];

    memcpy(samples, all, sizeof(all));
    EXPECT(spread_keep(first, last, 3, 0, samples, 2) == 3);
    EXPECT(memcmp(samples, all, sizeof(all)) == 0);
    EXPECT(spread_keep(first, last, 3, 100, samples, 2) == 2);
    EXPECT(samples[0] == 1 && samples[1] == 3);
    EXPECT(samples[2] == 10 && samples[3] == 30);
    memcpy(samples, all, sizeof(all));
    EXPECT(spread_keep(first, last, 3, 201, samples, 2) == 3);
    EXPECT(spread_keep(first, last, 3, 49, samples, 2) == 0);
}

int main(void)
{
    test_gid();
    test_sizes();
    test_port_names();
    test_mtu();
    test_spread();
    return 0;
}

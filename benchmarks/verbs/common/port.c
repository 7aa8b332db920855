/* SPDX-License-Identifier: Apache-2.0 */
#include "port.h"

#include "cm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PORT_MAX_NUMBER = 255, PORT_LIST_SIZE = 256 };

static bool port_parse_one(const char *text, size_t length,
                           struct port_name *name)
{
    const char *colon = memchr(text, ':', length);
    size_t device_length = colon != NULL ? (size_t)(colon - text) : length;

    *name = (struct port_name){.ib_port = 0};
    if (device_length == 0 || device_length >= sizeof(name->device)) {
        return false;
    }
    memcpy(name->device, text, device_length);
    if (colon != NULL) {
        char *end = NULL;
        long number = strtol(colon + 1, &end, 10);

        if (end != text + length || number < 1 || number > PORT_MAX_NUMBER) {
            return false;
        }
        name->ib_port = (int)number;
    }
    return true;
}

int port_parse(const char *text, int most, struct port_name *names,
               char error[OPTIONS_ERROR_SIZE])
{
    int count = 0;

    names[0] = (struct port_name){.ib_port = 0};
    if (text == NULL) {
        return 1;
    }
    for (const char *rest = text; rest != NULL; count++) {
        size_t length = strcspn(rest, ",");

        if (count == most || !port_parse_one(rest, length, &names[count])) {
            (void)snprintf(error, OPTIONS_ERROR_SIZE,
                           "'%s' is not NAME[:PORT]%s, as mlx5_0:1", text,
                           most > 1 ? "[,NAME[:PORT]]" : "");
            return 0;
        }
        rest = rest[length] == ',' ? rest + length + 1 : NULL;
    }
    return count;
}

int port_mtu_bytes(enum ibv_mtu mtu)
{
    return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128 << mtu : 0;
}

enum ibv_mtu port_mtu_from_bytes(long bytes)
{
    for (int mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; mtu++) {
        if (port_mtu_bytes((enum ibv_mtu)mtu) == bytes) {
            return (enum ibv_mtu)mtu;
        }
    }
    return (enum ibv_mtu)0;
}

static void port_list(struct ibv_device **devices, char *text, size_t size)
{
    size_t used = 0;

    for (int i = 0; devices[i] != NULL && used < size; i++) {
        used += (size_t)snprintf(text + used, size - used, "%s%s",
                                 i > 0 ? ", " : "",
                                 ibv_get_device_name(devices[i]));
    }
}

/* The first port in the state active; 0: none. */
static int port_first_active(struct ibv_context *context, int ports)
{
    for (int number = 1; number <= ports; number++) {
        struct ibv_port_attr attributes;

        if (ibv_query_port(context, (uint8_t)number, &attributes) == 0 &&
            attributes.state == IBV_PORT_ACTIVE) {
            return number;
        }
    }
    return 0;
}

static bool port_open_device(struct ibv_device *device, struct port *port,
                             struct fault *fault)
{
    const char *name = ibv_get_device_name(device);

    port->context = port->by_cm ? cm_context(device) : ibv_open_device(device);
    if (port->context == NULL && port->by_cm) {
        return fault_set(fault, CHECK_USAGE,
                         "rdma_get_devices: %s: %s (errno %d): load the "
                         "module rdma_ucm, and allow this user to read and "
                         "write /dev/infiniband/rdma_cm",
                         name, strerror(errno), errno);
    }
    if (port->context == NULL) {
        return fault_set(fault, CHECK_USAGE,
                         "ibv_open_device: %s: %s (errno %d): allow this user "
                         "to read and write /dev/infiniband/uverbs*",
                         name, strerror(errno), errno);
    }
    int status = ibv_query_device(port->context, &port->device);
    if (status != 0) {
        return fault_set(fault, CHECK_FAILED,
                         "ibv_query_device: %s: %s (errno %d): see the "
                         "driver's messages in dmesg",
                         name, strerror(status), status);
    }
    return true;
}

static void port_close_device(struct port *port)
{
    if (port->context != NULL && !port->by_cm) {
        (void)ibv_close_device(port->context);
    }
    port->context = NULL;
}

/* Open the first device that has an active port, or the first of all. */
static bool port_open_any(struct ibv_device **devices, struct port *port,
                          struct fault *fault)
{
    for (int i = 0; devices[i] != NULL; i++) {
        if (!port_open_device(devices[i], port, fault)) {
            return false;
        }
        if (devices[i + 1] == NULL ||
            port_first_active(port->context, port->device.phys_port_cnt) > 0) {
            return true;
        }
        port_close_device(port);
    }
    return false;
}

static bool port_find(const struct port_name *name, struct ibv_device **devices,
                      struct port *port, struct fault *fault)
{
    char known[PORT_LIST_SIZE] = "";

    if (name->device[0] == '\0') {
        return port_open_any(devices, port, fault);
    }
    for (int i = 0; devices[i] != NULL; i++) {
        if (strcmp(ibv_get_device_name(devices[i]), name->device) == 0) {
            return port_open_device(devices[i], port, fault);
        }
    }
    port_list(devices, known, sizeof(known));
    return fault_set(fault, CHECK_USAGE,
                     "ibv_get_device_list: --device %s: %s (errno %d): choose "
                     "one of this node: %s",
                     name->device, strerror(ENODEV), ENODEV, known);
}

static const char *port_state_remedy(enum ibv_port_state state)
{
    return state == IBV_PORT_DOWN
               ? "set the link up (ip link set DEV up), and look at cable, "
                 "transceiver and switch port"
               : "start the subnet manager, or look why it does not bring the "
                 "port to Active";
}

static bool port_query(const struct port_name *name, struct port *port,
                       struct fault *fault)
{
    const char *device = ibv_get_device_name(port->context->device);
    int ports = port->device.phys_port_cnt;
    int active = port_first_active(port->context, ports);

    port->ib_port = name->ib_port > 0 ? name->ib_port : active > 0 ? active : 1;
    (void)snprintf(port->name, sizeof(port->name), "%.*s:%d",
                   PORT_NAME_SIZE - 1, device, port->ib_port);
    if (port->ib_port > ports) {
        return fault_set(fault, CHECK_USAGE,
                         "ibv_query_port: %s: %s (errno %d): choose a port "
                         "from 1 to %d",
                         port->name, strerror(EINVAL), EINVAL, ports);
    }
    int status = ibv_query_port(port->context, (uint8_t)port->ib_port,
                                &port->attributes);
    if (status != 0) {
        return fault_set(fault, CHECK_FAILED,
                         "ibv_query_port: %s: %s (errno %d): see the driver's "
                         "messages in dmesg",
                         port->name, strerror(status), status);
    }
    if (port->attributes.state != IBV_PORT_ACTIVE) {
        return fault_set(fault, CHECK_FAILED,
                         "ibv_query_port: %s: the port is %s: %s (errno %d): "
                         "%s",
                         port->name, ibv_port_state_str(port->attributes.state),
                         strerror(ENETDOWN), ENETDOWN,
                         port_state_remedy(port->attributes.state));
    }
    return true;
}

bool port_open(const struct port_name *name, long gid_index, bool by_cm,
               struct port *port, struct fault *fault)
{
    int count = 0;
    struct ibv_device **devices = ibv_get_device_list(&count);
    int error = devices == NULL ? errno : ENODEV;

    *port = (struct port){.by_cm = by_cm, .gid_index = -1};
    if (devices == NULL || count == 0) {
        if (devices != NULL) {
            ibv_free_device_list(devices);
        }
        return fault_set(fault, CHECK_USAGE,
                         "ibv_get_device_list: no RDMA device: %s (errno %d): "
                         "load its driver, or take a node that has one "
                         "(ibv_devices)",
                         strerror(error), error);
    }
    bool is_open = port_find(name, devices, port, fault);
    ibv_free_device_list(devices);
    if (!is_open || !port_query(name, port, fault) ||
        !port_query_gid(gid_index, port, fault)) {
        return false;
    }
    port->pd = ibv_alloc_pd(port->context);
    return port->pd != NULL ||
           fault_set(fault, CHECK_FAILED,
                     "ibv_alloc_pd: %s: %s (errno %d): the device has %d "
                     "protection domains: end other programs that use it",
                     port->name, strerror(errno), errno, port->device.max_pd);
}

void port_close(struct port *port)
{
    if (port->pd != NULL) {
        (void)ibv_dealloc_pd(port->pd);
    }
    port_close_device(port);
}

bool port_forbid_blueflame(const struct port_name *name, struct fault *fault)
{
    char path[PORT_NAME_SIZE + 64];
    char target[256] = "";

    (void)snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/driver",
                   name->device);
    ssize_t length = readlink(path, target, sizeof(target) - 1);
    if (length < 0 || strstr(target, "mlx5_core") == NULL) {
        return fault_set(fault, CHECK_USAGE,
                         "readlink: %s: %s (errno %d): --doorbell takes a "
                         "--device with the driver mlx5_core",
                         path, strerror(ENOTSUP), ENOTSUP);
    }
    (void)setenv("MLX5_SHUT_UP_BF", "1", 1);
    return true;
}

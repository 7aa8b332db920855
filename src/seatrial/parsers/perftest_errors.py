"""Remedies for errors of perftest, by its own words.

The words are those of perftest 4.5: perftest_resources.c, perftest_parameters.c and
perftest_communication.c.
"""

import re
from resource import RLIM_INFINITY

_REMEDIES = {
    r"Unable to find the Infiniband|IB devices? .*not found|No IB devices": (
        "`ibv_devices` on the node lists devices; name them in rails of node_classes"
    ),
    r"Port number \d+ state is|query port": (
        "`ibv_devinfo` on the node shows the ports; expected PORT_ACTIVE"
    ),
    r"GID|to RTR": (
        "set the GID index of the rail in gid_indexes of node_classes; "
        "`ibv_devinfo -v` on the node lists the GIDs"
    ),
    r"create (a receiver )?CQ|create .*QP": (
        "`ibv_devinfo -v` on the node shows max_qp and max_cq; fewer queue pairs"
    ),
    r"Couldn't connect to": (
        "the server's host name must resolve on the client, and no firewall may be "
        "between the nodes"
    ),
}
_MEMORY = re.compile(r"Couldn't allocate MR|Failed to create MR|Couldn't create CQ")


def remedy(text: str, memlock: int) -> str:
    """Return what to do about the errors in a text; '' if unknown.

    `memlock` is the limit of locked memory in bytes, RLIM_INFINITY for none.
    """
    if _MEMORY.search(text) and memlock != RLIM_INFINITY:
        return (
            f"locked memory is limited to {memlock // 1024} KiB: raise memlock in "
            "/etc/security/limits.conf and LimitMEMLOCK of slurmd"
        )
    for words, known in _REMEDIES.items():
        if re.search(words, text):
            return known
    return ""

"""Reboot a container of the lab, as `maintenance_reboot_command` of a test.

Arguments: the node, and the folder of its stand-ins, whose `boot` lets what is stored
run. With `never` for that folder, the node does not come back.
"""

import os
import signal
import subprocess
import sys
import time

from conftest import HOME, LAB_HOME

from seatrial.system.lab import cluster, container


def main() -> None:
    node, folder = sys.argv[1:]
    config = str(cluster.ssh_config(LAB_HOME))
    if folder != "never":
        boot = f"sudo {folder}/tools/boot"
        subprocess.run(["ssh", "-F", config, node, boot], check=True)
    os.kill(container.leader(node), signal.SIGKILL)
    while container.is_running(node):
        time.sleep(0.1)
    if folder != "never":
        subprocess.run(["seatrial", "lab", "up"], cwd=HOME, check=True)


if __name__ == "__main__":
    main()

#!/bin/sh
# Last step of every base image: a node that boots in a second and can be reached by ssh.
# mmdebstrap calls it with the image's root folder; $LAB_USER names the benchmark user.
set -eu
root=$1

chroot "$root" useradd --uid 1500 --shell /bin/bash --create-home --home-dir "/home/$LAB_USER" "$LAB_USER"
chroot "$root" usermod --password '*' "$LAB_USER" # sshd refuses a locked account without PAM

cat >"$root/etc/ssh/sshd_config.d/seatrial-lab.conf" <<EOF
UseDNS no
PasswordAuthentication no
MaxStartups 100
EOF

cat >"$root/etc/systemd/system/seatrial-lab-network.service" <<'EOF'
[Unit]
Description=The node's address on the lab's network
Before=network.target network-online.target ssh.service
[Service]
Type=oneshot
RemainAfterExit=yes
EnvironmentFile=/etc/seatrial-lab.env
ExecStart=ip link set host0 up
ExecStart=ip addr replace ${ADDRESS} dev host0
[Install]
WantedBy=multi-user.target
EOF
chroot "$root" systemctl enable --quiet seatrial-lab-network.service

cp "$(dirname "$0")/mpich-yield.c" "$root/tmp/"
chroot "$root" gcc -O2 -Wall -Werror -shared -fPIC -o /usr/local/lib/libmpich-yield.so \
    /tmp/mpich-yield.c
rm "$root/tmp/mpich-yield.c"

# A container has no hardware, no console and no clock of its own to look after.
# The cluster's own services start when the role slurm has configured them.
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer \
    e2scrub_all.timer e2scrub_reap.service fstrim.timer getty.target \
    console-getty.service systemd-logind.service systemd-timesyncd.service \
    systemd-networkd.service systemd-resolved.service systemd-udevd.service \
    man-db.timer logrotate.timer; do
    ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
for unit in munge mariadb slurmctld slurmd slurmdbd; do
    rm -f "$root/etc/systemd/system/multi-user.target.wants/$unit.service"
done
rm -f "$root/etc/munge/munge.key" "$root/etc/machine-id"
: >"$root/etc/machine-id"

#!/bin/sh
# The system of the second lab, arranged like a foreign site: its users have no sudo,
# /tmp is noexec, and compilers and MPIs come from a hierarchy of Lmod's modules alone.
set -eu
root=$1
modules=/opt/site/modules

echo "UsePAM yes" >>"$root/etc/ssh/sshd_config.d/seatrial-lab.conf"

cat >"$root/etc/systemd/system/seatrial-lab-tmp.service" <<'EOT'
[Unit]
Description=No programs run in /tmp
DefaultDependencies=no
Before=basic.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=mount -o remount,bind,nosuid,nodev,noexec /tmp
[Install]
WantedBy=basic.target
EOT
chroot "$root" systemctl enable --quiet seatrial-lab-tmp.service

# Without its module, an MPI is not on PATH.
chroot "$root" update-alternatives --quiet --remove-all mpi
chroot "$root" update-alternatives --quiet --remove-all mpirun
for mpi in openmpi mpich; do
    mkdir -p "$root/opt/site/$mpi/bin"
    for program in mpicc mpirun mpiexec; do
        printf '#!/bin/sh\nexec /usr/bin/%s.%s "$@"\n' "$program" "$mpi" \
            >"$root/opt/site/$mpi/bin/$program"
        chmod 0755 "$root/opt/site/$mpi/bin/$program"
    done
done

module_file() { # PATH BELOW THE HIERARCHY, content on standard input
    mkdir -p "$root$modules/$(dirname "$1")"
    cat >"$root$modules/$1"
}
module_file Core/gcc/14.lua <<EOT
whatis("GNU compilers")
family("compiler")
prepend_path("MODULEPATH", "$modules/Compiler/gcc/14")
EOT
module_file Compiler/gcc/14/openmpi/5.0.lua <<EOT
whatis("Open MPI for gcc/14")
family("mpi")
prepend_path("PATH", "/opt/site/openmpi/bin")
prepend_path("MODULEPATH", "$modules/MPI/gcc/14/openmpi/5.0")
EOT
module_file Compiler/gcc/14/mpich/4.2.lua <<EOT
whatis("MPICH for gcc/14")
family("mpi")
prepend_path("PATH", "/opt/site/mpich/bin")
EOT
# Debian builds both with Open MPI.
module_file MPI/gcc/14/openmpi/5.0/hpcc/1.5.lua <<EOT
whatis("HPC Challenge")
setenv("HPCC_HOME", "/usr")
EOT
module_file MPI/gcc/14/openmpi/5.0/lammps/2025.lua <<EOT
whatis("LAMMPS")
setenv("LAMMPS_HOME", "/usr")
EOT
echo "$modules/Core" >"$root/etc/lmod/modulespath"

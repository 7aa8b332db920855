#!/bin/sh
# The database user is the system user slurm, known by its socket: no password anywhere.
grants=$(mysql --batch --skip-column-names --execute "SHOW GRANTS FOR slurm@localhost" 2>/dev/null || true)
case $grants in
*slurm_acct_db*) exit 0 ;;
esac
mysql --execute "
    CREATE DATABASE IF NOT EXISTS slurm_acct_db;
    CREATE USER IF NOT EXISTS slurm@localhost IDENTIFIED VIA unix_socket;
    GRANT ALL ON slurm_acct_db.* TO slurm@localhost;"
echo created

#!/bin/sh
# Add what is missing of accounts, QOS, users and a reservation; prints what was added.
# Usage: accounts.sh USER RESERVED_NODES
# The user's default account is one that may not use the partitions.
user=$1 nodes=$2

has() { # OPTION...: of sacctmgr show
    [ -n "$(sacctmgr --noheader --parsable2 show "$@")" ]
}
sacctmgr_add() {
    sacctmgr --immediate --quiet add "$@"
    echo "added $*"
}

has qos name=acceptance || sacctmgr_add qos acceptance MaxWall=12:00:00
for account in guests acceptance; do
    has account name="$account" || sacctmgr_add account "$account"
done
has user name="$user" || sacctmgr_add user "$user" account=guests
has assoc user="$user" account=acceptance ||
    sacctmgr_add user "$user" account=acceptance qos=normal,acceptance
scontrol show reservation acceptance >/dev/null 2>&1 || {
    scontrol create reservation ReservationName=acceptance Accounts=acceptance \
        Nodes="$nodes" StartTime=now Duration=UNLIMITED
    echo "added reservation acceptance"
}

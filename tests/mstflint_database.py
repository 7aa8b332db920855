"""A small database with the schema of mstflint's mlxconfig_host.db."""

import sqlite3
from contextlib import closing
from pathlib import Path

SCHEMA = """
create table tlvs (name text not null, id int, target text, cap int, version text,
    description text, size int not null, class int not null, mlxconfig_name text,
    primary key (name));
create table params (name text not null, tlv_name text not null, offset text not null,
    size text not null, type text, description text, textual_values text,
    mlxconfig_name text unique, dependency text, valid_bit text, temp_vars text,
    min_val text, max_val text, rule text, regex text,
    supported_from_version int default 0, array_length int default 0,
    primary key (name, tlv_name));
insert into tlvs (name, size, class) values
    ('global', 4, 0), ('port', 4, 1), ('module', 4, 9);
"""
PARAMETERS = [
    ("port", "LINK_TYPE", "0x0.2", "ENUM", "IB=0x1,ETH=0x2", "", 0),
    ("port", "LLDP_NB_RX_MODE", "0x0.2", "ENUM", "OFF=0x0,ALL=0x2", "", 0),
    ("port", "CNP_DSCP", "0x0.6", "UNSIGNED", None, "", 0),
    ("global", "SRIOV_EN", "0x0.1", "BOOL", None, "", 0),
    ("global", "NUM_OF_VFS", "0x0.16", "UNSIGNED", None, "$cap.max_vfs", 0),
    ("global", "LOG_SIZE", "0x0.5", "UNSIGNED", None, "20", 0),
    ("global", "WIDE", "0x8.0", "UNSIGNED", None, None, 0),
    ("global", "DESCRIPTORS", "0x8.0", "UNSIGNED", None, "", 8),
    ("module", "POWER_OVERRIDE", "0x0.8", "UNSIGNED", None, "", 0),
    ("global", None, "0x0.8", "UNSIGNED", None, "", 0),
]
"""Group, name, size in bytes and bits, type, texts, greatest value, array length."""


def write_database(folder: Path) -> Path:
    """Write the database into a folder."""
    file = folder / "host.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(SCHEMA)
        connection.executemany(
            "insert into params (name, offset, tlv_name, mlxconfig_name, size, type, "
            "textual_values, max_val, array_length) "
            "values (lower(coalesce(?2, 'x')), '0x0.0', ?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            PARAMETERS,
        )
        connection.commit()
    return file

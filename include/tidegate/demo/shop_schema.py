"""The shop's tables: related, of many types, one without a key; and the DDL that happens while it is open.

In:  nothing; this is SQL that MariaDB and MySQL both take.
Out: CREATE statements in an order that foreign keys allow, seed rows, and the DDL of the day.

No ON DELETE CASCADE: MariaDB doesn't log the rows that a cascade deletes.
"""

from __future__ import annotations

from typing import Final

DATABASE: Final = "shop"

TABLES: Final = (
    """
    CREATE TABLE categories (
        id smallint unsigned NOT NULL PRIMARY KEY,
        parent_id smallint unsigned NULL,
        name varchar(80) NOT NULL
    )""",
    """
    CREATE TABLE products (
        sku varchar(24) NOT NULL PRIMARY KEY,
        category_id smallint unsigned NOT NULL,
        title varchar(200) NOT NULL,
        description mediumtext NULL,
        price decimal(10,2) NOT NULL,
        weight_g mediumint unsigned NULL,
        picture mediumblob NULL,
        release_year year NULL,
        attributes json NULL,
        rating double NULL,
        FOREIGN KEY (category_id) REFERENCES categories (id)
    )""",
    """
    CREATE TABLE inventory (
        warehouse tinyint unsigned NOT NULL,
        sku varchar(24) NOT NULL,
        quantity int NOT NULL,
        reserved int unsigned NOT NULL DEFAULT 0,
        counted_at datetime(3) NULL,
        PRIMARY KEY (warehouse, sku)
    )""",
    """
    CREATE TABLE customers (
        id bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY,
        email varchar(190) CHARACTER SET ascii NOT NULL UNIQUE,
        name varchar(120) NOT NULL,
        level enum('basic','silver','gold','früh') NOT NULL DEFAULT 'basic',
        interests set('books','music','garden','茶') NOT NULL DEFAULT '',
        born date NULL,
        credit decimal(20,4) NOT NULL DEFAULT 0,
        height_cm float NULL,
        flags bit(10) NOT NULL DEFAULT b'0',
        subscribed bit(1) NOT NULL DEFAULT b'1',
        active tinyint(1) NOT NULL DEFAULT 1,
        avatar varbinary(64) NULL,
        profile json NULL,
        created_at timestamp(6) NULL DEFAULT NULL,
        updated_at datetime(6) NULL
    )""",
    """
    CREATE TABLE addresses (
        customer_id bigint unsigned NOT NULL,
        number smallint NOT NULL,
        street varchar(200) NOT NULL,
        city varchar(80) NOT NULL,
        country char(2) CHARACTER SET latin1 NOT NULL,
        latitude decimal(9,6) NULL,
        longitude decimal(9,6) NULL,
        delivery_from time NULL,
        hint tinytext NULL,
        PRIMARY KEY (customer_id, number),
        FOREIGN KEY (customer_id) REFERENCES customers (id)
    )""",
    """
    CREATE TABLE orders (
        id bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY,
        customer_id bigint unsigned NOT NULL,
        status enum('placed','paid','shipped','cancelled') NOT NULL,
        placed_at datetime(6) NOT NULL,
        paid_at timestamp NULL DEFAULT NULL,
        total decimal(14,4) NOT NULL,
        window_start time(3) NULL,
        remark varchar(500) NULL,
        KEY (customer_id),
        FOREIGN KEY (customer_id) REFERENCES customers (id)
    ) AUTO_INCREMENT = 9223372036854775000""",
    """
    CREATE TABLE order_items (
        order_id bigint unsigned NOT NULL,
        line smallint unsigned NOT NULL,
        sku varchar(24) NOT NULL,
        quantity smallint NOT NULL,
        price decimal(10,2) NOT NULL,
        discount decimal(5,4) NOT NULL DEFAULT 0,
        PRIMARY KEY (order_id, line),
        FOREIGN KEY (order_id) REFERENCES orders (id)
    )""",
    """
    CREATE TABLE payments (
        id binary(16) NOT NULL PRIMARY KEY,
        order_id bigint unsigned NOT NULL,
        method varchar(20) NOT NULL,
        amount decimal(14,4) NOT NULL,
        receipt blob NULL,
        booked_at timestamp(3) NULL DEFAULT NULL,
        KEY (order_id),
        FOREIGN KEY (order_id) REFERENCES orders (id)
    )""",
    """
    CREATE TABLE shipments (
        order_id bigint unsigned NOT NULL PRIMARY KEY,
        carrier char(12) NOT NULL,
        tracking varchar(40) CHARACTER SET ascii NULL,
        shipped_on date NOT NULL,
        transit time NULL,
        stops json NULL,
        weight_kg double NOT NULL,
        FOREIGN KEY (order_id) REFERENCES orders (id)
    )""",
    """
    CREATE TABLE page_views (
        at datetime(3) NOT NULL,
        customer_id bigint unsigned NULL,
        path varchar(120) NOT NULL,
        milliseconds int NOT NULL
    )""",
    """
    CREATE TABLE carts (
        customer_id bigint unsigned NOT NULL,
        sku varchar(24) NOT NULL,
        quantity tinyint NOT NULL,
        PRIMARY KEY (customer_id, sku)
    )""",
    """
    CREATE TABLE coupons (
        code varchar(16) NOT NULL PRIMARY KEY,
        percent tinyint unsigned NOT NULL
    )""",
)

# What happens while the sessions go on: (fraction of the running time, statement).
DDL_OF_THE_DAY: Final = (
    (0.20, "ALTER TABLE orders ADD COLUMN channel varchar(20) NOT NULL DEFAULT 'web'"),
    (
        0.35,
        """
        CREATE TABLE reviews (
            id int unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY,
            sku varchar(24) NOT NULL,
            stars tinyint NOT NULL,
            body text NULL,
            written_at datetime NULL
        )""",
    ),
    (0.50, "TRUNCATE TABLE carts"),
    (0.60, "DROP TABLE coupons"),
    (0.70, "ALTER TABLE customers ADD COLUMN phone varchar(30) NULL, DROP COLUMN height_cm"),
)

CATEGORIES: Final = (
    (1, None, "Books"),
    (2, 1, "Crime novels"),
    (3, None, "Garten"),
    (4, None, "お茶"),
    (5, 4, "烏龍茶"),
)

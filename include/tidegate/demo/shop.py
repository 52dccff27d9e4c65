"""The sessions of a shop: one function per transaction, each of several statements.

In:  a cursor inside a transaction, this session's own random numbers.
Out: rows written; the caller commits, or rolls back when the function says so.

Everything random comes from `dice`, so a seed gives the same choices; which session is first remains the
server's business, as in life.
"""

from __future__ import annotations

import datetime as dt
import json
import random
from collections.abc import Callable
from typing import Any, Final

Cursor = Any
Step = Callable[[Cursor, random.Random], bool]

_NAMES: Final = (
    "Ada Lovelace",
    "王小明",
    "Ñandú Pérez",
    "Zoë Kröger",
    "Олена Коваль",
    "علي حسن",
    "😀 Emoji",
    "O'Brien \\ Sons",
)
_CITIES: Final = (("Zürich", "CH"), ("東京", "JP"), ("Łódź", "PL"), ("São Paulo", "BR"), ("Reykjavík", "IS"))
_PATHS: Final = ("/", "/tea", "/books?id=7", "/checkout", "/search?q=%E8%8C%B6")


_DIGITS: Final = " UNION ALL ".join(f"SELECT {digit} AS d" for digit in range(10))
_NUMBER: Final = "a.d + 10 * b.d + 100 * c.d + 1000 * d.d + 10000 * e.d"
# Of order n: table, columns, values, whether n has one.
_PAST: Final = (
    (
        "customers",
        "id, email, name, level, interests, born, credit, flags, avatar, profile, created_at",
        """n + 1, CONCAT('c', n, '@example.net'), CONCAT('Kundin № ', n), ELT(1 + n % 4, 'basic', 'silver', 'gold',
        'früh'), ELT(1 + n % 3, '', 'books', 'music,茶'), DATE '1950-01-01' + INTERVAL n DAY, n * 1.25, n % 1024,
        UNHEX(MD5(n)), JSON_OBJECT('n', n), TIMESTAMP '2026-01-01 08:00:00' + INTERVAL n SECOND""",
        "n % 3 = 0",
    ),
    (
        "orders",
        "id, customer_id, status, placed_at, total, remark",
        """n + 1, 1 + n - n % 3, ELT(1 + n % 4, 'placed', 'paid', 'shipped', 'cancelled'),
        TIMESTAMP '2026-01-01 09:00:00' + INTERVAL n SECOND, n * 0.0375, IF(n % 7, NULL, '茶')""",
        "true",
    ),
    (
        "order_items",
        "order_id, line, sku, quantity, price",
        "n + 1, 1, CONCAT('SKU-', LPAD(n % 60, 4, '0')), 1 + n % 5, n / 100",
        "true",
    ),
    ("order_items", "order_id, line, sku, quantity, price", "n + 1, 2, 'SKU-0007', 1, 9.90", "n % 3 < 2"),
    (
        "payments",
        "id, order_id, method, amount, booked_at",
        "UNHEX(MD5(CONCAT('p', n))), n + 1, 'card', n * 0.0375, TIMESTAMP '2026-01-01 10:00:00' + INTERVAL n SECOND",
        "true",
    ),
    (
        "shipments",
        "order_id, carrier, tracking, shipped_on, weight_kg",
        "n + 1, 'Post', MD5(n), DATE '2026-01-02' + INTERVAL n % 90 DAY, n / 7",
        "n % 4 = 2",
    ),
)


def seed(cursor: Cursor, dice: random.Random, categories: tuple[tuple[Any, ...], ...]) -> None:
    """The shop on its first morning."""
    cursor.executemany("INSERT INTO categories VALUES (%s, %s, %s)", categories)
    for number in range(60):
        _add_product(cursor, dice, f"SKU-{number:04d}")
    for _ in range(20):
        register(cursor, dice)
    cursor.executemany("INSERT INTO coupons VALUES (%s, %s)", [(f"SAVE{n}", n) for n in range(5, 55, 5)])


def stock(cursor: Cursor, orders: int) -> None:
    """Years of business in a few statements: about five rows for each of so many orders, up to 100,000 of them."""
    for table, names, values, share in _PAST:
        numbers = f"SELECT {_NUMBER} AS n FROM {', '.join(f'({_DIGITS}) {name}' for name in 'abcde')}"
        sql = f"INSERT INTO {table} ({names}) SELECT {values} FROM ({numbers}) past WHERE n < %s AND ({share})"
        cursor.execute(sql.replace("%", "%%").replace("%%s", "%s"), (orders,))


def register(cursor: Cursor, dice: random.Random) -> bool:
    """A new customer with addresses."""
    now = _now()
    cursor.execute(
        "INSERT INTO customers (email, name, level, interests, born, credit, flags, subscribed, active, avatar,"
        " profile, created_at, updated_at) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
        (
            f"{dice.getrandbits(60):x}@example.org",
            dice.choice(_NAMES),
            dice.choice(("basic", "silver", "gold", "früh")),
            dice.choice(("", "books", "books,garden", "music,茶")),
            _maybe(dice, dt.date(1940, 1, 1) + dt.timedelta(days=dice.randrange(25_000))),
            f"{dice.randrange(-(10**9), 10**12) / 10_000:.4f}",
            dice.getrandbits(10),
            dice.getrandbits(1),
            dice.getrandbits(1),
            _maybe(dice, dice.randbytes(dice.randrange(0, 64))),
            _maybe(dice, json.dumps({"tags": dice.sample(range(9), 3), "näme": dice.choice(_NAMES)})),
            now,
            now,
        ),
    )
    customer = cursor.lastrowid
    for number in range(1, dice.randrange(1, 4)):
        city, country = dice.choice(_CITIES)
        cursor.execute(
            "INSERT INTO addresses VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
            (
                customer, number, f"{dice.randrange(1, 200)} High Street", city, country,
                _maybe(dice, f"{dice.uniform(-90, 90):.6f}"), _maybe(dice, f"{dice.uniform(-180, 180):.6f}"),
                _maybe(dice, f"{dice.randrange(24):02d}:30:00"), _maybe(dice, "ring twice"),
            ),
        )  # fmt: skip
    return True


def place_order(cursor: Cursor, dice: random.Random) -> bool:
    """An order with items, its stock reserved. One in ten is rolled back, one in six loses its last item."""
    customer, skus = _customer(cursor, dice), _skus(cursor, dice, dice.randrange(1, 6))
    cursor.execute(
        "INSERT INTO orders (customer_id, status, placed_at, total, window_start, remark)"
        " VALUES (%s, 'placed', %s, 0, %s, %s)",
        (customer, _now(), _maybe(dice, f"{dice.randrange(-30, 30)}:15:00.125"), _maybe(dice, "gift 🎁\nsecond line")),
    )
    order = cursor.lastrowid
    for line, sku in enumerate(skus, 1):
        if line == len(skus) > 1:
            cursor.execute("SAVEPOINT last_item")
        cursor.execute(
            "INSERT INTO order_items (order_id, line, sku, quantity, price, discount)"
            " SELECT %s, %s, sku, %s, price, %s FROM products WHERE sku = %s",
            (order, line, dice.randrange(1, 9), f"{dice.random():.4f}", sku),
        )
        cursor.execute("UPDATE inventory SET reserved = reserved + 1, counted_at = %s WHERE sku = %s", (_now(), sku))
    if len(skus) > 1 and dice.random() < 1 / 6:
        cursor.execute("ROLLBACK TO SAVEPOINT last_item")
    cursor.execute(
        "UPDATE orders SET total = (SELECT coalesce(sum(quantity * price * (1 - discount)), 0) FROM order_items"
        " WHERE order_id = %s) WHERE id = %s",
        (order, order),
    )
    return dice.random() > 1 / 10


def pay(cursor: Cursor, dice: random.Random) -> bool:
    """A placed order is paid."""
    order = _order(cursor, "placed")
    if order is None:
        return False
    cursor.execute(
        "UPDATE orders SET status = 'paid', paid_at = %s WHERE id = %s", (_now().replace(microsecond=0), order)
    )
    cursor.execute(
        "INSERT INTO payments (id, order_id, method, amount, receipt, booked_at)"
        " SELECT %s, id, %s, total, %s, %s FROM orders WHERE id = %s",
        (
            dice.randbytes(15) + b"\0",
            dice.choice(("card", "invoice")),
            _maybe(dice, dice.randbytes(200)),
            _now(),
            order,
        ),
    )
    return True


def ship(cursor: Cursor, dice: random.Random) -> bool:
    """A paid order leaves the house: stock goes down."""
    order = _order(cursor, "paid")
    if order is None:
        return False
    cursor.execute(
        "UPDATE inventory i JOIN order_items o ON o.sku = i.sku SET i.quantity = i.quantity - o.quantity"
        " WHERE o.order_id = %s AND i.warehouse = %s",
        (order, dice.randrange(1, 4)),
    )
    cursor.execute(
        "INSERT INTO shipments VALUES (%s, %s, %s, %s, %s, %s, %s)",
        (
            order, dice.choice(("post", "bike", "drone")), _maybe(dice, f"T{dice.getrandbits(40):x}"), _now().date(),
            _maybe(dice, f"{dice.randrange(700)}:59:59"), _maybe(dice, '["hub", {"at": null}]'),
            dice.uniform(0.01, 30),
        ),
    )  # fmt: skip
    cursor.execute("UPDATE orders SET status = 'shipped' WHERE id = %s", (order,))
    return True


def cancel(cursor: Cursor, dice: random.Random) -> bool:
    """An order and all that hangs on it is deleted, or only marked."""
    order = _order(cursor, dice.choice(("placed", "paid")))
    if order is None:
        return False
    if dice.random() < 0.5:
        cursor.execute("UPDATE orders SET status = 'cancelled', remark = NULL WHERE id = %s", (order,))
        return True
    for table, column in (("order_items", "order_id"), ("payments", "order_id"), ("orders", "id")):
        cursor.execute(f"DELETE FROM `{table}` WHERE `{column}` = %s", (order,))
    return True


def change_sku(cursor: Cursor, dice: random.Random) -> bool:
    """A product gets another key, and its stock with it."""
    old = _skus(cursor, dice, 1)[0]
    new = f"SKU-{dice.getrandbits(48):x}"
    cursor.execute("UPDATE products SET sku = %s WHERE sku = %s", (new, old))
    cursor.execute("UPDATE inventory SET sku = %s WHERE sku = %s", (new, old))
    return True


def move_address(cursor: Cursor, dice: random.Random) -> bool:
    """Half of a composite key changes; sometimes two rows trade places by way of a third number."""
    customer = _customer(cursor, dice)
    moves = [(1, 99), (2, 1), (99, 2)] if dice.random() < 0.5 else [(1, dice.randrange(100, 30_000))]
    for old, new in moves:
        cursor.execute(
            "UPDATE addresses SET number = %s, hint = %s WHERE customer_id = %s AND number = %s",
            (new, _maybe(dice, "moved"), customer, old),
        )
    return True


def browse(cursor: Cursor, dice: random.Random) -> bool:
    """Page views, equal ones among them; the oldest are trimmed. The table has no key."""
    row = (_now(), _maybe(dice, _customer(cursor, dice)), dice.choice(_PATHS), dice.randrange(2000))
    rows = [row] * dice.randrange(1, 4) + [(*row[:3], -1)]
    cursor.executemany("INSERT INTO page_views VALUES (%s, %s, %s, %s)", rows)
    if dice.random() < 0.3:
        cursor.execute("UPDATE page_views SET milliseconds = 0 WHERE milliseconds = -1 LIMIT 2")
    if dice.random() < 0.3:
        cursor.execute("DELETE FROM page_views ORDER BY at LIMIT 3")
    return True


def fill_cart(cursor: Cursor, dice: random.Random) -> bool:
    """REPLACE and INSERT ... ON DUPLICATE KEY UPDATE: deletes and updates in disguise."""
    customer, sku = _customer(cursor, dice), _skus(cursor, dice, 1)[0]
    cursor.execute("REPLACE INTO carts VALUES (%s, %s, %s)", (customer, sku, dice.randrange(1, 100)))
    cursor.execute(
        "INSERT INTO carts VALUES (%s, %s, 1) ON DUPLICATE KEY UPDATE quantity = least(quantity, 100) + 1",
        (customer, sku),
    )
    return True


def reprice(cursor: Cursor, dice: random.Random) -> bool:
    """One statement, many rows."""
    cursor.execute(
        "UPDATE products SET price = least(price * %s, 99999), rating = %s WHERE category_id = %s",
        (f"{dice.uniform(0.9, 1.1):.3f}", _maybe(dice, dice.uniform(0, 5)), dice.randrange(1, 6)),
    )
    return True


def grow(cursor: Cursor, dice: random.Random) -> bool:
    """A new product; a customer is updated to NULLs and back."""
    _add_product(cursor, dice, f"NEW-{dice.getrandbits(48):x}")
    cursor.execute(
        "UPDATE customers SET born = NULL, avatar = NULL, profile = %s, credit = credit + 0.0001, updated_at = %s"
        " WHERE id = %s",
        (_maybe(dice, '{"a": [1, 2.5, "x", null, true]}'), _now(), _customer(cursor, dice)),
    )
    return True


def review(cursor: Cursor, dice: random.Random) -> bool:
    """For a table that came while the shop was open."""
    cursor.execute(
        "INSERT INTO reviews (sku, stars, body, written_at) VALUES (%s, %s, %s, %s)",
        (_skus(cursor, dice, 1)[0], dice.randrange(1, 6), _maybe(dice, "Très bon thé — 很好喝 👍" * 5), _now()),
    )
    cursor.execute("UPDATE reviews SET stars = 6 - stars WHERE id = %s", (cursor.lastrowid // 2,))
    return True


def order_by_phone(cursor: Cursor, dice: random.Random) -> bool:
    """For a column that came while the shop was open."""
    order = _order(cursor, "placed")
    if order is None:
        return False
    cursor.execute("UPDATE orders SET channel = %s WHERE id = %s", (dice.choice(("phone", "電話", "")), order))
    return True


# How often each happens; the last two only once their DDL has run.
STEPS: Final[tuple[tuple[Step, int], ...]] = (
    (place_order, 30), (pay, 14), (ship, 8), (cancel, 5), (register, 6), (change_sku, 3), (move_address, 5),
    (browse, 12), (fill_cart, 6), (reprice, 1), (grow, 5),
)  # fmt: skip
STEPS_AFTER_DDL: Final[tuple[tuple[str, Step, int], ...]] = (("reviews", review, 5), ("channel", order_by_phone, 5))


def _add_product(cursor: Cursor, dice: random.Random, sku: str) -> None:
    cursor.execute(
        "INSERT INTO products VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
        (
            sku, dice.randrange(1, 6), f"{dice.choice(('Tea', '茶', 'Thé'))} {sku}",
            _maybe(dice, "long " * dice.randrange(200)), f"{dice.randrange(1, 10**6) / 100:.2f}",
            _maybe(dice, dice.randrange(1 << 24)), _maybe(dice, dice.randbytes(dice.randrange(2000))),
            _maybe(dice, dice.randrange(1901, 2156)),
            _maybe(dice, json.dumps({"colour": dice.choice(("grün", "红")), "sizes": [1, 2]})),
            _maybe(dice, dice.uniform(0, 5)),
        ),
    )  # fmt: skip
    rows = [(warehouse, sku, dice.randrange(-5, 1000), 0, _maybe(dice, _now())) for warehouse in (1, 2, 3)]
    cursor.executemany("INSERT INTO inventory VALUES (%s, %s, %s, %s, %s)", rows)


def _customer(cursor: Cursor, dice: random.Random) -> int:
    cursor.execute(
        "SELECT id FROM customers WHERE id >= (SELECT max(id) FROM customers) * %s LIMIT 1", (dice.random(),)
    )
    customer: int = cursor.fetchone()[0]
    return customer


def _skus(cursor: Cursor, dice: random.Random, count: int) -> list[str]:
    cursor.execute("SELECT sku FROM products ORDER BY sku LIMIT 1000")
    return dice.sample([row[0] for row in cursor.fetchall()], count)


def _order(cursor: Cursor, status: str) -> int | None:
    cursor.execute("SELECT id FROM orders WHERE status = %s LIMIT 1 FOR UPDATE SKIP LOCKED", (status,))
    row = cursor.fetchone()
    return row[0] if row else None


def _maybe(dice: random.Random, value: Any) -> Any:
    """NULL one time in five."""
    return None if dice.random() < 0.2 else value


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC).replace(tzinfo=None)

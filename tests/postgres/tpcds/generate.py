"""Small data of TPC-DS's shape: its 24 tables, keys, calendar and the words its queries look for.

Not dsdgen's bytes: values are drawn by `random.Random`, whose `random()` is the same for ever.

INVARIANTS
  G1  the same rows everywhere; PostgreSQL's answers were recorded over them.
  G2  a return is of a sale; a third of the catalog's sales are to customers who returned the same
      item to a store, since queries follow such customers.
  G3  `_NULL_SHARE` of the values are NULL wherever the schema allows it, but for dimensions' dates.
"""

import datetime
import random
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Final, TypeAlias

Value: TypeAlias = int | str | Decimal | datetime.date | None
Row: TypeAlias = dict[str, Value]

SCHEMA: Final = (Path(__file__).parent / "testdata" / "schema.sql").read_text()

_NULL_SHARE = 0.04
_FIRST_DAY, _LAST_DAY = datetime.date(1998, 1, 1), datetime.date(2003, 1, 5)
_FIRST_SK = 2_450_815

_COUNTS = {
    "customer_address": 150,
    "customer_demographics": 140,
    "warehouse": 5,
    "ship_mode": 20,
    "reason": 35,
    "income_band": 20,
    "item": 180,
    "store": 8,
    "call_center": 5,
    "customer": 200,
    "web_site": 6,
    "household_demographics": 180,
    "web_page": 12,
    "promotion": 30,
    "catalog_page": 25,
}
_SALES = {"store_sales": 4000, "catalog_sales": 2500, "web_sales": 2000}
_INVENTORY = 4000

# What a column holds where its name does not tell. Words in front come more often.
_WORDS: Final[dict[str, Sequence[Value]]] = {
    "ca_city": ("Edgewood", "Fairview", "Midway", "Oak Grove"),
    "ca_county": ("Rush County", "Toole County", "Jefferson County", "Dona Ana County",
                  "La Porte County", "Williamson County", "Bronx County"),
    "ca_state": ("TX", "OH", "GA", "KY", "NM", "VA", "MS", "CA", "OR", "WA", "IN", "ND", "OK",
                 "CO", "MN", "NJ", "WI", "CT", "LA", "IA", "AR", "IL", "TN"),
    "ca_country": ("United States",),
    "ca_gmt_offset": (-5, -5, -7, -6),
    "ca_location_type": ("apartment", "condo", "single family"),
    "ca_zip": ("35709", "24128", "76232", "65084", "85669", "86197", "88274", "83405", "81792",
               "57834", "13394"),
    "cc_county": ("Williamson County",),
    "cc_name": ("NY Metro", "Mid Atlantic", "North Midwest"),
    "cc_manager": ("Bob Belcher", "Felipe Perkins", "Mark Hightower"),
    "cc_class": ("large", "medium", "small"),
    "cp_department": ("DEPARTMENT",),
    "cp_type": ("bi-annual", "quarterly", "monthly"),
    "hd_buy_potential": (">10000", "Unknown", "1001-5000", "501-1000", "0-500", "5001-10000"),
    "hd_dep_count": (4, 2, 0, 3, 1, 6, 7, 5, 8, 9),
    "hd_vehicle_count": (1, 0, 3, 2, -1, 4),
    "hd_income_band_sk": tuple(range(1, 21)),
    "i_category": ("Books", "Women", "Men", "Electronics", "Music", "Sports", "Home", "Jewelry",
                   "Children", "Shoes"),
    "i_class": ("personal", "reference", "accessories", "pants", "portable", "self-help",
                "classical", "fragrances", "maternity", "computers", "stereo", "football",
                "shirts", "birdal", "dresses"),
    "i_brand": ("scholaramalgamalg #14", "exportiunivamalg #9", "amalgimporto #1",
                "edu packscholar #1", "scholaramalgamalg #7", "scholaramalgamalg #9",
                "exportiimporto #1", "importoamalg #1"),
    "i_brand_id": (1001001, 1002001, 2003001, 5004001, 7008009),
    "i_class_id": (1, 2, 3, 4, 5, 6, 7),
    "i_manufact_id": (128, 977, 677, 940, 694, 808, 738, 129, 270, 821, 423, 350, 7, 19),
    "i_color": ("powder", "peach", "orange", "khaki", "brown", "honeydew", "floral", "deep",
                "light", "cornflower", "midnight", "snow", "cyan", "papaya", "frosted", "forest",
                "ghost", "slate", "blanched", "burnished", "purple", "burlywood", "indian",
                "spring", "medium"),
    "i_size": ("medium", "extra large", "small", "petite", "N/A", "large"),
    "i_units": ("Oz", "Ton", "Bunch", "Dozen", "Ounce", "N/A", "Box", "Pound", "Pallet", "Gross",
                "Cup", "Dram", "Each", "Tbl", "Lb", "Bundle"),
    "i_manager_id": (1, 8, 28, 40, 77),
    "i_manufact": ("able", "ought", "eingeing", "antiese", "prically"),
    "p_channel_dmail": ("Y", "N"),
    "p_channel_email": ("N", "Y"),
    "p_channel_tv": ("N", "Y"),
    "p_channel_event": ("N", "Y"),
    "p_promo_name": ("ought", "able", "pri", "ese", "anti"),
    "s_city": ("Fairview", "Midway"),
    "s_county": ("Williamson County", "Orange County", "Bronx County", "Franklin Parish"),
    "s_state": ("TN", "OH", "TX"),
    "s_store_name": ("ese", "ought", "able"),
    "s_gmt_offset": (-5, -5, -6),
    "s_market_id": (8, 4),
    "s_number_employees": (210, 245, 290, 200, 295),
    "s_company_id": (1,),
    "s_company_name": ("Unknown",),
    "s_zip": ("35709", "24128", "76232", "85669"),
    "sm_carrier": ("DHL", "BARIAN", "UPS", "FEDEX"),
    "sm_type": ("EXPRESS", "OVERNIGHT", "REGULAR", "TWO DAY", "LIBRARY"),
    "sm_code": ("AIR", "SURFACE", "SEA"),
    "c_salutation": ("Mr.", "Mrs.", "Dr.", "Miss"),
    "c_first_name": ("Ann", "Earl", "Javier", "Lisa", "Ronald", "Rachel"),
    "c_last_name": ("Smith", "Lewis", "Hamilton", "O'Neil", "Ávila"),
    "c_preferred_cust_flag": ("Y", "N"),
    "c_birth_country": ("CHILE", "TOGO", "JAPAN", "ICELAND"),
    "web_company_name": ("pri", "able", "ought"),
    "web_name": ("site_0", "site_1"),
    "wp_char_count": (5050, 5150, 3000, 5200),
    "cd_purchase_estimate": (500, 1000, 5000, 9500),
    "cd_credit_rating": ("Low Risk", "Good", "High Risk", "Unknown"),
    "t_shift": ("first", "second", "third"),
}  # fmt: skip

_GENDERS, _MARITAL = ("M", "F"), ("S", "M", "W", "D", "U")
_EDUCATION = ("College", "Advanced Degree", "2 yr Degree", "Unknown", "4 yr Degree", "Primary",
              "Secondary")  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

# Where a key of a fact leads.
_KEYS = {
    "cdemo_sk": "customer_demographics",
    "hdemo_sk": "household_demographics",
    "addr_sk": "customer_address",
    "customer_sk": "customer",
    "item_sk": "item",
    "store_sk": "store",
    "promo_sk": "promotion",
    "call_center_sk": "call_center",
    "catalog_page_sk": "catalog_page",
    "ship_mode_sk": "ship_mode",
    "warehouse_sk": "warehouse",
    "web_page_sk": "web_page",
    "web_site_sk": "web_site",
    "reason_sk": "reason",
}
_HOURS = (8, 9, 10, 11, 12, 19, 20)


def columns() -> dict[str, list[tuple[str, str]]]:
    """For each table its columns: name and type."""
    found: dict[str, list[tuple[str, str]]] = {}
    name = ""
    for line in SCHEMA.splitlines():
        if line.startswith("create table"):
            name = line.split()[2]
            found[name] = []
        elif line.startswith("    "):
            column, _, type_ = line.strip().rstrip(",").partition(" ")
            found[name].append((column, type_))
    return found


def tables() -> Iterator[tuple[str, list[tuple[Value, ...]]]]:
    """All tables with their rows, in the order of the schema."""
    made = _Maker().made
    for name, parts in columns().items():
        yield name, [tuple(row[column] for column, _ in parts) for row in made[name]]


class _Maker:
    def __init__(self) -> None:
        self._draw = random.Random(99)
        self._columns = columns()
        self.made: dict[str, list[Row]] = {"date_dim": list(self._dates())}
        self.made["time_dim"] = list(self._times())
        self._times_open = [row["t_time_sk"] for row in self.made["time_dim"]]
        for name, count in _COUNTS.items():
            self.made[name] = [self._dimension(name, number) for number in range(1, count + 1)]
        self._sell("store_sales", "store_returns", "ss", "sr", "ticket_number")
        self._sell("catalog_sales", "catalog_returns", "cs", "cr", "order_number")
        self._sell("web_sales", "web_returns", "ws", "wr", "order_number")
        self.made["inventory"] = list(self._inventory())

    def _below(self, limit: int) -> int:
        return int(self._draw.random() * limit)

    def _pick(self, values: Sequence[Value]) -> Value:
        # The smaller of two: what stands in front comes more often.
        return values[min(self._below(len(values)), self._below(len(values)))]

    def _dates(self) -> Iterator[Row]:
        for number in range((_LAST_DAY - _FIRST_DAY).days + 1):
            day = _FIRST_DAY + datetime.timedelta(number)
            quarter = (day.month - 1) // 3
            month = (day.year - 1900) * 12 + day.month - 1
            key = _FIRST_SK + number
            yield {
                "d_date_sk": key, "d_date_id": f"AAAA{key}", "d_date": day,
                "d_month_seq": month, "d_week_seq": (key - 2_413_945) // 7,
                "d_quarter_seq": (day.year - 1900) * 4 + quarter, "d_year": day.year,
                "d_dow": day.isoweekday() % 7, "d_moy": day.month, "d_dom": day.day,
                "d_qoy": quarter + 1, "d_fy_year": day.year,
                "d_fy_quarter_seq": (day.year - 1900) * 4 + quarter,
                "d_fy_week_seq": (key - 2_413_945) // 7, "d_day_name": _DAYS[day.weekday()],
                "d_quarter_name": f"{day.year}Q{quarter + 1}", "d_holiday": "N",
                "d_weekend": "Y" if day.weekday() > 4 else "N", "d_following_holiday": "N",
                "d_first_dom": key - day.day + 1, "d_last_dom": key - day.day + 28,
                "d_same_day_ly": key - 365, "d_same_day_lq": key - 91, "d_current_day": "N",
                "d_current_week": "N", "d_current_month": "N", "d_current_quarter": "N",
                "d_current_year": "N",
            }  # fmt: skip

    def _times(self) -> Iterator[Row]:
        for hour in range(24):
            for minute in (0, 10, 29, 30, 45):
                key = hour * 3600 + minute * 60 + 38
                meal = {8: "breakfast", 12: "lunch", 19: "dinner", 20: "dinner"}.get(hour)
                yield {
                    "t_time_sk": key, "t_time_id": f"AAAA{key}", "t_time": key, "t_hour": hour,
                    "t_minute": minute, "t_second": 38, "t_am_pm": "AM" if hour < 12 else "PM",
                    "t_shift": ("third", "first", "second")[hour // 8], "t_sub_shift": "day",
                    "t_meal_time": meal,
                }  # fmt: skip

    def _dimension(self, table: str, number: int) -> Row:
        row: Row = {}
        for at, (column, type_) in enumerate(self._columns[table]):
            if at == 0:
                row[column] = number
            elif at == 1 and "not null" in type_:
                row[column] = f"AAAAAAAA{(number + 1) // 2 if table == 'item' else number:08d}"
            else:
                row[column] = self._plain(column, type_, number)
        prefix = self._columns[table][0][0].partition("_")[0]
        if table == "customer_demographics":
            row["cd_gender"] = _GENDERS[number % 2]
            row["cd_marital_status"] = _MARITAL[number // 2 % 5]
            row["cd_education_status"] = _EDUCATION[number // 10 % 7]
        elif table == "income_band":
            row["ib_lower_bound"] = 38128 if number == 5 else number * 10000 - 9999
            row["ib_upper_bound"] = 68128 if number == 5 else number * 10000
        elif table == "reason":
            row["r_reason_desc"] = f"reason {number}"
        elif table == "item":
            row["i_product_name"] = f"product{number}"
            row["i_item_desc"] = f"Things of kind {number % 40}, for all"
            row["i_current_price"] = self._pick(
                tuple(map(Decimal, ("0.99", "1.23", "62.50", "64.10", "68.00", "75.5", "1.49",
                                    "33.33", "92.40")))
            )  # fmt: skip
        if f"{prefix}_rec_start_date" in row:
            row[f"{prefix}_rec_start_date"] = datetime.date(1997, 10, 27)
            row[f"{prefix}_rec_end_date"] = None if number % 2 else datetime.date(2000, 10, 26)
        return row

    def _plain(self, column: str, type_: str, number: int) -> Value:
        if self._draw.random() < _NULL_SHARE:
            return None
        if column in _WORDS:
            found = self._pick(_WORDS[column])
            return found if not isinstance(found, int) else Decimal(found)
        if "date_sk" in column:
            return _FIRST_SK + self._below(1800)
        for ending, table in _KEYS.items():
            if column.endswith(ending) or (
                column.endswith("current_addr_sk") and ending == "addr_sk"
            ):
                return 1 + self._below(_COUNTS[table])
        if "decimal" in type_:
            return Decimal(self._below(1000)) / 100
        if "integer" in type_:
            if column.endswith("month"):
                return 1 + self._below(12)
            if column.endswith("year"):
                return 1950 + self._below(40)
            return 1 + self._below(28)
        if "date" in type_:
            return _FIRST_DAY
        width = int(type_.partition("(")[2].partition(")")[0])
        return f"{column.partition('_')[2]} {number % 7}"[:width]

    def _sell(self, sales: str, returns: str, sold: str, back: str, number: str) -> None:
        self.made[sales], self.made[returns] = [], []
        seen: set[tuple[Value, Value]] = set()
        for at in range(_SALES[sales]):
            row = self._sale(sales, sold, 1 + at // 4)
            row[f"{sold}_{number}"] = 1 + at // 4
            key = (row[f"{sold}_item_sk"], row[f"{sold}_{number}"])
            if key in seen:
                continue
            seen.add(key)
            self.made[sales].append(row)
            if self._draw.random() < 0.25:
                self.made[returns].append(self._return(returns, back, sold, number, row))

    def _sale(self, table: str, prefix: str, order: int) -> Row:
        row: Row = {}
        for column, type_ in self._columns[table]:
            row[column] = self._fact(column, type_)
        # All lines of an order have a customer, a day and a place.
        same = random.Random(order)
        for column, type_ in self._columns[table]:
            if column.endswith(("customer_sk", "sold_date_sk", "store_sk", "addr_sk", "hdemo_sk")):
                keep, self._draw = self._draw, same
                row[column] = self._fact(column, type_)
                self._draw = keep
        if prefix == "cs" and self._draw.random() < 0.33:
            earlier = self.made["store_returns"][self._below(len(self.made["store_returns"]))]
            row["cs_bill_customer_sk"] = earlier["sr_customer_sk"]
            row["cs_item_sk"] = earlier["sr_item_sk"]
            when = earlier["sr_returned_date_sk"]
            if isinstance(when, int):
                row["cs_sold_date_sk"] = when + self._below(90)
        sold = row[f"{prefix}_sold_date_sk"]
        if isinstance(sold, int) and f"{prefix}_ship_date_sk" in row:
            row[f"{prefix}_ship_date_sk"] = sold + 2 + self._below(130)
        quantity = 1 + self._below(100)
        cost, list_ = Decimal(100 + self._below(9900)) / 100, Decimal(1 + self._below(19000)) / 100
        price = (list_ * (40 + self._below(61)) / 100).quantize(Decimal("0.01"))
        coupon = Decimal(self._below(5000)) / 100 if self._below(4) == 0 else Decimal(0)
        amounts: Row = {
            "quantity": quantity, "wholesale_cost": cost, "list_price": list_,
            "sales_price": price, "ext_discount_amt": (list_ - price) * quantity,
            "ext_sales_price": price * quantity, "ext_wholesale_cost": cost * quantity,
            "ext_list_price": list_ * quantity, "coupon_amt": coupon,
            "net_paid": price * quantity - coupon, "net_profit": (price - cost) * quantity,
        }  # fmt: skip
        for name, value in amounts.items():
            if self._draw.random() >= _NULL_SHARE:
                row[f"{prefix}_{name}"] = value
        return row

    def _fact(self, column: str, type_: str) -> Value:
        if "not null" not in type_ and self._draw.random() < _NULL_SHARE:
            return None
        if column.endswith("date_sk"):
            return _FIRST_SK + self._below(1826)
        if column.endswith("time_sk"):
            wanted = self._pick(_HOURS) if self._below(2) else self._below(24)
            assert isinstance(wanted, int), "hours are numbers"
            return self._times_open[wanted * 5 + self._below(5)]
        for ending, table in _KEYS.items():
            if column.endswith(ending):
                return 1 + self._below(_COUNTS[table])
        if "decimal" in type_:
            return Decimal(self._below(30000)) / 100
        return self._below(100)

    def _return(self, table: str, prefix: str, sold: str, number: str, sale: Row) -> Row:
        row = {column: self._fact(column, type_) for column, type_ in self._columns[table]}
        row[f"{prefix}_item_sk"] = sale[f"{sold}_item_sk"]
        row[f"{prefix}_{number}"] = sale[f"{sold}_{number}"]
        buyer = sale["ss_customer_sk" if sold == "ss" else f"{sold}_bill_customer_sk"]
        for column in row:
            if column.endswith("customer_sk"):
                row[column] = buyer
            elif sold != "ss" and column.endswith("cdemo_sk"):
                row[column] = sale[f"{sold}_bill_cdemo_sk"]
            elif column.endswith("_page_sk"):
                row[column] = sale[f"{sold}_{column.partition('_')[2]}"]
        when = sale[f"{sold}_sold_date_sk"]
        if isinstance(when, int):
            row[f"{prefix}_returned_date_sk"] = when + 1 + self._below(130)
        if self._below(8) == 0:
            amount = "return_amount" if prefix == "cr" else "return_amt"
            row[f"{prefix}_{amount}"] = Decimal(1_000_100 + self._below(100_000)) / 100
        return row

    def _inventory(self) -> Iterator[Row]:
        seen: set[tuple[int, int, int]] = set()
        for _ in range(_INVENTORY):
            # Weeks, of the years that are looked at more often.
            week = self._below(260) if self._below(2) else 104 + self._below(78)
            key = (_FIRST_SK + 4 + week * 7, 1 + self._below(_COUNTS["item"]), 1 + self._below(5))
            if key not in seen:
                seen.add(key)
                yield {
                    "inv_date_sk": key[0], "inv_item_sk": key[1], "inv_warehouse_sk": key[2],
                    "inv_quantity_on_hand": None if self._below(25) == 0 else self._below(1000),
                }  # fmt: skip

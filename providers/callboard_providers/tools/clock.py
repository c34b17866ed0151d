"""The time of day in any zone, as a tool."""

from __future__ import annotations

from datetime import datetime
from difflib import get_close_matches
from zoneinfo import ZoneInfo, available_timezones

from callboard.tooling.tools import tool


@tool(effect="pure")
def current_time(time_zone: str = "UTC") -> str:
    """Tell the current date and time.

    Args:
        time_zone: An IANA name such as "Europe/Paris", or a city.
    """
    zone = find_zone(time_zone)
    return describe(datetime.now(zone), zone)


def describe(moment: datetime, zone: ZoneInfo) -> str:
    """One line with weekday, date, time to the second, zone and offset."""
    offset = moment.strftime("%z")
    return f"{moment:%A %Y-%m-%d %H:%M:%S} in {zone.key} (UTC{offset[:3]}:{offset[3:5]})"


def find_zone(name: str) -> ZoneInfo:
    """The zone of an IANA name in any case, or of a city that only one zone is named after.

    Raises:
        ValueError: naming zones that look alike.
    """
    wanted = name.strip().replace(" ", "_").casefold()
    zones = {zone.casefold(): zone for zone in available_timezones()}
    if wanted in zones:
        return ZoneInfo(zones[wanted])
    cities = {zone for folded, zone in zones.items() if folded.rpartition("/")[2] == wanted}
    if len(cities) == 1:
        return ZoneInfo(cities.pop())
    near = sorted(cities) or [zones[close] for close in _near(wanted, zones)]
    hint = f"did you mean {' or '.join(near)}?" if near else "use a name such as Europe/Paris"
    raise ValueError(f"there is no time zone {name!r}; {hint}")


def _near(wanted: str, zones: dict[str, str]) -> list[str]:
    """Names of zones like the one wanted, compared as a whole and by city."""
    by_city = {folded.rpartition("/")[2]: folded for folded in sorted(zones)}
    cities = get_close_matches(wanted.rpartition("/")[2], by_city, n=2, cutoff=0.7)
    close = [by_city[city] for city in cities] + get_close_matches(wanted, zones, n=2)
    return list(dict.fromkeys(close))[:3]

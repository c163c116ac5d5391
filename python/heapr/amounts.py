"""Sizes as people write them: "24 MB" is 24 times 1024 times 1024 bytes, as in pytest-memray."""

import re

_UNITS = {"": 1, "B": 1}
for _power, _letter in enumerate("KMGTP", start=1):
    for _unit in (_letter, _letter + "B", _letter + "IB"):
        _UNITS[_unit] = 1024**_power


def parse_size(text):
    """Bytes of "24 MB", "1.5 GiB", "100 B" or a number."""
    if isinstance(text, (int, float)):
        return int(text)
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", text)
    unit = _UNITS.get(found.group(2).upper()) if found else None
    if unit is None:
        raise ValueError(f"{text!r} is no size: write it as in 24 MB")
    return int(float(found.group(1)) * unit)


def shown_size(size_bytes):
    """The same the other way round."""
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"

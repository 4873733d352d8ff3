"""The countries of *Real weights*: well known, whose largest city is another, little known, and invented."""

CAPITALS = {
    "Japan": "Tokyo", "France": "Paris", "Germany": "Berlin", "Norway": "Oslo", "Italy": "Rome",
    "Spain": "Madrid", "Portugal": "Lisbon", "Greece": "Athens", "Poland": "Warsaw", "Austria": "Vienna",
    "Hungary": "Budapest", "Sweden": "Stockholm", "Finland": "Helsinki", "Egypt": "Cairo",
}  # fmt: skip
"""Countries of one token."""

INVENTED = (
    "Valdoria", "Brenzia", "Quorland", "Meridonia", "Tavastan", "Lorvania",
    "Zembria", "Kandora", "Ulmeria", "Dravania", "Sorbistan", "Halvetia",
)  # fmt: skip

COUNTRIES: dict[str, dict[str, str]] = {
    "well known": {
        **CAPITALS, "Ireland": "Dublin", "Russia": "Moscow", "China": "Beijing", "India": "New Delhi",
        "Kenya": "Nairobi", "Peru": "Lima", "Cuba": "Havana", "Chile": "Santiago", "Iran": "Tehran",
        "Thailand": "Bangkok",
    },
    "another city is larger": {
        "Canada": "Ottawa", "Australia": "Canberra", "Turkey": "Ankara", "Brazil": "Bras",
        "Switzerland": "Bern", "Nigeria": "Abuja",
    },
    "little known": {
        "Bhutan": "Thimphu", "Malawi": "Lilongwe", "Suriname": "Paramaribo", "Eritrea": "Asmara",
        "Kyrgyzstan": "Bishkek", "Lesotho": "Maseru", "Togo": "Lom", "Brunei": "Bandar", "Fiji": "Suva",
        "Gabon": "Libreville", "Malta": "Valletta", "Moldova": "Chi",
    },
    "invented": dict.fromkeys(INVENTED, ""),
}  # fmt: skip
"""Kind → country → how its capital begins, up to an accent; nothing for a country that does not exist."""


def is_right(kind: str, country: str, says: str) -> bool:
    """Whether an answer names the capital, at its beginning or after "known as"."""
    capital = COUNTRIES[kind][country]
    return bool(capital) and says.strip().removeprefix("known as ").startswith(capital)

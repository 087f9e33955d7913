"""Units of money in English texts, as one regular expression for all who look for amounts."""

CURRENCIES = (
    r"(?:pounds?|shillings?|pence|penny|pennies|guineas?|crowns?|dollars?|cents?|euros?|francs?|kroner|kronor|pesos?"
    r"|yen|yuan|rupees?|roubles?|rubles?|zloty)"
)
"""A unit in lower case; ends without a word boundary."""

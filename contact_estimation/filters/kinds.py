"""The table of observers; it imports nothing, so that the rooms above can add theirs at no cost."""

from __future__ import annotations

#: kind -> (module, settings class, observer class); modules are imported when asked for.
KINDS: dict[str, tuple[str, str, str]] = {
    "ekf": ("contact_estimation.filters.ekf", "EkfSettings", "Ekf"),
    "ukf": ("contact_estimation.filters.ukf", "UkfSettings", "Ukf"),
    "contact_bank": ("contact_estimation.filters.bank.observer", "BankSettings", "ContactBank"),
    "momentum": ("contact_estimation.filters.momentum", "MomentumSettings", "MomentumObserver"),
}

"""Localisation of an unknown contact: a posterior over the links' surfaces, from joint torque."""

from contact_estimation.filters.localization.link_contact import LinkContact, link_contact_of
from contact_estimation.filters.localization.settings import LocalizationSettings

__all__ = ["LinkContact", "LocalizationSettings", "link_contact_of"]

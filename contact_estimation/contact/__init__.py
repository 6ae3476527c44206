"""Compliant contacts: force laws and their parameters (papers 1 and 2, section 2)."""

from contact_estimation.contact.law import ContactLaw, LawParameter
from contact_estimation.contact.parallel import ParallelContacts
from contact_estimation.contact.registry import find_law
from contact_estimation.contact.settings import ContactSettings

__all__ = ["ContactLaw", "ContactSettings", "LawParameter", "ParallelContacts", "find_law"]

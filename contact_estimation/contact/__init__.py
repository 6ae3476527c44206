"""Compliant contacts: force laws and their parameters (papers 1 and 2, section 2)."""

from contact_estimation.contact.parallel import ParallelContacts
from contact_estimation.contact.settings import ContactSettings

__all__ = ["ContactSettings", "ParallelContacts"]

"""Contact estimation and contact-aware control of robot arms.

The rooms of the package and the imports allowed between them are described in ``docs/architecture.md``;
``test/test_architecture.py`` holds them.
"""

from pkgutil import extend_path

# The ROS build generates ``contact_estimation.msg`` into the install prefix; extending the path lets a source-first
# run (pytest, ``python -m contact_estimation``) find those messages beside the live source.
__path__ = extend_path(__path__, __name__)

__version__ = "0.1.0"

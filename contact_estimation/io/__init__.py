"""Recordings and bags to arrays and back: everything offline starts and ends here, nothing here needs ROS.

:func:`~contact_estimation.io.open.open_recording` reads any of them into a
:class:`~contact_estimation.io.recording.Recording`; :mod:`~contact_estimation.io.npz` and
:mod:`~contact_estimation.io.bag_writer` write one.
"""

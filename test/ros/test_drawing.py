"""The thread that draws."""

import threading

from contact_estimation.ros.drawing import DrawingThread


def test_it_draws_on_another_thread_until_closed_whatever_a_picture_raises():
    drawn, enough, errors = [], threading.Event(), []

    def draw():
        drawn.append(threading.current_thread())
        if len(drawn) == 1:
            raise ValueError("no picture")
        enough.set()

    drawing = DrawingThread(draw, 1e-4, errors.append)
    drawing.set_rate(1e4)  # acts at once: the first period is three hours
    assert enough.wait(30.0)
    drawing.close()
    count = len(drawn)
    assert threading.current_thread() not in drawn and [str(error) for error in errors] == ["no picture"]
    assert not drawn[0].is_alive() and len(drawn) == count

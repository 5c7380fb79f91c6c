"""Locked folders while others take and remove them."""

import sys
import threading

import pytest

from agentgyms.core.errors import EnvUnavailable
from agentgyms.data.folders import lock_folder, resumable_folder


@pytest.fixture
def switching():
    """Threads take turns after some microseconds, so that they meet between any two calls."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(usual)


def test_whoever_meets_a_folder_being_removed_finds_it_busy(tmp_path, switching):
    folder, alone = tmp_path / "models" / "work", threading.Lock()
    done, others = [], []

    def work():
        for _ in range(2000):
            try:
                with resumable_folder(folder):
                    done.append(alone.acquire(blocking=False))
                    (folder / "half").touch()
                    alone.release()
            except EnvUnavailable:
                pass
            except Exception as e:
                others.append(e)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert others == []
    assert done
    assert all(done)  # never two at once


@pytest.mark.parametrize("kind", ["file", "dangling link", "file as parent", "link as parent"])
def test_a_place_that_can_be_no_folder_is_named(tmp_path, kind):
    place = tmp_path / "work"
    if "link" in kind:
        place.symlink_to(tmp_path / "nowhere")
    else:
        place.touch()
    folder = place / "inner" if "parent" in kind else place
    with pytest.raises(OSError, match="work"), lock_folder(folder):
        pass

"""One small cluster for all tests that need one."""

import os
import signal
import uuid

import pytest

from tests.sb3_ext.cluster.processes import MARK, marked, wait_until


@pytest.fixture(scope="package")
def cluster():
    """Two processors; the user's, so that it stays when a session ends. Then none of it lives."""
    ray = pytest.importorskip("ray", reason="needs the extra: pip install 'resgym[cluster]'")
    mark = os.environ[MARK] = uuid.uuid4().hex
    os.environ["SPT_NOENV"] = "1"
    handler = signal.getsignal(signal.SIGTERM)  # Ray puts its own in the place of it
    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        object_store_memory=200_000_000,
    )
    yield
    ray.shutdown()
    signal.signal(signal.SIGTERM, handler)
    del os.environ[MARK]
    assert wait_until(lambda: not marked(mark)), marked(mark)

"""One small cluster for all tests that need one."""

import pytest

from tests.sb3_ext.cluster.processes import marked_cluster


@pytest.fixture(scope="package")
def cluster():
    """Two processors; it is the user's, so that it stays when a session ends."""
    with marked_cluster(num_cpus=2):
        yield

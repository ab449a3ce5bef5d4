from lcat_run import threads


def test_threads_are_chosen_by_the_size_of_the_graph(monkeypatch):
    monkeypatch.setattr(threads, "available_cores", lambda: 8)
    assert [threads.threads_for(edges) for edges in (0, 10_556, 238_162, 10_000_000)] == [1, 1, 4, 8]


def test_waiting_threads_sleep_soon_unless_the_user_decides():
    environment: dict[str, str] = {}
    threads.let_threads_sleep(environment)
    assert set(environment) == {"GOMP_SPINCOUNT"}
    own = {"OMP_WAIT_POLICY": "ACTIVE"}
    threads.let_threads_sleep(own)
    assert own == {"OMP_WAIT_POLICY": "ACTIVE"}

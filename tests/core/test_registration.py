from lcat_core.registration import is_same_definition


def test_a_definition_is_recognised_after_a_reload():
    def make(qualname):
        def function():
            pass

        function.__qualname__ = qualname
        return function

    assert is_same_definition(make("load"), make("load"))
    assert not is_same_definition(make("load"), make("read"))

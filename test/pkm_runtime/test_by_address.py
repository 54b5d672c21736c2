# SPDX-License-Identifier: Apache-2.0
"""Arrays that kernels are handed by one address."""

import copy
import pickle

import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_kinematics import Kinematics
from pkm_runtime.kernels.compiled import compiled


@compiled
def _read(model, data):
    """Numbers from every array of both: sizes, and sums of what is in them."""
    total = float(model.limbs.shape[0] * 1000 + model.limbs[-1, 1]) + model.task[0].size
    for i in range(model.bodies.shape[0]):
        total += model.bodies[i].mass + model.bodies[i].rotation[0, 1] + data.state[i].q
    for r in range(model.subspace.shape[0]):
        for c in range(model.subspace.shape[1]):
            total += (r + 10 * c) * model.subspace[r, c]
    data.system[1, 2, 3] = total
    data.work[0] = total
    return total


def _expected(model, data):
    r, c = np.indices(model.subspace.shape)
    return (
        len(model.limbs) * 1000
        + model.limbs[-1, 1]
        + model.task["size"][0]
        + model.bodies["mass"].sum()
        + model.bodies["rotation"][:, 0, 1].sum()
        + data.state["q"].sum()
        + ((r + 10 * c) * model.subspace).sum()
    )


def _model_and_data():
    engine = Kinematics(load_mechanism("quattro")).engine
    return engine.model, engine.data()


def test_kernels_read_and_write_the_arrays():
    model, data = _model_and_data()
    found = _read(model, data)
    assert found == pytest.approx(_expected(model, data), rel=1e-12)  # sums in another order
    assert data.system[1, 2, 3] == found
    assert data.work[0] == found


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_have_an_address_of_their_own(copied):
    model, data = _model_and_data()
    expected = _expected(model, data)
    other, others = copied(model), copied(data)
    assert int(other) != int(model)
    assert not other.bodies.flags.writeable
    del model, data  # the copies must not need them
    assert _read(other, others) == pytest.approx(expected, rel=1e-12)


def test_calls_do_not_ask_python_for_types(monkeypatch):
    model, data = _model_and_data()
    expected = _read(model, data)
    asked = []
    monkeypatch.setattr(type(_read), "typeof_pyval", lambda kernel, value: asked.append(value))
    assert _read(model, data) == expected
    assert asked == []


def test_replacing_leaves_the_first_as_it_was():
    model, data = _model_and_data()
    before = _read(model, data)
    lighter = model.bodies.copy()
    lighter["mass"] = 0.0
    changed = model.replace(bodies=lighter)
    assert _read(changed, data) == pytest.approx(_expected(changed, data), rel=1e-12)
    assert _read(model, data) == before


def test_arrays_that_kernels_were_not_compiled_for_are_refused():
    model, data = _model_and_data()
    with pytest.raises(TypeError, match=r"Data\.system"):
        data.replace(system=np.zeros((3, 3)))
    with pytest.raises(TypeError, match=r"Data\.work"):
        data.replace(work=np.zeros(20)[::2])
    with pytest.raises(TypeError, match=r"Data\.work"):
        data.replace(work=np.zeros(20, dtype=np.int64))
    with pytest.raises(TypeError, match=r"Model\.bodies"):
        model.replace(bodies=model.closures)
    with pytest.raises(AttributeError, match="constant"):
        model.bodies = model.bodies.copy()
